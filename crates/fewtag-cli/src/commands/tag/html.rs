//! `--explain html`: one self-contained page, with a heat map of query words against support words.

use std::fmt::Write;

use fewtag::SupportSet;
use fewtag::emission::Source;

use super::output::Answer;

/// A page in the making.
pub(super) struct Page<'a> {
    support: &'a SupportSet,
    body: String,
}

/// How much each support word spoke for its own tag, `[words of the query][words of the support]`.
type Heat = Vec<Vec<f32>>;

impl<'a> Page<'a> {
    pub(super) fn new(support: &'a SupportSet) -> Self {
        Self { support, body: String::new() }
    }

    /// Adds a sentence, its explanation and its heat map.
    pub(super) fn add(&mut self, answer: Answer) {
        let mut section = String::from("<section><p class=q>");
        let (text, words) = answer.sentence.text();
        let mut done = 0;
        for found in &answer.tagged.spans {
            let (start, end) = (words[found.span.start].start, words[found.span.end - 1].end);
            let _ = write!(
                section,
                "{}<mark>{} <small>{} {:.2}</small></mark>",
                escape(&text[done..start]),
                escape(&text[start..end]),
                escape(found.span.slot.as_str()),
                found.probability
            );
            done = end;
        }
        let _ = write!(section, "{}</p>", escape(&text[done..]));
        let why = super::explain::text(answer, self.support);
        let _ = write!(section, "<pre>{}</pre>", escape(&why));
        self.heat_map(answer, &mut section);
        section.push_str("</section>");
        self.body.push_str(&section);
    }

    /// One table per support sentence: rows are the query's words.
    fn heat_map(&self, answer: Answer, out: &mut String) {
        let heat = self.heat(answer);
        out.push_str("<div class=maps>");
        let mut first = 0;
        for sentence in self.support.sentences() {
            let columns = first..first + sentence.n_words();
            first = columns.end;
            out.push_str("<table><tr><th></th>");
            for token in sentence.tokens() {
                let slot = token.tag.slot().map_or(String::new(), ToString::to_string);
                let _ = write!(
                    out,
                    "<th>{}<br><small>{}</small></th>",
                    escape(&token.word),
                    escape(&slot)
                );
            }
            out.push_str("</tr>");
            for (word, row) in answer.sentence.words().zip(&heat) {
                let _ = write!(out, "<tr><th>{}</th>", escape(word));
                let (low, high) = range(row);
                for value in &row[columns.clone()] {
                    let strength = (value - low) / (high - low).max(f32::MIN_POSITIVE);
                    let _ = write!(
                        out,
                        "<td style=\"--s:{strength:.2}\" title=\"{value:.2}\">{value:.1}</td>"
                    );
                }
                out.push_str("</tr>");
            }
            out.push_str("</table>");
        }
        out.push_str("</div>");
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
        format!("{HEAD}{}</main></body></html>\n", self.body)
    }
}

fn range(row: &[f32]) -> (f32, f32) {
    row.iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const HEAD: &str = "<!doctype html>
<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">
<title>fewtag: why</title><style>
:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}
section{border-top:1px solid #8884;padding:1rem 0}.q{font-size:1.25rem}
mark{background:#8ecae6;color:#023047;border-radius:.3em;padding:.1em .3em}
pre{font:13px/1.5 ui-monospace,monospace;overflow-x:auto}.maps{display:flex;flex-wrap:wrap;gap:1.5rem}
table{border-collapse:collapse;font-size:12px;display:block;overflow-x:auto;max-width:100%}
th{font-weight:600;text-align:left;padding:.2em .5em;vertical-align:bottom}th small{font-weight:400;opacity:.7}
tr:first-child th,td{text-align:center}
td{padding:.2em .5em;color:#111;background:color-mix(in srgb,#fb8500 calc(var(--s)*100%),#fff)}
</style></head><body><main><h1>Why these tags?</h1>
<p>A cell says how much the example's word (column) speaks for its own slot, given the sentence's word (row). The strongest of a row is darkest.</p>
";
