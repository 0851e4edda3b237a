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

use std::collections::HashMap;
use std::ops::Range;

use crate::adapted::{Scored, Tagged, TaggedSpan};
use crate::crf::{Move, SlotTransitions, TransitionScores};
use crate::emission::Source;
use crate::tag::{Slot, Span, Tag};

/// Why a span was tagged.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The span and its probability.
    pub span: TaggedSpan,
    /// What spoke for it, the strongest first; they sum to the emission.
    pub evidence: Vec<Evidence>,
    /// What the transitions added.
    pub transitions: f64,
    /// What came second.
    pub runner_up: Option<RunnerUp>,
}

/// What spoke for a span, and how strongly.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// A support word, or the name of the slot.
    pub source: Source,
    /// What it gave, scaled by λ.
    pub score: f32,
    /// What of it to each word of the span.
    pub words: Vec<f32>,
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
        self.evidence.iter().map(|one| f64::from(one.score)).sum()
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
        let beside = (start.checked_sub(1).map(|t| path[t]), path.get(*end).copied());
        let moves = |tags: &[usize]| -> f64 {
            local_moves(tags, beside).map(|step| transitions.score(step)).sum()
        };
        let total = |tags: &[usize]| {
            let row = |t: usize| self.emissions().row(t);
            let words = (*start..*end).zip(tags);
            words.map(|(t, &tag)| self.scale() * f64::from(row(t)[tag])).sum::<f64>() + moves(tags)
        };
        let tags = &path[*start..*end];
        let chosen = total(tags);
        let mut others = vec![None];
        others.extend(self.tag_set().slots().into_iter().filter(|other| *other != slot).map(Some));
        let runner_up = others
            .into_iter()
            .filter_map(|other| {
                let margin = chosen - total(&self.tags_of(other, end - start)?);
                margin.is_finite().then(|| RunnerUp { slot: other.cloned(), margin })
            })
            .min_by(|a, b| a.margin.total_cmp(&b.margin));
        Explanation {
            span: span.clone(),
            evidence: self.evidence(*start..*end, path),
            transitions: moves(tags),
            runner_up,
        }
    }

    /// The tags of a span of `slot`, or of as many words outside; `None` if the tag set lacks one.
    fn tags_of(&self, slot: Option<&Slot>, n_words: usize) -> Option<Vec<usize>> {
        let tag = |first: bool| match slot {
            None => Tag::O,
            Some(slot) if first => Tag::B(slot.clone()),
            Some(slot) => Tag::I(slot.clone()),
        };
        let first = self.tag_set().index_of(&tag(true))?;
        let mut tags = vec![first; n_words];
        if n_words > 1 {
            let inside = self.tag_set().index_of(&tag(false))?;
            tags[1..].fill(inside);
        }
        Some(tags)
    }

    /// What each support word gave to the words of a span, the loudest first.
    fn evidence(&self, words: Range<usize>, path: &[usize]) -> Vec<Evidence> {
        let mut evidence: Vec<Evidence> = Vec::new();
        let mut known: HashMap<Source, usize> = HashMap::new();
        for (t, &tag) in words.clone().zip(&path[words.clone()]) {
            for part in self.contributions(t, tag) {
                let at = *known.entry(part.source).or_insert_with(|| {
                    let words = vec![0.0; words.len()];
                    evidence.push(Evidence { source: part.source, score: 0.0, words });
                    evidence.len() - 1
                });
                evidence[at].words[t - words.start] +=
                    (self.scale() * f64::from(part.score)) as f32;
            }
        }
        for one in &mut evidence {
            one.score = one.words.iter().sum();
        }
        evidence.sort_by(|a, b| b.score.total_cmp(&a.score));
        evidence
    }
}

/// The moves into, within and out of words with these tags, which stand between two others or at an end of the sentence.
fn local_moves(
    tags: &[usize],
    (before, after): (Option<usize>, Option<usize>),
) -> impl Iterator<Item = Move> {
    let (first, last) = (tags[0], tags[tags.len() - 1]);
    let first = before.map_or(Move::Start(first), |before| Move::Between(before, first));
    let last = after.map_or(Move::End(last), |after| Move::Between(last, after));
    let within = tags.windows(2).map(|pair| Move::Between(pair[0], pair[1]));
    std::iter::once(first).chain(within).chain([last])
}
