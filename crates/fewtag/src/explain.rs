//! Why a span was tagged: which support words spoke for it, what came second, and what the transitions did.
//!
//! The score of the chosen path `y`, seen from the words `a..b` of a span, is
//!
//! ```text
//! total       = emission + transitions
//! emission    = Σ_{t ∈ a..b} λ·E[t, y_t] = Σ of the parts of all support words and label names
//! transitions = into word a + between the words + out of word b−1   (start and end of the sentence included)
//! ```
//!
//! The runner-up is the best other slot, or `O`, for the same words with the rest of the path kept; the margin is
//! how much its total is lower. The parts add up to the total; a test holds us to it.

use crate::adapted::{Scored, Tagged, TaggedSpan};
use crate::crf::{Move, SlotTransitions, TransitionScores};
use crate::emission::{Contribution, Source};
use crate::tag::{Slot, Span, Tag};

/// Why a span was tagged.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The span and its probability.
    pub span: TaggedSpan,
    /// Who spoke for it, scaled by λ, the loudest first; they sum to the emission.
    pub voices: Vec<Contribution>,
    /// What the transitions added.
    pub transitions: f64,
    /// What came second.
    pub runner_up: Option<RunnerUp>,
}

/// What the words of a span would have been tagged otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RunnerUp {
    /// The slot; `None` is `O`.
    pub slot: Option<Slot>,
    /// How much lower the total is.
    pub margin: f64,
}

impl Explanation {
    /// What the support words and label names said together.
    #[must_use]
    pub fn emission(&self) -> f64 {
        self.voices.iter().map(|voice| f64::from(voice.score)).sum()
    }

    /// The score of the span in its sentence.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.emission() + self.transitions
    }
}

impl Scored<'_> {
    /// Why each span of `tagged`, which must be this sentence's, was tagged.
    ///
    /// # Panics
    ///
    /// If `tagged` has other tags than this sentence can have.
    #[must_use]
    pub fn explain(&self, tagged: &Tagged) -> Vec<Explanation> {
        let index = |tag: &Tag| self.tag_set().index_of(tag).expect("a tag of this sentence");
        let path: Vec<usize> = tagged.tags.iter().map(index).collect();
        let transitions = self.transitions();
        tagged.spans.iter().map(|span| self.explain_span(span, &path, &transitions)).collect()
    }

    fn explain_span(
        &self,
        span: &TaggedSpan,
        path: &[usize],
        transitions: &SlotTransitions,
    ) -> Explanation {
        let Span { start, end, slot } = &span.span;
        let total = |path: &[usize]| {
            let words =
                (*start..*end).map(|t| self.scale() * f64::from(self.emissions().row(t)[path[t]]));
            words.sum::<f64>()
                + local_moves(path, *start, *end).map(|m| transitions.score(m)).sum::<f64>()
        };
        let chosen = total(path);
        let mut others = vec![None];
        others.extend(self.tag_set().slots().into_iter().filter(|other| *other != slot).map(Some));
        let runner_up = others
            .into_iter()
            .filter_map(|other| {
                let other_path = self.relabelled(path, &span.span, other)?;
                let margin = chosen - total(&other_path);
                margin.is_finite().then(|| RunnerUp { slot: other.cloned(), margin })
            })
            .min_by(|a, b| a.margin.total_cmp(&b.margin));
        Explanation {
            span: span.clone(),
            voices: self.voices(*start..*end, path),
            transitions: local_moves(path, *start, *end).map(|m| transitions.score(m)).sum(),
            runner_up,
        }
    }

    /// `path` with the words of `span` tagged as a span of `slot`, or as `O`; `None` if that tag set lacks it.
    fn relabelled(&self, path: &[usize], span: &Span, slot: Option<&Slot>) -> Option<Vec<usize>> {
        let mut path = path.to_vec();
        for (t, tag) in path.iter_mut().enumerate().take(span.end).skip(span.start) {
            let wanted = match slot {
                None => Tag::O,
                Some(slot) if t == span.start => Tag::B(slot.clone()),
                Some(slot) => Tag::I(slot.clone()),
            };
            *tag = self.tag_set().index_of(&wanted)?;
        }
        Some(path)
    }

    /// What each support word gave to the words of a span, the loudest first.
    fn voices(&self, words: std::ops::Range<usize>, path: &[usize]) -> Vec<Contribution> {
        let mut voices: Vec<Contribution> = Vec::new();
        for part in words.flat_map(|t| self.contributions(t, path[t])) {
            let score = (self.scale() * f64::from(part.score)) as f32;
            match voices
                .iter_mut()
                .find(|voice| voice.source == part.source && part.source != Source::LabelName)
            {
                Some(voice) => voice.score += score,
                None => voices.push(Contribution { score, ..part }),
            }
        }
        voices.sort_by(|a, b| b.score.total_cmp(&a.score));
        voices
    }
}

/// The moves into, within and out of the words `start..end`.
fn local_moves(path: &[usize], start: usize, end: usize) -> impl Iterator<Item = Move> {
    let first = match start {
        0 => Move::Start(path[0]),
        _ => Move::Between(path[start - 1], path[start]),
    };
    let last = if end == path.len() {
        Move::End(path[end - 1])
    } else {
        Move::Between(path[end - 1], path[end])
    };
    let within = (start + 1..end).map(|t| Move::Between(path[t - 1], path[t]));
    std::iter::once(first).chain(within).chain([last])
}
