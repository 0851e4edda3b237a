//! `fewtag support suggest`: which unlabelled sentences to label next.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use fewtag::SupportSet;
use fewtag::data::{Wanted, Writer};
use fewtag::support::{self, Suggestion};
use serde_json::Value;

use crate::commands::answers::{self, Colour, OutputFormat};
use crate::commands::data::SupportArgs;
use crate::commands::input::{How, Input};
use crate::commands::tagger::TaggerArgs;
use crate::commands::values;
use crate::sources;

/// Choose the unlabelled sentences that would teach most if they were labelled next
///
/// Those whose words resemble many of which the tagger is unsure and which no example resembles (docs/guide/support.md). They
/// are printed with the labels that the tagger would give now, to be corrected. The pool is read as a stream.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag support suggest examples/music.txt --pool lines.txt
  fewtag support suggest examples/music.txt --pool lines.txt -n 20 --format inline > to-correct.txt")]
pub(crate) struct Args {
    /// Labelled sentences to learn from, in any data format (docs/reference/data.md), or a directory of them; `-` is standard input
    file: PathBuf,
    /// Unlabelled sentences, one a line, or a directory of such files; `-` is standard input; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pool: Vec<PathBuf>,
    /// How many sentences to choose
    #[arg(short, long, default_value = "10", value_parser = values::at_least_one())]
    n: usize,
    #[command(flatten)]
    read: SupportArgs,
    #[command(flatten)]
    tagger: TaggerArgs,
    /// Lines of the pool are JSON objects with `text`, or with `tokens`
    #[arg(long)]
    jsonl: bool,
    /// How to print the sentences: text, json, jsonl, or a data format, to be corrected and added
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: OutputFormat,
    /// When to use colours in text
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

/// Runs the command, writing the chosen sentences to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let pool = sources::files(&args.pool, Wanted::Text)?;
    let standard = sources::is_standard_input(&args.file);
    ensure!(
        !standard || !pool.contains(&args.file),
        "standard input cannot be both examples and pool: give one of them in a file"
    );
    let mut examples = Vec::new();
    for path in args.read.files(std::slice::from_ref(&args.file))? {
        examples.extend(args.read.read(&path)?);
    }
    let support = SupportSet::new(examples)?;
    let adapted = args.tagger.load()?.adapt(&support).context("cannot learn from the examples")?;
    let how = How { jsonl: args.jsonl, words: args.read.words() };
    let pool = Input::open(&[], &pool, how)?;
    let pool = pool.map(|(place, sentence)| sentence.context(place));
    let chosen = support::suggest(&adapted, &support, pool, args.n)?;
    match args.format {
        OutputFormat::Text => {
            for (rank, suggestion) in chosen.iter().enumerate() {
                let colour = args.color.is_on();
                let marked = answers::marked(&suggestion.sentence, &suggestion.tagged, colour);
                writeln!(out, "{:>3}. {marked}\n     {}", rank + 1, why(suggestion))?;
            }
        }
        OutputFormat::Json => writeln!(out, "{:#}", chosen.iter().map(json).collect::<Value>())?,
        OutputFormat::Jsonl => {
            for suggestion in &chosen {
                writeln!(out, "{}", json(suggestion))?;
            }
        }
        OutputFormat::Data(format) => {
            let mut writer = Writer::new(format, out);
            for Suggestion { sentence, tagged, .. } in &chosen {
                writer.sentence(&fewtag::answer::labelled(sentence, tagged))?;
            }
            writer.finish()?;
        }
    }
    Ok(())
}

fn why(Suggestion { sentence, reason, .. }: &Suggestion) -> String {
    let word = sentence.words().nth(reason.word).unwrap_or_default();
    let word = answers::shown(word);
    format!(
        "stands for {} unsure words of the pool; least sure of `{word}` ({:.2}); {:.0} % new",
        reason.stands_for,
        reason.probability,
        100.0 * reason.new
    )
}

fn json(Suggestion { number, sentence, tagged, reason }: &Suggestion) -> Value {
    let mut value = serde_json::json!(fewtag::Answer::new(sentence, tagged));
    value["number"] = (*number).into();
    value["reason"] = serde_json::json!(reason);
    value
}
