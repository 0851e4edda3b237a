//! What is learned above the encoder, and how emissions become a loss or tags.
//!
//! ```text
//! scores = λ·E [T, L]        transitions = the collapsed table over the tag set
//! mode       loss                          decoding
//! transfer   log Z − s(gold)               Viterbi, constrained to legal BIO if asked
//! rule       softmax cross-entropy         greedy, constrained
//! none       softmax cross-entropy         best tag of each word
//! ```
//!
//! The cross-entropy is the CRF's loss with a table of zeros, and the best tag of each word its best path,
//! so the modes differ in their tables only.

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::crf::{self, Posterior, SlotTransitions};
use crate::emission::Mix;
use crate::matrix::Matrix;
use crate::random::Random;
use crate::settings::ModelSettings;
use crate::tag::{Span, Tag, TagSet};
use crate::transition::{CollapsedTransitions, TransitionMode, TransitionStart};

/// The learned numbers above the encoder: 29 of them. A gradient of a head is another head.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[repr(C)]
pub struct Head {
    /// The factor λ of the emissions.
    pub scale: f32,
    /// The transition scores.
    pub transitions: CollapsedTransitions,
    /// What the mixed scorer learns; others do not read it.
    #[serde(default)]
    pub mix: Mix,
}

/// The loss of one sentence and its gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadLoss {
    /// The loss, summed over the words.
    pub value: f64,
    /// Its gradient in the emissions: `[T, L]`.
    pub emissions: Matrix,
    /// Its gradient in the head; zero in what is not learned.
    pub head: Head,
}

impl Head {
    /// All zeros: where a gradient starts.
    pub const ZERO: Self =
        Self { scale: 0.0, transitions: CollapsedTransitions::ZERO, mix: Mix::ZERO };

    /// An untrained head.
    #[must_use]
    pub fn new(settings: &ModelSettings, random: &mut Random) -> Self {
        let transitions = match settings.transition_start {
            TransitionStart::Random => CollapsedTransitions::random(random),
            TransitionStart::Zero => CollapsedTransitions::ZERO,
        };
        Self { scale: settings.scale, transitions, mix: Mix::default() }
    }

    /// The `[29]` numbers: λ, the table, the mix.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        bytemuck::cast_slice(std::slice::from_ref(self))
    }

    /// The `[29]` numbers, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(std::slice::from_mut(self))
    }

    /// λ, the table and the mix.
    pub(crate) fn parts(&self) -> [&[f32]; 3] {
        let Self { scale, transitions, mix } = self;
        [std::slice::from_ref(scale), transitions.as_slice(), mix.as_slice()]
    }

    /// The same, to be changed.
    pub(crate) fn parts_mut(&mut self) -> [&mut [f32]; 3] {
        let Self { scale, transitions, mix } = self;
        [std::slice::from_mut(scale), transitions.as_mut_slice(), mix.as_mut_slice()]
    }

    /// The loss of the tag indices `gold` `[T]`, given the emissions `[T, L]`.
    ///
    /// # Panics
    ///
    /// If the shapes disagree, or a gold tag is impossible (an emission of `-inf`).
    #[must_use]
    pub fn loss(
        &self,
        settings: &ModelSettings,
        tags: &TagSet,
        emissions: &Matrix,
        gold: &[usize],
    ) -> HeadLoss {
        let table = self.training_table(settings);
        let loss = crf::loss(emissions, self.scale, &table.over(tags), gold);
        let mut head = Self::ZERO;
        if settings.learn_scale {
            head.scale = loss.scale;
        }
        if settings.transitions == TransitionMode::Transfer {
            head.transitions = loss.transitions;
        }
        HeadLoss { value: loss.value, emissions: loss.emissions, head }
    }

    /// The tag indices `[T]` that the emissions `[T, L]` ask for.
    ///
    /// # Panics
    ///
    /// If the shapes disagree.
    #[must_use]
    pub fn decode(
        &self,
        settings: &ModelSettings,
        tags: &TagSet,
        emissions: &Matrix,
    ) -> Vec<usize> {
        let scores = emissions.scaled(self.scale);
        let transitions = self.decoding_table(settings).over(tags);
        match settings.transitions {
            TransitionMode::Rule => crf::greedy(&scores, &transitions).tags,
            TransitionMode::Transfer | TransitionMode::None => {
                crf::viterbi(&scores, &transitions).tags
            }
        }
    }

    /// The probability of each span, whether it was chosen or not, by the scores divided by the temperature.
    ///
    /// # Panics
    ///
    /// If the shapes disagree, or if a span is empty or reaches beyond the sentence.
    #[must_use]
    pub(crate) fn span_probabilities(
        &self,
        settings: &ModelSettings,
        tags: &TagSet,
        emissions: &Matrix,
        spans: &[Span],
    ) -> Vec<f32> {
        if spans.is_empty() {
            return Vec::new();
        }
        let (scores, transitions) = self.cooled(settings, tags, emissions);
        let posterior = Posterior::new(&scores, &transitions);
        let probability = |span: &Span| {
            let [begin, inside] = [Tag::B(span.slot.clone()), Tag::I(span.slot.clone())];
            let words = span.start..span.end;
            posterior.span(words, tags.index_of(&begin), tags.index_of(&inside)) as f32
        };
        spans.iter().map(probability).collect()
    }

    /// The probability of every tag for each word, `[T, L]`, by the scores divided by the temperature.
    ///
    /// # Panics
    ///
    /// If the shapes disagree.
    #[must_use]
    pub fn marginals(&self, settings: &ModelSettings, tags: &TagSet, emissions: &Matrix) -> Matrix {
        let (scores, transitions) = self.cooled(settings, tags, emissions);
        Posterior::new(&scores, &transitions).marginals()
    }

    /// The scores that probabilities are computed from: all divided by the temperature.
    fn cooled(
        &self,
        settings: &ModelSettings,
        tags: &TagSet,
        emissions: &Matrix,
    ) -> (Matrix, SlotTransitions) {
        let cooling = 1.0 / settings.temperature;
        let transitions = self.decoding_table(settings).scaled(cooling).over(tags);
        (emissions.scaled(self.scale * cooling), transitions)
    }

    /// The transition scores that the loss uses: with `legal_loss` the paths that decoding forbids have no share.
    fn training_table(&self, settings: &ModelSettings) -> CollapsedTransitions {
        let table = match settings.transitions {
            TransitionMode::Transfer => self.transitions,
            TransitionMode::Rule | TransitionMode::None => CollapsedTransitions::ZERO,
        };
        if settings.legal_loss { table.constrained() } else { table }
    }

    /// The transition scores that decoding and probabilities use.
    #[must_use]
    pub(crate) fn decoding_table(&self, settings: &ModelSettings) -> CollapsedTransitions {
        let (table, constrained) = match settings.transitions {
            TransitionMode::Transfer => (self.transitions, settings.constrained),
            TransitionMode::Rule => (CollapsedTransitions::ZERO, true),
            TransitionMode::None => (CollapsedTransitions::ZERO, settings.constrained),
        };
        if constrained { table.constrained() } else { table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> TagSet {
        let tags: Vec<Tag> = ["B-a", "I-a", "B-b"].iter().map(|t| t.parse().unwrap()).collect();
        TagSet::new(&tags)
    }

    fn settings(transitions: TransitionMode) -> ModelSettings {
        ModelSettings { transitions, ..ModelSettings::default() }
    }

    const MODES: [TransitionMode; 3] =
        [TransitionMode::Transfer, TransitionMode::Rule, TransitionMode::None];

    #[test]
    fn gradients_equal_finite_differences_in_every_mode() {
        let emissions = Matrix::new(vec![1.0, 0.5, -2.0, 0.0, 3.0, 1.0, -1.0, 2.0], 4);
        let gold = [1, 2];
        for mode in MODES {
            let head =
                Head::new(&ModelSettings { scale: 0.7, ..settings(mode) }, &mut Random::new(1));
            let value = |head: &Head| head.loss(&settings(mode), &tags(), &emissions, &gold).value;
            let gradient = head.loss(&settings(mode), &tags(), &emissions, &gold).head;
            for k in 0..head.as_slice().len() {
                let [mut up, mut down] = [head; 2];
                up.as_mut_slice()[k] += 1.0 / 128.0;
                down.as_mut_slice()[k] -= 1.0 / 128.0;
                let slope = (value(&up) - value(&down)) * 64.0;
                assert!((slope - f64::from(gradient.as_slice()[k])).abs() < 1e-3, "{mode:?} {k}");
            }
        }
    }

    #[test]
    fn a_legal_loss_leaves_forbidden_paths_out() {
        let emissions = Matrix::new(vec![1.0, 0.5, -2.0, 0.0, 3.0, 1.0, -1.0, 2.0], 4);
        let strict = ModelSettings {
            constrained: true,
            legal_loss: true,
            scale: 0.7,
            ..settings(TransitionMode::Transfer)
        };
        let head = Head::new(&strict, &mut Random::new(1));
        let gold = [1, 2];
        let ours = head.loss(&strict, &tags(), &emissions, &gold).value;
        // Brute force: of the 16 paths over O, B-a, I-a, B-b those without a stray I.
        let legal = |path: [usize; 2]| path[0] != 2 && (path[1] != 2 || path[0] == 1);
        let table = head.transitions.over(&tags());
        let scores = emissions.scaled(head.scale);
        let score = |path: [usize; 2]| crf::path_score(&scores, &table, &path);
        let paths = (0..16).map(|k| [k / 4, k % 4]).filter(|path| legal(*path));
        let expected = paths.map(|path| score(path).exp()).sum::<f64>().ln() - score(gold);
        assert!((ours - expected).abs() < 1e-5, "{ours} {expected}");
        assert!(
            ours < head.loss(&settings(TransitionMode::Transfer), &tags(), &emissions, &gold).value
        );
    }

    #[test]
    fn a_fixed_scale_has_no_gradient() {
        let fixed = ModelSettings { learn_scale: false, ..ModelSettings::default() };
        let head = Head::new(&fixed, &mut Random::new(1));
        let loss = head.loss(&fixed, &tags(), &Matrix::new(vec![1.0, 2.0, 3.0, 4.0], 4), &[0]);
        assert!(loss.head.scale == 0.0 && loss.head.transitions != CollapsedTransitions::ZERO);
    }

    #[test]
    fn the_modes_decode_as_they_say() {
        // Word by word O, I-a, I-a is best.
        let emissions =
            Matrix::new(vec![1.0, 0.5, 0.0, 0.0, 0.0, 0.5, 2.0, 0.0, 0.0, 0.1, 1.0, 0.2], 4);
        let head = Head { scale: 1.0, ..Head::ZERO };
        let decode = |s: &ModelSettings| head.decode(s, &tags(), &emissions);
        assert_eq!(decode(&settings(TransitionMode::None)), [0, 2, 2]);
        assert_eq!(decode(&settings(TransitionMode::Rule)), [0, 1, 2]);
        assert_eq!(decode(&settings(TransitionMode::Transfer)), [0, 2, 2]);
        let strict = ModelSettings { constrained: true, ..settings(TransitionMode::Transfer) };
        assert_eq!(decode(&strict), [1, 2, 2]);
    }
}
