//! Values that several commands take on their command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fewtag::encoder::Precision;
use fewtag::eval::{Format, Table};

/// Parses the name of a table format; the names are listed in the help and completed by shells.
pub(crate) fn table_format() -> impl TypedValueParser<Value = Format> {
    let named = |name: String| Format::ALL.into_iter().find(|format| format.name() == name);
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .map(move |name| named(name).expect("clap lets only these names pass"))
}

/// Parses the name of a precision.
pub(crate) fn precision() -> impl TypedValueParser<Value = Precision> {
    let named = |name: String| Precision::ALL.into_iter().find(|it| it.name() == name);
    PossibleValuesParser::new(Precision::ALL.map(Precision::name))
        .map(move |name| named(name).expect("clap lets only these names pass"))
}

/// The tables whose titles were asked for, or all if none was.
pub(crate) fn asked_for(mut tables: Vec<Table>, titles: &[String]) -> Vec<Table> {
    tables.retain(|table| titles.is_empty() || titles.iter().any(|title| title == table.title()));
    tables
}

/// Parses a whole number that must not be 0.
pub(crate) fn at_least_one() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u64).range(1..).map(|n| n as usize)
}

/// Parses a number from 0 to 1.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

/// A setting and what it shall be.
pub(crate) fn field_and_value(text: &str) -> Result<(String, String), String> {
    let (field, value) = text.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((field.trim().to_owned(), value.trim().to_owned()))
}
