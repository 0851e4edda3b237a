//! `fewtag tag`: text in, spans out, from a handful of examples.
//!
//! ```text
//! lines ─ input (own thread) ─▶ batches ─ scoring (several threads, all cores) ─▶ answers in their order ─ output
//! ```
//!
//! What has arrived is answered at once, so the first answer does not wait for the last line, and memory does not
//! grow with the input. While the encoder reads one batch, words of the next are split, answers of the one before are
//! chosen and written.

mod explain;
mod html;
mod output;
mod scoring;
mod table;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use fewtag::answer::Thresholds;
use fewtag::data::{Wanted, Writer};
use fewtag::plural::Counted;
use fewtag::{Adapted, DomainFile, Scored, Sentence, SupportSet, Tagged, Tagger};

use super::answers::{Colour, OutputFormat};
use super::cache::CacheArgs;
use super::input::{How, Input};
use super::learn::LearnArgs;
use super::threshold::{Threshold, thresholds};
use crate::progress::warn;
use crate::sources;
use html::Page;
use output::{Answer, Output};
use scoring::Scoring;
use table::TableArgs;

/// Tag text with the slots of a few labelled examples, without training
///
/// The examples are the support set: a file in any data format (docs/reference/data.md), or `--example` sentences. Text comes
/// from the arguments, from `--input` files, or from standard input, one sentence a line. With `--output`, a Parquet or JSON-lines
/// file of any size gets its spans in a column of their own (docs/guide/scale.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag tag --example 'play [nina simone](artist)' 'put on some miles davis'
  fewtag tag --label artist --label 'song title' 'put on so what by miles davis'
  fewtag tag --support examples/music.txt --explain 'i want to hear billie holiday tonight'
  fewtag tag --domain music.fewtag 'i want to hear billie holiday tonight'
  fewtag tag --domain music.fewtag --input corpus.parquet --output tagged.parquet
  fewtag tag --support examples/music.txt --format jsonl --threshold 0.5 < lines.txt > spans.jsonl")]
pub(crate) struct Args {
    /// Sentences to tag
    text: Vec<String>,
    /// A saved domain to tag with (`fewtag domain save`, `fewtag tune`), instead of examples
    #[arg(long, value_name = "FILE", conflicts_with_all = ["support", "example", "label", "meaning", "context"])]
    domain: Option<PathBuf>,
    #[command(flatten)]
    learn: LearnArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Tag the lines of this file, or of the files of a directory; `-` is standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// Input lines are JSON objects with `text`, or with `tokens`
    #[arg(long)]
    jsonl: bool,
    /// How to print the answers: text, json, jsonl, or a data format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: OutputFormat,
    /// Drop spans less probable than this; `SLOT=P` for one slot; may be repeated
    #[arg(long, value_name = "[SLOT=]P")]
    threshold: Vec<Threshold>,
    /// Say which examples spoke for each span; `html` writes one self-contained page
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    explain: Option<Explain>,
    #[command(flatten)]
    table: TableArgs,
    /// Report lines that cannot be tagged and go on
    #[arg(long)]
    keep_going: bool,
    /// When to use colours in text
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Explain {
    Text,
    Html,
}

/// How much of what was read of sentences is kept: real text repeats itself. About 4,000 sentences of 10 words.
const KEPT_BYTES: usize = 64 << 20;

/// Runs the command, writing the answers to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(output) = args.table.output() {
        return table::run(args, output);
    }
    let standard_input = [PathBuf::from("-")];
    let nothing_given = args.text.is_empty() && args.input.is_empty();
    let files = if nothing_given { &standard_input[..] } else { &args.input };
    let both = [files, &args.learn.support]
        .map(|paths| paths.iter().any(|p| sources::is_standard_input(p)));
    ensure!(
        both != [true; 2],
        "standard input cannot be both examples and text: give one of them in a file"
    );
    let files = sources::files(files, Wanted::Text)?;
    let Learned { adapted, support, thresholds, .. } = learn(args)?;
    let adapted = adapted.keeping(KEPT_BYTES);
    let mut output = open_output(args, &support, out);
    let how = How { jsonl: args.jsonl, words: args.learn.read.words() };
    // For the rest of the process: the thread that scores may wait for a line when an error ends the command.
    let adapted: &'static Adapted = Box::leak(Box::new(adapted));
    let mut failed = 0;
    for batch in Scoring::start(adapted, Input::open(&args.text, &files, how)?) {
        for (line, scored) in batch {
            let answered = scored.and_then(|(sentence, scored, tagged)| {
                answer(&scored, tagged, &thresholds, &sentence, &mut output)
            });
            match answered {
                Ok(n_windows) if n_windows > 1 => {
                    warn(&format!(
                        "{line}: longer than the encoder reads; tagged in {n_windows} overlapping windows"
                    ));
                }
                Ok(_) => {}
                Err(error) if args.keep_going && !crate::is_broken_pipe(&error) => {
                    failed += 1;
                    warn(&format!("{line}: skipped: {error:#}"));
                }
                Err(error) => return Err(error.context(line)),
            }
        }
        output.flush()?;
    }
    output.finish()?;
    if failed > 0 {
        warn(&format!("skipped: {}", Counted(failed, "line")));
    }
    Ok(())
}

/// What is tagged with.
struct Learned {
    adapted: Adapted,
    tagger: Tagger,
    support: SupportSet,
    thresholds: Thresholds,
}

/// A saved domain, or what is learned from examples.
fn learn(args: &Args) -> anyhow::Result<Learned> {
    let Some(path) = &args.domain else {
        let support = args.learn.support()?;
        let tagger = args.cache.keep(args.learn.tagger.load()?);
        let adapted = tagger.adapt(&support).context("cannot learn from the examples")?;
        let thresholds = thresholds(&args.threshold, support.tag_set())?;
        return Ok(Learned { adapted, tagger, support, thresholds });
    };
    let domain = DomainFile::read(path)?;
    let tagger = domain.tagger(&args.cache.keep(args.learn.tagger.load()?), path)?;
    let support = domain.support().clone();
    let adapted = tagger.adapt(&support)?;
    let thresholds = match &args.threshold[..] {
        [] => domain.thresholds().clone(),
        given => thresholds(given, support.tag_set())?,
    };
    Ok(Learned { adapted, tagger, support, thresholds })
}

fn open_output<'a, W: Write>(
    args: &Args,
    support: &'a SupportSet,
    out: &'a mut W,
) -> Output<'a, W> {
    let explain = args.explain.map(|_| support);
    match (args.explain, args.format) {
        (Some(Explain::Html), _) => Output::Html { out, page: Page::new(support) },
        (_, OutputFormat::Text) => Output::Text { out, colour: args.color.is_on(), explain },
        (_, OutputFormat::Json) => Output::Json { out, n_written: 0, explain },
        (_, OutputFormat::Jsonl) => Output::Jsonl { out, explain },
        (_, OutputFormat::Data(format)) => Output::Data(Writer::new(format, out)),
    }
}

/// Writes the spans of a sentence that are probable enough; says in how many windows it was read.
fn answer<W: Write>(
    scored: &Scored,
    mut tagged: Tagged,
    thresholds: &Thresholds,
    sentence: &Sentence,
    output: &mut Output<W>,
) -> anyhow::Result<usize> {
    tagged.spans.retain(|span| thresholds.allow(span));
    output.write(Answer { sentence, tagged: &tagged, scored })?;
    Ok(tagged.n_windows)
}
