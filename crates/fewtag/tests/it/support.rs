//! Support sets looked at: findings, leaving out, suggestions; over the tiny encoder.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use fewtag::data::{self, Format, ReadOptions};
use fewtag::emission::{ScorerKind, Similarity};
use fewtag::support::{self, Confusion, FindingKind, Report, Severity};
use fewtag::{Context, Error, ModelSettings, Sentence, SupportSet, Tagger, model, tag};

fn tagger(context: Context, scorer: ScorerKind) -> Tagger {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let label_names = if scorer == ScorerKind::Prototype { 0.5 } else { 0.0 };
    let similarity = Similarity::Projection;
    let borrow = scorer == ScorerKind::Nmn;
    let constrained = true;
    let settings = ModelSettings {
        context,
        scorer,
        similarity,
        label_names,
        borrow,
        constrained,
        ..ModelSettings::default()
    };
    model::from_encoder(&path, settings, 7).unwrap()
}

fn separate() -> Tagger {
    tagger(Context::Separate, ScorerKind::Nmn)
}

fn sentences(lines: &str) -> Vec<Sentence> {
    let options = ReadOptions { format: Some(Format::Inline), ..ReadOptions::default() };
    let corpus = data::parse(Path::new("support"), lines.as_bytes(), &options).unwrap();
    corpus.sentences().cloned().collect()
}

fn check(lines: &str) -> Report {
    support::check(&separate(), &sentences(lines)).unwrap()
}

/// The sentences of the only finding of a kind.
fn found(report: &Report, kind: FindingKind) -> Vec<usize> {
    let mut of_kind = report.findings.iter().filter(|finding| finding.kind == kind);
    let finding = of_kind.next().unwrap_or_else(|| panic!("{kind:?} in {report:#?}"));
    assert!(of_kind.next().is_none(), "{report:#?}");
    assert!(!finding.message.is_empty() && !finding.remedy.is_empty());
    finding.sentences.clone()
}

const MUSIC: &str = "play [nina simone](artist)\nput on [jazz](genre)\nsome [rock](genre) by [queen](artist)\nstop it";

#[test]
fn the_texts_alone_show_contradictions_duplicates_and_what_was_forgotten() {
    let report = check(
        "play [queen](artist)\nplay [jazz](genre) now\nPlay [queen](artist)\nplay [jazz](artist) now\nqueen is good\n",
    );
    assert_eq!(found(&report, FindingKind::Duplicate), [1, 3]);
    assert_eq!(found(&report, FindingKind::Contradiction), [2, 4]);
    assert_eq!(found(&report, FindingKind::UnlabelledElsewhere), [1, 5]);
    assert_eq!(found(&report, FindingKind::SingleExample), [2]);
    assert_eq!(report.findings[0].severity, Severity::Error);
    let severities = report.findings.iter().map(|finding| finding.severity);
    assert!(severities.is_sorted());
}

#[test]
fn a_label_without_a_beginning_is_told() {
    let sentence = |tags: &[&str]| {
        let token = |tag: &&str| fewtag::Token { word: "a".into(), tag: tag.parse().unwrap() };
        Sentence::new(tags.iter().map(token).collect()).unwrap()
    };
    let report =
        support::check(&separate(), &[sentence(&["O", "I-x"]), sentence(&["B-y", "I-y"])]).unwrap();
    assert_eq!(found(&report, FindingKind::NoBegin), [1]);
}

#[test]
fn nothing_labelled_and_everything_labelled_are_told() {
    let report = check("play it\n");
    assert_eq!(report.findings.len(), 1);
    assert!(found(&report, FindingKind::NothingLabelled).is_empty());
    assert!(found(&check("[a](x)\n[b c](x)\n"), FindingKind::NoPlainWords).is_empty());
    let report = support::check(&separate(), &[]).unwrap();
    assert!(found(&report, FindingKind::NothingLabelled).is_empty());
}

#[test]
fn a_sentence_too_long_is_a_finding_and_the_others_keep_their_numbers() {
    let long = "play ".repeat(600);
    let report = check(&format!("{long}\n{MUSIC}\n"));
    assert_eq!(found(&report, FindingKind::TooLong), [1]);
    assert_eq!((report.n_sentences, report.n_judged), (5, 4));
    let places = report.confusions.iter().flat_map(|confusion| &confusion.sentences);
    assert!(places.copied().all(|number| (2..=5).contains(&number)), "{report:#?}");
}

/// What a tagger says that learned from all sentences but one.
fn left_out(tagger: &Tagger, sentences: &[Sentence], i: usize) -> Vec<tag::Span> {
    let mut rest = sentences.to_vec();
    let words: Vec<String> = rest.remove(i).words().map(str::to_owned).collect();
    let adapted = tagger.adapt(&SupportSet::new(rest).unwrap()).unwrap();
    tag::spans(&adapted.tag(&words).unwrap().tags)
}

#[test]
fn leaving_out_is_learning_from_the_others() {
    // Every label occurs in two sentences, so every span is judged.
    let sentences = sentences(
        "play [nina](artist) [now](time)\nput [some jazz](genre) on\n[rock](genre) by [queen](artist)\n[now](time) stop\n",
    );
    for context in [Context::Separate, Context::Paired] {
        for scorer in [ScorerKind::Nmn, ScorerKind::Prototype, ScorerKind::Nearest] {
            let tagger = tagger(context, scorer);
            let report = support::check(&tagger, &sentences).unwrap();
            let (mut gold, mut predicted, mut correct) = (0, 0, 0);
            for (i, sentence) in sentences.iter().enumerate() {
                let answer = left_out(&tagger, &sentences, i);
                gold += sentence.spans().len();
                predicted += answer.len();
                correct += answer.iter().filter(|span| sentence.spans().contains(span)).count();
            }
            let labels = &report.labels;
            let judged: usize = labels.iter().map(|label| label.n_judged).sum();
            assert_eq!((judged, report.n_judged), (gold, 4));
            let n = |label: &support::LabelReport| label.n_judged as f64;
            let found: f64 = labels.iter().map(|l| l.recall.unwrap() * n(l)).sum();
            assert!((found - correct as f64).abs() < 1e-9, "{context:?} {scorer:?} {report:#?}");
            let missed = |c: &&Confusion| c.gold.is_some();
            let missed: usize = report.confusions.iter().filter(missed).map(|c| c.n).sum();
            assert_eq!(missed, gold - correct);
            let invented = |c: &&Confusion| c.gold.is_none();
            let invented: usize = report.confusions.iter().filter(invented).map(|c| c.n).sum();
            assert!(invented <= predicted - correct);
        }
    }
}

#[test]
fn a_label_that_no_other_sentence_has_is_not_judged() {
    let report = check(MUSIC);
    let label = |name: &str| report.labels.iter().find(|label| label.label.as_str() == name);
    assert_eq!(label("genre").unwrap().n_judged, 2);
    let report = check("play [nina simone](artist)\nput on [jazz](genre)\n[rock](genre) it is\n");
    let artist = report.labels.iter().find(|label| label.label.as_str() == "artist").unwrap();
    assert_eq!((artist.n_judged, artist.f1, artist.n_spans), (0, None, 1));
}

#[test]
fn a_report_is_json() {
    let value = serde_json::to_value(check(MUSIC)).unwrap();
    assert_eq!(value["labels"][0]["label"], "artist");
    assert!(value["findings"].is_array() && value["confusions"].is_array(), "{value}");
    let single = check("play [jazz](genre)\n");
    let value = serde_json::to_value(&single.findings[0]).unwrap();
    assert_eq!(value["severity"], "warning");
    assert_eq!(value["kind"], "single_example");
}

#[test]
fn many_sentences_are_left_out_in_folds() {
    let lines: Vec<String> =
        (0..450).map(|n| format!("play [jazz](genre) {n} [queen](artist)")).collect();
    let report = check(&lines.join("\n"));
    assert_eq!(report.n_judged, 450);
    assert_eq!(report.labels[0].n_judged, 450);
}

fn pool(lines: &str) -> Vec<Result<Sentence, Error>> {
    sentences(lines).into_iter().map(Ok).collect()
}

#[test]
fn suggestions_are_new_and_not_alike() {
    for context in [Context::Separate, Context::Paired] {
        let support = SupportSet::new(sentences(MUSIC)).unwrap();
        let adapted = tagger(context, ScorerKind::Nmn).adapt(&support).unwrap();
        let lines = "play nina simone\nplay rock\nplay rock\nplay some jazz by queen\nput it on\n";
        let chosen = support::suggest(&adapted, &support, pool(lines), 10).unwrap();
        let mut numbers: Vec<usize> = chosen.iter().map(|suggestion| suggestion.number).collect();
        numbers.sort_unstable();
        // The first is in the support, the third repeats the second.
        assert_eq!(numbers, [2, 4, 5]);
        for suggestion in &chosen {
            let words: Vec<&str> = suggestion.sentence.words().collect();
            assert_eq!(suggestion.tagged, adapted.tag(&words).unwrap());
            assert!((0.0..=1.0).contains(&suggestion.reason.new));
        }
        assert_eq!(support::suggest(&adapted, &support, pool(lines), 2).unwrap().len(), 2);
    }
}

#[test]
fn a_pool_larger_than_what_is_kept_is_chosen_from() {
    let support = SupportSet::new(sentences(MUSIC)).unwrap();
    let adapted = separate().adapt(&support).unwrap();
    let n_pool = 2 * support::CANDIDATES + 500;
    let lines: Vec<String> = (0..n_pool).map(|n| format!("play {n} by {}", n % 7)).collect();
    let lines = pool(&lines.join("\n"));
    let chosen = support::suggest(&adapted, &support, lines, 3).unwrap();
    assert_eq!(chosen.len(), 3);
    let reasons: Vec<_> = chosen.iter().map(|suggestion| suggestion.reason).collect();
    assert!(reasons[0].stands_for > 0);
    assert!(reasons.iter().all(|reason| (0.0..=1.0).contains(&reason.probability)));
}

#[test]
fn suggestions_do_not_depend_on_the_number_of_threads() {
    let support = SupportSet::new(sentences(MUSIC)).unwrap();
    let adapted = separate().adapt(&support).unwrap();
    let lines: Vec<String> = (0..40).map(|n| format!("play {n} by {}", n % 7)).collect();
    let with_threads = |n: usize| {
        let pool_of_threads = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let chosen = pool_of_threads
            .install(|| support::suggest(&adapted, &support, pool(&lines.join("\n")), 5).unwrap());
        chosen.into_iter().map(|chosen| (chosen.number, chosen.reason)).collect::<Vec<_>>()
    };
    assert_eq!(with_threads(1), with_threads(3));
}

#[test]
fn an_error_of_the_pool_is_passed_on() {
    let support = SupportSet::new(sentences(MUSIC)).unwrap();
    let adapted = separate().adapt(&support).unwrap();
    let refused = support::suggest(&adapted, &support, [Err(Error::EmptySentence)], 1);
    assert!(matches!(refused, Err(Error::EmptySentence)));
}
