//! Tables of results and the forms in which they are printed.
//!
//! A [`Table`] is a title, headers and rows of [`Cell`]s. Text and Markdown are for people: columns are
//! aligned by display width and numbers rounded to two decimals. CSV and JSON are for programs: numbers
//! are given in full. Headers have the same words in all four; a JSON key is a header with `_` for `-` and blanks.

use std::fmt::Write;

use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for a terminal.
    Text,
    /// A Markdown table.
    Markdown,
    /// Comma-separated values by RFC 4180; an empty line between tables.
    Csv,
    /// One object: by title, a list with an object per row.
    Json,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Text, Self::Markdown, Self::Csv, Self::Json];

    /// The name by which a user asks for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }
}

/// One entry of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words, aligned to the left.
    Text(String),
    /// A whole number, aligned to the right.
    Count(usize),
    /// A number, aligned to the right and rounded to two decimals for people.
    Number(f64),
    /// Nothing to say here.
    Empty,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Cell {
    /// What a person reads: on one line, without control characters, numbers to two decimals.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.replace(char::is_control, "\u{fffd}"),
            Self::Count(count) => count.to_string(),
            Self::Number(number) => format!("{number:.2}"),
            Self::Empty => String::new(),
        }
    }

    fn csv(&self) -> String {
        match self {
            Self::Text(text) if text.contains(['"', ',', '\n', '\r']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Count(_) | Self::Empty => self.shown(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Count(count) => (*count).into(),
            Self::Number(number) => (*number).into(),
            Self::Empty => Value::Null,
        }
    }
}

/// A title, headers and rows of as many cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    title: &'static str,
    headers: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new<H: Into<String>>(title: &'static str, headers: impl IntoIterator<Item = H>) -> Self {
        Self { title, headers: headers.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    ///
    /// If it has not one cell per header.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = row.into_iter().collect();
        assert_eq!(row.len(), self.headers.len(), "a row of table `{}`", self.title);
        self.rows.push(row);
    }

    /// The name of the table: its heading, and its key in JSON.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// The names of the columns.
    pub fn headers(&self) -> &[String] {
        &self.headers
    }

    /// The rows, each of one cell per header.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Whether column `c` holds numbers, which are aligned to the right.
    ///
    /// # Panics
    ///
    /// If there is no such column.
    pub fn is_numeric(&self, c: usize) -> bool {
        !self.rows.iter().any(|row| matches!(row[c], Cell::Text(_)))
    }

    /// Headers and rows as people read them, each cell padded to the width of its column.
    fn aligned(&self, escape: impl Fn(String) -> String) -> Vec<Vec<String>> {
        let shown = |row: &Vec<Cell>| row.iter().map(|cell| escape(cell.shown())).collect();
        let mut lines: Vec<Vec<String>> = vec![self.headers.clone()];
        lines.extend(self.rows.iter().map(shown));
        for c in 0..self.headers.len() {
            let width = lines.iter().map(|line| line[c].width()).max().unwrap_or(0);
            for line in &mut lines {
                let padding = " ".repeat(width - line[c].width());
                let at = if self.is_numeric(c) { 0 } else { line[c].len() };
                line[c].insert_str(at, &padding);
            }
        }
        lines
    }

    fn text(&self) -> String {
        let lines = self.aligned(|cell| cell);
        let rule: Vec<String> = lines[0].iter().map(|cell| "-".repeat(cell.width())).collect();
        let mut text = format!("{}\n\n", self.title);
        for line in lines[..1].iter().chain([&rule]).chain(&lines[1..]) {
            text.push_str(line.join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    fn markdown(&self) -> String {
        let lines = self.aligned(|cell| cell.replace('|', "\\|"));
        let rule = |c: usize| {
            let dashes = "-".repeat(lines[0][c].width().max(3) - 1);
            if self.is_numeric(c) { format!("{dashes}:") } else { format!("{dashes}-") }
        };
        let rules: Vec<String> = (0..self.headers.len()).map(rule).collect();
        let mut text = format!("### {}\n\n", self.title);
        for line in lines[..1].iter().chain([&rules]).chain(&lines[1..]) {
            writeln!(text, "| {} |", line.join(" | ")).expect("writing to a string cannot fail");
        }
        text
    }

    fn csv(&self) -> String {
        let headers = self.headers.iter().map(|header| Cell::from(header.as_str())).collect();
        let line = |row: &Vec<Cell>| row.iter().map(Cell::csv).collect::<Vec<_>>().join(",") + "\n";
        [&headers].into_iter().chain(&self.rows).map(line).collect()
    }

    fn json(&self) -> Value {
        let key = |header: &String| header.replace([' ', '-'], "_");
        let keys: Vec<String> = self.headers.iter().map(key).collect();
        let object = |row: &Vec<Cell>| -> Map<String, Value> {
            keys.iter().cloned().zip(row.iter().map(Cell::json)).collect()
        };
        self.rows.iter().map(|row| Value::Object(object(row))).collect()
    }
}

/// Prints tables one after another. Text, Markdown and CSV have an empty line between them.
pub fn render(tables: &[Table], format: Format) -> String {
    let join =
        |print: fn(&Table) -> String| tables.iter().map(print).collect::<Vec<_>>().join("\n");
    match format {
        Format::Text => join(Table::text),
        Format::Markdown => join(Table::markdown),
        Format::Csv => join(Table::csv),
        Format::Json => {
            let object: Map<String, Value> = tables
                .iter()
                .map(|table| (table.title.replace([' ', '-'], "_"), table.json()))
                .collect();
            format!("{:#}\n", Value::Object(object))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Table {
        let mut table = Table::new("slots", ["slot", "gold", "sentence-macro f1"]);
        table.push(["artist".into(), 12.into(), (200.0 / 3.0).into()]);
        table.push(["日本|,".into(), 3.into(), Cell::Empty]);
        table
    }

    #[test]
    fn text_is_aligned_by_display_width() {
        let expected = "\
slots

slot    gold  sentence-macro f1
------  ----  -----------------
artist    12              66.67
日本|,     3
";
        assert_eq!(render(&[example()], Format::Text), expected);
    }

    #[test]
    fn markdown_escapes_its_own_signs() {
        let expected = "\
### slots

| slot    | gold | sentence-macro f1 |
| ------- | ---: | ----------------: |
| artist  |   12 |             66.67 |
| 日本\\|, |    3 |                   |
";
        assert_eq!(render(&[example()], Format::Markdown), expected);
    }

    #[test]
    fn csv_quotes_and_gives_numbers_in_full() {
        let expected = "slot,gold,sentence-macro f1\nartist,12,66.66666666666667\n\"日本|,\",3,\n";
        assert_eq!(render(&[example()], Format::Csv), expected);
    }

    #[test]
    fn json_has_a_list_of_objects_per_table() {
        let value: Value = serde_json::from_str(&render(&[example()], Format::Json)).unwrap();
        let row = &value["slots"][0];
        assert_eq!((row["slot"].as_str(), row["gold"].as_u64()), (Some("artist"), Some(12)));
        assert_eq!(row["sentence_macro_f1"].as_f64(), Some(200.0 / 3.0));
        assert!(value["slots"][1]["sentence_macro_f1"].is_null());
    }

    #[test]
    fn an_empty_line_stands_between_tables() {
        let csv = render(&[example(), example()], Format::Csv);
        assert_eq!(csv.lines().filter(|line| line.is_empty()).count(), 1);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let mut table = Table::new("t", ["a"]);
        table.push(["\u{1b}[2J\n".into()]);
        assert!(!render(&[table], Format::Text).contains('\u{1b}'));
    }
}
