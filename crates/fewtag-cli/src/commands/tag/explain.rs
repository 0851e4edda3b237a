//! `--explain`: for each span, who spoke for it, as text.

use std::fmt::Write;

use fewtag::emission::Source;
use fewtag::{Evidence, Explanation, SupportSet};

use super::output::Answer;
use crate::commands::answers::shown;

/// How many pieces of evidence are shown by name; the others are summed.
const SHOWN: usize = 3;

/// A small table under the sentence.
pub(super) fn text(answer: Answer, support: &SupportSet) -> String {
    let mut out = String::new();
    for why in answer.scored.explain(answer.tagged) {
        let span = &why.span.span;
        let words: Vec<&str> =
            answer.sentence.words().skip(span.start).take(span.end - span.start).collect();
        let _ = writeln!(
            out,
            "  {} = {}   score {:.2} = examples {:.2} + transitions {:+.2}",
            shown(&words.join(" ")),
            shown(span.slot.as_str()),
            why.total(),
            why.emission(),
            why.transitions
        );
        for one in why.evidence.iter().take(SHOWN) {
            let _ = writeln!(out, "    {:>8.2}  {}", one.score, named(one, support));
        }
        let rest = &why.evidence[why.evidence.len().min(SHOWN)..];
        if !rest.is_empty() {
            let sum: f64 = rest.iter().map(|one| f64::from(one.score)).sum();
            let _ = writeln!(out, "    {sum:>8.2}  {} more", rest.len());
        }
        let _ = writeln!(out, "    {}", runner_up(&why));
    }
    out
}

fn runner_up(why: &Explanation) -> String {
    match &why.runner_up {
        Some(second) => {
            let name =
                second.slot.as_ref().map_or("no slot".to_owned(), |slot| shown(slot.as_str()));
            format!("next best: {name}, {:.2} behind", second.margin)
        }
        None => "nothing else was possible".to_owned(),
    }
}

/// `nina in "play nina simone"`.
fn named(one: &Evidence, support: &SupportSet) -> String {
    match one.source {
        Source::LabelName => "the slot's name".to_owned(),
        Source::Word(at) => {
            let sentence = &support.sentences()[at.sentence];
            let word = shown(&sentence.tokens()[at.word].word);
            format!("{word} in \"{}\"", shown(&sentence.text().0))
        }
    }
}
