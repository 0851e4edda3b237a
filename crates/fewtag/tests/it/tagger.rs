//! The tagger through its public calls, over the tiny encoder.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fewtag::emission::{ScorerKind, Similarity};
use fewtag::encoder::{Bert, BertConfig, Engine, PackedBatch, Storage, WordPieces, weights};
use fewtag::eval::evaluate;
use fewtag::{
    Adapted, Context, Episode, Error, Matrix, ModelSettings, Result, Sentence, SupportSet, Tag,
    Tagged, Tagger, Token, TransitionMode, data, model,
};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn tagger(settings: ModelSettings) -> Tagger {
    model::from_encoder(&testdata("tiny-encoder"), settings, 7).unwrap().with_scale(0.5)
}

fn prototype(context: Context) -> ModelSettings {
    ModelSettings {
        context,
        scorer: ScorerKind::Prototype,
        similarity: Similarity::Projection,
        label_names: 0.5,
        ..ModelSettings::default()
    }
}

const CONTEXTS: [Context; 2] = [Context::Paired, Context::Separate];

fn all_settings() -> Vec<ModelSettings> {
    let of_context = |context| {
        let nmn = ModelSettings { context, ..ModelSettings::default() };
        let nearest = ModelSettings {
            scorer: ScorerKind::Nearest,
            similarity: Similarity::Cosine,
            transitions: TransitionMode::None,
            ..nmn.clone()
        };
        let mixed = ModelSettings { scorer: ScorerKind::Mixed, case: true, ..prototype(context) };
        let fitted = ModelSettings {
            scorer: ScorerKind::Fitted,
            lexical: true,
            middle: vec![1],
            siblings: 0.5,
            ..prototype(context)
        };
        [nmn, nearest, prototype(context), mixed, fitted]
    };
    CONTEXTS.into_iter().flat_map(of_context).collect()
}

fn episodes() -> Vec<Episode> {
    data::read_episodes(&testdata("tiny-episodes.json")).unwrap()
}

fn queries(episode: &Episode) -> Vec<Vec<String>> {
    episode.queries.iter().map(|query| query.words().map(str::to_owned).collect()).collect()
}

fn support(tagged: &str) -> SupportSet {
    let token = |pair: &str| {
        let (word, tag) = pair.split_once('/').unwrap();
        Token { word: word.into(), tag: tag.parse().unwrap() }
    };
    let sentence = |line: &str| Sentence::new(line.split(' ').map(token).collect()).unwrap();
    SupportSet::new(tagged.lines().map(sentence).collect()).unwrap()
}

#[test]
fn tagger_and_adapted_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Tagger>();
    shared::<Adapted>();
}

#[test]
fn an_answer_does_not_depend_on_what_else_is_in_the_batch() {
    for settings in all_settings() {
        let tagger = tagger(settings.clone());
        for episode in episodes() {
            let adapted = tagger.adapt(&episode.support).unwrap();
            let queries = queries(&episode);
            let together = adapted.tag_all(&queries).unwrap();
            let alone: Vec<Tagged> = queries.iter().map(|q| adapted.tag(q).unwrap()).collect();
            assert_eq!(together, alone, "{settings:?}");
            // Once to be read and kept, once from what was kept.
            let keeping = adapted.keeping(1 << 20);
            for _ in 0..2 {
                assert_eq!(keeping.tag_all(&queries).unwrap(), alone, "{settings:?}");
            }
        }
    }
}

#[test]
fn an_evaluation_does_not_depend_on_the_number_of_threads() {
    let tagger = tagger(prototype(Context::Paired));
    let with_threads = |n: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| evaluate(&tagger, &episodes(), || ()).unwrap())
    };
    let (one, three) = (with_threads(1), with_threads(3));
    assert_eq!(one.report, three.report);
    assert_eq!(one.answers, three.answers);
    let n_episodes: usize = one.report.domains.iter().map(|domain| domain.episodes.len()).sum();
    assert_eq!(n_episodes, episodes().len());
}

#[test]
fn renaming_slots_renames_the_predictions() {
    // Without label names a slot's name says nothing; `a` sorts first, `z` last.
    let text = |slot: &str| {
        format!("play/O the/O jazz/B-{slot} album/O\nplay/B-m rock/I-m by/O queen/B-n")
    };
    for context in CONTEXTS {
        let tagger = tagger(ModelSettings { context, ..ModelSettings::default() });
        let tag = |slot: &str| {
            let adapted = tagger.adapt(&support(&text(slot))).unwrap();
            adapted.tag(&["play", "jazz", "by", "queen"]).unwrap().tags
        };
        let renamed = |tag: Tag| tag.to_string().replace("-a", "-z");
        let expected: Vec<String> = tag("a").into_iter().map(renamed).collect();
        let found: Vec<String> = tag("z").iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn contributions_sum_to_the_emissions() {
    for settings in all_settings() {
        let tagger = tagger(settings.clone());
        let episode = &episodes()[0];
        let adapted = tagger.adapt(&episode.support).unwrap();
        let scored = adapted.score(&queries(episode)[0]).unwrap();
        for (j, row) in scored.emissions().rows().enumerate() {
            for (tag, emission) in row.iter().enumerate() {
                let sum: f32 = scored.contributions(j, tag).iter().map(|part| part.score).sum();
                assert!((sum - emission).abs() < 1e-4 * emission.abs().max(1.0), "{settings:?}");
            }
        }
    }
}

#[test]
fn probabilities_are_those_of_the_cooled_scores() {
    let episode = &episodes()[0];
    let words = &queries(episode)[0];
    let spans = |temperature: f32| {
        let settings =
            ModelSettings { temperature, constrained: true, ..prototype(Context::Separate) };
        tagger(settings).adapt(&episode.support).unwrap().tag(words).unwrap()
    };
    let (cool, hot) = (spans(0.01), spans(100.0));
    assert_eq!(cool.tags, hot.tags);
    assert!(!cool.spans.is_empty());
    // Cooled, only the best path is left; heated, all paths are alike and each span is rare.
    assert!(cool.spans.iter().all(|span| span.probability > 0.99), "{cool:?}");
    assert!(hot.spans.iter().all(|span| span.probability < 0.5), "{hot:?}");
}

#[test]
fn a_borrowing_slot_can_go_on() {
    let support = support("play/O jazz/B-genre\nplay/O rock/B-genre now/O");
    let settings = ModelSettings { borrow: true, ..prototype(Context::Separate) };
    let names = |settings| {
        let adapted = tagger(settings).adapt(&support).unwrap();
        adapted.tag_set().tags().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(names(settings), ["O", "B-genre", "I-genre"]);
    assert_eq!(names(prototype(Context::Separate)), ["O", "B-genre"]);
}

#[test]
fn support_sentences_that_do_not_fit_are_refused_with_their_place() {
    let short = support("play/O jazz/B-genre");
    for context in CONTEXTS {
        let tagger = tagger(ModelSettings { context, ..ModelSettings::default() });
        let adapted = tagger.adapt(&short).unwrap();
        assert!(matches!(adapted.tag::<&str>(&[]), Err(Error::EmptySentence)));
        let line = vec!["play/O"; 600].join(" ");
        let refused = tagger.adapt(&support(&format!("play/B-a\n{line}"))).err().unwrap();
        assert!(
            refused.to_string().starts_with("support sentence 2 has 602 word pieces"),
            "{refused}"
        );
    }
}

#[test]
fn an_episode_that_cannot_be_tagged_is_named() {
    let mut episodes = episodes();
    let token = |_| Token { word: "play".into(), tag: Tag::O };
    let mut sentences = episodes[1].support.sentences().to_vec();
    sentences.push(Sentence::new((0..600).map(token).collect()).unwrap());
    episodes[1].support = SupportSet::new(sentences).unwrap();
    let domain = episodes[1].domain.clone();
    let refused = evaluate(&tagger(prototype(Context::Separate)), &episodes, || ()).unwrap_err();
    assert_eq!(refused.to_string(), format!("episode 2 (domain `{domain}`) cannot be tagged"));
}

#[test]
fn a_support_set_must_leave_a_legal_tag_for_the_first_word() {
    let inside_only = support("jazz/I-genre rock/I-genre");
    let rule = ModelSettings { transitions: TransitionMode::Rule, ..ModelSettings::default() };
    let strict = ModelSettings { constrained: true, ..ModelSettings::default() };
    for settings in [rule, strict] {
        assert!(matches!(tagger(settings).adapt(&inside_only), Err(Error::NothingBegins)));
    }
    let free = tagger(ModelSettings::default()).adapt(&inside_only).unwrap();
    let tags = free.tag(&["jazz"]).unwrap().tags;
    assert_eq!(tags[0].to_string(), "I-genre");
    // `O` has no words, so it is impossible and everything belongs to the slot.
    let named = tagger(ModelSettings { constrained: true, ..prototype(Context::Separate) });
    assert!(named.adapt(&inside_only).is_ok());
}

#[test]
fn a_long_text_is_tagged_in_windows_and_a_short_one_in_one() {
    let long = vec!["play"; 1500];
    for context in CONTEXTS {
        let tagger = tagger(ModelSettings { context, ..ModelSettings::default() });
        let adapted = tagger.adapt(&support("play/O jazz/B-genre")).unwrap();
        let tagged = adapted.tag(&long).unwrap();
        assert_eq!(tagged.tags.len(), long.len());
        assert!(tagged.n_windows > 1);
        assert_eq!(adapted.tag(&long[..9]).unwrap().n_windows, 1);
    }
}

#[test]
fn the_parts_of_an_explanation_sum_to_the_score_of_the_path() {
    for settings in all_settings() {
        let tagger = tagger(ModelSettings { constrained: true, ..settings });
        for episode in episodes() {
            let adapted = tagger.adapt(&episode.support).unwrap();
            for words in queries(&episode) {
                let scored = adapted.score(&words).unwrap();
                let tagged = scored.tagged();
                let index = |tag: &Tag| scored.tag_set().index_of(tag).unwrap();
                let path: Vec<usize> = tagged.tags.iter().map(index).collect();
                for why in scored.explain(&tagged) {
                    let span = &why.span.span;
                    let emission: f64 = (span.start..span.end)
                        .map(|t| 0.5 * f64::from(scored.emissions().row(t)[path[t]]))
                        .sum();
                    let error = (why.emission() - emission).abs();
                    assert!(error < 1e-4 * emission.abs().max(1.0), "{why:?}: {emission}");
                    assert!((why.total() - emission - why.transitions).abs() <= error + 1e-9);
                    let margin = why.runner_up.map_or(0.0, |second| second.margin);
                    // The path was the best, so whatever else these words could be was not better.
                    assert!(margin >= -1e-4, "{margin}");
                }
            }
        }
    }
}

#[test]
fn a_label_without_examples_speaks_by_its_name_or_not_at_all() {
    let slot = |name: &str| fewtag::Slot::new(name).unwrap();
    let by_name = SupportSet::with_labels(Vec::new(), [slot("city"), slot("time")]).unwrap();
    for context in CONTEXTS {
        let mixed = ModelSettings { scorer: ScorerKind::Mixed, ..prototype(context) };
        let adapted = tagger(mixed.clone()).adapt(&by_name).unwrap();
        assert_eq!(adapted.tag_set().n_tags(), 5);
        // There is no example to be read beside, so both contexts are the same.
        let alone = ModelSettings { context: Context::Separate, ..mixed.clone() };
        let alone = tagger(alone).adapt(&by_name).unwrap();
        let words = [vec!["in", "rome"]];
        assert_eq!(adapted.tag_all(&words).unwrap(), alone.tag_all(&words).unwrap());
        let mute = by_name.clone().named(slot("time"), None);
        let error = tagger(mixed).adapt(&mute).err().unwrap();
        assert!(matches!(error, Error::MuteLabel { .. }), "{error}");
        let nmn = ModelSettings { context, ..ModelSettings::default() };
        let error = tagger(nmn).adapt(&by_name).err().unwrap();
        assert!(matches!(error, Error::NamesUnread { .. }), "{error}");
    }
}

#[test]
fn a_name_fades_as_examples_come() {
    let mixed = ModelSettings { scorer: ScorerKind::Mixed, ..prototype(Context::Separate) };
    let tagger = tagger(mixed);
    let share_of_name = |n: usize| {
        let one = support("in/O rome/B-city");
        let many = SupportSet::new(vec![one.sentences()[0].clone(); n]).unwrap();
        let adapted = tagger.adapt(&many).unwrap();
        let scored = adapted.score(&["in", "rome"]).unwrap();
        let begin = adapted.tag_set().index_of(&"B-city".parse().unwrap()).unwrap();
        let parts = scored.contributions(1, begin);
        let total: f32 = parts.iter().map(|part| part.score.abs()).sum();
        let name = parts.iter().find(|part| part.source == fewtag::emission::Source::LabelName);
        name.unwrap().score.abs() / total
    };
    let shares = [1, 2, 5, 20].map(share_of_name);
    assert!(shares.is_sorted_by(|a, b| a > b), "{shares:?}");
}

/// An engine that tags and can do nothing else.
struct ReadsOnly(Bert);

impl Engine for ReadsOnly {
    fn config(&self) -> &BertConfig {
        self.0.config()
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix> {
        self.0.encode_rows(batch, rows, middle)
    }
}

#[test]
fn an_engine_that_cannot_train_tags_as_well_and_is_not_saved() {
    let dir = testdata("tiny-encoder");
    let episode = &data::read_episodes(&testdata("tiny-episodes.json")).unwrap()[0];
    let words: Vec<&str> = episode.queries[0].words().collect();
    for context in [Context::Separate, Context::Paired] {
        let whole = tagger(prototype(context));
        let engine = ReadsOnly(Bert::new(weights::load(&dir).unwrap()).unwrap());
        let pieces = WordPieces::load(&dir).unwrap();
        let only = Tagger::new(Arc::new(engine), pieces, prototype(context), *whole.head());
        let only = only.unwrap();
        let answer = |tagger: &Tagger| tagger.adapt(&episode.support).unwrap().tag(&words).unwrap();
        assert_eq!(answer(&only), answer(&whole));
        let target = tempfile::tempdir().unwrap();
        let refusal = model::save(&only, target.path(), Storage::F32);
        assert!(matches!(refusal, Err(Error::NothingToSave)));
    }
}

#[test]
fn a_middle_layer_that_the_encoder_lacks_is_refused_with_the_setting() {
    let fitted = |middle: &[usize]| ModelSettings {
        scorer: ScorerKind::Fitted,
        middle: middle.to_vec(),
        ..prototype(Context::Separate)
    };
    // The encoder has two layers.
    let with_one = tagger(fitted(&[1]));
    let refusal = with_one.with_settings(fitted(&[2])).err().unwrap().to_string();
    assert!(refusal.contains("`middle` must be layers below the encoder's last"), "{refusal}");
    let episode = &episodes()[0];
    let emissions = |tagger: &Tagger| {
        let adapted = tagger.adapt(&episode.support).unwrap();
        adapted.score(&queries(episode)[0]).unwrap().emissions().clone()
    };
    let without = with_one.with_settings(fitted(&[])).unwrap();
    assert_ne!(emissions(&with_one), emissions(&without), "it is heard");
}
