//! Regions of Label Studio: what an annotator marked in a text, and what is drawn there.
//!
//! `start` and `end` of a region count Unicode scalar values, as ours do. Old releases counted UTF-16 units instead, where 🎷 is two
//! (their issues 1008 and 1347); a region says its own `text`, by which the two can be told apart.

use fewtag::Answer;
use fewtag::answer::AnswerSpan;
use serde_json::{Value, json};

use super::Prediction;
use crate::store::LabelledSpan;

/// The labelled span of a region of `text`; `None` if it is something else, or has no label.
pub(super) fn span(region: &Value, text: &str) -> Option<LabelledSpan> {
    let number = |key: &str| region[key].as_u64().and_then(|n| usize::try_from(n).ok());
    let (start, end) = (number("start")?, number("end")?);
    let label = region["labels"][0].as_str()?.to_owned();
    let quote = |(start, end): (usize, usize)| {
        text.chars().skip(start).take(end.saturating_sub(start)).collect::<String>()
    };
    let from_utf16 = || Some((scalars(text, start)?, scalars(text, end)?));
    let (start, end) = match region["text"].as_str() {
        Some(said) if said != quote((start, end)) => {
            from_utf16().filter(|it| said == quote(*it)).unwrap_or((start, end))
        }
        _ => (start, end),
    };
    Some(LabelledSpan { start, end, label })
}

/// The scalar values before UTF-16 unit `unit`; `None` inside a character or past the end.
fn scalars(text: &str, unit: usize) -> Option<usize> {
    let ends = text.chars().scan(0, |units, char| {
        *units += char.len_utf16();
        Some(*units)
    });
    std::iter::once(0).chain(ends).position(|begin| begin == unit)
}

/// What of a labelling configuration is needed to draw regions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LabelConfig {
    from_name: String,
    to_name: String,
    /// Where in a task's data the text stands.
    pub(super) key: String,
}

impl LabelConfig {
    /// Reads `<Labels name="label" toName="text">` and `<Text name="text" value="$text"/>`; what is not said there has these
    /// usual names.
    pub(super) fn read(xml: &str) -> Self {
        let document = roxmltree::Document::parse(xml).ok();
        let attribute = |tag: &str, name: &str, usual: &str| {
            let mut nodes = document.iter().flat_map(|document| document.descendants());
            let node = nodes.find(|node| node.has_tag_name(tag));
            node.and_then(|node| node.attribute(name)).unwrap_or(usual).to_owned()
        };
        Self {
            from_name: attribute("Labels", "name", "label"),
            to_name: attribute("Labels", "toName", "text"),
            key: attribute("Text", "value", "text").trim_start_matches('$').to_owned(),
        }
    }

    pub(super) fn prediction(&self, answer: &Answer, model_version: &str) -> Prediction {
        let region = |(at, span): (usize, &AnswerSpan)| {
            json!({
                "id": format!("span-{at}"),
                "from_name": self.from_name,
                "to_name": self.to_name,
                "type": "labels",
                "score": span.probability,
                "value": {"start": span.start, "end": span.end, "text": span.text, "labels": [span.label]},
            })
        };
        let result = answer.spans.iter().enumerate().map(region).collect();
        let score = answer.spans.iter().map(|span| span.probability).fold(1.0, f64::min);
        Prediction { result, score, model_version: model_version.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_the_labelling_configuration() {
        let xml = r#"<View><Labels toName="doc" name='ner'><Label value="x"/></Labels>
            <Text name="doc" value="$body"/></View>"#;
        let [from_name, to_name, key] = ["ner", "doc", "body"].map(str::to_owned);
        assert_eq!(LabelConfig::read(xml), LabelConfig { from_name, to_name, key });
        let commented = r#"<View><!-- <Labels name="old" toName="old"/> --><Labels
            name="who &amp; where" toName="doc"/><Text value="$body" name="doc"/></View>"#;
        let [from_name, to_name, key] = ["who & where", "doc", "body"].map(str::to_owned);
        assert_eq!(LabelConfig::read(commented), LabelConfig { from_name, to_name, key });
        let [from_name, to_name, key] = ["label", "text", "text"].map(str::to_owned);
        assert_eq!(LabelConfig::read(""), LabelConfig { from_name, to_name, key });
    }

    #[test]
    fn offsets_count_scalar_values_unless_the_quoted_text_stands_at_utf16_units() {
        let text = "🎷 play 🎵 nina 🎷";
        let read = |region: Value| {
            let span = span(&region, text)?;
            Some((span.start, span.end))
        };
        let region = |start: u64, end: u64, said: &str| json!({"start": start, "end": end, "text": said, "labels": ["artist"]});
        assert_eq!(read(region(9, 13, "nina")), Some((9, 13)));
        assert_eq!(
            read(region(11, 15, "nina")),
            Some((9, 13)),
            "two characters before it take two units"
        );
        assert_eq!(read(region(8, 15, "🎵 nina")), Some((7, 13)));
        // Neither fits: the text was changed, and the offsets are what remains.
        assert_eq!(read(region(9, 13, "Nina")), Some((9, 13)));
        assert_eq!(
            read(region(1, 2, "🎷")),
            Some((1, 2)),
            "a unit inside a character is no offset"
        );
        let silent = json!({"start": 9, "end": 13, "labels": ["artist"]});
        assert_eq!(read(silent), Some((9, 13)));
        let no_label = json!({"start": 9, "end": 13, "text": "nina"});
        let of_html =
            json!({"start": "/p[1]/text()[1]", "end": "/p[1]/text()[1]", "labels": ["artist"]});
        assert_eq!((read(no_label), read(of_html), read(Value::Null)), (None, None, None));
    }
}
