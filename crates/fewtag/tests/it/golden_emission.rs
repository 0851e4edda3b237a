//! Every scorer with every similarity in both contexts against PyTorch: emissions and all gradients.
//!
//! `tests/golden/emission.json` is written by `scripts/golden_model.py`, never by this crate.

use fewtag::Context;
use fewtag::emission::{EmissionScorer, Members, Mix, ScorerKind, Similarity, SupportVectors};
use fewtag::{Matrix, Sentence, SupportSet, Tag, TagSet, Token};
use serde::Deserialize;

use crate::golden::{self, Rows, assert_all_close, matrix};

/// One set of vectors for all cases.
#[derive(Deserialize)]
struct File {
    tags: Vec<String>,
    support: Vec<Vec<String>>,
    queries: Vec<Rows>,
    keys: Vec<Rows>,
    names: Rows,
    above: Rows,
    /// The learned numbers of the mixed scorer.
    mix: Mix,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    context: Context,
    scorer: ScorerKind,
    similarity: Similarity,
    label_names: f32,
    #[serde(default)]
    siblings: f32,
    #[serde(default)]
    fade: f32,
    emissions: Rows,
    d_queries: Vec<Rows>,
    d_keys: Vec<Rows>,
    d_names: Option<Rows>,
    /// Of the mixed scorer.
    d_mix: Option<Mix>,
}

#[test]
fn emissions_and_their_gradients_agree_with_pytorch() {
    let file: File = golden::read("emission.json");
    let tags: Vec<Tag> = file.tags.iter().map(|tag| tag.parse().expect("a tag")).collect();
    let members = Members::new(&support(&file.support), &TagSet::new(&tags));
    let (words, names) = (matrices(&file.keys), matrix(&file.names));
    let (all_queries, above) = (matrices(&file.queries), matrix(&file.above));
    let vectors = SupportVectors { words: &words, members: &members, label_names: Some(&names) };
    for case in &file.cases {
        let Case { context, scorer: kind, similarity, label_names, .. } = case;
        let name = format!("{context:?} {kind:?} {similarity:?} {label_names}");
        let (similarity, label_names) = (*similarity, *label_names);
        let scorer = EmissionScorer {
            kind: *kind,
            similarity,
            label_names,
            lexical: false,
            n_middle: 0,
            siblings: case.siblings,
            fade: case.fade,
            mix: file.mix,
        };
        // Separate context reads the query once.
        let queries =
            if *context == Context::Paired { &all_queries[..] } else { &all_queries[..1] };
        let emissions = scorer.emissions(queries, vectors);
        assert_all_close(&name, emissions.values(), matrix(&case.emissions).values(), 2e-6);
        let below = scorer.backward(queries, vectors, &above);
        assert_matrices(&format!("{name}, queries"), &below.queries, &case.d_queries);
        assert_matrices(&format!("{name}, words"), &below.words, &case.d_keys);
        if let Some(d_mix) = &case.d_mix {
            assert_all_close(&name, below.mix.as_slice(), d_mix.as_slice(), 1e-5);
        }
        let d_names = below.label_names.into_iter().collect::<Vec<_>>();
        assert_matrices(&format!("{name}, names"), &d_names, case.d_names.as_slice());
    }
}

fn support(tags: &[Vec<String>]) -> SupportSet {
    let token = |tag: &String| Token { word: "word".to_owned(), tag: tag.parse().expect("a tag") };
    let sentence = |tags: &Vec<String>| Sentence::new(tags.iter().map(token).collect());
    let sentences: Result<Vec<_>, _> = tags.iter().map(sentence).collect();
    SupportSet::new(sentences.expect("sentences")).expect("a support set")
}

fn matrices(list: &[Rows]) -> Vec<Matrix> {
    list.iter().map(matrix).collect()
}

fn assert_matrices(case: &str, ours: &[Matrix], reference: &[Rows]) {
    assert_eq!(ours.len(), reference.len(), "{case}");
    for (ours, reference) in ours.iter().zip(reference) {
        assert_all_close(case, ours.values(), matrix(reference).values(), 2e-6);
    }
}
