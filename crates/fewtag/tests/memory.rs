//! Memory of a training pass: what the budget promises, counted by the allocator.
//!
//! One test in a process of its own: whatever else ran beside it would be counted, too.
#![expect(unsafe_code, reason = "an allocator that counts can only be written so")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use fewtag::embedder::{Sequence, embed_for_training};
use fewtag::encoder::{Bert, BertConfig, Gradients, Pieces, WordPieces};

/// The system's allocator, counting bytes that are in use.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
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
    let frame = WordPieces::load(&dir).expect("a tokenizer");
    let pieces = Pieces { ids: (100..162).collect(), first: (0..62).collect() };
    let sequences = vec![Sequence::alone(&pieces, &frame); 16 * n_chunks];
    let mut gradients = Gradients::zeros(&config);

    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let (vectors, tape) = embed_for_training(&engine, &sequences, None, budget).expect("a pass");
    tape.backward(&engine, &vectors, &mut gradients).expect("a pass back");
    PEAK.load(Relaxed) - before
}

#[test]
fn a_training_pass_uses_its_budget_and_keeps_within_it() {
    let (ten, twenty) = (peak(10, usize::MAX), peak(20, usize::MAX));
    let of_ten_chunks = twenty - ten;
    // A budget for ten chunks of twenty: as the estimate of a chunk is off, so is what is used.
    let bounded = peak(20, of_ten_chunks);
    let ratio = bounded as f64 / ten as f64;
    assert!((0.9..1.1).contains(&ratio), "{bounded} bytes, {ten} for ten chunks");
}
