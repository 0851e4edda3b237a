//! Making probabilities honest: of the spans that are given 80 %, 80 % should be right.
//!
//! Three numbers are fitted on episodes that the model was not trained on: the temperature τ, by which all
//! scores are divided before they become probabilities, its growth η with the number `n` of examples per label, and the factor
//! γ where names alone speak. They change no tag. With `pₖ` the probability of the k-th predicted span, and `yₖ` whether it is
//! right,
//!
//! ```text
//! pₖ at the temperature τ·n^η, with names alone γ·τ·½^η       τ, η, γ = argmin −Σₖ yₖ·log pₖ + (1 − yₖ)·log(1 − pₖ)
//! ```
//!
//! Source: Guo et al. (2017), "On calibration of modern neural networks".

use rayon::prelude::*;

use super::{Reliability, WithoutSpans};
use crate::domain::Episode;
use crate::error::Result;
use crate::head::Head;
use crate::matrix::Matrix;
use crate::settings::ModelSettings;
use crate::tag::{Span, TagSet};
use crate::tagger::Tagger;

/// Temperatures outside make all probabilities 0 and 1, or all alike.
const RANGE: (f64, f64) = (0.02, 50.0);

/// A temperature that may depend on the number of examples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature {
    /// With one example per label.
    pub base: f32,
    /// The power of the number of examples per label that it is multiplied by.
    pub growth: f32,
    /// What it is multiplied by where names alone speak.
    pub of_names: f32,
}

impl Temperature {
    /// Scores as they are.
    pub const ONE: Self = Self { base: 1.0, growth: 0.0, of_names: 1.0 };

    /// Makes it that of a model.
    pub(crate) fn put_into(self, settings: &mut ModelSettings) {
        settings.temperature = self.base;
        settings.temperature_growth = self.growth;
        settings.temperature_of_names = self.of_names;
    }
}

impl From<&ModelSettings> for Temperature {
    /// That of a model.
    fn from(settings: &ModelSettings) -> Self {
        Self {
            base: settings.temperature,
            growth: settings.temperature_growth,
            of_names: settings.temperature_of_names,
        }
    }
}

/// The predicted spans of a set of episodes, and which of them are right.
pub struct Predictions {
    head: Head,
    settings: ModelSettings,
    queries: Vec<Query>,
}

struct Query {
    examples_per_label: f32,
    tags: TagSet,
    emissions: Matrix,
    spans: Vec<Span>,
    right: Vec<bool>,
    /// How many spans there are in truth.
    n_gold: usize,
}

impl Predictions {
    /// Tags the queries of all episodes.
    ///
    /// # Errors
    ///
    /// Whatever the tagger refuses, such as a sentence that is too long.
    pub fn new(tagger: &Tagger, episodes: &[Episode]) -> Result<Self> {
        let of_episode = |episode: &Episode| -> Result<Vec<Query>> {
            let adapted = tagger.adapt(&episode.support)?;
            let query = |gold: &crate::Sentence| {
                let words: Vec<&str> = gold.words().collect();
                let scored = adapted.score(&words)?;
                let spans: Vec<Span> =
                    scored.tagged().spans.into_iter().map(|found| found.span).collect();
                let gold = gold.spans();
                let right = spans.iter().map(|span| gold.contains(span)).collect();
                let (tags, emissions) = (adapted.tag_set().clone(), scored.emissions().clone());
                let examples_per_label = episode.support.examples_per_label();
                Ok(Query { examples_per_label, tags, emissions, spans, right, n_gold: gold.len() })
            };
            episode.queries.iter().map(query).collect()
        };
        let queries = episodes.par_iter().map(of_episode).collect::<Result<Vec<_>>>()?;
        let queries = queries.into_iter().flatten().collect();
        Ok(Self { head: *tagger.head(), settings: tagger.settings().clone(), queries })
    }

    /// The temperature with the smallest log loss; 1 if no span was predicted. It grows with the examples only if the
    /// episodes have supports of different sizes, and is another for names alone only if there are episodes of these.
    #[must_use]
    pub fn best_temperature(&self) -> Temperature {
        let is_named = |query: &&Query| query.examples_per_label == 0.0 && !query.spans.is_empty();
        let named: Vec<&Query> = self.queries.iter().filter(is_named).collect();
        let shown: Vec<&Query> =
            self.queries.iter().filter(|q| q.examples_per_label > 0.0).collect();
        let fitted = self.best_of_examples(&shown);
        if named.is_empty() {
            return fitted;
        }
        let loss =
            |log: f64| self.log_loss(&named, Temperature { of_names: log.exp() as f32, ..fitted });
        Temperature {
            of_names: minimum(RANGE.0.ln()..RANGE.1.ln(), 15, loss).exp() as f32,
            ..fitted
        }
    }

    /// That of queries with examples.
    fn best_of_examples(&self, queries: &[&Query]) -> Temperature {
        if queries.iter().all(|query| query.spans.is_empty()) {
            return Temperature::ONE;
        }
        let at = |base: f32, growth: f32| Temperature { base, growth, of_names: 1.0 };
        let base_for = |growth: f32| {
            let loss = |log: f64| self.log_loss(queries, at(log.exp() as f32, growth));
            minimum(RANGE.0.ln()..RANGE.1.ln(), 15, loss).exp() as f32
        };
        let sizes = || queries.iter().map(|query| query.examples_per_label);
        let spread = sizes().fold(0.0, f32::max) / sizes().fold(f32::INFINITY, f32::min).max(0.5);
        let growth = if spread < 2.0 {
            0.0
        } else {
            let loss = |growth: f64| {
                let growth = growth as f32;
                self.log_loss(queries, at(base_for(growth), growth))
            };
            minimum(-1.0..1.0, 10, loss) as f32
        };
        at(base_for(growth), growth)
    }

    /// How honest the probabilities are at a temperature.
    #[must_use]
    pub fn reliability(&self, temperature: Temperature) -> Reliability {
        let queries: Vec<&Query> = self.queries.iter().collect();
        Reliability::of(temperature, self.probabilities(&queries, temperature))
    }

    /// What became of the sentences in which there is nothing to find.
    #[must_use]
    pub fn without_spans(&self) -> WithoutSpans {
        let mut found = WithoutSpans::default();
        for query in self.queries.iter().filter(|query| query.n_gold == 0) {
            found.sentences += 1;
            found.left_alone += usize::from(query.spans.is_empty());
            found.spans += query.spans.len();
        }
        found
    }

    fn log_loss(&self, queries: &[&Query], temperature: Temperature) -> f64 {
        let probabilities = self.probabilities(queries, temperature);
        probabilities.into_iter().map(|(p, right)| log_loss(p, right)).sum()
    }

    fn probabilities(&self, queries: &[&Query], temperature: Temperature) -> Vec<(f64, bool)> {
        let mut settings = self.settings.clone();
        temperature.put_into(&mut settings);
        let of_query = |query: &&Query| {
            let Query { examples_per_label, tags, emissions, spans, right, .. } = query;
            let temperature = settings.temperature_at(*examples_per_label);
            let settings = ModelSettings { temperature, ..settings.clone() };
            let probabilities = self.head.span_probabilities(&settings, tags, emissions, spans);
            probabilities.into_iter().map(f64::from).zip(right.iter().copied()).collect::<Vec<_>>()
        };
        // Collected in order, so that sums do not depend on the threads.
        queries.par_iter().map(of_query).collect::<Vec<_>>().into_iter().flatten().collect()
    }
}

/// What a probability costs, given whether it came true.
pub(crate) fn log_loss(probability: f64, right: bool) -> f64 {
    // One that rounds to 0 or 1 costs much, but not everything.
    let certain = 1e-6;
    let p = if right { probability } else { 1.0 - probability };
    -p.clamp(certain, 1.0).ln()
}

/// Golden-section search of the smallest cost; each step leaves 0.62 of the range and asks once.
fn minimum(range: std::ops::Range<f64>, n_steps: usize, cost: impl Fn(f64) -> f64) -> f64 {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (range.start, range.end);
    let asked = |x: f64| (x, cost(x));
    let mut left = asked(high - golden * (high - low));
    let mut right = asked(low + golden * (high - low));
    for _ in 0..n_steps {
        if left.1 <= right.1 {
            (high, right) = (right.0, left);
            left = asked(high - golden * (high - low));
        } else {
            (low, left) = (left.0, right);
            right = asked(low + golden * (high - low));
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::tag::Tag;
    use crate::transition::TransitionMode;

    const ONE: Temperature = Temperature::ONE;

    /// One-word sentences whose word is `B-a` with the odds `exp(score / temperature)`.
    fn predictions(temperature: f64) -> Predictions {
        growing_predictions(temperature, 0.0)
    }

    /// The same with temperatures that grow with the examples, of which there are 1, 4 and 16.
    fn growing_predictions(base: f64, growth: f64) -> Predictions {
        let tags = TagSet::new(&["B-a".parse::<Tag>().unwrap()]);
        let mut random = Random::new(1);
        let slot = tags.slots()[0].clone();
        let query = |q: i32| {
            let n = 4.0_f64.powi(q % 3);
            let temperature = base * n.powf(growth);
            let score = 6.0 * random.unit();
            let right = random.unit() < 1.0 / (1.0 + (-score / temperature).exp());
            Query {
                examples_per_label: n as f32,
                tags: tags.clone(),
                emissions: Matrix::new(vec![0.0, score as f32], 2),
                spans: vec![Span { start: 0, end: 1, slot: slot.clone() }],
                right: vec![right],
                n_gold: usize::from(right),
            }
        };
        let settings =
            ModelSettings { transitions: TransitionMode::None, ..ModelSettings::default() };
        let head = Head { scale: 1.0, ..Head::ZERO };
        Predictions { head, settings, queries: (0..900).map(query).collect() }
    }

    #[test]
    fn the_temperature_that_made_the_data_is_found() {
        for temperature in [0.5, 1.0, 4.0] {
            let found = predictions(temperature).best_temperature();
            let factor = (f64::from(found.base) / temperature).ln().abs();
            assert!(factor < 0.3 && found.growth.abs() < 0.2, "{found:?} {temperature}");
        }
        let found = growing_predictions(1.0, 0.5).best_temperature();
        assert!((found.growth - 0.5).abs() < 0.2, "{found:?}");
    }

    #[test]
    fn names_alone_have_a_temperature_of_their_own() {
        let mut all = predictions(2.0);
        let mut named = predictions(6.0).queries;
        for query in &mut named {
            query.examples_per_label = 0.0;
        }
        all.queries.append(&mut named);
        let found = all.best_temperature();
        let apart = |found: f32, wanted: f32| (found / wanted).ln().abs();
        assert!(apart(found.base, 2.0) < 0.3 && apart(found.of_names, 3.0) < 0.5, "{found:?}");
        let unnamed = predictions(2.0).best_temperature();
        assert!((unnamed.of_names - 1.0).abs() < f32::EPSILON, "{unnamed:?}");
    }

    #[test]
    fn honest_probabilities_have_a_small_error() {
        let predictions = predictions(4.0);
        let fitted = predictions.reliability(predictions.best_temperature());
        assert!(fitted.expected_error() < 0.04, "{fitted:?}");
        assert!(predictions.reliability(ONE).expected_error() > 0.15);
    }

    #[test]
    fn spans_in_sentences_without_any_are_counted() {
        let mut predictions = predictions(1.0);
        let wrong = predictions.queries.iter().filter(|query| !query.right[0]).count();
        let found = predictions.without_spans();
        assert_eq!(found, WithoutSpans { sentences: wrong, left_alone: 0, spans: wrong });
        for query in &mut predictions.queries {
            query.spans.clear();
        }
        let found = predictions.without_spans();
        assert_eq!(found, WithoutSpans { sentences: wrong, left_alone: wrong, spans: 0 });
    }

    #[test]
    fn nothing_predicted_needs_no_calibration() {
        let mut predictions = predictions(1.0);
        predictions.queries.clear();
        assert_eq!(predictions.best_temperature(), ONE);
        assert!(predictions.reliability(ONE).expected_error().abs() < f64::EPSILON);
    }
}
