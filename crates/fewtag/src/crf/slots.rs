//! The collapsed table bound to a tag set: the steps of the CRF in `O(L)` instead of `O(L²)`.
//!
//! All moves from a class into a tag share one score, but for the slot's own two tags. So a tag's
//! incoming sum has at most five terms:
//!
//! ```text
//! O, same slot's B, all other B, same slot's I, all other I
//! ```
//!
//! "All other" is a sum over a class with one member left out. Subtracting the member from the total
//! would cancel when it dominates, which after training it does; [`Sums`] shows the way around.
//! The results equal those of the plain [`super::Transitions`] (tests in `tests.rs`);
//! `cargo bench --bench crf` measures the gain.

use super::{Move, TransitionScores, log_sum_exp};
use crate::tag::{TagClass, TagSet};
use crate::transition::{CollapsedTransitions, Column};

/// A collapsed table with the tags it stands for.
#[derive(Debug, Clone)]
pub struct SlotTransitions {
    table: CollapsedTransitions,
    tags: TagSet,
    /// For each slot the indices of its `B` and its `I`, where the tag set has them.
    slots: Vec<[Option<usize>; 2]>,
}

/// `B` and `I` with their columns for the same and for a different slot, in the order of `slots`.
const SLOT_CLASSES: [(TagClass, Column, Column); 2] = [
    (TagClass::B, Column::SameB, Column::DifferentB),
    (TagClass::I, Column::SameI, Column::DifferentI),
];

impl SlotTransitions {
    pub(crate) fn new(table: CollapsedTransitions, tags: &TagSet) -> Self {
        let mut slots: Vec<[Option<usize>; 2]> = Vec::new();
        let mut open = None;
        for (j, tag) in tags.tags().iter().enumerate().skip(1) {
            if tag.slot() != open {
                slots.push([None; 2]);
                open = tag.slot();
            }
            let slot = slots.last_mut().expect("every tag but O has a slot");
            slot[usize::from(tag.class() == TagClass::I)] = Some(j);
        }
        Self { table, tags: tags.clone(), slots }
    }

    fn cell(&self, from: TagClass, to: Column) -> f64 {
        f64::from(self.table.between[from as usize][to as usize])
    }

    /// The values of one class slot by slot; `-inf` for a tag that the set lacks.
    fn class(&self, values: &[f64], class: usize) -> Vec<f64> {
        let value =
            |slot: &[Option<usize>; 2]| slot[class].map_or(f64::NEG_INFINITY, |j| values[j]);
        self.slots.iter().map(value).collect()
    }

    fn sums(&self, values: &[f64]) -> [Sums; 2] {
        [0, 1].map(|class| Sums::new(self.class(values, class)))
    }

    /// Fills `[L]` values: `outside` for `O`, `of(slot, class)` for the others.
    fn collect<V>(&self, outside: V, of: impl Fn(usize, usize) -> V) -> Vec<V> {
        let mut out = Vec::with_capacity(self.n_tags());
        out.push(outside);
        // In a tag set the slots stand in order, `B` before `I`.
        for (s, slot) in self.slots.iter().enumerate() {
            out.extend((0..2).filter(|&class| slot[class].is_some()).map(|class| of(s, class)));
        }
        out
    }
}

impl TransitionScores for SlotTransitions {
    type Gradient = CollapsedTransitions;

    fn n_tags(&self) -> usize {
        self.tags.n_tags()
    }

    fn score(&self, step: Move) -> f64 {
        let tags = self.tags.tags();
        match step {
            Move::Start(j) => f64::from(self.table.start[tags[j].class() as usize]),
            Move::Between(i, j) => self.cell(tags[i].class(), Column::of(&tags[i], &tags[j])),
            Move::End(i) => f64::from(self.table.end[tags[i].class() as usize]),
        }
    }

    fn zero_gradient(&self) -> CollapsedTransitions {
        CollapsedTransitions::ZERO
    }

    fn add(&self, gradient: &mut CollapsedTransitions, step: Move, amount: f64) {
        let tags = self.tags.tags();
        *match step {
            Move::Start(j) => &mut gradient.start[tags[j].class() as usize],
            Move::Between(i, j) => {
                let column = Column::of(&tags[i], &tags[j]);
                &mut gradient.between[tags[i].class() as usize][column as usize]
            }
            Move::End(i) => &mut gradient.end[tags[i].class() as usize],
        } += amount as f32;
    }

    fn arrive(&self, before: &[f64]) -> Vec<f64> {
        let o = before[0];
        let [b, i] = self.sums(before);
        let outside = [
            o + self.cell(TagClass::O, Column::O),
            b.total + self.cell(TagClass::B, Column::O),
            i.total + self.cell(TagClass::I, Column::O),
        ];
        let cells = SLOT_CLASSES.map(|(_, same, different)| {
            let [from_b, from_i] = [TagClass::B, TagClass::I]
                .map(|class| (self.cell(class, same), self.cell(class, different)));
            (o + self.cell(TagClass::O, same), from_b, from_i)
        });
        self.collect(log_sum_exp(outside.into_iter()), |s, to| {
            let (from_o, (same_b, other_b), (same_i, other_i)) = cells[to];
            let ways = [
                from_o,
                b.own[s] + same_b,
                b.others[s] + other_b,
                i.own[s] + same_i,
                i.others[s] + other_i,
            ];
            log_sum_exp(ways.into_iter())
        })
    }

    fn depart(&self, after: &[f64]) -> Vec<f64> {
        let o = after[0];
        let [b, i] = self.sums(after);
        let outside = [
            o + self.cell(TagClass::O, Column::O),
            b.total + self.cell(TagClass::O, Column::SameB),
            i.total + self.cell(TagClass::O, Column::SameI),
        ];
        let cells =
            SLOT_CLASSES.map(|(class, ..)| self.table.between[class as usize].map(f64::from));
        self.collect(log_sum_exp(outside.into_iter()), |s, from| {
            let [to_o, same_b, other_b, same_i, other_i] = cells[from];
            let ways = [
                o + to_o,
                b.own[s] + same_b,
                b.others[s] + other_b,
                i.own[s] + same_i,
                i.others[s] + other_i,
            ];
            log_sum_exp(ways.into_iter())
        })
    }

    fn best_arrivals(&self, before: &[f64]) -> Vec<(f64, usize)> {
        let leaders = [0, 1].map(|class| self.leaders(before, class));
        let scored = |leader: Option<usize>, cell: f64| leader.map(|i| (before[i] + cell, i));
        // Equal scores go to the lower tag, whichever term it stands in.
        let better = |a: (f64, usize), b: (f64, usize)| a.0 > b.0 || (a.0 >= b.0 && a.1 < b.1);
        let pick = |ways: [Option<(f64, usize)>; 5]| {
            let best = ways.into_iter().flatten().reduce(|a, b| if better(b, a) { b } else { a });
            best.expect("O is always among the ways")
        };
        let to_o = [TagClass::O, TagClass::B, TagClass::I].map(|class| self.cell(class, Column::O));
        let outside = pick([
            Some((before[0] + to_o[0], 0)),
            scored(leaders[0][0], to_o[1]),
            scored(leaders[1][0], to_o[2]),
            None,
            None,
        ]);
        self.collect(outside, |s, to| {
            let (_, same, different) = SLOT_CLASSES[to];
            let own = self.slots[s];
            // The leader of the others: the class's first, or its second if the first is our own.
            let other = |class: usize| {
                let [first, second] = leaders[class];
                if first == own[class] { second } else { first }
            };
            pick([
                Some((before[0] + self.cell(TagClass::O, same), 0)),
                scored(own[0], self.cell(TagClass::B, same)),
                scored(other(0), self.cell(TagClass::B, different)),
                scored(own[1], self.cell(TagClass::I, same)),
                scored(other(1), self.cell(TagClass::I, different)),
            ])
        })
    }

    fn add_pairs(&self, gradient: &mut CollapsedTransitions, before: &[f64], after: &[f64]) {
        let mut add = |from: TagClass, to: Column, expected: f64| {
            gradient.between[from as usize][to as usize] += expected as f32;
        };
        let o = TagClass::O;
        add(o, Column::O, (before[0] + self.cell(o, Column::O) + after[0]).exp());
        let sums = self.sums(before);
        for (to, (_, same, different)) in SLOT_CLASSES.into_iter().enumerate() {
            let target = self.class(after, to);
            let all = |from: &[f64], cell: f64| {
                from.iter().zip(&target).map(|(a, b)| (a + cell + b).exp()).sum::<f64>()
            };
            let from_o = vec![before[0]; target.len()];
            add(o, same, all(&from_o, self.cell(o, same)));
            for ((from, ..), sums) in SLOT_CLASSES.into_iter().zip(&sums) {
                add(from, same, all(&sums.own, self.cell(from, same)));
                add(from, different, all(&sums.others, self.cell(from, different)));
            }
        }
        for ((from, ..), sums) in SLOT_CLASSES.into_iter().zip(&sums) {
            add(from, Column::O, (sums.total + self.cell(from, Column::O) + after[0]).exp());
        }
    }
}

impl SlotTransitions {
    /// The best tag of a class and the best of the rest, the lowest of equals.
    fn leaders(&self, values: &[f64], class: usize) -> [Option<usize>; 2] {
        let mut leaders: [Option<usize>; 2] = [None, None];
        for j in self.slots.iter().filter_map(|slot| slot[class]) {
            let beats = |leader: Option<usize>| leader.is_none_or(|have| values[j] > values[have]);
            if beats(leaders[0]) {
                leaders = [Some(j), leaders[0]];
            } else if beats(leaders[1]) {
                leaders[1] = Some(j);
            }
        }
        leaders
    }
}

/// Log-sums over the members of a class.
struct Sums {
    /// The members, `[n]`.
    own: Vec<f64>,
    /// `log Σ exp` of all.
    total: f64,
    /// `log Σ exp` of all but one, `[n]`.
    others: Vec<f64>,
}

impl Sums {
    /// Leaves out the largest member by summing the rest afresh. For any other member
    /// `Σ exp − exp(own)` keeps the largest member's whole share, which is at least half of
    /// the sum, so the difference loses at most one bit.
    fn new(own: Vec<f64>) -> Self {
        let (max, leader) = own.iter().copied().zip(0..).fold(
            (f64::NEG_INFINITY, 0),
            |best: (f64, usize), next| if next.0 > best.0 { next } else { best },
        );
        if max == f64::NEG_INFINITY {
            return Self { total: max, others: own.clone(), own };
        }
        let shares: Vec<f64> = own.iter().map(|x| (x - max).exp()).collect();
        let sum: f64 = shares.iter().sum();
        let mut others: Vec<f64> = shares.iter().map(|share| max + (sum - share).ln()).collect();
        let rest = own.iter().enumerate().filter(|(s, _)| *s != leader).map(|(_, x)| *x);
        others[leader] = log_sum_exp(rest);
        Self { total: max + sum.ln(), others, own }
    }
}
