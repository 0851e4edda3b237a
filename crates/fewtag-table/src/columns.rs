//! A column of texts becomes a column of spans and one of errors.
//!
//! ```text
//! text   string, large string, string view, or a dictionary of one; nulls allowed
//! spans  list<struct<start: int32, end: int32, label: string, text: string, probability: double>>
//! error  string
//! ```
//!
//! `spans` is null where the text is null or cannot be tagged; only in the latter case `error` says why. `start` and `end`
//! count Unicode scalar values. The types never change: other programs rely on them.

use std::sync::Arc;

use arrow_array::builder::{
    Float64Builder, Int32Builder, ListBuilder, StringBuilder, StructBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ListArray, StringArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields};
use fewtag::answer::Thresholds;
use fewtag::{Adapted, Answer};

/// What a column of texts became.
#[derive(Debug, Clone)]
pub struct Columns {
    /// The spans of each text.
    pub spans: ListArray,
    /// Why a text has none.
    pub error: StringArray,
}

/// The types of both columns.
#[must_use]
pub fn fields() -> [FieldRef; 2] {
    let spans = Field::new("spans", DataType::List(item()), true);
    [Arc::new(spans), Arc::new(Field::new("error", DataType::Utf8, true))]
}

fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(span()), false))
}

fn span() -> Fields {
    let number = |name| Field::new(name, DataType::Int32, false);
    let text = |name| Field::new(name, DataType::Utf8, false);
    let probability = Field::new("probability", DataType::Float64, false);
    Fields::from(vec![number("start"), number("end"), text("label"), text("text"), probability])
}

/// The texts of a column.
///
/// # Errors
///
/// [`ArrowError::SchemaError`] if it holds something else.
pub fn texts(column: &dyn Array) -> Result<Vec<Option<&str>>, ArrowError> {
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().iter().collect()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().iter().collect()),
        DataType::Utf8View => Ok(column.as_string_view().iter().collect()),
        DataType::Null => Ok(vec![None; column.len()]),
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let values = texts(dictionary.values().as_ref())?;
            if values.is_empty() {
                return Ok(vec![None; column.len()]);
            }
            let keys = dictionary.normalized_keys();
            // The key of a null means nothing.
            let text = |(row, key): (usize, usize)| {
                if dictionary.is_null(row) { None } else { values[key] }
            };
            Ok(keys.into_iter().enumerate().map(text).collect())
        }
        other => Err(ArrowError::SchemaError(format!(
            "a column of texts is wanted, this one has the type {other}"
        ))),
    }
}

/// Tags each text of a column.
///
/// # Errors
///
/// [`ArrowError::SchemaError`] if it holds no texts.
pub fn tag_column(
    adapted: &Adapted,
    column: &dyn Array,
    thresholds: &Thresholds,
) -> Result<Columns, ArrowError> {
    Ok(tag_texts(adapted, &texts(column)?, thresholds))
}

/// The same for texts, some of which may be missing.
pub(crate) fn tag_texts(
    adapted: &Adapted,
    texts: &[Option<&str>],
    thresholds: &Thresholds,
) -> Columns {
    let present: Vec<&str> = texts.iter().copied().flatten().collect();
    let mut answers = adapted.tag_texts(&present, thresholds).into_iter();
    let mut columns = Builder::new();
    for text in texts {
        columns.push(text.and_then(|_| answers.next()));
    }
    columns.finish()
}

struct Builder {
    spans: ListBuilder<StructBuilder>,
    error: StringBuilder,
}

impl Builder {
    fn new() -> Self {
        let spans = ListBuilder::new(StructBuilder::from_fields(span(), 0)).with_field(item());
        Self { spans, error: StringBuilder::new() }
    }

    fn push(&mut self, answer: Option<fewtag::Result<Answer>>) {
        match answer {
            Some(Ok(answer)) => {
                answer.spans.iter().for_each(|span| self.push_span(span));
                self.spans.append(true);
                self.error.append_null();
            }
            Some(Err(error)) => {
                self.spans.append(false);
                self.error.append_value(fewtag::error::chain(&error));
            }
            None => {
                self.spans.append(false);
                self.error.append_null();
            }
        }
    }

    fn push_span(&mut self, span: &fewtag::answer::AnswerSpan) {
        const OURS: &str = "the builders are those of the fields";
        let fields = self.spans.values();
        for (at, number) in [span.start, span.end].into_iter().enumerate() {
            let number = i32::try_from(number).expect("a text has less than 2^31 characters");
            fields.field_builder::<Int32Builder>(at).expect(OURS).append_value(number);
        }
        for (at, text) in [&span.label, &span.text].into_iter().enumerate() {
            fields.field_builder::<StringBuilder>(2 + at).expect(OURS).append_value(text);
        }
        fields.field_builder::<Float64Builder>(4).expect(OURS).append_value(span.probability);
        fields.append(true);
    }

    fn finish(mut self) -> Columns {
        Columns { spans: self.spans.finish(), error: self.error.finish() }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int8Type, Int32Type};
    use arrow_array::{DictionaryArray, Int32Array, LargeStringArray, NullArray, StringViewArray};

    use super::*;
    use crate::testing::adapted;

    const TEXTS: [Option<&str>; 4] =
        [Some("play nina simone"), None, Some(""), Some("some jazz 🎷 please")];

    #[test]
    fn every_kind_of_text_column_gives_the_same() {
        let adapted = adapted();
        let dictionary: DictionaryArray<Int8Type> = TEXTS.into_iter().collect();
        let columns: [&dyn Array; 4] = [
            &StringArray::from(TEXTS.to_vec()),
            &LargeStringArray::from(TEXTS.to_vec()),
            &StringViewArray::from(TEXTS.to_vec()),
            &dictionary,
        ];
        let thresholds = Thresholds::default();
        for column in columns {
            let found = tag_column(&adapted, column, &thresholds).unwrap();
            assert_eq!(found.spans.data_type(), fields()[0].data_type());
            let nulls: Vec<bool> = (0..4).map(|row| found.spans.is_null(row)).collect();
            assert_eq!(nulls, [false, true, false, false], "{}", column.data_type());
            assert_eq!(found.error.null_count(), 4);
            for (row, text) in TEXTS.iter().enumerate().filter_map(|(i, text)| Some((i, (*text)?)))
            {
                let spans = found.spans.value(row);
                let spans = spans.as_struct();
                let answer = adapted.tag_text(text).unwrap();
                assert_eq!(spans.len(), answer.spans.len());
                for (at, span) in answer.spans.iter().enumerate() {
                    let start = spans.column(0).as_primitive::<Int32Type>().value(at);
                    assert_eq!(usize::try_from(start), Ok(span.start));
                    assert_eq!(spans.column(2).as_string::<i32>().value(at), span.label);
                }
            }
        }
    }

    #[test]
    fn an_empty_column_and_one_of_nulls_are_tagged_too() {
        let (adapted, thresholds) = (adapted(), Thresholds::default());
        let none = StringArray::from(Vec::<&str>::new());
        assert_eq!(tag_column(&adapted, &none, &thresholds).unwrap().spans.len(), 0);
        let nulls = tag_column(&adapted, &NullArray::new(3), &thresholds).unwrap();
        assert_eq!((nulls.spans.null_count(), nulls.error.null_count()), (3, 3));
        let empty: DictionaryArray<Int8Type> = [None::<&str>, None].into_iter().collect();
        assert_eq!(tag_column(&adapted, &empty, &thresholds).unwrap().spans.null_count(), 2);
    }

    #[test]
    fn a_bad_row_is_a_null_with_its_reason() {
        let huge = "x ".repeat(fewtag::MAX_TEXT);
        let column = StringArray::from(vec!["play jazz", &huge, "some"]);
        let found = tag_column(&adapted(), &column, &Thresholds::default()).unwrap();
        assert_eq!(found.spans.null_count(), 1);
        assert!(found.error.value(1).contains("longer than"), "{}", found.error.value(1));
        assert!(found.error.is_null(0) && found.error.is_null(2));
    }

    #[test]
    fn a_column_of_numbers_is_refused() {
        let refused =
            tag_column(&adapted(), &Int32Array::from(vec![1]), &Thresholds::default()).unwrap_err();
        assert!(refused.to_string().contains("a column of texts is wanted"));
    }
}
