//! Batches of sentences, scored and tagged by several threads, in the order in which they came.
//!
//! Whoever is free takes the next batch and, before anybody else can take one, leaves a slot for its answer in the queue of
//! the writer. So answers come in order, and at most as many batches as the queue has room for are in memory. The
//! threads mostly wait for the encoder, which has threads of its own: several of them keep it busy while words are
//! split and tags are chosen.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use fewtag::{Adapted, Scored, Sentence, Tagged};
use rayon::prelude::*;

use crate::commands::input::{Input, Item, Most};

/// A line and what was made of it.
pub(super) type Answered = (String, anyhow::Result<(Sentence, Scored<'static>, Tagged)>);

/// Where the answers of a batch will come from, or the panic that came between.
type Slot = Receiver<std::thread::Result<Vec<Answered>>>;

/// The most words of a batch: about four times as many pieces as go through the encoder together.
const WORDS: usize = 3072;

/// The answers of batches, in their order.
pub(super) struct Scoring {
    slots: Receiver<Slot>,
}

impl Scoring {
    /// Starts to score what arrives.
    pub(super) fn start(adapted: &'static Adapted, input: Input) -> Self {
        // One more than the encoder has: that one does what the encoder does not.
        let n_threads = rayon::current_num_threads() + 1;
        let (sender, slots) = sync_channel(n_threads);
        let source = Arc::new(Mutex::new((input, sender)));
        for _ in 0..n_threads {
            let source = Arc::clone(&source);
            std::thread::spawn(move || score_batches(adapted, &source));
        }
        Self { slots }
    }
}

impl Iterator for Scoring {
    type Item = Vec<Answered>;

    fn next(&mut self) -> Option<Vec<Answered>> {
        let batch = self.slots.recv().ok()?.recv().ok()?;
        Some(batch.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

/// Takes batch after batch until there is none, or until nobody wants the answers.
fn score_batches(adapted: &'static Adapted, source: &Mutex<(Input, SyncSender<Slot>)>) {
    let most = Most { sentences: adapted.group_size(), words: WORDS };
    loop {
        let (answer, slot) = sync_channel(1);
        let mut waiting = source.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, slots) = &mut *waiting;
        let batch = input.next_batch(most);
        if batch.is_empty() || slots.send(slot).is_err() {
            return;
        }
        drop(waiting);
        let scored = catch_unwind(AssertUnwindSafe(|| score(adapted, batch)));
        if answer.send(scored).is_err() {
            return;
        }
    }
}

/// Scores and tags the sentences of a batch together, on all cores; each fails alone.
fn score(adapted: &'static Adapted, batch: Vec<Item>) -> Vec<Answered> {
    let sentences = batch.iter().filter_map(|(_, sentence)| sentence.as_ref().ok());
    let words: Vec<Vec<&str>> = sentences.map(|sentence| sentence.words().collect()).collect();
    let queries: Vec<_> = words.iter().map(|words| (adapted, words.as_slice())).collect();
    let scored = match fewtag::score_all(&queries) {
        Ok(scored) => scored,
        Err(_) => words.iter().map(|words| adapted.score(words)).collect(),
    };
    let tag = |scored: fewtag::Result<Scored<'static>>| {
        scored.map(|scored| {
            let tagged = scored.tagged();
            (scored, tagged)
        })
    };
    let tagged: Vec<_> = scored.into_par_iter().map(tag).collect();
    let mut tagged = tagged.into_iter();
    let mut join = |sentence: Sentence| {
        let (scored, tagged) = tagged.next().expect("every sentence is scored")?;
        Ok((sentence, scored, tagged))
    };
    batch.into_iter().map(|(line, sentence)| (line, sentence.and_then(&mut join))).collect()
}
