//! The CRF against enumeration of all paths, against finite differences, and the fast form against the plain.

use proptest::prelude::*;

use super::*;
use crate::tag::{Tag, TagSet};
use crate::transition::CollapsedTransitions;

/// Tag sets with whole slots, slots without `I`, a slot without `B`, and no slot at all.
const TAG_SETS: [&str; 5] =
    ["B-a I-a B-b I-b", "B-a B-b I-b", "I-a B-b", "B-a", "B-a I-a B-b I-b B-c"];

fn tag_set(text: &str) -> TagSet {
    let tags: Vec<Tag> = text.split(' ').map(|tag| tag.parse().unwrap()).collect();
    TagSet::new(&tags)
}

#[derive(Debug, Clone)]
struct Case {
    tags: TagSet,
    table: CollapsedTransitions,
    scores: Matrix,
}

impl Case {
    fn plain(&self) -> Transitions {
        self.table.expand(&self.tags)
    }

    fn fast(&self) -> SlotTransitions {
        self.table.over(&self.tags)
    }

    fn paths(&self) -> Vec<Vec<usize>> {
        all_paths(self.scores.n_rows(), self.tags.n_tags())
    }
}

fn all_paths(n_words: usize, n_tags: usize) -> Vec<Vec<usize>> {
    (0..n_words).fold(vec![vec![]], |paths, _| {
        let extend = |path: &Vec<usize>| {
            let path = path.clone();
            (0..n_tags).map(move |j| [path.clone(), vec![j]].concat())
        };
        paths.iter().flat_map(extend).collect()
    })
}

/// The formula of the module comment, word by word.
fn formula(scores: &Matrix, m: &Transitions, path: &[usize]) -> f64 {
    let mut sum = f64::from(m.start[path[0]]) + f64::from(m.end[path[path.len() - 1]]);
    for t in 0..path.len() {
        sum += f64::from(scores.row(t)[path[t]]);
        if t > 0 {
            sum += f64::from(m.between.row(path[t - 1])[path[t]]);
        }
    }
    sum
}

/// Mostly numbers of the size that occurs; some large, some forbidden.
fn score() -> impl Strategy<Value = f32> {
    prop_oneof![6 => -4.0f32..4.0, 1 => -200.0f32..200.0, 1 => Just(f32::NEG_INFINITY)]
}

fn table() -> impl Strategy<Value = CollapsedTransitions> {
    prop::collection::vec(-3.0f32..3.0, CollapsedTransitions::N_PARAMETERS).prop_map(|values| {
        let mut table = CollapsedTransitions::ZERO;
        table.as_mut_slice().copy_from_slice(&values);
        table
    })
}

fn any_case() -> impl Strategy<Value = Case> {
    (0..TAG_SETS.len(), 1..5usize, table(), any::<bool>()).prop_flat_map(
        |(set, n, table, strict)| {
            let tags = tag_set(TAG_SETS[set]);
            let table = if strict { table.constrained() } else { table };
            prop::collection::vec(score(), n * tags.n_tags()).prop_map(move |mut values| {
                // `O` is never forbidden, so one path always remains.
                values.iter_mut().step_by(tags.n_tags()).for_each(|o| *o = o.max(-9.0));
                Case { scores: Matrix::new(values, tags.n_tags()), tags: tags.clone(), table }
            })
        },
    )
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    // Two forbidden paths agree, although `-inf - -inf` is NaN.
    let forbidden = a == f64::NEG_INFINITY && b == f64::NEG_INFINITY;
    forbidden || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

fn all_close(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-5)
}

proptest! {
    #[test]
    fn a_path_scores_what_the_formula_says(case in any_case()) {
        for path in case.paths().iter().step_by(7) {
            let expected = formula(&case.scores, &case.plain(), path);
            prop_assert!(close(path_score(&case.scores, &case.plain(), path), expected, 1e-12));
            prop_assert!(close(path_score(&case.scores, &case.fast(), path), expected, 1e-12));
        }
    }

    #[test]
    fn log_partition_sums_over_every_path(case in any_case()) {
        let m = case.plain();
        let scores: Vec<f64> = case.paths().iter().map(|p| formula(&case.scores, &m, p)).collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let expected = max + scores.iter().map(|s| (s - max).exp()).sum::<f64>().ln();
        prop_assert!(close(log_partition(&case.scores, &m), expected, 1e-12));
        prop_assert!(close(log_partition(&case.scores, &case.fast()), expected, 1e-12));
    }

    #[test]
    fn marginals_and_expected_moves_are_sums_over_paths(case in any_case()) {
        let m = case.plain();
        let log_z = log_partition(&case.scores, &m);
        let mut marginals = Matrix::zeros(case.scores.n_rows(), case.tags.n_tags());
        let mut expected = m.zero_gradient();
        for path in case.paths() {
            let p = (formula(&case.scores, &m, &path) - log_z).exp();
            path.iter().enumerate().for_each(|(t, &j)| marginals.row_mut(t)[j] += p as f32);
            moves(&path).for_each(|step| m.add(&mut expected, step, p));
        }
        let plain = Posterior::new(&case.scores, &m);
        let moves = plain.expected_moves();
        prop_assert!(all_close(plain.marginals().values(), marginals.values()));
        prop_assert!(all_close(&moves.start, &expected.start));
        prop_assert!(all_close(moves.between.values(), expected.between.values()));
        prop_assert!(all_close(&moves.end, &expected.end));

        let transitions = case.fast();
        let fast = Posterior::new(&case.scores, &transitions);
        let collapsed = CollapsedTransitions::collapse(&expected, &case.tags);
        prop_assert!(all_close(fast.marginals().values(), marginals.values()));
        prop_assert!(all_close(fast.expected_moves().as_slice(), collapsed.as_slice()));
    }

    #[test]
    fn a_span_is_as_probable_as_the_paths_that_hold_it(case in any_case()) {
        let m = case.plain();
        let posterior = Posterior::new(&case.scores, &m);
        let paths: Vec<(f64, Vec<crate::Span>)> = case.paths().iter().map(|path| {
            let p = (formula(&case.scores, &m, path) - posterior.log_partition()).exp();
            (p, crate::tag::spans(path.iter().map(|&j| &case.tags.tags()[j])))
        }).collect();
        let n = case.scores.n_rows();
        for slot in case.tags.slots() {
            let [b, i] = [Tag::B(slot.clone()), Tag::I(slot.clone())].map(|t| case.tags.index_of(&t));
            for (start, end) in (0..n).flat_map(|a| (a + 1..=n).map(move |b| (a, b))) {
                let span = crate::Span { start, end, slot: slot.clone() };
                let holding = paths.iter().filter(|(_, spans)| spans.contains(&span));
                let expected: f64 = holding.map(|(p, _)| p).sum();
                prop_assert!((posterior.span(start..end, b, i) - expected).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn viterbi_and_n_best_rank_all_paths(case in any_case()) {
        let m = case.plain();
        let mut ranked: Vec<f64> = case.paths().iter().map(|p| formula(&case.scores, &m, p)).collect();
        ranked.sort_by(|a, b| b.total_cmp(a));
        for best in [viterbi(&case.scores, &m), viterbi(&case.scores, &case.fast())] {
            prop_assert!(close(best.score, ranked[0], 1e-12));
            prop_assert!(close(formula(&case.scores, &m, &best.tags), ranked[0], 1e-12));
        }
        let found = n_best(&case.scores, &case.fast(), 6);
        let possible = ranked.iter().filter(|s| s.is_finite()).count();
        prop_assert_eq!(found.len(), possible.min(6));
        for (path, expected) in found.iter().zip(&ranked) {
            prop_assert!(close(path.score, *expected, 1e-12));
            prop_assert!(close(formula(&case.scores, &m, &path.tags), *expected, 1e-12));
        }
        let distinct: std::collections::HashSet<_> = found.iter().map(|path| &path.tags).collect();
        prop_assert_eq!(distinct.len(), found.len());
    }

    #[test]
    fn the_fast_form_decodes_exactly_like_the_plain_one_even_with_ties(
        set in 0..TAG_SETS.len(),
        table in prop::collection::vec(-2i8..3, CollapsedTransitions::N_PARAMETERS),
        scores in prop::collection::vec(-2i8..3, 60),
    ) {
        // Small integers tie often and add without rounding.
        let tags = tag_set(TAG_SETS[set]);
        let mut collapsed = CollapsedTransitions::ZERO;
        collapsed.as_mut_slice().iter_mut().zip(table).for_each(|(p, v)| *p = f32::from(v));
        let values = scores.chunks_exact(tags.n_tags()).flatten().map(|v| f32::from(*v)).collect();
        let scores = Matrix::new(values, tags.n_tags());
        let (plain, fast) = (collapsed.expand(&tags), collapsed.over(&tags));
        prop_assert_eq!(viterbi(&scores, &plain), viterbi(&scores, &fast));
        prop_assert_eq!(greedy(&scores, &plain), greedy(&scores, &fast));
        prop_assert_eq!(n_best(&scores, &plain, 4), n_best(&scores, &fast, 4));
    }

    #[test]
    fn gradients_equal_finite_differences(case in any_case(), scale in 0.1f32..2.0) {
        // Numbers small enough for differences, and a legal gold path.
        let mut emissions = case.scores.clone();
        emissions.values_mut().iter_mut().for_each(|e| *e = e.clamp(-5.0, 5.0));
        let gold = viterbi(&emissions, &case.fast()).tags;
        let value = |e: &Matrix, scale: f32, table: &CollapsedTransitions| {
            loss(e, scale, &table.expand(&case.tags), &gold).value
        };
        let h = 1.0 / 128.0; // A power of two: what is added is exactly what was meant.
        let fast = loss(&emissions, scale, &case.fast(), &gold);
        let plain = loss(&emissions, scale, &case.plain(), &gold);
        prop_assert!(close(fast.value, plain.value, 1e-12));
        prop_assert!(all_close(fast.emissions.values(), plain.emissions.values()));
        prop_assert!((fast.scale - plain.scale).abs() < 1e-4);
        let plain_table = CollapsedTransitions::collapse(&plain.transitions, &case.tags);
        prop_assert!(all_close(fast.transitions.as_slice(), plain_table.as_slice()));

        for k in 0..emissions.values().len() {
            let mut shifted = [emissions.clone(), emissions.clone()];
            shifted[0].values_mut()[k] += h;
            shifted[1].values_mut()[k] -= h;
            let [up, down] = shifted.map(|e| (value(&e, scale, &case.table), e.values()[k]));
            let slope = (up.0 - down.0) / f64::from(up.1 - down.1);
            prop_assert!((slope - f64::from(fast.emissions.values()[k])).abs() < 1e-3);
        }
        let slope = (value(&emissions, scale + h, &case.table)
            - value(&emissions, scale - h, &case.table)) / f64::from((scale + h) - (scale - h));
        prop_assert!((slope - f64::from(fast.scale)).abs() < 1e-2 * slope.abs().max(1.0));
        for k in 0..CollapsedTransitions::N_PARAMETERS {
            let mut shifted = [case.table; 2];
            shifted[0].as_mut_slice()[k] += h;
            shifted[1].as_mut_slice()[k] -= h;
            let width = f64::from(shifted[0].as_slice()[k] - shifted[1].as_slice()[k]);
            if width.is_nan() { continue; } // A forbidden entry stays forbidden.
            let [up, down] = shifted.map(|table| value(&emissions, scale, &table));
            let slope = (up - down) / width;
            prop_assert!((slope - f64::from(fast.transitions.as_slice()[k])).abs() < 2e-3);
        }
    }

    #[test]
    fn a_constant_added_to_a_word_changes_neither_loss_nor_path(case in any_case(), c in -8i8..8) {
        let mut shifted = case.scores.clone();
        let at = shifted.n_rows() - 1;
        shifted.row_mut(at).iter_mut().for_each(|e| *e += f32::from(c));
        let (before, after) = (viterbi(&case.scores, &case.fast()), viterbi(&shifted, &case.fast()));
        let value = |e: &Matrix| loss(e, 1.0, &case.fast(), &before.tags).value;
        prop_assert!((value(&case.scores) - value(&shifted)).abs() < 1e-3);
        prop_assert!(close(path_score(&shifted, &case.fast(), &before.tags), after.score, 1e-6));
    }
}

#[test]
fn a_saturated_class_does_not_cancel_in_the_fast_form() {
    // One `B` outweighs the other by e^300: their sum minus the larger is 0 even in f64.
    let tags = tag_set("B-a I-a B-b I-b");
    let mut table = CollapsedTransitions::ZERO.constrained();
    table.between[1] = [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 0.0];
    let scores = Matrix::new(
        vec![-400.0, 300.0, -400.0, 0.0, -400.0, -400.0, 300.0, -400.0, 0.0, -400.0],
        tags.n_tags(),
    );
    let plain = log_partition(&scores, &table.expand(&tags));
    let fast = log_partition(&scores, &table.over(&tags));
    assert!(close(plain, fast, 1e-12), "{plain} {fast}");
}

#[test]
fn without_transitions_the_loss_is_softmax_cross_entropy_summed_over_words() {
    let tags = tag_set("B-a I-a");
    let scores = Matrix::new(vec![1.0, 2.0, -1.0, 0.5, 0.0, 3.0], 3);
    let gold = [1, 0];
    let cross_entropy =
        |row: &[f32], j: usize| f64::from(row.iter().map(|e| e.exp()).sum::<f32>().ln() - row[j]);
    let expected = cross_entropy(scores.row(0), 1) + cross_entropy(scores.row(1), 0);
    let ours = loss(&scores, 1.0, &CollapsedTransitions::ZERO.over(&tags), &gold).value;
    assert!((ours - expected).abs() < 1e-6, "{ours} {expected}");
    assert_eq!(viterbi(&scores, &CollapsedTransitions::ZERO.over(&tags)).tags, [1, 2]);
}

#[test]
fn forbidden_transitions_do_not_become_nan() {
    let tags = tag_set("B-a I-a");
    let forbidden = f32::NEG_INFINITY;
    let scores = Matrix::new(vec![0.0, forbidden, 1.0, 0.0, 1.0, forbidden], 3);
    let transitions = CollapsedTransitions::ZERO.constrained().over(&tags);
    let loss = loss(&scores, 0.5, &transitions, &[0, 1]);
    assert!(loss.value.is_finite() && loss.scale.is_finite());
    assert!(
        loss.emissions.values().iter().chain(loss.transitions.as_slice()).all(|g| g.is_finite())
    );
}

#[test]
fn the_rule_is_greedy_where_viterbi_looks_ahead() {
    let tags = tag_set("B-a I-a");
    // `O` wins the first word by a little; `I-a` would win the second by far, but not after `O`.
    let scores = Matrix::new(vec![1.0, 0.9, 0.0, 0.0, 0.5, 9.0], 3);
    let rule = CollapsedTransitions::ZERO.constrained().over(&tags);
    assert_eq!(greedy(&scores, &rule).tags, [0, 1]);
    assert_eq!(viterbi(&scores, &rule).tags, [1, 2]);
}

#[test]
#[should_panic(expected = "tag sets differ")]
fn scores_and_transitions_must_have_the_same_tags() {
    let transitions = CollapsedTransitions::ZERO.over(&tag_set("B-a I-a"));
    let _ = log_partition(&Matrix::zeros(2, 5), &transitions);
}
