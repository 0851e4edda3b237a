//! The scorers against the formulas of the module comment, and their gradients against differences.

use proptest::prelude::*;

use super::*;
use crate::domain::{Sentence, Token};
use crate::random::Random;

const KINDS: [ScorerKind; 7] = [
    ScorerKind::Mn,
    ScorerKind::Nmn,
    ScorerKind::Prototype,
    ScorerKind::Nearest,
    ScorerKind::Soft,
    ScorerKind::Mixed,
    ScorerKind::Fitted,
];
/// Away from where training starts: no factor is 1 or 0.
const MIX: Mix = Mix {
    attention: -0.7,
    sharpness: 0.9,
    nearness: 0.4,
    gate: -0.3,
    name: 0.5,
    regression: 0.6,
    ridge: 0.8,
};
const SIMILARITIES: [Similarity; 4] =
    [Similarity::Dot, Similarity::Cosine, Similarity::SquaredDistance, Similarity::Projection];
/// Not a multiple of the eight lanes of `dot`.
const WIDTH: usize = 11;
const N_WORDS: usize = 3;

fn support(sentences: &[&str]) -> SupportSet {
    let sentence = |tags: &&str| {
        let token = |tag: &str| Token { word: "w".into(), tag: tag.parse().unwrap() };
        Sentence::new(tags.split(' ').map(token).collect()).unwrap()
    };
    SupportSet::new(sentences.iter().map(sentence).collect()).unwrap()
}

fn small_support() -> SupportSet {
    support(&["O B-a I-a O", "B-b", "O O B-a"])
}

#[derive(Debug, Clone)]
struct Case {
    scorer: EmissionScorer,
    queries: Vec<Matrix>,
    words: Vec<Matrix>,
    members: Members,
    label_names: Matrix,
}

impl Case {
    fn new(scorer: EmissionScorer, support: &SupportSet, n_queries: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut matrix = |n_rows: usize| {
            let width = WIDTH * (1 + scorer.n_middle + usize::from(scorer.lexical));
            let values = (0..n_rows * width).map(|_| random.normal() as f32).collect();
            Matrix::new(values, width)
        };
        Self {
            scorer,
            queries: (0..n_queries).map(|_| matrix(N_WORDS)).collect(),
            words: support.sentences().iter().map(|s| matrix(s.n_words())).collect(),
            members: Members::new(support, support.tag_set()),
            label_names: matrix(support.tag_set().n_tags()),
        }
    }

    fn support(&self) -> SupportVectors<'_> {
        let label_names = Some(&self.label_names);
        SupportVectors { words: &self.words, members: &self.members, label_names }
    }

    fn emissions(&self) -> Matrix {
        self.scorer.emissions(&self.queries, self.support())
    }

    fn contributions(&self, j: usize, tag: usize) -> Vec<Contribution> {
        let comparison = self.scorer.comparison(&self.queries, self.support());
        self.scorer.contributions(&comparison.groups(&self.queries), self.support(), j, tag)
    }

    /// All vectors, to be changed one number at a time.
    fn values_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        let vectors = self.queries.iter_mut().chain(&mut self.words);
        vectors.chain([&mut self.label_names]).flat_map(Matrix::values_mut)
    }

    /// The formulas, word pair by word pair, in `f64`.
    fn formula(&self, j: usize, t: usize) -> f64 {
        let query = |at: &WordAt| self.queries[at.sentence.min(self.queries.len() - 1)].row(j);
        let words = &self.members.of_tag[t];
        let alike = |at: &WordAt| {
            naive(
                self.scorer.similarity,
                &wide(query(at)),
                &wide(self.words[at.sentence].row(at.word)),
            )
        };
        match self.scorer.kind {
            ScorerKind::Mn => words.iter().map(alike).sum(),
            ScorerKind::Nmn => words.iter().map(alike).sum::<f64>() / words.len() as f64,
            ScorerKind::Nearest => words.iter().map(alike).fold(f64::NEG_INFINITY, f64::max),
            ScorerKind::Soft => {
                (words.iter().map(|at| alike(at).exp()).sum::<f64>() / words.len() as f64).ln()
            }
            ScorerKind::Mixed => self.mixed_formula(j, t),
            ScorerKind::Fitted => {
                let sibling = self.members.siblings[t].map_or(0.0, |s| self.regression(j, s));
                let fitted = self.regression(j, t) + f64::from(self.scorer.siblings) * sibling;
                self.mixed_formula(j, t) + f64::from(MIX.regression).exp() * fitted
            }
            ScorerKind::Prototype => {
                let rows: Vec<_> =
                    words.iter().map(|at| self.words[at.sentence].row(at.word)).collect();
                let w = f64::from(self.scorer.label_names);
                let names = wide(self.label_names.row(t));
                let centre: Vec<f64> =
                    mean(&rows).iter().zip(names).map(|(m, n)| (1.0 - w) * m + w * n).collect();
                let queries: Vec<_> = self.queries.iter().map(|q| q.row(j)).collect();
                naive(self.scorer.similarity, &mean(&queries), &centre)
            }
        }
    }
}

impl Case {
    /// The formula of `mixed.rs`.
    fn mixed_formula(&self, j: usize, t: usize) -> f64 {
        let queries: Vec<_> = self.queries.iter().map(|q| q.row(j)).collect();
        let q = mean(&queries)[..WIDTH].to_vec();
        let words = self.members.of_tag[t].iter();
        let mut vectors: Vec<(Vec<f64>, f64)> =
            words.map(|at| (wide(&self.words[at.sentence].row(at.word)[..WIDTH]), 1.0)).collect();
        let [alpha, beta, nu, kappa] =
            [MIX.attention, MIX.sharpness, MIX.nearness, MIX.name].map(|log| f64::from(log).exp());
        if self.scorer.label_names > 0.0 {
            vectors.push((wide(&self.label_names.row(t)[..WIDTH]), kappa));
        }
        let attention =
            |(v, w): &(Vec<f64>, f64)| w * (alpha * naive(Similarity::Dot, &q, v)).exp();
        let nearness =
            |(v, w): &(Vec<f64>, f64)| w * (beta * naive(Similarity::Cosine, &q, v)).exp();
        let total: f64 = vectors.iter().map(attention).sum();
        let centre: Vec<f64> = (0..WIDTH)
            .map(|d| vectors.iter().map(|one| attention(one) * one.0[d]).sum::<f64>() / total)
            .collect();
        let total: f64 = vectors.iter().map(nearness).sum();
        let near = vectors.iter().map(|one| nearness(one) * naive(Similarity::Cosine, &q, &one.0));
        // Three spans of two slots.
        let gate = 1.5_f64.powf(-f64::from(self.scorer.fade)) / (1.0 + f64::from(-MIX.gate).exp());
        (1.0 - gate) * naive(self.scorer.similarity, &q, &centre)
            + gate * nu * near.sum::<f64>() / total
    }
}

impl Case {
    /// The regression of `ridge.rs`: its normal equations, solved by elimination.
    fn regression(&self, j: usize, t: usize) -> f64 {
        let [kappa, ridge] = [MIX.name, MIX.ridge].map(|log| f64::from(log).exp());
        // `[S | Σ w·v of tag t]`
        let width = self.label_names.n_cols();
        let mut equations = vec![vec![0.0; width + 1]; width];
        // Three spans of two slots: the middle layers have a small share.
        let middle = WIDTH..WIDTH * (1 + self.scorer.n_middle);
        let n = 3.0 / 2.0_f64;
        let penalty =
            |d| if middle.contains(&d) { ridge / (1.0 - n.sqrt().recip()).powi(2) } else { ridge };
        (0..width).for_each(|d| equations[d][d] = penalty(d));
        for (u, words) in self.members.of_tag.iter().enumerate() {
            let rows = words.iter().map(|at| (wide(self.words[at.sentence].row(at.word)), 1.0));
            let name = (wide(self.label_names.row(u)), kappa);
            let rows: Vec<_> =
                rows.chain((self.scorer.label_names > 0.0).then_some(name)).collect();
            let total: f64 = rows.iter().map(|(_, count)| count).sum();
            for (v, count) in rows {
                let right = if u == t { 1.0 } else { 0.0 };
                let both: Vec<f64> = v.iter().copied().chain([right]).collect();
                for (equation, x) in equations.iter_mut().zip(&v) {
                    equation
                        .iter_mut()
                        .zip(&both)
                        .for_each(|(e, y)| *e += count / total.sqrt() * x * y);
                }
            }
        }
        for d in 0..width {
            let pivot: Vec<f64> = equations[d].iter().map(|x| x / equations[d][d]).collect();
            for (i, equation) in equations.iter_mut().enumerate() {
                let factor = equation[d];
                if i == d {
                    equation.clone_from(&pivot);
                } else {
                    equation.iter_mut().zip(&pivot).for_each(|(e, p)| *e -= factor * p);
                }
            }
        }
        let queries: Vec<_> = self.queries.iter().map(|q| q.row(j)).collect();
        mean(&queries).iter().zip(&equations).map(|(q, equation)| q * equation[width]).sum()
    }
}

fn wide(v: &[f32]) -> Vec<f64> {
    v.iter().map(|x| f64::from(*x)).collect()
}

fn mean(rows: &[&[f32]]) -> Vec<f64> {
    let at = |d: usize| rows.iter().map(|row| f64::from(row[d])).sum::<f64>() / rows.len() as f64;
    (0..rows[0].len()).map(at).collect()
}

/// The similarities as `similarity.rs` names them, not as it computes them.
fn naive(similarity: Similarity, q: &[f64], c: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let length = |v: &[f64]| dot(v, v).sqrt();
    match similarity {
        Similarity::Dot => dot(q, c),
        Similarity::Cosine => dot(q, c) / (length(q) * length(c)),
        Similarity::SquaredDistance => -q.iter().zip(c).map(|(x, y)| (x - y).powi(2)).sum::<f64>(),
        Similarity::Projection => dot(q, c) / length(c) - length(c) / 2.0,
    }
}

/// Every scorer in both contexts: one query, or one per support sentence.
fn all_cases(seed: u64) -> Vec<Case> {
    let support = small_support();
    let kinds =
        KINDS.into_iter().flat_map(|kind| SIMILARITIES.map(|similarity| (kind, similarity)));
    let scorers = kinds.flat_map(|(kind, similarity)| {
        [0.0, 0.5].map(|label_names| EmissionScorer { similarity, label_names, ..scorer(kind) })
    });
    let more = [(true, 0, 0.0), (false, 0, 0.4), (true, 0, 0.4), (false, 2, 0.0), (true, 1, 0.4)];
    let more = more.into_iter().map(|(lexical, n_middle, siblings)| {
        let fitted = scorer(ScorerKind::Fitted);
        EmissionScorer { lexical, n_middle, siblings, ..fitted }
    });
    let fading = [ScorerKind::Mixed, ScorerKind::Fitted]
        .map(|kind| EmissionScorer { fade: 0.7, ..scorer(kind) });
    let more = more.chain(fading).flat_map(|scorer| {
        let similarity = Similarity::Projection;
        [0.0, 0.5].map(|label_names| EmissionScorer { similarity, label_names, ..scorer })
    });
    let scorers = scorers.chain(more);
    let contexts = |scorer| [1, 3].map(|n_queries| Case::new(scorer, &support, n_queries, seed));
    scorers.flat_map(contexts).collect()
}

fn assert_same(a: &Matrix, b: &Matrix, tolerance: f32) {
    assert_eq!((a.n_rows(), a.n_cols()), (b.n_rows(), b.n_cols()));
    for (x, y) in a.values().iter().zip(b.values()) {
        assert!((x - y).abs() <= tolerance * x.abs().max(1.0), "{x} {y}");
    }
}

#[test]
fn a_word_has_the_emissions_that_it_has_alone() {
    for case in all_cases(5).into_iter().filter(|case| case.queries.len() == 1) {
        let width = case.queries[0].n_cols();
        let references = case.scorer.references(case.support(), width);
        let many = case.queries[0].values().repeat(7);
        let together = references.emissions(&Matrix::new(many, width));
        for (j, row) in case.queries[0].rows().enumerate() {
            let alone = references.emissions(&Matrix::new(row.to_vec(), width));
            for again in (j..together.n_rows()).step_by(N_WORDS) {
                let bits = |row: &[f32]| row.iter().map(|e| e.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(together.row(again)), bits(alone.row(0)), "{:?}", case.scorer);
            }
        }
    }
}

proptest! {
    // A case is slow: 16 unless more are asked for (`PROPTEST_CASES`).
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    #[test]
    fn emissions_are_what_the_formulas_say(seed: u64) {
        for case in all_cases(seed) {
            let emissions = case.emissions();
            for (j, t) in (0..N_WORDS).flat_map(|j| (0..4).map(move |t| (j, t))) {
                let (ours, expected) = (f64::from(emissions.row(j)[t]), case.formula(j, t));
                let error = (ours - expected).abs() / expected.abs().max(1.0);
                prop_assert!(error < 1e-5, "{:?}: {ours} {expected}", case.scorer);
            }
        }
    }

    #[test]
    fn contributions_sum_to_the_emission(seed: u64) {
        for case in all_cases(seed) {
            let emissions = case.emissions();
            for (j, t) in (0..N_WORDS).flat_map(|j| (0..4).map(move |t| (j, t))) {
                let parts = case.contributions(j, t);
                let sum: f32 = parts.iter().map(|part| part.score).sum();
                let expected = emissions.row(j)[t];
                let error = (sum - expected).abs() / expected.abs().max(1.0);
                prop_assert!(error < 1e-5, "{:?}: {sum} {expected}", case.scorer);
            }
        }
    }

    #[test]
    fn gradients_equal_finite_differences(seed: u64) {
        let weights = Matrix::new((0..12).map(|k| ((k * k) as f32).sin()).collect(), 4);
        let weighted = |case: &Case| {
            let pairs = case.emissions();
            pairs.values().iter().zip(weights.values()).map(|(e, w)| f64::from(*e) * f64::from(*w)).sum::<f64>()
        };
        for mut case in all_cases(seed) {
            let gradients = case.scorer.backward(&case.queries, case.support(), &weights);
            let zero = Matrix::zeros(4, case.label_names.n_cols());
            let names = gradients.label_names.as_ref().unwrap_or(&zero);
            let all: Vec<f32> = gradients.queries.iter().chain(&gradients.words).chain([names])
                .flat_map(|m| m.values().to_vec()).collect();
            for k in (seed as usize % 5..all.len()).step_by(5) {
                let h = 1.0 / 64.0;
                let nearest = case.scorer.kind == ScorerKind::Nearest;
                let mut at = |shift: f32| {
                    *case.values_mut().nth(k).unwrap() += shift;
                    let value = weighted(&case);
                    *case.values_mut().nth(k).unwrap() -= shift;
                    value
                };
                let slopes = [h, h / 4.0].map(|h| (at(h) - at(-h)) / f64::from(2.0 * h));
                // Where a maximum changes hands there is no derivative: the slopes of two widths, or of the two
                // sides, disagree.
                let sides = [at(h / 4.0) - at(0.0), at(0.0) - at(-h / 4.0)].map(|d| d / f64::from(h / 4.0));
                let kink = nearest && (sides[0] - sides[1]).abs() > 0.01;
                if kink || (slopes[0] - slopes[1]).abs() > 0.02 * slopes[1].abs().max(1.0) { continue; }
                let error = (slopes[1] - f64::from(all[k])).abs() / slopes[1].abs().max(1.0);
                prop_assert!(error < 0.01, "{:?} {k}: {slopes:?} {}", case.scorer, all[k]);
            }
        }
    }
}

fn scorer(kind: ScorerKind) -> EmissionScorer {
    EmissionScorer {
        kind,
        similarity: Similarity::Dot,
        label_names: 0.0,
        lexical: false,
        n_middle: 0,
        siblings: 0.0,
        fade: 0.0,
        mix: MIX,
    }
}

#[test]
fn references_answer_like_the_scorer_in_separate_context() {
    for case in all_cases(3).into_iter().filter(|case| case.queries.len() == 1) {
        let references = case.scorer.references(case.support(), case.queries[0].n_cols());
        assert_eq!(references.emissions(&case.queries[0]), case.emissions(), "{:?}", case.scorer);
    }
}

#[test]
fn nmn_equals_prototype_when_separate_with_dot_product() {
    let support = small_support();
    let nmn = Case::new(scorer(ScorerKind::Nmn), &support, 1, 5);
    let prototype = Case { scorer: scorer(ScorerKind::Prototype), ..nmn.clone() };
    assert_same(&nmn.emissions(), &prototype.emissions(), 1e-5);
}

#[test]
fn duplicating_the_support_doubles_mn_and_leaves_the_means_alone() {
    let tags = ["O B-a I-a O", "B-b", "O O B-a"];
    let doubled = support(&[tags, tags].concat());
    // A regression trusts twice the words more than the words once.
    let kinds = KINDS.into_iter().filter(|kind| *kind != ScorerKind::Fitted);
    for (kind, n_queries) in kinds.flat_map(|kind| [(kind, 1), (kind, 3)]) {
        let once = Case::new(scorer(kind), &small_support(), n_queries, 9);
        let mut twice = once.clone();
        twice.words.extend(once.words.clone());
        twice.members = Members::new(&doubled, doubled.tag_set());
        if n_queries > 1 {
            twice.queries.extend(once.queries.clone());
        }
        let factor = if kind == ScorerKind::Mn { 2.0 } else { 1.0 };
        assert_same(&twice.emissions(), &once.emissions().scaled(factor), 1e-5);
    }
}

#[test]
fn renaming_slots_permutes_the_emissions() {
    // `a` becomes `z` and so moves behind `b`: O B-b B-z I-z instead of O B-a I-a B-b.
    let renamed = support(&["O B-z I-z O", "B-b", "O O B-z"]);
    let before = Case::new(scorer(ScorerKind::Nmn), &small_support(), 3, 2);
    let members = Members::new(&renamed, renamed.tag_set());
    let after = Case { members, ..before.clone() };
    for (x, y) in before.emissions().rows().zip(after.emissions().rows()) {
        assert_eq!(
            [x[0], x[3], x[1], x[2]].map(f32::to_bits),
            [0, 1, 2, 3].map(|t| y[t].to_bits())
        );
    }
}

#[test]
fn a_tag_without_words_is_impossible_unless_it_has_a_name() {
    let support = support(&["B-a I-a"]);
    for kind in KINDS {
        let case = Case::new(scorer(kind), &support, 1, 1);
        assert!(
            case.emissions().rows().all(|row| row[0] == f32::NEG_INFINITY && row[1].is_finite())
        );
    }
    let named = EmissionScorer { label_names: 0.5, ..scorer(ScorerKind::Prototype) };
    assert!(Case::new(named, &support, 1, 1).emissions().values().iter().all(|e| e.is_finite()));
}

#[test]
fn an_inside_tag_may_borrow_the_words_of_its_begin() {
    let support = small_support();
    let lacking: Tag = "I-b".parse().unwrap();
    let tags = TagSet::new(support.tag_set().tags().iter().chain([&lacking]));
    let mut case = Case::new(scorer(ScorerKind::Nmn), &support, 1, 4);
    case.members = Members::new(&support, &tags);
    let [begin, inside] = ["B-b", "I-b"].map(|tag| tags.index_of(&tag.parse().unwrap()).unwrap());
    assert!(case.emissions().rows().all(|row| row[inside].to_bits() == row[begin].to_bits()));
}

#[test]
fn nearest_with_cosine_gives_the_tag_of_the_nearest_word() {
    let nearest = EmissionScorer { similarity: Similarity::Cosine, ..scorer(ScorerKind::Nearest) };
    let mut case = Case::new(nearest, &small_support(), 1, 6);
    let own = case.words[0].row(2).to_vec(); // The word tagged `I-a`, which is tag 2.
    case.queries[0].row_mut(1).copy_from_slice(&own);
    let emissions = case.emissions();
    let row = emissions.row(1);
    assert!((row[2] - 1.0).abs() < 1e-6 && row.iter().all(|e| *e <= row[2]), "{row:?}");
    let parts = case.contributions(1, 2);
    assert_eq!(parts[0].source, Source::Word(WordAt { sentence: 0, word: 2 }));
}

#[test]
fn each_source_is_told_once_in_the_order_of_the_support() {
    let support = small_support();
    let lacking: Tag = "I-b".parse().unwrap();
    let tags = TagSet::new(support.tag_set().tags().iter().chain([&lacking]));
    let fitted = EmissionScorer { siblings: 0.5, label_names: 0.5, ..scorer(ScorerKind::Fitted) };
    let mut case = Case::new(fitted, &support, 1, 8);
    case.label_names = Matrix::new(vec![0.5; tags.n_tags() * WIDTH], WIDTH);
    case.members = Members::new(&support, &tags);
    let emissions = case.emissions();
    for (t, n_sources) in [(0, 5), (1, 4), (2, 4), (3, 2), (4, 2)] {
        let parts = case.contributions(1, t);
        // The words of the slot, or of `O`, and the name.
        assert!(parts.is_sorted_by(|a, b| a.source < b.source) && parts.len() == n_sources, "{t}");
        let sum: f32 = parts.iter().map(|part| part.score).sum();
        assert!((sum - emissions.row(1)[t]).abs() < 1e-4, "{t}");
    }
}

#[test]
fn examples_are_counted_by_label_and_are_never_fewer_than_one() {
    let n_examples = |sentences: &[&str]| {
        let support = support(sentences);
        Members::new(&support, support.tag_set()).n_examples()
    };
    let tags = TagSet::new(&["O", "B-a", "I-a"].map(|tag| tag.parse().unwrap()));
    let nobody = Members::of([], &small_support(), &tags).n_examples();
    let counts = [
        nobody,
        n_examples(&["O B-a I-a", "B-b"]),
        n_examples(&["B-a", "B-b", "B-b", "B-c"]),
        n_examples(&["B-a I-a B-a O B-a B-a"]),
        n_examples(&["B-a"; 16]),
    ];
    for (count, expected) in counts.into_iter().zip([1.0, 1.0, 4.0 / 3.0, 4.0, 16.0]) {
        assert!((count - expected).abs() < 1e-6, "{counts:?}");
    }
}
