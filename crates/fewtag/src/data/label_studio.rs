//! Label Studio's JSON export of text labelling.
//!
//! ```text
//! [{"data": {"text": "play nina"}, "annotations": [{"result": [
//!   {"type": "labels", "value": {"start": 5, "end": 9, "text": "nina", "labels": ["artist"]}}]}]}]
//! ```
//!
//! Of several annotations the first that was not cancelled counts. Tasks without one, and results that label
//! no text, are left out with a note. The domain is `data.domain`, if there is one.
//! A label's `text` must be what stands at its offsets: it shows at once if those were counted in other units.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;

use crate::data::text::{self, Label};
use crate::data::{At, Codec, Collector, Problem, Render, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;
use crate::words::Offsets;

pub(super) struct LabelStudio;

#[derive(Deserialize)]
struct Task<'t> {
    #[serde(borrow)]
    data: Data<'t>,
    #[serde(borrow, alias = "completions", default)]
    annotations: Vec<Annotation<'t>>,
}

#[derive(Deserialize)]
struct Data<'t> {
    #[serde(borrow)]
    text: Cow<'t, str>,
    domain: Option<String>,
}

#[derive(Deserialize)]
struct Annotation<'t> {
    #[serde(borrow)]
    result: Vec<Item<'t>>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Deserialize)]
struct Item<'t> {
    #[serde(borrow, default)]
    value: Value<'t>,
}

#[derive(Deserialize, Default)]
struct Value<'t> {
    start: Option<usize>,
    end: Option<usize>,
    #[serde(borrow)]
    text: Option<Cow<'t, str>>,
    labels: Option<Vec<String>>,
}

/// What a file holds and we leave out.
#[derive(Default)]
struct Ignored {
    tasks: usize,
    annotations: usize,
    results: usize,
}

impl Codec for LabelStudio {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let mut ignored = Ignored::default();
        json::read_records(text, into, |task: Task, into, at| {
            read_task(task, &mut ignored, into, at)
        })?;
        into.ignored("tasks without an annotation", ignored.tasks);
        into.ignored("further annotations of a task", ignored.annotations);
        into.ignored("results that label no text", ignored.results);
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(json::Records::array(push_record))
    }
}

fn read_task(
    task: Task,
    ignored: &mut Ignored,
    into: &mut Collector,
    at: impl Fn() -> At,
) -> Result<()> {
    let mut annotations =
        task.annotations.into_iter().filter(|annotation| !annotation.was_cancelled);
    let Some(annotation) = annotations.next() else {
        ignored.tasks += 1;
        return Ok(());
    };
    ignored.annotations += annotations.count();
    let offsets = Offsets::new(&task.data.text);
    let mut labels = Vec::new();
    for Value { start, end, text, labels: slots } in
        annotation.result.into_iter().map(|item| item.value)
    {
        let (Some(start), Some(end), Some(slots)) = (start, end, slots) else {
            ignored.results += 1;
            continue;
        };
        let found = match (offsets.byte(start), offsets.byte(end)) {
            (Some(from), Some(to)) => task.data.text.get(from..to),
            _ => None,
        };
        if let (Some(said), Some(found)) = (text, found)
            && said != found
        {
            let (said, found) = (said.into_owned(), found.to_owned());
            return Err(into.error(at(), Problem::SpanDisagrees { start, end, said, found }));
        }
        labels.extend(slots.into_iter().map(|slot| Label { chars: start..end, slot: slot.into() }));
    }
    into.add_text(task.data.domain.as_deref(), task.data.text, labels, at)
}

fn push_record(sentence: &Sentence, domain: Option<&str>, number: usize, out: &mut String) {
    let (text, marks) = text::marked(sentence);
    let _ = write!(out, "{{\"id\": {number}, \"data\": {{\"text\": ");
    json::push(&text, out);
    json::push_domain(domain, out);
    out.push_str("}, \"annotations\": [{\"result\": ");
    json::push_list(marks, out, |mark, out| {
        out.push_str(
            "{\"from_name\": \"label\", \"to_name\": \"text\", \"type\": \"labels\", \"value\": ",
        );
        json::push_range(&mark.chars, out);
        out.push_str(", \"text\": ");
        json::push(&text[mark.bytes], out);
        out.push_str(", \"labels\": [");
        json::push(mark.slot.as_str(), out);
        out.push_str("]}}");
    });
    out.push_str("}]}");
}
