//! `--threshold P` and `--threshold SLOT=P`: how probable a span must be.

use std::collections::HashMap;
use std::str::FromStr;

use anyhow::bail;
use fewtag::{TagSet, TaggedSpan};

use crate::commands::values;

/// One `--threshold`.
#[derive(Debug, Clone)]
pub(super) struct Threshold {
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
#[derive(Debug)]
pub(super) struct Thresholds {
    general: f64,
    of_slot: HashMap<String, f64>,
}

impl Thresholds {
    /// # Errors
    ///
    /// If a threshold names a slot that the examples do not have.
    pub(super) fn new(given: &[Threshold], tags: &TagSet) -> anyhow::Result<Self> {
        let mut thresholds = Self { general: 0.0, of_slot: HashMap::new() };
        let slots = tags.slots();
        for Threshold { slot, least } in given {
            match slot {
                None => thresholds.general = *least,
                Some(slot) if slots.iter().any(|known| known.as_str() == slot) => {
                    thresholds.of_slot.insert(slot.clone(), *least);
                }
                Some(slot) => {
                    let known: Vec<&str> = slots.iter().map(|slot| slot.as_str()).collect();
                    bail!("--threshold: the examples have no slot `{slot}` ({})", known.join(", "));
                }
            }
        }
        Ok(thresholds)
    }

    pub(super) fn allow(&self, span: &TaggedSpan) -> bool {
        let least = self.of_slot.get(span.span.slot.as_str()).copied().unwrap_or(self.general);
        f64::from(span.probability) >= least
    }
}
