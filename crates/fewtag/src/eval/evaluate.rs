//! Judging a tagger on episodes: adapt to each support set, tag its queries, count.
//!
//! Episodes run on all cores; each is computed by itself, so the result depends neither on the number of
//! threads nor on the other episodes. A gold tag that the support lacks cannot be predicted and counts as an
//! error.

use rayon::prelude::*;

use super::{EpisodeScore, Judged, Report};
use crate::adapted::Tagged;
use crate::domain::{Episode, Sentence};
use crate::error::{Error, Result};
use crate::tagger::Tagger;

/// What a tagger made of some episodes.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The scores, domain by domain in the order of their first episodes.
    pub report: Report,
    /// For each episode one answer per query.
    pub answers: Vec<Vec<Tagged>>,
}

/// Tags the queries of all episodes and scores the answers; `done` is called after each episode, from any
/// thread, so that progress can be shown.
///
/// # Errors
///
/// [`Error::Episode`] for an episode that the tagger cannot take, such as one that is too long.
pub fn evaluate(
    tagger: &Tagger,
    episodes: &[Episode],
    done: impl Fn() + Sync,
) -> Result<Evaluation> {
    let answer = |(at, episode): (usize, &Episode)| {
        let fail = |source| {
            let domain = episode.domain.clone();
            Error::Episode { at: at + 1, domain, source: Box::new(source) }
        };
        let answers = tag_queries(tagger, episode).map_err(fail)?;
        done();
        Ok((EpisodeScore::of(&judged(episode, &answers)), answers))
    };
    let judged: Vec<(EpisodeScore, Vec<Tagged>)> =
        episodes.par_iter().enumerate().map(answer).collect::<Result<_>>()?;
    let (scores, answers): (Vec<_>, Vec<_>) = judged.into_iter().unzip();
    let mut report = Report::default();
    for (episode, score) in episodes.iter().zip(scores) {
        report.add(&episode.domain, score);
    }
    Ok(Evaluation { report, answers })
}

fn tag_queries(tagger: &Tagger, episode: &Episode) -> Result<Vec<Tagged>> {
    let words = |query: &Sentence| query.words().map(str::to_owned).collect();
    let queries: Vec<Vec<String>> = episode.queries.iter().map(words).collect();
    tagger.adapt(&episode.support)?.tag_all(&queries)
}

fn judged<'a>(episode: &'a Episode, answers: &'a [Tagged]) -> Vec<Judged<'a>> {
    let pairs = episode.queries.iter().zip(answers);
    pairs.map(|(query, answer)| Judged::new(query.tags(), &answer.tags)).collect()
}
