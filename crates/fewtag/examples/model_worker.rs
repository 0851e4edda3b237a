//! fewtag's side of `benchmarks/model`: one word per line on stdin, one answer per line on stdout.
//!
//! ```text
//! model_worker ENCODER_DIRECTORY paired|separate EPISODE_FILE THREADS
//! train      one update per episode with its first four queries, dropout 0.1
//! evaluate   tags and judges all queries of every episode
//! answer     {"samples": QUERIES, "seconds": SECONDS}
//! ```

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use fewtag::emission::{ScorerKind, Similarity};
use fewtag::encoder::{Bert, WordPieces, weights};
use fewtag::eval::evaluate;
use fewtag::head::Head;
use fewtag::train::config::Config;
use fewtag::train::source::Read;
use fewtag::train::{Trainee, Trainer};
use fewtag::{Context, Episode, ModelSettings, Random, data};

/// The paper's number of queries per update.
const BATCH: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [encoder, context, file, threads] = &arguments[..] else {
        return Err("expected: ENCODER_DIRECTORY paired|separate EPISODE_FILE THREADS".into());
    };
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    let episodes = data::read_episodes(Path::new(file))?;
    let mut trainer = trainer(Path::new(encoder), model(context)?, episodes.clone())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let start = Instant::now();
        let samples = match line?.as_str() {
            "train" => {
                trainer.by_ref().take(episodes.len()).collect::<Result<Vec<_>, _>>()?;
                BATCH * episodes.len()
            }
            "evaluate" => {
                evaluate(&trainer.tagger(), &episodes, || ())?;
                episodes.iter().map(|episode| episode.queries.len()).sum()
            }
            other => return Err(format!("`{other}` is neither train nor evaluate").into()),
        };
        let seconds = start.elapsed().as_secs_f64();
        writeln!(out, r#"{{"samples": {samples}, "seconds": {seconds}}}"#)?;
    }
    Ok(())
}

/// The paper's model, and the one that reads every sentence alone.
fn model(context: &str) -> Result<ModelSettings, Box<dyn Error>> {
    match context {
        "paired" => Ok(ModelSettings::default()),
        "separate" => Ok(ModelSettings {
            context: Context::Separate,
            scorer: ScorerKind::Prototype,
            similarity: Similarity::Projection,
            scale: 1.0,
            ..ModelSettings::default()
        }),
        other => Err(format!("`{other}` is neither paired nor separate").into()),
    }
}

fn trainer(
    encoder: &Path,
    model: ModelSettings,
    mut episodes: Vec<Episode>,
) -> fewtag::Result<Trainer> {
    for episode in &mut episodes {
        episode.queries.truncate(BATCH);
    }
    let engine = Bert::new(weights::load(encoder)?)?;
    let head = Head::new(&model, &mut Random::new(0));
    let trainee = Trainee::new(engine, WordPieces::load(encoder)?, model.clone(), head)?;
    let mut config = Config { model, ..Config::default() };
    config.optimizer.batch = BATCH;
    config.optimizer.updates = Some(10_000);
    Trainer::start(config, trainee, Read::Episodes(episodes), Read::Episodes(Vec::new()))
}
