//! `fewtag reproduce`: the paper's experiments and its tables, with our figures beside the published ones.
//!
//! The grid is systems × folds × seeds. A finished cell is kept in the cache, so a run that was interrupted goes on
//! where it stopped, and a changed setting runs exactly the cells it touches.

mod grid;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use fewtag::data::{self, Wanted};
use fewtag::eval::{Format, Table, table};
use fewtag::file;
use fewtag_experiments::reproduce::budget::Budget;
use fewtag_experiments::reproduce::cache::Cache;
use fewtag_experiments::reproduce::cells::{Cells, Conditions, Finished};
use fewtag_experiments::reproduce::corpora::{self, Corpus};
use fewtag_experiments::reproduce::growth;
use fewtag_experiments::reproduce::page;
use fewtag_experiments::reproduce::published::Published;
use fewtag_experiments::reproduce::systems::{Learner, SYSTEMS, System};
use fewtag_experiments::reproduce::tables::{self, EpisodesByDomain, Figures, Task};

use self::grid::Grid;
use super::values;
use crate::outputs::{self, Force};
use crate::sources;

/// Run the paper's experiments and print its tables, our figures beside the published ones
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag reproduce --data data/episodes --encoder encoders/all-MiniLM-L6-v2 --table 1shot --html results.html
  fewtag reproduce --data data/episodes --encoder encoders/all-MiniLM-L6-v2 --systems nmn-pd,vp --folds 1 --seeds 1,2,3
  fewtag reproduce --cells docs/lab/cells.jsonl --encoder minilm-l6 --budget full --table comparisons")]
pub(crate) struct Args {
    /// Directory of episode files (in `…1shot…` and `…5shot…`) or of corpora to draw episodes from (docs/lab/reproduce.md)
    #[arg(long, value_name = "DIR", required_unless_present = "cells")]
    data: Option<PathBuf>,
    /// Directory of the encoder; its name alone if there is no `--data`
    #[arg(long, value_name = "DIR")]
    encoder: PathBuf,
    /// File of finished cells (JSONL): what is finished is put into it; without `--data` nothing is run and the tables are
    /// drawn from it
    #[arg(long, value_name = "FILE")]
    cells: Option<PathBuf>,
    /// GloVe vectors, as text or `.npy`; without them WPZ+GloVe is left out and Bi-LSTM reads random vectors
    #[arg(long, value_name = "FILE")]
    glove: Option<PathBuf>,
    /// Which tables; may be repeated
    #[arg(long = "table", value_enum, default_values_t = [TableName::OneShot])]
    tables: Vec<TableName>,
    /// Only these systems, by key (see docs/lab/reproduce.md); otherwise all that the tables need
    #[arg(long, value_delimiter = ',', value_parser = keys())]
    systems: Vec<String>,
    /// Only these folds, from 1: the places of the test domains
    #[arg(long, value_delimiter = ',')]
    folds: Vec<usize>,
    /// The seeds
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    seeds: Vec<u64>,
    /// How much a cell may cost: `quick` is 200 presentations of a query, `medium` 1,600, `full` the paper's 20,000; or a number
    #[arg(long, default_value = "quick")]
    budget: Budget,
    /// Change a setting of every system that is the model, as in `fewtag train`, e.g. `model.scale=0.5`; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = values::field_and_value)]
    changes: Vec<(String, String)>,
    /// Where finished cells are kept
    #[arg(long, value_name = "DIR", default_value = "runs/reproduce")]
    cache: PathBuf,
    /// Run nothing: print what is finished
    #[arg(long)]
    finished: bool,
    /// Also write one page with tables and plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// How to print the tables
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TableName {
    #[value(name = "1shot")]
    OneShot,
    #[value(name = "5shot")]
    FiveShot,
    Ablation,
    Rules,
    Bigrams,
    /// Differences between systems with intervals
    Comparisons,
    /// F1 at one shot against the number of presentations
    Budgets,
    Data,
}

fn keys() -> clap::builder::PossibleValuesParser {
    SYSTEMS.iter().map(|system| system.key).into()
}

impl TableName {
    /// The systems that the table shows.
    fn systems(self) -> Vec<&'static System> {
        let keys: &[&str] = match self {
            Self::OneShot | Self::FiveShot => return SYSTEMS.iter().collect(),
            Self::Ablation => &tables::ABLATION,
            Self::Rules => &tables::RULES,
            Self::Bigrams => &tables::BIGRAMS,
            Self::Comparisons | Self::Budgets | Self::Data => &[],
        };
        keys.iter().filter_map(|key| System::find(key)).collect()
    }

    /// The shots of the cells that must be run for the table; finished cells are shown at all shots.
    fn shots(self) -> Option<usize> {
        match self {
            Self::OneShot | Self::Bigrams | Self::Ablation | Self::Rules => Some(1),
            Self::FiveShot => Some(5),
            Self::Comparisons | Self::Budgets | Self::Data => None,
        }
    }
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    args.check_outputs()?;
    let mut cells = match &args.cells {
        Some(path) => Cells::read(path)?,
        None => Cells::default(),
    };
    let mut episodes = [Vec::new(), Vec::new()];
    let conditions = match &args.data {
        Some(data) => run_cells(args, data, &mut cells, &mut episodes)?,
        None => args.kept_conditions(&cells)?,
    };
    let published = Published::tables();
    let systems = args.systems();
    let (outcomes, domains) = (cells.under(&conditions), &conditions.domains[..]);
    let task = if domains == published.ner_domains { Task::Ner } else { Task::Slot };
    let (outcomes, published) = (&outcomes, &published);
    let figures = Figures { outcomes, published, task, domains, systems: &systems };
    let table = |name: &TableName| match name {
        TableName::OneShot => figures.main_table(1),
        TableName::FiveShot => figures.main_table(5),
        TableName::Ablation => figures.ablation(),
        TableName::Rules => figures.rules(),
        TableName::Bigrams => figures.bigrams(),
        TableName::Comparisons => figures.comparisons(),
        TableName::Budgets => growth::table(&cells, &conditions, 1),
        TableName::Data => tables::data(published, domains, &episodes),
    };
    let tables: Vec<Table> = args.tables.iter().map(table).collect();
    if let Some(path) = &args.html {
        file::write_atomically(path, page::html(&figures, &tables, &args.notes()).as_bytes())?;
    }
    out.write_all(table::render(&tables, args.format).as_bytes())?;
    if matches!(args.format, Format::Text | Format::Markdown) {
        writeln!(out, "\n{}", args.notes().join("\n"))?;
    }
    Ok(())
}

/// Runs what is not finished; puts the outcomes into `cells` and, for the table of the data, the episodes at 1 and 5
/// shots into `episodes`.
fn run_cells(
    args: &Args,
    data: &Path,
    cells: &mut Cells,
    episodes: &mut [EpisodesByDomain; 2],
) -> anyhow::Result<Conditions> {
    let cache = Cache::open(&args.cache.join("cells"))?;
    let mut conditions = args.conditions(Vec::new());
    for (shots, episodes) in [1, 5].into_iter().zip(episodes) {
        let corpora = match corpora::open(data, shots, &args.cache.join("episodes")) {
            Ok(corpora) => corpora,
            Err(_) if !args.tables.iter().any(|table| table.shots() == Some(shots)) => continue,
            Err(error) => return Err(error.into()),
        };
        conditions.domains = corpora.iter().map(|corpus| corpus.name.clone()).collect();
        if args.tables.contains(&TableName::Data) {
            *episodes = read_all(&corpora)?;
        }
        let grid = Grid::new(args, &cache, shots, corpora)?;
        grid.run(&mut |outcome| {
            cells.insert(Finished { conditions: conditions.clone(), outcome });
            Ok(args.cells.as_ref().map_or(Ok(()), |path| cells.write(path))?)
        })?;
    }
    Ok(conditions)
}

fn read_all(corpora: &[Corpus]) -> anyhow::Result<EpisodesByDomain> {
    corpora.iter().map(|corpus| Ok(data::read_episodes(&corpus.path)?)).collect()
}

impl Args {
    /// Refuses to write over what is read, and tells what of the data is not read.
    fn check_outputs(&self) -> anyhow::Result<()> {
        let data: Vec<PathBuf> = self.data.iter().cloned().collect();
        let files = sources::files(&data, Wanted::Data)?;
        let read = files.iter().chain(&self.glove).chain(&self.cells);
        let inputs = outputs::Inputs::new(read).and_model(&self.encoder);
        self.force.check(&inputs, self.html.iter().map(PathBuf::as_path))?;
        outputs::refuse_inside(&self.cache, &data)
    }

    /// Under what cells are run.
    fn conditions(&self, domains: Vec<String>) -> Conditions {
        let encoder = self.encoder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let change = |(field, value): &(String, String)| format!("{field}={value}");
        let changes = self.changes.iter().map(change).collect();
        Conditions { encoder, budget: self.budget.to_string(), changes, domains }
    }

    /// Under what the cells of a file were run: as asked for, over the domains that the file has.
    fn kept_conditions(&self, cells: &Cells) -> anyhow::Result<Conditions> {
        let asked = self.conditions(Vec::new());
        let is_asked =
            |have: &&Conditions| Conditions { domains: Vec::new(), ..(*have).clone() } == asked;
        let have = || cells.all().iter().map(|cell| &cell.conditions);
        if let Some(conditions) = have().find(is_asked) {
            return Ok(conditions.clone());
        }
        let name = |c: &Conditions| format!("--encoder {} --budget {}", c.encoder, c.budget);
        let known: BTreeSet<String> = have().map(name).collect();
        let known: Vec<String> = known.into_iter().collect();
        bail!("there are no such cells; there are those of {}", known.join(", "))
    }

    /// The systems asked for, or all that the tables show.
    fn systems(&self) -> Vec<&'static System> {
        let asked = |system: &&System| self.systems.iter().any(|key| key == system.key);
        let shown = |system: &&System| self.tables.iter().any(|t| t.systems().contains(system));
        let has_vectors =
            |system: &&System| system.learner != Learner::Glove || self.glove.is_some();
        let wanted =
            |system: &&System| if self.systems.is_empty() { shown(system) } else { asked(system) };
        SYSTEMS.iter().filter(wanted).filter(has_vectors).collect()
    }

    /// How the figures came to be, for people.
    fn notes(&self) -> Vec<String> {
        let encoder = self.encoder.file_name().unwrap_or_default().to_string_lossy();
        vec![
            format!(
                "Encoder: {encoder}. The paper's figures are those of BERT-base, three seeds, 10,000 samples."
            ),
            self.budget.note(),
            format!(
                "Seeds: {}.",
                self.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
            ),
        ]
    }
}
