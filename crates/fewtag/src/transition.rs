//! Label dependency transfer: one learned 3×5 table of transition scores that fits every tag set.
//!
//! ```text
//!            to:  O    sB    dB    sI    dI          s = same slot, d = different slot
//! from O          ×    ×     –     ×     –           start[3], end[3] by class O, B, I
//!      B          ×    ×     ×     ×     ×
//!      I          ×    ×     ×     ×     ×
//! ```
//!
//! From `O` there is no slot to be the same as, so every `B` uses `sB`, every `I` uses `sI`,
//! and the two cells marked `–` are never read. The entries are raw scores, not probabilities.
//!
//! [`CollapsedTransitions::expand`] writes the table out as an `[L, L]` matrix (the paper's `M`);
//! [`CollapsedTransitions::over`] binds it to a tag set without writing it out, which lets
//! [`crate::crf`] work in `O(T·L)`.
//!
//! Source: section "Transition Scorer" of the paper.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::crf::{SlotTransitions, Transitions};
use crate::matrix::Matrix;
use crate::random::Random;
use crate::tag::{Tag, TagClass, TagSet};

/// The table that is learned on source domains and used on any other.
///
/// The numbers lie one after the other (`start`, `between`, `end`), see [`Self::as_slice`].
/// A gradient of the table is another such table.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct CollapsedTransitions {
    /// Score of beginning a sentence with class `O`, `B`, `I`: `[3]`.
    pub start: [f32; 3],
    /// Score of moving from class (row) to `O, sB, dB, sI, dI` (column): `[3, 5]`.
    pub between: [[f32; 5]; 3],
    /// Score of ending a sentence with class `O`, `B`, `I`: `[3]`.
    pub end: [f32; 3],
}

impl CollapsedTransitions {
    /// How many numbers the table holds.
    #[cfg(test)]
    pub(crate) const N_PARAMETERS: usize = 3 + 15 + 3;

    /// All zeros: transitions that say nothing.
    pub const ZERO: Self = Self { start: [0.0; 3], between: [[0.0; 5]; 3], end: [0.0; 3] };

    /// Untrained: every score drawn from N(0, 0.5²).
    #[must_use]
    pub fn random(random: &mut Random) -> Self {
        let mut table = Self::ZERO;
        for score in table.as_mut_slice() {
            *score = (0.5 * random.normal()) as f32;
        }
        table
    }

    /// The table as `[21]` numbers, as an optimiser wants them.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        bytemuck::cast_slice(std::slice::from_ref(self))
    }

    /// The `[21]` numbers, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(std::slice::from_mut(self))
    }

    /// The same table with `-inf` wherever BIO forbids a move: `I` at the start, after `O` or after another slot.
    #[must_use]
    pub fn constrained(mut self) -> Self {
        self.start[TagClass::I as usize] = f32::NEG_INFINITY;
        self.between[TagClass::O as usize][Column::SameI as usize] = f32::NEG_INFINITY;
        for from in [TagClass::B, TagClass::I] {
            self.between[from as usize][Column::DifferentI as usize] = f32::NEG_INFINITY;
        }
        self
    }

    /// Every score multiplied by `factor`.
    #[must_use]
    pub fn scaled(mut self, factor: f32) -> Self {
        self.as_mut_slice().iter_mut().for_each(|score| *score *= factor);
        self
    }

    /// The paper's matrix `M` for `tags`, with start and end scores: `[L, L]`, `[L]`, `[L]`.
    #[must_use]
    pub fn expand(&self, tags: &TagSet) -> Transitions {
        let classes = || tags.tags().iter().map(|tag| tag.class() as usize);
        let mut between = Matrix::zeros(tags.n_tags(), tags.n_tags());
        for (i, from) in tags.tags().iter().enumerate() {
            for (cell, to) in between.row_mut(i).iter_mut().zip(tags.tags()) {
                *cell = self.between[from.class() as usize][Column::of(from, to) as usize];
            }
        }
        Transitions {
            start: classes().map(|class| self.start[class]).collect(),
            between,
            end: classes().map(|class| self.end[class]).collect(),
        }
    }

    /// The transpose of [`Self::expand`]: sums a gradient of the expanded scores into one of the table.
    ///
    /// # Panics
    ///
    /// If `gradient` is not of the size of `tags`.
    #[must_use]
    pub fn collapse(gradient: &Transitions, tags: &TagSet) -> Self {
        assert_eq!(gradient.start.len(), tags.n_tags(), "tag sets differ");
        let mut table = Self::ZERO;
        for (i, from) in tags.tags().iter().enumerate() {
            let class = from.class() as usize;
            table.start[class] += gradient.start[i];
            table.end[class] += gradient.end[i];
            for (amount, to) in gradient.between.row(i).iter().zip(tags.tags()) {
                table.between[class][Column::of(from, to) as usize] += amount;
            }
        }
        table
    }

    /// Binds the table to `tags` for the `O(T·L)` recursions of [`crate::crf`].
    #[must_use]
    pub fn over(&self, tags: &TagSet) -> SlotTransitions {
        SlotTransitions::new(*self, tags)
    }
}

/// The columns of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    O,
    SameB,
    DifferentB,
    SameI,
    DifferentI,
}

impl Column {
    /// Where the score of moving from `from` to `to` stands in the row of `from`'s class.
    pub(crate) fn of(from: &Tag, to: &Tag) -> Self {
        let same = *from == Tag::O || from.slot() == to.slot();
        match (to.class(), same) {
            (TagClass::O, _) => Self::O,
            (TagClass::B, true) => Self::SameB,
            (TagClass::B, false) => Self::DifferentB,
            (TagClass::I, true) => Self::SameI,
            (TagClass::I, false) => Self::DifferentI,
        }
    }
}

/// Where training starts the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransitionStart {
    /// Every score drawn from N(0, 0.5²), as the authors do.
    #[default]
    Random,
    /// All zeros: what is not learned says nothing.
    Zero,
}

/// How transitions take part in tagging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransitionMode {
    /// The learned table, decoded with Viterbi: the paper's model.
    #[default]
    Transfer,
    /// Trained without transitions; decoded greedily from left to right, never to an `I` that BIO forbids.
    Rule,
    /// Every word for itself.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag_set(text: &str) -> TagSet {
        let tags: Vec<Tag> = text.split(' ').map(|tag| tag.parse().unwrap()).collect();
        TagSet::new(&tags)
    }

    /// Every parameter is its own index, so that an expanded entry tells where it came from.
    fn numbered() -> CollapsedTransitions {
        let mut table = CollapsedTransitions::ZERO;
        for (index, value) in table.as_mut_slice().iter_mut().enumerate() {
            *value = index as f32;
        }
        table
    }

    #[test]
    fn expansion_follows_the_figure_of_the_paper() {
        let expanded = numbered().expand(&tag_set("B-a I-a B-b I-b"));
        // between[c][k] is parameter 3 + 5c + k; rows and columns are O, B-a, I-a, B-b, I-b.
        let expected = [
            [3.0, 4.0, 6.0, 4.0, 6.0],      // from O: sB, sI for every slot
            [8.0, 9.0, 11.0, 10.0, 12.0],   // from B-a: O, sB, sI, dB, dI
            [13.0, 14.0, 16.0, 15.0, 17.0], // from I-a
            [8.0, 10.0, 12.0, 9.0, 11.0],   // from B-b
            [13.0, 15.0, 17.0, 14.0, 16.0], // from I-b
        ];
        assert_eq!(expanded.between.rows().collect::<Vec<_>>(), expected);
        assert_eq!(expanded.start, [0.0, 1.0, 2.0, 1.0, 2.0]);
        assert_eq!(expanded.end, [18.0, 19.0, 20.0, 19.0, 20.0]);
    }

    #[test]
    fn collapse_is_the_transpose_of_expand() {
        // <expand(x), y> == <x, collapse(y)> for all x and y; checked on every basis vector x.
        let tags = tag_set("B-a I-a B-b B-c I-c");
        let mut gradient = numbered().expand(&tags);
        let weights = |k: usize| (k as f32 * 0.7).sin();
        gradient.between.values_mut().iter_mut().enumerate().for_each(|(k, g)| *g = weights(k));
        let collapsed = CollapsedTransitions::collapse(&gradient, &tags);
        for p in 0..CollapsedTransitions::N_PARAMETERS {
            let mut basis = CollapsedTransitions::ZERO;
            basis.as_mut_slice()[p] = 1.0;
            let expanded = basis.expand(&tags);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
            let expected = dot(&expanded.start, &gradient.start)
                + dot(expanded.between.values(), gradient.between.values())
                + dot(&expanded.end, &gradient.end);
            assert!((collapsed.as_slice()[p] - expected).abs() < 1e-5, "parameter {p}");
        }
    }

    #[test]
    fn constrained_transitions_forbid_exactly_what_bio_forbids() {
        let tags = tag_set("B-a I-a B-b I-b");
        let expanded = numbered().constrained().expand(&tags);
        for (i, from) in tags.tags().iter().enumerate() {
            let legal_start = from.may_follow(None);
            assert_eq!(expanded.start[i].is_finite(), legal_start, "start {from}");
            for (j, to) in tags.tags().iter().enumerate() {
                let legal = to.may_follow(Some(from));
                assert_eq!(expanded.between.row(i)[j].is_finite(), legal, "{from} {to}");
            }
        }
    }
}
