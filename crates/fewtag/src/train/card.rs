//! The model card: what a model is, how it was made and what it scored, for whoever finds its directory.

use std::fmt::Write;
use std::path::PathBuf;

use super::{Progress, Trained};
use crate::eval::{Format, table};

impl Trained {
    /// The card as Markdown.
    #[must_use]
    pub fn card(&self) -> String {
        let Self { config, progress, dev, test, .. } = self;
        let mut card = String::from("# A fewtag model\n\n");
        let _ = writeln!(
            card,
            "It tags text of domains it was not trained on, from a few labelled sentences of each:\n\n\
             ```\nfewtag evaluate DIR EPISODES\n```\n"
        );
        let _ = writeln!(card, "## Training\n");
        let _ = writeln!(card, "- Encoder it started from: `{}`", config.encoder.display());
        let _ = writeln!(card, "- Trained on: {}", list(&config.data.train));
        let _ = writeln!(card, "- Chosen on: {}", list(&config.data.dev));
        let _ = writeln!(card, "- {}", length(progress));
        let _ = writeln!(
            card,
            "- All settings are in `train.toml`, every update in `metrics.jsonl`.\n"
        );
        let _ = writeln!(card, "![learning curves](curves.svg)\n");
        for (report, title, note) in [
            (test, "test", "All domains here were held out."),
            (dev, "dev", "These weights were chosen on this data, so it flatters them."),
        ] {
            if !report.domains.is_empty() {
                let table = table::render(&[report.scores()], Format::Markdown);
                let _ = writeln!(card, "## Scores on the {title} data\n\n{note}\n\n{table}");
            }
        }
        card.push_str(
            "## Limits\n\n\
             It knows no slot by itself: what it finds depends on the support sentences given to it. Scores on \
             other domains and languages can be much lower. The weights carry the licences of the encoder and of \
             the training data.\n",
        );
        card
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    if names.is_empty() {
        "nothing: the last weights were kept".to_owned()
    } else {
        names.join(", ")
    }
}

fn length(progress: &Progress) -> String {
    match progress.best {
        Some(best) => format!(
            "{} updates; these are the weights after update {}, with a dev F1 of {:.2}",
            progress.update, best.update, best.f1
        ),
        None => format!("{} updates", progress.update),
    }
}
