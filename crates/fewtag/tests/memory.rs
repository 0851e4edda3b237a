//! Memory of a training pass and of an explanation, counted by the allocator.
//!
//! In a process of their own, one at a time: whatever else ran beside them would be counted, too.
#![expect(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use fewtag::emission::ScorerKind;
use fewtag::encoder::{Bert, BertConfig, Gradients, Pieces, WordPieces};
use fewtag::reading::{Sequence, embed_for_training};
use fewtag::{
    Adapted, Context, ModelSettings, Sentence, Span, SupportSet, Tag, Tagged, TaggedSpan, Token,
    model,
};

/// The system's allocator, counting bytes that are in use, and all that a thread ever asked for.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ALONE: Mutex<()> = Mutex::new(());

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        ASKED.set(ASKED.get() + layout.size());
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Some sequences of 64 pieces each, 16 of which make a chunk, through an encoder up and down.
///
/// Returns the most bytes in use above those before. The encoder is a new one, because one that has run keeps its buffers.
fn peak(n_chunks: usize, budget: usize) -> usize {
    let json = r#"{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "vocab_size": 207, "max_position_embeddings": 128}"#;
    let config = BertConfig::from_json(json).expect("a shape");
    let engine = Bert::random(&config, 1).expect("an encoder");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let word_pieces = WordPieces::load(&dir).expect("a tokenizer");
    let (ids, shapes, first) = ((100..162).collect(), vec![0; 62], (0..62).collect());
    let pieces = Pieces { ids, shapes, first };
    let sequences = vec![Sequence::alone(&pieces, &word_pieces); 16 * n_chunks];
    let mut gradients = Gradients::zeros(&config);

    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let (vectors, tape) = embed_for_training(&engine, &sequences, None, budget).expect("a pass");
    tape.backward(&engine, &vectors, &mut gradients);
    PEAK.load(Relaxed) - before
}

#[test]
fn a_training_pass_uses_its_budget_and_keeps_within_it() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (ten, twenty) = (peak(10, usize::MAX), peak(20, usize::MAX));
    let of_ten_chunks = twenty - ten;
    // A budget for ten chunks of twenty: as the estimate of a chunk is off, so is what is used.
    let bounded = peak(20, of_ten_chunks);
    let ratio = bounded as f64 / ten as f64;
    assert!((0.9..1.1).contains(&ratio), "{bounded} bytes, {ten} for ten chunks");
}

/// The bytes that `work` asks for on this thread: what it does, measured without a clock.
fn asked(work: impl FnOnce()) -> usize {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}

const CONTEXTS: [Context; 2] = [Context::Separate, Context::Paired];
const SCORERS: [ScorerKind; 5] =
    [ScorerKind::Mn, ScorerKind::Nmn, ScorerKind::Prototype, ScorerKind::Nearest, ScorerKind::Soft];

/// A tagger that learned `n_slots` slots of one word each, beside `n_plain` words without a slot.
fn adapted(context: Context, scorer: ScorerKind, n_plain: usize, n_slots: usize) -> Adapted {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let settings = ModelSettings { context, scorer, borrow: true, ..ModelSettings::default() };
    let tagger = model::from_encoder(&dir, settings, 1).expect("a model");
    let token = |tag: String| Token { word: "play".into(), tag: tag.parse().expect("a tag") };
    let plain = vec!["O".to_owned(); n_plain].into_iter();
    let slots = (0..n_slots).map(|n| format!("B-{n:02}"));
    let sentence = Sentence::new(plain.chain(slots).map(token).collect()).expect("a sentence");
    tagger.adapt(&SupportSet::new(vec![sentence]).expect("a support set")).expect("it fits")
}

#[test]
fn to_explain_another_word_goes_over_the_words_of_its_tag_only() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (context, scorer) in CONTEXTS.iter().flat_map(|it| SCORERS.map(|scorer| (*it, scorer))) {
        let second_word = |n_plain| {
            let adapted = adapted(context, scorer, n_plain, 1);
            let scored = adapted.score(&["play", "play"]).expect("a sentence");
            let _first = scored.contributions(0, 1);
            asked(|| drop(scored.contributions(1, 1)))
        };
        assert_eq!(second_word(2), second_word(40), "{context:?} {scorer:?}");
    }
}

#[test]
fn to_explain_a_span_goes_over_its_own_words_once_for_each_slot() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let adapted = adapted(Context::Separate, ScorerKind::Prototype, 1, 20);
    let explained = |n_words: usize| {
        let scored = adapted.score(&vec!["play"; n_words]).expect("a sentence");
        let slot = scored.tag_set().slots()[0].clone();
        let mut tags = vec![Tag::O; n_words];
        tags[0] = Tag::B(slot.clone());
        let span = TaggedSpan { span: Span { start: 0, end: 1, slot }, probability: 1.0 };
        let tagged = Tagged { tags, spans: vec![span], n_windows: 1 };
        asked(|| drop(scored.explain(&tagged)))
    };
    let of_a_path = 40 * size_of::<usize>();
    let more = explained(50) - explained(10);
    assert!(more <= of_a_path, "{more} bytes for 40 words more, {of_a_path} for their tags");
}
