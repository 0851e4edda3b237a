//! Whole tunings of a tiny model: resumed, stopped, refused, run away.

use std::path::Path;

use super::*;
use crate::answer::Thresholds;
use crate::domain_file::DomainFile;
use crate::emission::{ScorerKind, Similarity};
use crate::encoder::{Precision, Storage};
use crate::model;
use crate::settings::Context;
use crate::tag::Slot;

fn settings() -> ModelSettings {
    ModelSettings {
        context: Context::Separate,
        scorer: ScorerKind::Prototype,
        similarity: Similarity::Projection,
        label_names: 0.5,
        borrow: true,
        constrained: true,
        legal_loss: true,
        ..ModelSettings::default()
    }
}

/// A tiny model as a file holds it, so that it has a checksum.
fn tagger(precision: Precision) -> Tagger {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let dir = tempfile::tempdir().unwrap();
    let untrained = model::from_encoder(&encoder, settings(), 1).unwrap();
    model::save(&untrained, dir.path(), Storage::Int8).unwrap();
    model::load_with(dir.path(), precision).unwrap()
}

/// Thirty sentences whose labels follow from the word before.
fn support() -> SupportSet {
    let words = ["paris", "jazz", "noon", "rome", "blues", "nine"];
    let line = |i: usize| {
        let [a, b] = [words[i % 6], words[(i / 2 + 1) % 6]];
        match i % 3 {
            0 => format!("go to [{a}](city) now{i} and hear [{b}](genre)"),
            1 => format!("hear some [{b} {a}](genre) to day{i}"),
            _ => format!("at [{a}](time) go to [{b}](city) please{i}"),
        }
    };
    SupportSet::parse(&(0..30).map(line).collect::<Vec<_>>().join("\n")).unwrap()
}

fn plan(rates: &[f32], n_folds: usize, updates: u64) -> Plan {
    let runs: Vec<Run> = rates.iter().map(|&rate| Run { layers: 1, rate }).collect();
    Plan { costs: vec![1.0; runs.len()], runs, n_folds, updates, batch: 24 }
}

/// Some runs, of which one gains: a tiny random encoder has much to learn.
fn tuning() -> Tuning {
    let plan = plan(&[3e-2, 1e-2], 2, 12);
    Tuning::planned(tagger(Precision::F32), support(), plan, 5).unwrap()
}

fn run(tuning: &mut Tuning) -> Vec<Event> {
    tuning.map(Result::unwrap).collect()
}

fn file(tuning: Tuning) -> (Vec<u8>, Report) {
    let Tuned { tagger, report } = tuning.finish().unwrap();
    let file = DomainFile::new(&tagger, support(), Thresholds::default()).unwrap();
    (file.to_bytes(), report)
}

#[test]
fn a_domain_is_tuned_and_its_file_answers_as_the_model_did() {
    let mut tuning = tuning();
    let events = run(&mut tuning);
    assert!(events.windows(2).all(|pair| pair[0].done <= pair[1].done + 1e-9), "{events:?}");
    assert_eq!(events.last().unwrap().stage, Stage::Final);
    let Tuned { tagger: tuned, report } = tuning.finish().unwrap();
    assert_eq!(report.verdict, Verdict::Tuned, "{report:?}");
    let best = report.best().unwrap();
    assert!(best.gain.is_worth_it() && best.score.f1 > report.untuned.f1);
    assert_eq!(tuned.figures().unwrap().tuned, best.score);

    let domain = DomainFile::new(&tuned, support(), Thresholds::default()).unwrap();
    let bytes = domain.to_bytes();
    assert!(DomainFile::is_one(&bytes));
    let again = DomainFile::from_bytes(&bytes, Path::new("x")).unwrap();
    assert_eq!(again, domain);
    let (base, path) = (tagger(Precision::F32), Path::new("x"));
    let opened = again.tagger(&base, path).unwrap();
    assert_eq!(opened.settings(), tuned.settings());
    assert_eq!(DomainFile::new(&opened, support(), Thresholds::default()).unwrap(), domain);
    let text = "hear some soul and go to oslo";
    let answer = |tagger: &Tagger| tagger.adapt(&support()).unwrap().tag_text(text).unwrap();
    assert_eq!(answer(&opened), answer(&tuned));
    assert_ne!(answer(&base), answer(&tuned));
    // Opened above a tuned model, it still stands on what that was made of.
    assert_eq!(answer(&again.tagger(&opened, path).unwrap()), answer(&tuned));
    assert!(again.tagger(&tagger(Precision::Int8), path).unwrap().adapt(&support()).is_ok());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let in_pool = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| {
            let mut tuning = tuning();
            run(&mut tuning);
            file(tuning)
        })
    };
    assert_eq!(in_pool(1), in_pool(3));
}

#[test]
fn a_run_that_was_killed_ends_in_the_same_bits() {
    let mut whole = tuning();
    let n_events = run(&mut whole).len();
    let expected = file(whole);
    for killed_after in [1, 4, 9, 17, n_events - 7, n_events - 1] {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        let mut first = tuning();
        first.keep_in(kept.clone()).unwrap();
        first.by_ref().take(killed_after).for_each(|event| assert!(event.is_ok()));
        drop(first);
        let mut second = tuning();
        second.keep_in(kept.clone()).unwrap();
        run(&mut second);
        assert_eq!(file(second), expected, "killed after {killed_after} events");
        Tuning::forget(&kept).unwrap();
        assert!(!kept.exists());
    }
}

#[test]
fn what_another_run_kept_is_refused_and_a_damaged_checkpoint_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let mut first = tuning();
    first.keep_in(kept.clone()).unwrap();
    first.by_ref().take(8).for_each(|event| assert!(event.is_ok()));
    let other = Tuning::planned(tagger(Precision::F32), support(), plan(&[1e-3], 2, 12), 5);
    assert!(matches!(other.unwrap().keep_in(kept.clone()), Err(Error::OtherRun { .. })));
    let mut expected = tuning();
    run(&mut expected);
    for entry in std::fs::read_dir(kept.join("trial-0-0-1-3e-2")).unwrap() {
        std::fs::write(entry.unwrap().path(), "cut").unwrap();
    }
    let mut second = tuning();
    second.keep_in(kept).unwrap();
    run(&mut second);
    assert_eq!(file(second), file(expected));
}

#[test]
fn what_gains_nothing_leaves_the_model_as_it_was() {
    let plan = plan(&[0.0], 2, 4);
    let mut tuning = Tuning::planned(tagger(Precision::F32), support(), plan, 5).unwrap();
    // λ learns too, but a scale alone changes no tag of a prototype without transitions.
    tuning.base = tuning
        .base
        .clone()
        .with_settings(ModelSettings {
            transitions: crate::TransitionMode::None,
            constrained: false,
            legal_loss: false,
            ..settings()
        })
        .unwrap();
    run(&mut tuning);
    let base = tuning.base.clone();
    let Tuned { tagger, report } = tuning.finish().unwrap();
    assert_eq!(report.verdict, Verdict::NotWorthIt, "{report:?}");
    assert!(tagger.figures().is_none() && tagger.shares_encoder(&base));
}

#[test]
fn weights_that_run_away_are_a_run_that_failed() {
    let plan = plan(&[f32::INFINITY], 2, 8);
    let mut tuning = Tuning::planned(tagger(Precision::F32), support(), plan, 5).unwrap();
    run(&mut tuning);
    let Tuned { tagger, report } = tuning.finish().unwrap();
    assert_eq!(report.verdict, Verdict::Unknown);
    assert!(tagger.figures().is_none());
    assert!(report.failures[0].contains("diverged"), "{:?}", report.failures);
}

#[test]
fn a_run_that_is_stopped_gives_the_best_so_far() {
    let mut stopped = tuning();
    stopped.by_ref().take(5).for_each(|event| assert!(event.is_ok()));
    let Tuned { tagger, report } = stopped.finish().unwrap();
    assert!(tagger.figures().is_none());
    assert_eq!((report.verdict, report.judged), (Verdict::Unknown, 12));

    // Decided after the first run on both folds: 2 folds and 24 updates.
    let mut decided = tuning();
    decided.by_ref().take(2 + 24 + 3).for_each(|event| assert!(event.is_ok()));
    decided.decide();
    run(&mut decided);
    let Tuned { tagger, report } = decided.finish().unwrap();
    assert_eq!((report.verdict, report.candidates.len()), (Verdict::Tuned, 4), "{report:?}");
    assert!(tagger.figures().is_some());
}

#[test]
fn a_label_that_is_added_afterwards_is_known_at_once() {
    let mut tuning = tuning();
    run(&mut tuning);
    let Tuned { tagger, .. } = tuning.finish().unwrap();
    let file = DomainFile::new(&tagger, support(), Thresholds::default()).unwrap();
    let mut sentences = support().sentences().to_vec();
    let more = SupportSet::parse("pay with [cash](means) today").unwrap();
    sentences.extend(more.sentences().to_vec());
    let more = file.with_support(SupportSet::new(sentences).unwrap());
    let adapted = more.adapt(&super::tests::tagger(Precision::F32), Path::new("x")).unwrap();
    assert!(adapted.tag_set().slots().contains(&&Slot::new("means").unwrap()));
    assert!(adapted.tag_text("pay with cash today").is_ok());
    assert!(more.figures().is_some());
}

#[test]
fn explanations_of_a_tuned_model_add_up() {
    let mut tuning = tuning();
    run(&mut tuning);
    let adapted = tuning.finish().unwrap().tagger.adapt(&support()).unwrap();
    let mut n_spans = 0;
    for sentence in support().sentences() {
        let words: Vec<&str> = sentence.words().collect();
        let scored = adapted.score(&words).unwrap();
        let tagged = scored.tagged();
        for explained in scored.explain(&tagged) {
            let span = &explained.span.span;
            let of_word = |t: usize| {
                let tag = scored.tag_set().index_of(&tagged.tags[t]).unwrap();
                scored.scale() * f64::from(scored.emissions().row(t)[tag])
            };
            let expected: f64 = (span.start..span.end).map(of_word).sum();
            let ours = explained.emission();
            assert!((ours - expected).abs() < 1e-3 * expected.abs().max(1.0), "{ours} {expected}");
            n_spans += 1;
        }
    }
    assert!(n_spans > 10);
}

#[test]
fn too_little_is_refused_with_the_reason() {
    let refusal = |tagger: &Tagger, support: &SupportSet| {
        Tuning::new(tagger, support, Options::default()).err().unwrap().to_string()
    };
    let tagger = tagger(Precision::F32);
    let few = SupportSet::new(support().sentences()[..7].to_vec()).unwrap();
    let message = refusal(&tagger, &few);
    assert!(
        message.contains("7 labelled sentences") && message.contains("label more"),
        "{message}"
    );
    let lines: Vec<String> = (0..12).map(|i| format!("say [word](label{i}) {i}")).collect();
    let message = refusal(&tagger, &SupportSet::parse(&lines.join("\n")).unwrap());
    assert!(message.contains("no label stands in two different sentences"), "{message}");
    let paired = ModelSettings { context: Context::Paired, ..settings() };
    let message = refusal(&tagger.with_settings(paired).unwrap(), &support());
    assert!(message.contains("in pairs"), "{message}");
    let mut long = support().sentences().to_vec();
    let words = SupportSet::parse(&format!("{} [x](city)", "a ".repeat(600))).unwrap();
    long.extend(words.sentences().to_vec());
    let message = refusal(&tagger, &SupportSet::new(long).unwrap());
    assert!(message.contains("support sentence 31"), "{message}");
}

/// What becomes of a short tuning with these sentences, and how many of them contradict each other.
fn tuned_with(lines: &[String], n_folds: usize) -> (Report, usize) {
    let odd = SupportSet::parse(&lines.join("\n")).unwrap();
    Tuning::check(&tagger(Precision::F32), &odd).unwrap();
    let mut tuning =
        Tuning::planned(tagger(Precision::F32), odd, plan(&[1e-2], n_folds, 4), 5).unwrap();
    let n_contradictions = tuning.n_contradictions();
    run(&mut tuning);
    let report = tuning.finish().unwrap().report;
    assert!(report.failures.is_empty() && report.judged >= n_folds * lines.len() / 5, "{report:?}");
    assert!(
        report.candidates.iter().all(|it| it.score.f1.is_finite() && it.gain.spread.is_finite())
    );
    (report, n_contradictions)
}

#[test]
fn contradictory_sentences_are_counted_and_tuned_with_all_the_same() {
    let mut lines = vec!["go to [rome](city)".to_owned(), "go to [rome](genre)".to_owned()];
    lines.extend((0..12).map(|i| format!("hear [jazz](genre) in [paris](city) now{i}")));
    let (report, n_contradictions) = tuned_with(&lines, 5);
    assert_eq!((n_contradictions, report.candidates.len()), (2, 4));
}

#[test]
fn a_label_with_one_example_is_not_judged() {
    let mut lines = vec!["pay [cash](means) for it".to_owned()];
    lines.extend((0..12).map(|i| format!("go to [rome](city) now{i}")));
    let (report, _) = tuned_with(&lines, 5);
    // Where its sentence is left out, nothing shows it: neither its span nor what stands there counts.
    let gold = |label: &str| {
        report.labels.iter().filter(|it| it.label == label).map(|it| it.n_spans).sum::<usize>()
    };
    assert_eq!((gold("city"), gold("means")), (12, 0), "{report:?}");
}

#[test]
fn a_hundred_labels_are_tuned_with() {
    let line = |i: usize| format!("see [w{i}](l{i}) and [v{i}](l{}) now", (i + 50) % 100);
    let (report, _) = tuned_with(&(0..100).map(line).collect::<Vec<_>>(), 1);
    // Each stands in two sentences, of which one is left out, or both.
    let n_judged = report.labels.iter().filter(|label| label.n_spans > 0).count();
    assert!((20..=40).contains(&n_judged), "{report:?}");
}

#[test]
fn the_usual_way_plans_and_runs() {
    let options = Options { seed: 3, minutes: Some(0.0), full: true };
    let mut tuning = Tuning::new(&tagger(Precision::F32), &support(), options).unwrap();
    assert_eq!((tuning.plan().updates, tuning.plan().n_folds), (8, 2));
    run(&mut tuning);
    let n_layers = tuning.base.engine().config().num_hidden_layers;
    let report = tuning.finish().unwrap().report;
    assert!(report.candidates.iter().all(|one| one.choice.layers == n_layers));
    assert_eq!(report.table().rows().len(), report.labels.len() + 2);
}
