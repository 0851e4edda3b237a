//! Texts on their way to the encoder: checked, cut into words, and what they cost.

use std::sync::Arc;

use fewtag::{Sentence, Tag, words};

use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code};
use crate::learner::Learner;
use crate::queue::{Item, Wanted};
use crate::request::check_text;

/// A text on its way: what the encoder reads, or what has no words and needs no encoder.
pub enum Prepared {
    /// To be tagged.
    Item(Item),
    /// Nothing to tag.
    Blank(String),
}

/// Cuts texts into words and counts what they cost. Takes time for long texts: not for an async thread.
///
/// # Errors
///
/// [`Code::TextTooLong`], [`Code::UnknownLabel`].
pub fn prepare(
    learner: &Arc<Learner>,
    texts: Vec<String>,
    wanted: &Arc<Wanted>,
    (limits, place): (&Limits, &str),
) -> ApiResult<Vec<Prepared>> {
    if let Some(label) = wanted.thresholds.unknown_label(learner.support().tag_set()) {
        let message = format!("the examples have no label `{label}`");
        return Err(ApiError::new(Code::UnknownLabel, message).at("thresholds"));
    }
    let mut of_support = learner.cost();
    let mut prepare = |(at, text): (usize, String)| {
        let place = || format!("{place}[{at}]");
        check_text(&text, limits).map_err(|error| error.at(place()))?;
        let words = words::split(&text, words::WordSplit::Unicode);
        if words.is_empty() {
            return Ok(Prepared::Blank(text));
        }
        let tags = vec![Tag::O; words.len()];
        let sentence = Sentence::from_text(text, words, tags)?;
        let own = cost(learner, &sentence, wanted, limits).map_err(|error| error.at(place()))?;
        let cost = own + std::mem::take(&mut of_support);
        let (learner, wanted) = (Arc::clone(learner), Arc::clone(wanted));
        Ok(Prepared::Item(Item { learner, sentence, wanted, cost }))
    };
    texts.into_iter().enumerate().map(&mut prepare).collect()
}

/// What it costs to answer a text whose examples are known.
fn cost(
    learner: &Learner,
    sentence: &Sentence,
    wanted: &Wanted,
    limits: &Limits,
) -> ApiResult<usize> {
    let n_words = sentence.n_words();
    let to_score = learner.cost_to_score(n_words);
    if to_score > limits.queue {
        let n_labels = learner.support().tag_set().slots().len();
        let message =
            format!("{n_words} words are too many for the {n_labels} labels of the examples");
        return Err(ApiError::new(Code::TextTooLong, message));
    }
    let to_explain = if wanted.explain { learner.cost_to_explain(n_words) } else { 0 };
    Ok(learner.cost_of(sentence.words())? + to_score + to_explain)
}

/// Refuses more texts than a request may have.
///
/// # Errors
///
/// [`Code::BatchTooLarge`].
pub fn check_batch(n: usize, limits: &Limits) -> ApiResult<()> {
    if n <= limits.batch {
        return Ok(());
    }
    let message = format!("{n} texts; at most {} are taken in a request", limits.batch);
    Err(ApiError::new(Code::BatchTooLarge, message).at("texts"))
}

/// Refuses a request whose explanations alone would fill the queue: what is asked for at once must be done in about the time
/// that others wait for at most, and so must the memory of its answer be bounded.
///
/// # Errors
///
/// [`Code::ExplanationTooLarge`].
pub fn check_explained(prepared: &[Prepared], limits: &Limits) -> ApiResult<()> {
    let cost = |one: &Prepared| match one {
        Prepared::Item(item) if item.wanted.explain => {
            item.learner.cost_to_explain(item.sentence.n_words())
        }
        _ => 0,
    };
    let cost: usize = prepared.iter().map(cost).sum();
    if cost <= limits.queue {
        return Ok(());
    }
    let message = format!(
        "to explain these texts costs up to {cost}, and at most {} is taken (--max-queue): send fewer texts, or tag without `explain`",
        limits.queue
    );
    Err(ApiError::new(Code::ExplanationTooLarge, message).at("explain"))
}
