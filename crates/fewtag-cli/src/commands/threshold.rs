//! `--threshold P` and `--threshold SLOT=P`: how probable a span must be.

use std::str::FromStr;

use anyhow::bail;
use fewtag::TagSet;
use fewtag::answer::Thresholds;

use crate::commands::values;

/// One `--threshold`.
#[derive(Debug, Clone)]
pub(crate) struct Threshold {
    slot: Option<String>,
    least: f64,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (slot, least) = match text.rsplit_once('=') {
            Some((slot, least)) => (Some(slot.to_owned()), least),
            None => (None, text),
        };
        Ok(Self { slot, least: values::probability(least)? })
    }
}

/// The least probability of every slot.
///
/// # Errors
///
/// If a threshold names a slot that the examples do not have.
pub(crate) fn thresholds(given: &[Threshold], tags: &TagSet) -> anyhow::Result<Thresholds> {
    let mut thresholds = Thresholds::default();
    for Threshold { slot, least } in given {
        match slot {
            None => thresholds.general = *least,
            Some(slot) => {
                thresholds.of_label.insert(slot.clone(), *least);
            }
        }
    }
    if let Some(slot) = thresholds.unknown_label(tags) {
        let known: Vec<&str> = tags.slots().iter().map(|slot| slot.as_str()).collect();
        bail!("--threshold: the examples have no slot `{slot}` ({})", known.join(", "));
    }
    Ok(thresholds)
}
