//! Which sentences are left out together, to judge what was learned from the others.
//!
//! Every fold leaves out a fifth. Sentences with the same words are left out together, and each label is spread over the folds
//! as evenly as it goes: a rare one would else be missing where it is asked for. One round of folds judges every sentence
//! once; further rounds part them differently.

use std::collections::BTreeMap;

use crate::domain::{Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::tag::Slot;
use crate::tagger::Tagger;
use crate::train::alike;

/// The folds of a round.
const ROUND: usize = 5;

/// Sentences to judge, and what is learned without them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    /// Their numbers.
    pub(super) left_out: Vec<usize>,
    pub(super) rest: SupportSet,
}

/// The first `n_folds` folds of as many rounds as it takes; fewer if some leave nothing to learn from.
///
/// # Errors
///
/// If the support set cannot be parted at all.
pub(super) fn folds(
    tagger: &Tagger,
    support: &SupportSet,
    n_folds: usize,
    random: &Random,
) -> Result<Vec<Fold>> {
    let mut folds = Vec::new();
    for round in 0..n_folds.div_ceil(ROUND) {
        let parts = parts(support.sentences(), &mut random.stream(round as u64));
        for left_out in parts.into_iter().take(n_folds - round * ROUND) {
            let stays = |i: &usize| left_out.binary_search(i).is_err();
            let others = (0..support.sentences().len()).filter(stays);
            let others = others.map(|i| support.sentences()[i].clone()).collect();
            let rest = match support.with_sentences(others) {
                Err(Error::EmptySupport) => continue,
                other => other?,
            };
            if tagger.can_begin(&rest, &tagger.settings().tag_set(&rest)) {
                folds.push(Fold { left_out, rest });
            }
        }
    }
    Ok(folds)
}

/// All sentences in parts of about the same size and the same labels, each in increasing order.
fn parts(sentences: &[Sentence], random: &mut Random) -> Vec<Vec<usize>> {
    let mut groups = alike(sentences);
    random.shuffle(&mut groups);
    let mut n_of: BTreeMap<Slot, usize> = BTreeMap::new();
    for sentence in sentences {
        for span in sentence.spans() {
            *n_of.entry(span.slot).or_default() += 1;
        }
    }
    // The rarest label of each group, which decides where it goes; the rarest of all first.
    let rarest = |group: &Vec<usize>| {
        let slots = group.iter().flat_map(|&i| sentences[i].spans()).map(|span| span.slot);
        slots.min_by_key(|slot| (n_of[slot], slot.clone()))
    };
    let mut groups: Vec<(Option<Slot>, Vec<usize>)> =
        groups.into_iter().map(|group| (rarest(&group), group)).collect();
    groups.sort_by_key(|(slot, _)| slot.as_ref().map_or(usize::MAX, |slot| n_of[slot]));
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); ROUND];
    let mut have: BTreeMap<(usize, Option<Slot>), usize> = BTreeMap::new();
    for (slot, group) in groups {
        let burden = |part: &usize| {
            let of_slot = have.get(&(*part, slot.clone())).copied().unwrap_or(0);
            (of_slot, parts[*part].len())
        };
        let part = (0..ROUND).min_by_key(burden).expect("there are parts");
        *have.entry((part, slot)).or_default() += group.len();
        parts[part].extend(group);
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences() -> Vec<Sentence> {
        let lines: Vec<String> = (0..30)
            .map(|i| match i % 6 {
                0 => format!("hear [song{i}](track)"),
                1 => format!("now [noon{i}](time)"),
                2 => "the same [words](track)".to_owned(),
                _ => format!("by [singer{i}](artist)"),
            })
            .collect();
        SupportSet::parse(&lines.join("\n")).unwrap().sentences().to_vec()
    }

    #[test]
    fn every_sentence_is_left_out_once_a_round_and_labels_are_spread() {
        let sentences = sentences();
        let parts = parts(&sentences, &mut Random::new(3));
        let mut all = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..30).collect::<Vec<_>>());
        for part in &parts {
            let with = |label: &str| {
                let has = |i: &&usize| sentences[**i].spans()[0].slot.as_str() == label;
                part.iter().filter(has).count()
            };
            assert_eq!((with("time"), with("artist")), (1, 3), "{parts:?}");
        }
    }

    #[test]
    fn the_same_words_are_left_out_together() {
        let sentences = sentences();
        let parts = parts(&sentences, &mut Random::new(3));
        let same: Vec<usize> = (2..30).step_by(6).collect();
        assert!(parts.iter().any(|part| same.iter().all(|i| part.contains(i))), "{parts:?}");
    }

    #[test]
    fn rounds_differ_and_a_seed_repeats_them() {
        let of = |seed| parts(&sentences(), &mut Random::new(seed));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
