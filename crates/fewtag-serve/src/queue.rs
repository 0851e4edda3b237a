//! The queue in front of the encoder: bounded by cost, emptied in batches, answers independent of their neighbours.
//!
//! ```text
//! request ─ admit (cost = word pieces to read, and as much for what else takes time) ─▶ waiting ─ worker: all that waits, up to a batch ─▶ answers
//!              └─ 429 if too much waits
//! ```
//!
//! One worker thread drives the encoder, which uses every core itself. While it computes, requests gather; the next batch takes
//! what has gathered, so batches grow with the load and nobody waits for a batch to fill. The encoder promises that an answer
//! does not depend on what else is in its batch (ARCHITECTURE.md, "What must stay true?").

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fewtag::answer::{self, Thresholds};
use fewtag::{Answer, Scored, Sentence, adapt_all, score_all};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code};
use crate::learner::Learner;
use crate::metrics::Metrics;

/// What a text is to be answered with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// How probable a span must be.
    pub thresholds: Thresholds,
    /// Whether to say why.
    pub explain: bool,
}

/// A text on its way to the encoder.
pub struct Item {
    /// Whose examples it is tagged with.
    pub learner: Arc<Learner>,
    /// The text.
    pub sentence: Sentence,
    /// What its answer should hold.
    pub wanted: Arc<Wanted>,
    /// What it costs to read.
    pub cost: usize,
}

/// A text and what was found.
#[derive(Debug, Clone)]
pub struct Reply {
    /// For programs.
    pub answer: Answer,
    /// For the data formats: the text with its tags, if it has words.
    pub labelled: Option<Sentence>,
}

/// Answers in the order of the texts.
pub type Replies = Vec<oneshot::Receiver<ApiResult<Reply>>>;

struct Waiting {
    item: Item,
    reply: oneshot::Sender<ApiResult<Reply>>,
    since: Instant,
    /// Makes room when the text has been answered or given up.
    _room: Arc<OwnedSemaphorePermit>,
}

/// The queue.
pub struct Queue {
    room: Arc<Semaphore>,
    most: usize,
    batch_cost: usize,
    sender: mpsc::Sender<Waiting>,
    /// Nanoseconds per piece, lately.
    pace: Arc<AtomicU64>,
}

impl Queue {
    /// Starts the worker, which ends with the queue.
    #[must_use]
    pub fn start(limits: &Limits, metrics: Arc<Metrics>) -> Self {
        let (sender, receiver) = mpsc::channel();
        let pace = Arc::new(AtomicU64::new(100_000));
        let (batch_cost, most) = (limits.batch_cost, limits.queue);
        let worker = Worker { receiver, batch_cost, pace: Arc::clone(&pace), metrics };
        std::thread::spawn(move || worker.run());
        Self { room: Arc::new(Semaphore::new(most)), most, batch_cost, sender, pace }
    }

    /// Refuses texts for which there is no room whatever their words are: cheaper than to cut them into pieces first, and
    /// what is refused must cost little when much is.
    ///
    /// # Errors
    ///
    /// [`Code::Overloaded`] if too much waits already.
    pub fn check<'a>(&self, texts: impl IntoIterator<Item = &'a String>) -> ApiResult<()> {
        // A word is a piece at least, and a text begins and ends with one. Of a long request only the first part needs room now.
        let least = |text: &String| match text.split_whitespace().count() {
            0 => 0,
            n_words => n_words + 2,
        };
        let least = texts.into_iter().map(least).sum::<usize>().min(self.batch_cost).min(self.most);
        if least <= self.room.available_permits() { Ok(()) } else { Err(self.overloaded()) }
    }

    /// Takes texts in, if there is room at once.
    ///
    /// # Errors
    ///
    /// [`Code::Overloaded`] if too much waits already.
    pub fn admit(&self, items: Vec<Item>) -> ApiResult<Replies> {
        let room = self.reserve(items.iter().map(|item| item.cost).sum())?;
        Ok(self.put(items, room))
    }

    /// Takes texts in as soon as there is room: for the later parts of a request that was admitted.
    ///
    /// # Errors
    ///
    /// None while the queue lives.
    pub async fn wait(&self, items: Vec<Item>) -> ApiResult<Replies> {
        let cost = self.bounded(items.iter().map(|item| item.cost).sum());
        let room = Arc::clone(&self.room).acquire_many_owned(cost).await;
        room.map(|room| self.put(items, room)).map_err(|_| self.overloaded())
    }

    /// Room for work that is as dear as `cost` but is done elsewhere; held until it is dropped.
    ///
    /// # Errors
    ///
    /// [`Code::Overloaded`] if too much waits already.
    pub fn reserve(&self, cost: usize) -> ApiResult<OwnedSemaphorePermit> {
        let cost = self.bounded(cost);
        Arc::clone(&self.room).try_acquire_many_owned(cost).map_err(|_| self.overloaded())
    }

    /// The cost that waits or is being read.
    #[must_use]
    pub fn cost_waiting(&self) -> usize {
        self.most - self.room.available_permits()
    }

    /// What is larger than the whole queue passes alone.
    fn bounded(&self, cost: usize) -> u32 {
        u32::try_from(cost.min(self.most)).unwrap_or(u32::MAX)
    }

    fn put(&self, items: Vec<Item>, room: OwnedSemaphorePermit) -> Replies {
        let room = Arc::new(room);
        let put = |item| {
            let (reply, answer) = oneshot::channel();
            let waiting = Waiting { item, reply, since: Instant::now(), _room: Arc::clone(&room) };
            // If the worker is gone, the reply is dropped and the reader of `answer` is told.
            let _ = self.sender.send(waiting);
            answer
        };
        items.into_iter().map(put).collect()
    }

    fn overloaded(&self) -> ApiError {
        let pace = Duration::from_nanos(self.pace.load(Ordering::Relaxed));
        let wait = pace.saturating_mul(u32::try_from(self.cost_waiting()).unwrap_or(u32::MAX));
        let message = "too much is waiting to be tagged: try again later";
        ApiError::new(Code::Overloaded, message).retry_after(wait.as_secs() + 1)
    }
}

struct Worker {
    receiver: mpsc::Receiver<Waiting>,
    batch_cost: usize,
    pace: Arc<AtomicU64>,
    metrics: Arc<Metrics>,
}

impl Worker {
    fn run(self) {
        while let Ok(first) = self.receiver.recv() {
            let batch = self.gather(first);
            let cost: usize = batch.iter().map(|waiting| waiting.item.cost).sum();
            self.metrics.batch(batch.len(), cost);
            let start = Instant::now();
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let answers = answers(&batch.iter().map(|it| &it.item).collect::<Vec<_>>());
                for (waiting, answer) in batch.into_iter().zip(answers) {
                    self.metrics.waited(waiting.since.elapsed());
                    let _ = waiting.reply.send(answer); // The client may have left.
                }
            }));
            if ran.is_err() {
                tracing::error!("a batch failed; its requests were answered with `internal`");
            }
            let lately = start.elapsed().as_nanos() as u64 / (cost.max(1) as u64);
            let before = self.pace.load(Ordering::Relaxed);
            self.pace.store((7 * before + lately) / 8, Ordering::Relaxed);
        }
    }

    /// What waits, up to the cost of a batch; texts whose clients left are let go.
    fn gather(&self, first: Waiting) -> Vec<Waiting> {
        let mut cost = first.item.cost;
        let mut batch = vec![first];
        while cost < self.batch_cost
            && let Ok(next) = self.receiver.try_recv()
        {
            if !next.reply.is_closed() {
                cost += next.item.cost;
                batch.push(next);
            }
        }
        batch
    }
}

/// The answers of a batch, in its order. Texts for one encoder are read together; each tuned domain has an encoder of its own.
fn answers(items: &[&Item]) -> Vec<ApiResult<Reply>> {
    let mut answers: Vec<Option<ApiResult<Reply>>> = vec![None; items.len()];
    for places in by_encoder(items) {
        let of_encoder: Vec<&Item> = places.iter().map(|&at| items[at]).collect();
        for (at, answer) in places.into_iter().zip(answers_of_one_encoder(&of_encoder)) {
            answers[at] = Some(answer);
        }
    }
    answers.into_iter().map(|answer| answer.expect("every item has an encoder")).collect()
}

/// The places of the items of each encoder.
fn by_encoder(items: &[&Item]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let tagger = item.learner.tagger();
        let shared =
            |group: &&mut Vec<usize>| items[group[0]].learner.tagger().shares_encoder(tagger);
        match groups.iter_mut().find(shared) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

fn answers_of_one_encoder(items: &[&Item]) -> Vec<ApiResult<Reply>> {
    if let Err(error) = learn(items) {
        return items.iter().map(|_| Err(error.clone())).collect();
    }
    let mut answers: Vec<Option<ApiResult<Reply>>> = vec![None; items.len()];
    let mut queries = Vec::with_capacity(items.len());
    let mut places = Vec::with_capacity(items.len());
    let words: Vec<Vec<&str>> = items.iter().map(|item| item.sentence.words().collect()).collect();
    for (at, item) in items.iter().enumerate() {
        match item.learner.adapted() {
            Some(Ok(adapted)) => {
                queries.push((adapted, words[at].as_slice()));
                places.push(at);
            }
            Some(Err(error)) => answers[at] = Some(Err(error.clone())),
            None => {}
        }
    }
    match score_all(&queries) {
        Ok(scored) => {
            for (at, scored) in places.into_iter().zip(scored) {
                let reply = scored.map(|scored| reply(items[at], &scored));
                answers[at] = Some(reply.map_err(ApiError::from));
            }
        }
        Err(error) => {
            let error = ApiError::from(error);
            for at in places {
                answers[at] = Some(Err(error.clone()));
            }
        }
    }
    let lost = || Err(ApiError::new(Code::Internal, "the text was not tagged"));
    answers.into_iter().map(|answer| answer.unwrap_or_else(lost)).collect()
}

/// Reads the examples that no batch has read yet.
fn learn(items: &[&Item]) -> ApiResult<()> {
    let mut new: Vec<&Learner> = Vec::new();
    for item in items {
        let learner = &*item.learner;
        if learner.adapted().is_none() && !new.iter().any(|it| std::ptr::eq(*it, learner)) {
            new.push(learner);
        }
    }
    let wanted: Vec<_> = new.iter().map(|it| (it.tagger(), it.support())).collect();
    for (learner, adapted) in new.into_iter().zip(adapt_all(&wanted)?) {
        learner.learned(adapted);
    }
    Ok(())
}

fn reply(item: &Item, scored: &Scored) -> Reply {
    let Item { sentence, learner, wanted, .. } = item;
    let mut tagged = scored.tagged();
    tagged.spans.retain(|span| wanted.thresholds.allow(span));
    let answer = if wanted.explain {
        Answer::explained(sentence, &tagged, scored, learner.support())
    } else {
        Answer::new(sentence, &tagged)
    };
    Reply { answer, labelled: Some(answer::labelled(sentence, &tagged)) }
}
