//! Many support sets and many queries read together, each with the answer it would get alone.
//!
//! ```text
//! support sets ─ adapt_all ─▶ one Adapted each      queries of any of them ─ score_all ─▶ one Scored each
//! ```
//!
//! A server gathers what has arrived: the encoder is busiest when it reads many sequences at once. What cannot be
//! read fails alone.

use crate::adapted::{Adapted, Reading, Scored};
use crate::domain::SupportSet;
use crate::embedder;
use crate::error::Result;
use crate::tagger::Tagger;

/// Teaches many domains at once, each as [`Tagger::adapt`] would.
///
/// The outer error is the encoder's; the inner ones are of single support sets.
///
/// # Errors
///
/// As [`Tagger::adapt`].
///
/// # Panics
///
/// If the taggers do not share their encoder.
pub fn adapt_all(wanted: &[(&Tagger, &SupportSet)]) -> Result<Vec<Result<Adapted>>> {
    let Some((first, _)) = wanted.first() else { return Ok(Vec::new()) };
    assert!(wanted.iter().all(|(tagger, _)| tagger.shares_encoder(first)), "one encoder for all");
    let mut sequences = Vec::new();
    let readings: Vec<Result<Reading>> =
        wanted.iter().map(|(tagger, support)| tagger.prepare(support, &mut sequences)).collect();
    let mut read = embedder::embed(first.engine(), &sequences)?.into_iter();
    Ok(readings.into_iter().map(|reading| reading.map(|it| it.finish(&mut read))).collect())
}

/// Scores many sentences at once, each as [`Adapted::score`] would.
///
/// The outer error is the encoder's; the inner ones are of single sentences.
///
/// # Errors
///
/// As [`Adapted::score`].
///
/// # Panics
///
/// If the adapted taggers do not share their encoder.
pub fn score_all<'a, W: AsRef<str>>(
    queries: &[(&'a Adapted, &[W])],
) -> Result<Vec<Result<Scored<'a>>>> {
    let Some((first, _)) = queries.first() else { return Ok(Vec::new()) };
    let tagger = first.tagger();
    assert!(
        queries.iter().all(|(it, _)| it.tagger().shares_encoder(tagger)),
        "one encoder for all"
    );
    let mut sequences = Vec::new();
    let windows: Vec<_> =
        queries.iter().map(|(adapted, words)| adapted.prepare(words, &mut sequences)).collect();
    let mut read = embedder::embed(tagger.engine(), &sequences)?.into_iter();
    let scored = queries.iter().zip(windows);
    Ok(scored.map(|((adapted, _), windows)| Ok(adapted.finish(windows?, &mut read))).collect())
}
