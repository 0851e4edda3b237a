//! How honest probabilities are: the predicted spans sorted into bins by their probability.
//!
//! ```text
//! ECE = Σ over ten bins of p   (share of the spans) · |mean p − share that is right|
//! ```
//!
//! Source: Guo et al. (2017), "On calibration of modern neural networks".

use super::{Cell, Table, Temperature};

const N_BINS: usize = 10;

/// Predicted spans by their probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Reliability {
    /// What the scores were divided by.
    pub temperature: Temperature,
    /// Ten bins of equal width, from 0 to 1.
    pub bins: [Bin; N_BINS],
}

/// The spans whose probability lies within a tenth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// How many there are.
    pub spans: usize,
    /// How many of them are right.
    pub right: usize,
    /// Their probabilities, summed.
    pub probability: f64,
}

/// What became of the sentences that hold no span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WithoutSpans {
    /// How many there are.
    pub sentences: usize,
    /// In how many of them none was predicted.
    pub left_alone: usize,
    /// How many spans were predicted in them.
    pub spans: usize,
}

impl Bin {
    /// The mean probability; 0 without spans.
    #[must_use]
    pub fn mean_probability(&self) -> f64 {
        self.probability / self.spans.max(1) as f64
    }

    /// The share that is right; 0 without spans.
    #[must_use]
    pub fn share_right(&self) -> f64 {
        self.right as f64 / self.spans.max(1) as f64
    }
}

impl Reliability {
    /// Sorts spans, each with its probability and whether it is right.
    pub(super) fn of(temperature: Temperature, spans: Vec<(f64, bool)>) -> Self {
        let mut bins = [Bin::default(); N_BINS];
        for (probability, right) in spans {
            let above = |bin: &usize| probability >= *bin as f64 / N_BINS as f64;
            let bin = &mut bins[(1..N_BINS).filter(above).count()];
            bin.spans += 1;
            bin.right += usize::from(right);
            bin.probability += probability;
        }
        Self { temperature, bins }
    }

    /// How many spans there are.
    #[must_use]
    pub fn n_spans(&self) -> usize {
        self.bins.iter().map(|bin| bin.spans).sum()
    }

    /// The share of the spans that is right: precision; 0 if there is no span.
    #[must_use]
    pub fn precision(&self) -> f64 {
        let right: usize = self.bins.iter().map(|bin| bin.right).sum();
        right as f64 / self.n_spans().max(1) as f64
    }

    /// The expected calibration error, from 0 (honest) to 1; 0 if there is no span.
    #[must_use]
    pub fn expected_error(&self) -> f64 {
        let gap = |bin: &Bin| (bin.probability - bin.right as f64).abs();
        self.bins.iter().map(gap).sum::<f64>() / self.n_spans().max(1) as f64
    }

    /// One row per bin that holds spans, in per cent.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table =
            Table::new("reliability", ["from", "to", "spans", "mean probability", "right"]);
        for (b, bin) in self.bins.iter().enumerate().filter(|(_, bin)| bin.spans > 0) {
            let edge = |b: usize| Cell::from(100 * b / N_BINS);
            let shares =
                [bin.mean_probability(), bin.share_right()].map(|share| (100.0 * share).into());
            table.push([edge(b), edge(b + 1), bin.spans.into()].into_iter().chain(shares));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_error_follows_its_formula() {
        let spans = vec![(0.85, true), (0.95, true), (0.91, false), (0.1, false), (1.0, true)];
        let temperature = Temperature::ONE;
        let reliability = Reliability::of(temperature, spans);
        assert_eq!(reliability.bins.map(|bin| bin.spans), [0, 1, 0, 0, 0, 0, 0, 0, 1, 3]);
        // By hand: |0.1 − 0|·1/5 + |0.85 − 1|·1/5 + |2.86/3 − 2/3|·3/5.
        let by_hand = (0.1 + 0.15 + 0.86) / 5.0;
        assert!((reliability.expected_error() - by_hand).abs() < 1e-12);
        assert!((reliability.precision() - 0.6).abs() < 1e-12);
        assert_eq!(reliability.table().rows().len(), 3);
    }
}
