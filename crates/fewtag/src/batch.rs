//! Many support sets and many queries read together, each with the answer it would get alone.
//!
//! ```text
//! support sets ─ adapt_all ─▶ one Adapted each      queries of any of them ─ score_all ─▶ one Scored each
//! ```
//!
//! A server gathers what has arrived: the encoder is busiest when it reads many sequences at once. What cannot be
//! read fails alone.

use rayon::prelude::*;

use crate::adapted::{Adapted, Reading, Scored};
use crate::domain::SupportSet;
use crate::embedder;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::tagger::Tagger;
use crate::window::Window;

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
    let mut of_query = |(adapted, windows): (&'a Adapted, Result<Vec<Window>>)| {
        let windows = windows?;
        let n_sequences = windows.len() * adapted.sequences_per_query();
        let rows: Vec<Matrix> = read.by_ref().take(n_sequences).collect();
        Ok((adapted, windows, rows))
    };
    let adapted = queries.iter().map(|(adapted, _)| *adapted);
    let read: Vec<Result<_>> = adapted.zip(windows).map(&mut of_query).collect();
    let finish = |(adapted, windows, rows): (&'a Adapted, Vec<Window>, Vec<Matrix>)| {
        adapted.finish(windows, &mut rows.into_iter())
    };
    Ok(read.into_par_iter().map(|one| one.map(finish)).collect())
}
