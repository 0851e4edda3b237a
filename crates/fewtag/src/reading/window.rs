//! Text longer than the encoder reads: overlapping windows of words.
//!
//! ```text
//! words    0 ─────────────────────────────────────── n
//! window 1 [───────────────────]
//! window 2               [───────────────────]
//! owned    [────────────────)[──────────────────)…        each word belongs to the window in which
//! ```                                                     it has the most context
//!
//! A window holds as many words as fit into the room for pieces; neighbours share [`OVERLAP`] of it. Every word
//! is owned by exactly one window, which gives its vector; the tags are then chosen over the whole text.

use std::ops::Range;

use crate::encoder::Pieces;

/// The share of a window that it has in common with the next one.
const OVERLAP: f64 = 0.25;

/// A run of words that the encoder reads at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The words that are read.
    pub(crate) words: Range<usize>,
    /// Those of them whose vectors are used.
    pub(crate) owned: Range<usize>,
}

/// Cuts a text into windows of at most `room` pieces; one window if everything fits. `None` if a single word
/// does not fit.
#[expect(clippy::cast_sign_loss, reason = "a share of a length is not negative")]
pub(crate) fn windows(pieces: &Pieces, room: usize) -> Option<Vec<Window>> {
    let n_words = pieces.first.len();
    let piece_at = |word: usize| pieces.first.get(word).copied().unwrap_or(pieces.ids.len());
    let mut windows: Vec<Window> = Vec::new();
    let mut start = 0;
    loop {
        let limit = piece_at(start) + room;
        let end = start + (start..n_words).take_while(|&word| piece_at(word + 1) <= limit).count();
        if end == start {
            return None;
        }
        windows.push(Window { words: start..end, owned: start..end });
        if end == n_words {
            break;
        }
        let shared = ((end - start) as f64 * OVERLAP) as usize;
        start = end - shared.min(end - start - 1);
    }
    for at in 1..windows.len() {
        let middle = windows[at].words.start.midpoint(windows[at - 1].words.end);
        windows[at - 1].owned.end = middle;
        windows[at].owned.start = middle;
    }
    Some(windows)
}

/// The pieces of some words of a text.
pub(crate) fn part(pieces: &Pieces, words: &Range<usize>) -> Pieces {
    let start = pieces.first[words.start];
    let end = pieces.first.get(words.end).copied().unwrap_or(pieces.ids.len());
    let first = pieces.first[words.clone()].iter().map(|at| at - start).collect();
    let Pieces { ids, shapes, .. } = pieces;
    Pieces { ids: ids[start..end].to_vec(), shapes: shapes[start..end].to_vec(), first }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_lengths(lengths: &[usize]) -> Pieces {
        let mut pieces = Pieces { ids: Vec::new(), shapes: Vec::new(), first: Vec::new() };
        for (word, &n) in lengths.iter().enumerate() {
            pieces.first.push(pieces.ids.len());
            pieces.ids.extend(std::iter::repeat_n(word as u32, n));
            pieces.shapes.extend(std::iter::repeat_n(0, n));
        }
        pieces
    }

    proptest! {
        #[test]
        fn every_word_is_owned_once_and_every_window_fits(
            lengths in prop::collection::vec(1..6usize, 1..200), room in 5..40usize,
        ) {
            let pieces = of_lengths(&lengths);
            let windows = windows(&pieces, room).unwrap();
            let owned: Vec<usize> = windows.iter().flat_map(|w| w.owned.clone()).collect();
            prop_assert_eq!(owned, (0..lengths.len()).collect::<Vec<_>>());
            for window in &windows {
                prop_assert!(window.words.start <= window.owned.start && window.owned.end <= window.words.end);
                let part = part(&pieces, &window.words);
                prop_assert!(part.ids.len() <= room);
                prop_assert_eq!(part.first.len(), window.words.len());
                prop_assert_eq!(part.ids[0] as usize, window.words.start);
            }
        }
    }

    #[test]
    fn what_fits_is_one_window_and_a_word_that_does_not_is_refused() {
        let pieces = of_lengths(&[2, 3]);
        assert_eq!(windows(&pieces, 5).unwrap(), [Window { words: 0..2, owned: 0..2 }]);
        assert_eq!(windows(&pieces, 2), None);
    }
}
