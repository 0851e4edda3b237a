//! `fewtag reproduce`: the paper's experiments and its tables, with our figures beside the published ones.
//!
//! The grid is systems × folds × seeds. A finished cell is kept in the cache, so a run that was interrupted goes on
//! where it stopped, and a changed setting runs exactly the cells it touches.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fewtag::data::{self, Wanted};
use fewtag::eval::{Format, Table, table};
use fewtag::file;
use fewtag_experiments::reproduce::budget::Budget;
use fewtag_experiments::reproduce::cache::{Cache, Inputs};
use fewtag_experiments::reproduce::corpora::{self, Corpus};
use fewtag_experiments::reproduce::page;
use fewtag_experiments::reproduce::published::Published;
use fewtag_experiments::reproduce::results::{Cell, Outcome, Outcomes};
use fewtag_experiments::reproduce::run::Setup;
use fewtag_experiments::reproduce::systems::{Learner, SYSTEMS, System};
use fewtag_experiments::reproduce::tables::{self, Figures, Task};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::values;
use crate::outputs::{self, Force};
use crate::sources;

/// Run the paper's experiments and print its tables, our figures beside the published ones
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag reproduce --data data/episodes --encoder encoders/all-MiniLM-L6-v2 --table 1shot --html results.html
  fewtag reproduce --data data/episodes --encoder encoders/all-MiniLM-L6-v2 --systems nmn-pd,vp --folds 1 --seeds 1,2,3")]
pub(crate) struct Args {
    /// Directory of episode files (in `…1shot…` and `…5shot…`) or of corpora to draw episodes from (docs/lab/reproduce.md)
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory of the encoder
    #[arg(long, value_name = "DIR")]
    encoder: PathBuf,
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
    /// How much a cell may cost: `quick` is 100 small updates, `medium` 400, `full` follows the paper
    #[arg(long, value_enum, default_value_t = BudgetName::Quick)]
    budget: BudgetName,
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
    Data,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum BudgetName {
    Quick,
    Medium,
    Full,
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
            Self::Data => &[],
        };
        keys.iter().filter_map(|key| System::find(key)).collect()
    }

    /// The shots of the cells that must be run for the table; finished cells are shown at all shots.
    fn shots(self) -> Option<usize> {
        match self {
            Self::OneShot | Self::Bigrams | Self::Ablation | Self::Rules => Some(1),
            Self::FiveShot => Some(5),
            Self::Data => None,
        }
    }
}

impl From<BudgetName> for Budget {
    fn from(name: BudgetName) -> Self {
        match name {
            BudgetName::Quick => Self::Quick,
            BudgetName::Medium => Self::Medium,
            BudgetName::Full => Self::Full,
        }
    }
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    args.check_outputs()?;
    let cache = Cache::open(&args.cache.join("cells"))?;
    let mut outcomes = Outcomes::default();
    let mut domains = Vec::new();
    let mut episodes = [Vec::new(), Vec::new()];
    for (shots, episodes) in [1, 5].into_iter().zip(&mut episodes) {
        let corpora = match corpora::open(&args.data, shots, &args.cache.join("episodes")) {
            Ok(corpora) => corpora,
            Err(_) if !args.tables.iter().any(|table| table.shots() == Some(shots)) => continue,
            Err(error) => return Err(error.into()),
        };
        domains = corpora.iter().map(|corpus| corpus.name.clone()).collect();
        if args.tables.contains(&TableName::Data) {
            *episodes = read_all(&corpora)?;
        }
        outcomes.0.extend(Grid::new(args, &cache, shots, corpora)?.run()?);
    }
    let published = Published::tables();
    let systems = args.systems();
    let task = if domains == published.ner_domains { Task::Ner } else { Task::Slot };
    let (outcomes, published, domains) = (&outcomes, &published, &domains[..]);
    let figures = Figures { outcomes, published, task, domains, systems: &systems };
    let table = |name: &TableName| match name {
        TableName::OneShot => figures.main_table(1),
        TableName::FiveShot => figures.main_table(5),
        TableName::Ablation => figures.ablation(),
        TableName::Rules => figures.rules(),
        TableName::Bigrams => figures.bigrams(),
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

fn read_all(corpora: &[Corpus]) -> anyhow::Result<tables::EpisodesByDomain> {
    corpora.iter().map(|corpus| Ok(data::read_episodes(&corpus.path)?)).collect()
}

impl Args {
    /// Refuses to write over what is read, and tells what of the data is not read.
    fn check_outputs(&self) -> anyhow::Result<()> {
        let files = sources::files(std::slice::from_ref(&self.data), Wanted::Data)?;
        let inputs = outputs::Inputs::new(files.iter().chain(&self.glove)).and_model(&self.encoder);
        self.force.check(&inputs, self.html.iter().map(PathBuf::as_path))?;
        outputs::refuse_inside(&self.cache, std::slice::from_ref(&self.data))
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
            Budget::from(self.budget).note(),
            format!(
                "Seeds: {}.",
                self.seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
            ),
        ]
    }
}

/// The cells of the tables at one number of shots.
struct Grid<'a> {
    args: &'a Args,
    cache: &'a Cache,
    shots: usize,
    setup: Setup,
}

/// A cell that is still to be run.
struct Pending {
    system: &'static System,
    cell: Cell,
    inputs: Inputs,
}

impl<'a> Grid<'a> {
    fn new(
        args: &'a Args,
        cache: &'a Cache,
        shots: usize,
        corpora: Vec<Corpus>,
    ) -> anyhow::Result<Self> {
        if let Some(fold) = args.folds.iter().find(|fold| **fold == 0 || **fold > corpora.len()) {
            bail!(
                "there is no fold {fold}: `{}` has {} domains",
                args.data.display(),
                corpora.len()
            );
        }
        let (encoder, glove) = (args.encoder.clone(), args.glove.clone());
        let setup =
            Setup::new(corpora, encoder, glove, args.budget.into(), args.cache.join("vectors"))?;
        Ok(Self { args, cache, shots, setup })
    }

    /// Runs what is not finished, and returns the outcomes of all cells.
    fn run(&self) -> anyhow::Result<Vec<Outcome>> {
        let (mut outcomes, pending) = self.split()?;
        let start = Instant::now();
        let bar = bar(pending.len())?;
        for (n, Pending { system, cell, inputs }) in pending.iter().enumerate() {
            let domain = &self.setup.corpora()[cell.fold].name;
            let name = format!("{}, {}-shot {domain}, seed {}", system.name, self.shots, cell.seed);
            bar.set_message(name.clone());
            let cell_start = Instant::now();
            let mut on_step =
                |update, n_updates| bar.set_position(CELL * n as u64 + CELL * update / n_updates);
            let (scores, training) = self
                .setup
                .run(system, cell, &mut on_step)
                .with_context(|| format!("cannot run {name}"))?;
            let seconds = cell_start.elapsed().as_secs_f64();
            let outcome = Outcome::new(cell.clone(), &scores, training, seconds);
            self.cache.store(inputs, &outcome)?;
            let left = start.elapsed() / (n as u32 + 1) * (pending.len() - n - 1) as u32;
            bar.suspend(|| report(&name, &outcome, (n + 1, pending.len()), left));
            outcomes.push(outcome);
        }
        bar.finish_and_clear();
        Ok(outcomes)
    }

    /// The finished cells, and those to be run.
    fn split(&self) -> anyhow::Result<(Vec<Outcome>, Vec<Pending>)> {
        let (mut finished, mut pending) = (Vec::new(), Vec::new());
        let n_folds = self.setup.corpora().len();
        let folds = (0..n_folds)
            .filter(|f| self.args.folds.is_empty() || self.args.folds.contains(&(f + 1)));
        for system in self.args.systems() {
            let shown = |table: &TableName| {
                table.shots() == Some(self.shots)
                    && (table.systems().contains(&system) || !self.args.systems.is_empty())
            };
            let must_run = !self.args.finished && self.args.tables.iter().any(shown);
            for (fold, &seed) in
                folds.clone().flat_map(|f| self.args.seeds.iter().map(move |s| (f, s)))
            {
                let cell = Cell { system: system.key.into(), shots: self.shots, fold, seed };
                let inputs = self.setup.inputs(system, &cell)?;
                match self.cache.load(&inputs)? {
                    Some(outcome) => finished.push(outcome),
                    None if must_run => pending.push(Pending { system, cell, inputs }),
                    None => {}
                }
            }
        }
        Ok((finished, pending))
    }
}

/// The length of a cell on the progress bar.
const CELL: u64 = 1000;

/// Shown on a terminal only; indicatif stays silent elsewhere.
fn bar(n_cells: usize) -> anyhow::Result<ProgressBar> {
    let style = "{bar:30} {percent}% of all cells  {elapsed} gone, {eta} left  {msg}";
    let bar = ProgressBar::new(CELL * n_cells as u64);
    Ok(bar.with_style(ProgressStyle::with_template(style)?))
}

/// A line for people about a finished cell, on standard error.
fn report(name: &str, outcome: &Outcome, (n, of): (usize, usize), left: Duration) {
    let (f1, seconds, left) = (outcome.f1, outcome.seconds, HumanDuration(left));
    let _ = writeln!(
        std::io::stderr(),
        "cell {n} of {of}: {name}: F1 {f1:.2} in {seconds:.0} s, about {left} left"
    );
}
