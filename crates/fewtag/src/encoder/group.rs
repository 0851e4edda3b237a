//! Groups of consecutive sequences that go through the layers together, each on one thread.

use std::ops::Range;

use super::batch::PackedBatch;

/// The rows a group should have: every group reads all weights, so many; its rows must stay in the cache, so few.
pub(super) const GROUP_ROWS: usize = 384;
/// Below so many rows, reading the weights takes longer than using them.
const FEWEST_ROWS: usize = 24;

/// Consecutive sequences of a batch, at least one.
#[derive(Debug, Clone)]
pub(super) struct SequenceGroup<'a> {
    pub(super) batch: &'a PackedBatch,
    pub(super) sequences: Range<usize>,
}

impl<'a> SequenceGroup<'a> {
    /// Cuts a batch for training. The cut depends on the batch alone, because weight gradients are summed group by
    /// group; it serves an even number of threads.
    pub(super) fn cut_for_training(batch: &'a PackedBatch) -> Vec<Self> {
        Self::cut(batch, 2 * batch.n_pieces().div_ceil(2 * GROUP_ROWS))
    }

    /// Cuts a batch for inference, where rows do not depend on the cut, into groups of about `n_rows`.
    pub(super) fn cut_for_threads(
        batch: &'a PackedBatch,
        n_rows: usize,
        n_threads: usize,
    ) -> Vec<Self> {
        let n = batch.n_pieces();
        let n_groups = n.div_ceil(n_rows).next_multiple_of(n_threads);
        Self::cut(batch, n_groups.min(n.div_ceil(FEWEST_ROWS)))
    }

    /// Cuts a batch into `n_groups` of about equal size, or fewer if it has not as many sequences.
    fn cut(batch: &'a PackedBatch, n_groups: usize) -> Vec<Self> {
        let mut groups = Vec::new();
        let mut start = 0;
        for s in 0..batch.n_sequences() {
            let is_last = s + 1 == batch.n_sequences();
            // The group ends here if its share of the rows is nearer to this end than to the next sequence's.
            let is_full = || {
                let ends = batch.rows(s).end + batch.rows(s + 1).end;
                ends * n_groups >= 2 * batch.n_pieces() * (groups.len() + 1)
            };
            if is_last || is_full() {
                groups.push(Self { batch, sequences: start..s + 1 });
                start = s + 1;
            }
        }
        groups
    }

    /// The rows of the batch that belong to the group.
    pub(super) fn rows(&self) -> Range<usize> {
        let last = self.batch.rows(self.sequences.end - 1);
        self.batch.rows(self.sequences.start).start..last.end
    }

    /// Which of some rows of the batch are the group's, counted from its first; `rows` must increase.
    pub(super) fn own(&self, rows: &[usize]) -> Vec<usize> {
        let own = self.rows();
        let from = rows.partition_point(|&row| row < own.start);
        let to = rows.partition_point(|&row| row < own.end);
        rows[from..to].iter().map(|row| row - own.start).collect()
    }

    /// The group's part of a matrix `[n_pieces, width]`.
    pub(super) fn part<'m>(&self, values: &'m [f32], width: usize) -> &'m [f32] {
        let rows = self.rows();
        &values[rows.start * width..rows.end * width]
    }

    /// The rows of every sequence, counted from the group's first.
    pub(super) fn sequences(&self) -> impl Iterator<Item = Range<usize>> {
        let first = self.rows().start;
        let rows = self.sequences.clone().map(|s| self.batch.rows(s));
        rows.map(move |rows| rows.start - first..rows.end - first)
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::Piece;
    use super::*;

    #[test]
    fn groups_cover_the_batch_in_order_and_are_about_equal() {
        for lengths in [vec![1], vec![512], vec![3, 500], vec![20; 40], (1..60).collect()] {
            let mut batch = PackedBatch::new();
            for &n in &lengths {
                batch.push(vec![Piece { id: 0, segment: 0 }; n]);
            }
            for groups in [
                SequenceGroup::cut_for_training(&batch),
                SequenceGroup::cut_for_threads(&batch, GROUP_ROWS, 3),
            ] {
                let mut end = 0;
                for group in &groups {
                    assert_eq!(group.rows().start, end);
                    end = group.rows().end;
                    let longest = lengths.iter().max().unwrap();
                    assert!(group.rows().len() <= GROUP_ROWS + longest, "{lengths:?}: {group:?}");
                }
                assert_eq!(end, batch.n_pieces());
            }
        }
    }
}
