//! Whole runs: resumed, stopped early, run away. Against the reference: `tests/it/golden_training.rs`.

use std::path::{Path, PathBuf};

use super::*;
use crate::data;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn episodes() -> Vec<Episode> {
    data::read_episodes(&repository().join("testdata/tiny-episodes.json")).unwrap()
}

fn trainer(config: Config, dev: Vec<Episode>) -> Trainer {
    let model = untrained(&config);
    Trainer::start(config, model, Read::Episodes(episodes()), Read::Episodes(dev)).unwrap()
}

fn untrained(config: &Config) -> Trainee {
    let dir = repository().join("testdata/tiny-encoder");
    let parameters = weights::load(&dir).unwrap();
    let parameters = if config.model.case { with_shapes(parameters) } else { parameters };
    let head = Head::new(&config.model, &mut Random::new(config.seed).named("head"));
    let word_pieces = WordPieces::load(&dir).unwrap();
    Trainee::new(Bert::new(parameters).unwrap(), word_pieces, config.model.clone(), head).unwrap()
}

/// The model with every part that learns: names, shapes, a legal loss, clipping apart.
fn lifelike_config() -> Config {
    let text = "
        seed = 5
        data = { train = ['episodes'], lower_case = 0.3, upper_case = 0.3 }
        encoder = 'tiny-encoder'
        model = { context = 'separate', scorer = 'fitted', similarity = 'projection', label_names = 0.5, case = true,
            constrained = true, legal_loss = true, transition_start = 'zero' }
        optimizer = { encoder_rate = 1e-2, head_rate = 1e-2, updates = 8, batch = 2, clip_apart = true }
        evaluation.every = 4";
    Config::parse(text, &[]).unwrap()
}

#[test]
fn everything_that_is_learned_moves_and_starts_where_it_should() {
    let mut run = trainer(lifelike_config(), Vec::new());
    let before = *run.tagger().head();
    assert_eq!(before.transitions, crate::CollapsedTransitions::ZERO);
    let losses: Vec<f64> = run.by_ref().map(|step| step.unwrap().loss).collect();
    assert!(losses.iter().all(|loss| loss.is_finite() && *loss >= 0.0), "{losses:?}");
    let after = *run.tagger().head();
    for (before, after) in before.mix.as_slice().iter().zip(after.mix.as_slice()) {
        assert!(before.to_bits() != after.to_bits() && after.is_finite());
    }
    // What decoding forbids has no part in the loss, so it stays where it started.
    let constrained = after.transitions.constrained();
    for (learned, allowed) in after.transitions.as_slice().iter().zip(constrained.as_slice()) {
        assert!(allowed.is_finite() || learned.to_bits() == 0);
    }
    let weights = run.model.engine().parameters().weights();
    let width = weights.embeddings.norm.weight.len();
    let rows: Vec<&[f32]> = weights.embeddings.segment.chunks(width).collect();
    assert_eq!(rows.len(), 12);
    assert!(rows[0] != rows[4], "a shouted word is not a lower-cased one any more");
}

/// Four evaluations, the best of which need not be the last, with dropout and label names.
fn short_config() -> Config {
    let text = "
        seed = 5
        data.train = ['episodes']
        encoder = 'tiny-encoder'
        model = { context = 'separate', scorer = 'prototype', similarity = 'projection', label_names = 0.5 }
        optimizer = { encoder_rate = 1e-2, updates = 8, batch = 2 }
        evaluation.every = 2";
    Config::parse(text, &[]).unwrap()
}

fn final_bits(trainer: Trainer) -> (Vec<u32>, Progress) {
    let trained = trainer.finish().unwrap();
    let values = trained.tagger.engine().to_save().unwrap().values().iter();
    let bits = values.chain(trained.tagger.head().as_slice()).map(|value| value.to_bits());
    (bits.collect(), trained.progress)
}

#[test]
fn a_resumed_run_ends_in_the_same_bits() {
    let mut whole = trainer(short_config(), episodes());
    let steps: Vec<Step> = whole.by_ref().map(Result::unwrap).collect();
    assert_eq!(steps.len(), 8);
    let expected = final_bits(whole);

    for interrupted_after in [2, 4, 6, 8] {
        let dir = tempfile::tempdir().unwrap();
        let mut checkpoints = Checkpoints::create(dir.path().join("c")).unwrap();
        let mut first = trainer(short_config(), episodes());
        while first.progress().update < interrupted_after {
            first.next().unwrap().unwrap();
            if first.checkpoint_is_due() {
                checkpoints.save(&first).unwrap();
            }
        }
        let mut again = Checkpoints::create(dir.path().join("c")).unwrap();
        let mut second = trainer(short_config(), episodes());
        assert!(again.resume(&mut second).unwrap().is_empty());
        assert_eq!(second.progress().update, interrupted_after);
        let rest: Vec<Step> = second.by_ref().map(Result::unwrap).collect();
        assert_eq!(rest, steps[interrupted_after as usize..]);
        assert_eq!(final_bits(second), expected);
    }
}

#[test]
fn a_run_stops_when_the_dev_score_no_longer_improves() {
    let mut config = short_config();
    config.evaluation.patience = 1;
    config.optimizer.encoder_rate = 0.0;
    config.optimizer.head_rate = 0.0;
    let mut trainer = trainer(config, episodes());
    // Nothing is learnt: the first evaluation is the best, the second one is the last.
    assert_eq!(trainer.by_ref().count(), 4);
    assert_eq!(trainer.progress().best.unwrap().update, 2);
}

#[test]
fn transitions_may_have_a_rate_of_their_own() {
    let run = |transition_rate| {
        let mut config = short_config();
        config.optimizer.transition_rate = transition_rate;
        let mut trainer = trainer(config, Vec::new());
        let before = *trainer.tagger().head();
        assert!(trainer.by_ref().all(|step| step.is_ok()));
        let after = *trainer.tagger().head();
        (before, after)
    };
    let (before, after) = run(Some(0.0));
    assert_eq!(after.transitions, before.transitions);
    assert_ne!(after.scale.to_bits(), before.scale.to_bits());
    assert_eq!(run(None), run(Some(Optimizer::default().head_rate)));
    assert_ne!(run(None).1.transitions, before.transitions);
}

#[test]
fn what_the_scorer_mixes_may_stay_where_it_starts() {
    let mut config = short_config();
    config.model.scorer = crate::emission::ScorerKind::Fitted;
    config.optimizer.mix_rate = Some(0.0);
    let mut trainer = trainer(config, Vec::new());
    let before = *trainer.tagger().head();
    assert!(trainer.by_ref().all(|step| step.is_ok()));
    let after = *trainer.tagger().head();
    assert_eq!(after.mix, before.mix);
    assert_ne!(after.transitions, before.transitions);
}

#[test]
fn a_run_that_diverges_stops_with_a_diagnosis() {
    let mut trainer = trainer(short_config(), Vec::new());
    trainer.model.head.scale = f32::INFINITY;
    let error = trainer.next().unwrap().unwrap_err();
    assert!(matches!(error, Error::Diverged { update: 1, .. }), "{error}");
    assert!(trainer.next().is_none());
}

#[test]
fn drawn_episodes_need_a_number_of_updates() {
    let mut config = short_config();
    config.optimizer.updates = None;
    let model = untrained(&config);
    let sentences = [episodes()[0].support.sentences(); 3].concat();
    let domain = crate::Domain { name: "d".into(), sentences };
    let none = Read::Episodes(Vec::new());
    let error = Trainer::start(config, model, Read::Domains(vec![domain]), none).err().unwrap();
    assert!(error.to_string().contains("optimizer.updates"), "{error}");
}
