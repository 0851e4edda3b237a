//! Draws the dev F1 of several runs in one picture: `learning_curves TITLE NAME=metrics.jsonl … > curves.svg`.

use std::error::Error;
use std::io::Write;

use fewtag_experiments::curves::{Curve, Panel, svg};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let title = arguments.next().ok_or("expected: TITLE NAME=metrics.jsonl …")?;
    let curves = arguments.map(|run| read(&run)).collect::<Result<_, _>>()?;
    std::io::stdout().write_all(svg(&[Panel { title, curves }]).as_bytes())?;
    Ok(())
}

fn read(run: &str) -> Result<Curve, Box<dyn Error>> {
    let (name, path) = run.split_once('=').ok_or("expected NAME=metrics.jsonl")?;
    let mut points = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let step: Value = serde_json::from_str(line)?;
        if let (Some(update), Some(f1)) = (step["update"].as_u64(), step["dev"]["f1"].as_f64()) {
            points.push((update, f1));
        }
    }
    Ok(Curve { name: name.to_owned(), points })
}
