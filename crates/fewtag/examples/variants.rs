//! What would the same weights be worth with other numbers above the encoder? Every sentence is read once, so a variant costs
//! seconds where `fewtag evaluate` costs minutes.
//!
//! ```text
//! variants MODEL_DIRECTORY EPISODES... [-- CHANGE...]...       EPISODES: a directory of episode files, one column of the table
//! variants models/default dev-1 dev-5 dev-20 -- settings.fade=0.3 -- settings.middle=[8] head.mix.name=0.5
//! ```
//!
//! A change is one of `fewtag.json`. The first row is F1 of the model as it is, the mean over the domains; the others are
//! differences from it with their standard error over domains, and in brackets how many domains gain.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fewtag::data::{self, Format, Wanted};
use fewtag::encoder::{BertConfig, Engine, PackedBatch, Piece, Precision};
use fewtag::eval::{EpisodeScore, Summary, evaluate};
use fewtag::{Episode, Matrix, Tagger};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut groups = arguments.split(|argument| argument == "--");
    let Some([model, columns @ ..]) = groups.next() else {
        return Err("expected: MODEL_DIRECTORY EPISODES... [-- CHANGE...]...".into());
    };
    let model = Path::new(model);
    let described = serde_json::from_slice(&std::fs::read(model.join("fewtag.json"))?)?;
    let tagger = Tagger::load(model)?;
    let engine = Arc::new(ReadOnce { tagger, known: Mutex::default() });
    let columns: Vec<Vec<Episode>> =
        columns.iter().map(|dir| episodes(dir)).collect::<Outcome<_>>()?;
    let f1 = |described: &Value| -> Outcome<Vec<Vec<f64>>> {
        let tagger = engine.clone().tagger(described)?;
        columns.iter().map(|episodes| f1_of_domains(&tagger, episodes)).collect()
    };
    let plain = f1(&described)?;
    let means =
        plain.iter().map(|domains| format!("{:.2}", Summary::of(domains.iter().copied()).mean));
    let mut out = std::io::stdout().lock();
    writeln!(out, "| as it is | {} |", means.collect::<Vec<_>>().join(" | "))?;
    for changes in groups {
        let mut changed = described.clone();
        for change in changes {
            apply(&mut changed, change)?;
        }
        let found = f1(&changed)?;
        let cells = found.iter().zip(&plain).map(|(now, before)| difference(now, before));
        writeln!(out, "| {} | {} |", changes.join(" "), cells.collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}

/// The episodes of all files of a directory.
fn episodes(dir: &str) -> Outcome<Vec<Episode>> {
    let files = data::find(&[dir.into()], Wanted::Only(Format::Episodes))?.files;
    let read: Vec<Vec<Episode>> =
        files.iter().map(|file| data::read_episodes(file)).collect::<Result<_, _>>()?;
    Ok(read.into_iter().flatten().collect())
}

/// `settings.a=VALUE` or `head.a.b=VALUE`, in JSON.
fn apply(described: &mut Value, change: &str) -> Outcome<()> {
    let (path, value) =
        change.split_once('=').ok_or_else(|| format!("`{change}` is not KEY=VALUE"))?;
    if !(path.starts_with("settings.") || path.starts_with("head.")) {
        return Err(format!("`{path}` is neither `settings.…` nor `head.…`").into());
    }
    let place = path.split('.').fold(described, |at, key| &mut at[key]);
    *place = serde_json::from_str(value)?;
    Ok(())
}

fn f1_of_domains(tagger: &Tagger, episodes: &[Episode]) -> Outcome<Vec<f64>> {
    let domains = evaluate(tagger, episodes, || ())?.report.domains;
    Ok(domains.iter().map(|domain| 100.0 * domain.over_episodes(EpisodeScore::f1).mean).collect())
}

fn difference(now: &[f64], before: &[f64]) -> String {
    let differences: Vec<f64> = now.iter().zip(before).map(|(now, before)| now - before).collect();
    let Summary { mean, sd, .. } = Summary::of(differences.iter().copied());
    let gaining = differences.iter().filter(|difference| **difference > 0.0).count();
    let error = sd / (differences.len() as f64).sqrt();
    format!("{mean:+.2} ± {error:.2} ({gaining})")
}

/// A sequence with the rows that are wanted of it.
type AskedFor = (Vec<Piece>, Vec<usize>, Vec<usize>);

/// An encoder that remembers.
struct ReadOnce {
    tagger: Tagger,
    known: Mutex<HashMap<AskedFor, Matrix>>,
}

impl ReadOnce {
    /// The model that the description says, above these rows.
    fn tagger(self: Arc<Self>, described: &Value) -> Outcome<Tagger> {
        let word_pieces = self.tagger.word_pieces().clone();
        let settings = serde_json::from_value(described["settings"].clone())?;
        let head = serde_json::from_value(described["head"].clone())?;
        Ok(Tagger::new(self, word_pieces, settings, head)?)
    }
}

impl Engine for ReadOnce {
    fn config(&self) -> &BertConfig {
        self.tagger.engine().config()
    }

    fn precision(&self) -> Precision {
        self.tagger.engine().precision()
    }

    fn embeddings(&self, pieces: &[Piece]) -> Option<Matrix> {
        self.tagger.engine().embeddings(pieces)
    }

    fn encode_rows(
        &self,
        batch: &PackedBatch,
        rows: &[usize],
        middle: &[usize],
    ) -> fewtag::Result<Matrix> {
        let wanted = batch.sequences().map(|place| {
            let own = rows.iter().filter(|row| place.contains(row)).map(|row| row - place.start);
            (batch.pieces()[place.clone()].to_vec(), own.collect(), middle.to_vec())
        });
        let mut values = Vec::new();
        for wanted in wanted {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(rows) = known.get(&wanted) {
                values.extend_from_slice(rows.values());
                continue;
            }
            drop(known); // Others may look while the encoder reads.
            let mut batch = PackedBatch::new();
            batch.push(wanted.0.iter().copied());
            let rows = self.tagger.engine().encode_rows(&batch, &wanted.1, middle)?;
            values.extend_from_slice(rows.values());
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(wanted, rows);
        }
        Ok(Matrix::new(values, self.width() * (1 + middle.len())))
    }
}
