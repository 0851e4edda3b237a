//! `--explain html`: one self-contained page, with a heat map of query words against support words.

use fewtag::SupportSet;
use fewtag::emission::Source;
use maud::{Markup, PreEscaped, html};

use super::output::Answer;

/// A page in the making.
pub(super) struct Page<'a> {
    support: &'a SupportSet,
    sections: Vec<Markup>,
}

/// How much each support word spoke for its own tag, `[words of the query][words of the support]`.
type Heat = Vec<Vec<f32>>;

impl<'a> Page<'a> {
    pub(super) fn new(support: &'a SupportSet) -> Self {
        Self { support, sections: Vec::new() }
    }

    /// Adds a sentence, its explanation and its heat map.
    pub(super) fn add(&mut self, answer: Answer) {
        self.sections.push(html! {
            section {
                p.q { (marked(answer)) }
                pre { (super::explain::text(answer, self.support)) }
                div.maps { (self.heat_maps(answer)) }
            }
        });
    }

    /// One table per support sentence: rows are the query's words.
    fn heat_maps(&self, answer: Answer) -> Markup {
        let heat = self.heat(answer);
        let mut first = 0;
        let tables = self.support.sentences().iter().map(|sentence| {
            let columns = first..first + sentence.n_words();
            first = columns.end;
            html! {
                table {
                    tr {
                        th {}
                        @for token in sentence.tokens() {
                            th { (token.word) br; small { @if let Some(slot) = token.tag.slot() { (slot.as_str()) } } }
                        }
                    }
                    @for (word, row) in answer.sentence.words().zip(&heat) {
                        tr { th { (word) } (cells(row, &row[columns.clone()])) }
                    }
                }
            }
        });
        html! { @for table in tables { (table) } }
    }

    fn heat(&self, answer: Answer) -> Heat {
        let starts: Vec<usize> = self
            .support
            .sentences()
            .iter()
            .scan(0, |at, sentence| Some(std::mem::replace(at, *at + sentence.n_words())))
            .collect();
        let n_columns = self.support.sentences().iter().map(fewtag::Sentence::n_words).sum();
        let of_word = |t: usize| {
            let mut row = vec![0.0; n_columns];
            for tag in 0..answer.scored.tag_set().n_tags() {
                let parts = answer.scored.contributions(t, tag);
                // A mean's parts are small where many share it; times their number they are comparable.
                let n = parts.len() as f32;
                for part in parts {
                    if let Source::Word(at) = part.source {
                        row[starts[at.sentence] + at.word] = part.score * n;
                    }
                }
            }
            row
        };
        (0..answer.sentence.n_words()).map(of_word).collect()
    }

    /// The whole page.
    pub(super) fn finish(self) -> String {
        let page = html! {
            (PreEscaped("<!doctype html>"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { "fewtag: why" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        h1 { "Why these tags?" }
                        p {
                            "A cell says how much the example's word (column) speaks for its own slot, given the sentence's \
                             word (row). The strongest of a row is darkest."
                        }
                        @for section in &self.sections { (section) }
                    }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// The text with its spans, their slots and probabilities.
fn marked(answer: Answer) -> Markup {
    let (text, words) = answer.sentence.text();
    let mut done = 0;
    let spans = answer.tagged.spans.iter().map(|found| {
        let (start, end) = (words[found.span.start].start, words[found.span.end - 1].end);
        let before = &text[std::mem::replace(&mut done, end)..start];
        html! {
            (before)
            mark {
                (text[start..end]) " "
                small { (found.span.slot.as_str()) (format_args!(" {:.2}", found.probability)) }
            }
        }
    });
    let spans: Vec<Markup> = spans.collect();
    html! { @for span in spans { (span) } (text[done..]) }
}

/// Some cells of a row, each as dark as it is strong in the whole row.
fn cells(row: &[f32], shown: &[f32]) -> Markup {
    let (low, high) = range(row);
    let strength = |value: f32| (value - low) / (high - low).max(f32::MIN_POSITIVE);
    html! {
        @for value in shown {
            td style=(format_args!("--s:{:.2}", strength(*value))) title=(format_args!("{value:.2}")) {
                (format_args!("{value:.1}"))
            }
        }
    }
}

fn range(row: &[f32]) -> (f32, f32) {
    row.iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
section{border-top:1px solid #8884;padding:1rem 0}.q{font-size:1.25rem}
mark{background:#8ecae6;color:#023047;border-radius:.3em;padding:.1em .3em}
pre{font:13px/1.5 ui-monospace,monospace;overflow-x:auto}.maps{display:flex;flex-wrap:wrap;gap:1.5rem}
table{border-collapse:collapse;font-size:12px;display:block;overflow-x:auto;max-width:100%}
th{font-weight:600;text-align:left;padding:.2em .5em;vertical-align:bottom}th small{font-weight:400;opacity:.7}
tr:first-child th,td{text-align:center}
td{padding:.2em .5em;color:#111;background:color-mix(in srgb,#fb8500 calc(var(--s)*100%),#fff)}";
