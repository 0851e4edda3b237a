//! Ten updates of the whole model against PyTorch: paired and separate, each scorer, each transition mode.
//!
//! `tests/golden/model_training.json` and `model_dropout.json` are written by `scripts/golden_model.py`, never by this crate. Every batch
//! holds all queries, so that the order of drawing them plays no part.

use fewtag::encoder::{Bert, WordPieces, weights};
use fewtag::eval::Summary;
use fewtag::head::Head;
use fewtag::train::config::{Batching, Config};
use fewtag::train::source::Read;
use fewtag::train::{Step, Trainee, Trainer};
use fewtag::{Episode, ModelSettings};
use serde::Deserialize;

use crate::golden::{self, assert_all_close};

#[derive(Deserialize)]
struct File {
    head: Head,
    optimisation: Optimisation,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Optimisation {
    updates: u16,
    encoder_rate: f32,
    head_rate: f32,
    decay: f32,
    warm_up: u16,
    clip: f32,
}

#[derive(Deserialize)]
struct Case {
    settings: ModelSettings,
    /// So many of the tiny episodes are learnt from.
    episodes: usize,
    losses: Vec<f32>,
    gradient_norms: Vec<f32>,
    head: Head,
}

#[test]
fn ten_updates_agree_with_pytorch() {
    let file: File = golden::read("model_training.json");
    let episodes = golden::tiny_episodes();
    for case in &file.cases {
        let name = format!("{} episodes, {:?}", case.episodes, case.settings);
        let mut trainer = trainer(&file, case, episodes[..case.episodes].to_vec());
        let steps: Vec<_> = trainer.by_ref().map(|step| step.expect("an update")).collect();
        let losses: Vec<f32> = steps.iter().map(|step| step.loss as f32).collect();
        assert_all_close(&name, &losses, &case.losses, 1e-5);
        let norms: Vec<f32> = steps.iter().map(|step| step.gradient_norm as f32).collect();
        assert_all_close(&name, &norms, &case.gradient_norms, 1e-4);
        let head = *trainer.tagger().head();
        assert_all_close(&name, head.as_slice(), case.head.as_slice(), 1e-5);
    }
}

fn trainer(file: &File, case: &Case, episodes: Vec<Episode>) -> Trainer {
    let Optimisation { updates, encoder_rate, head_rate, decay, warm_up, clip } = file.optimisation;
    let mut config = one_batch(&case.settings, &episodes);
    config.optimizer.updates = Some(updates.into());
    config.optimizer.warmup = f32::from(warm_up) / f32::from(updates);
    config.optimizer.encoder_rate = encoder_rate;
    config.optimizer.head_rate = head_rate;
    config.optimizer.weight_decay = decay;
    config.optimizer.clip = clip;
    config.optimizer.dropout = 0.0;
    start(config, file.head, episodes)
}

/// Every update learns from all queries.
fn one_batch(settings: &ModelSettings, episodes: &[Episode]) -> Config {
    let mut config = Config { model: settings.clone(), ..Config::default() };
    config.data.batches = Batching::Mixed;
    config.optimizer.batch = episodes.iter().map(|episode| episode.queries.len()).sum();
    config
}

fn start(config: Config, head: Head, episodes: Vec<Episode>) -> Trainer {
    let encoder = golden::testdata("tiny-encoder");
    let engine = Bert::new(weights::load(&encoder).expect("weights")).expect("an encoder");
    let word_pieces = WordPieces::load(&encoder).expect("a tokenizer");
    let model = Trainee::new(engine, word_pieces, config.model.clone(), head).expect("a model");
    Trainer::start(config, model, Read::Episodes(episodes), Read::Episodes(Vec::new()))
        .expect("a trainer")
}

/// `model_dropout.json`: moments of loss and gradient norm, `[2]` each, over so many draws of dropout.
#[derive(Deserialize)]
struct DropoutFile {
    head: Head,
    rate: f32,
    draws: u32,
    cases: Vec<Moments>,
}

#[derive(Deserialize)]
struct Moments {
    settings: ModelSettings,
    mean: [f64; 2],
    sd: [f64; 2],
}

#[test]
fn losses_and_gradients_under_dropout_are_distributed_as_in_pytorch() {
    const UPDATES: u32 = 300;
    let file: DropoutFile = golden::read("model_dropout.json");
    let episodes = golden::tiny_episodes();
    for case in &file.cases {
        let mut config = one_batch(&case.settings, &episodes);
        config.optimizer.updates = Some(UPDATES.into());
        config.optimizer.dropout = file.rate;
        (config.optimizer.encoder_rate, config.optimizer.head_rate) = (0.0, 0.0);
        let steps: Vec<_> = start(config, file.head, episodes.clone())
            .map(|step| step.expect("an update without a change"))
            .collect();
        for (i, value) in [|s: &Step| s.loss, |s: &Step| s.gradient_norm].into_iter().enumerate() {
            let Summary { mean, sd, .. } = Summary::of(steps.iter().map(value));
            let error =
                case.sd[i] * (1.0 / f64::from(UPDATES) + 1.0 / f64::from(file.draws)).sqrt();
            let what = format!("number {i} of {:?}: {mean} ± {sd}", case.settings);
            assert!((mean - case.mean[i]).abs() < 4.0 * error, "{what}, not {}", case.mean[i]);
            assert!((sd / case.sd[i] - 1.0).abs() < 0.15, "{what}, not ± {}", case.sd[i]);
        }
    }
}
