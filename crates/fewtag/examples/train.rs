//! From an encoder and labelled data to a model of one's own:
//! `cargo run --release -p fewtag --example train -- testdata/tiny-encoder testdata/tiny-episodes.json target/my-model`.

#![expect(clippy::print_stdout, reason = "an example shows its answers")]

use std::path::PathBuf;

use fewtag::emission::{ScorerKind, Similarity};
use fewtag::encoder::Storage;
use fewtag::train::Trainer;
use fewtag::train::config::Config;
use fewtag::{Context, ModelSettings, Result, Tagger, model};

fn main() -> Result<()> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [encoder, data, target] = &paths[..] else {
        println!("give a directory with an encoder, labelled data, and a directory for the model");
        return Ok(());
    };
    let mut config = Config { encoder: encoder.clone(), ..Config::default() };
    config.model = ModelSettings {
        context: Context::Separate,
        scorer: ScorerKind::Prototype,
        similarity: Similarity::Projection,
        ..ModelSettings::default()
    };
    config.data.train = vec![data.clone()];
    config.optimizer.updates = Some(20);

    let mut trainer = Trainer::new(config)?;
    for step in trainer.by_ref() {
        let step = step?;
        println!("update {}: loss {:.2}", step.update, step.loss);
    }
    model::save(&trainer.finish()?.tagger, target, Storage::F16)?;

    let tagger = Tagger::load(target)?;
    println!("{} holds a model in {:?} context", target.display(), tagger.settings().context);
    Ok(())
}
