//! The answers to the texts of a request, in their order, however the queue takes them.

use fewtag::Answer;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::oneshot;

use crate::App;
use crate::error::{ApiError, ApiResult, Code};
use crate::prepare::Prepared;
use crate::queue::{Item, Replies, Reply};

/// A part of a request: in the queue, or to be put there, with the texts that need no encoder at their places.
struct Part {
    blanks: Vec<Option<String>>,
    waiting: Waiting,
}

enum Waiting {
    Admitted(Replies),
    Pending(Vec<Item>),
}

/// How many parts of a request wait in the queue while their answers are read.
const AHEAD: usize = 4;

/// The answers in the order of the texts.
///
/// A long request is cut into parts of about a batch. The first is admitted or refused at once; the others wait for
/// room, and only some of them at a time, so that a long request does not shut out short ones.
///
/// # Errors
///
/// If the queue is too full for the first part.
pub fn replies(
    app: &App,
    prepared: Vec<Prepared>,
) -> ApiResult<impl Stream<Item = ApiResult<Reply>> + Send + use<>> {
    let mut parts = parts(prepared, app.config.limits.batch_cost);
    if let Some(first) = parts.first_mut()
        && let Waiting::Pending(items) = &mut first.waiting
    {
        first.waiting = Waiting::Admitted(app.queue.admit(std::mem::take(items))?);
    }
    let app = App::clone(app);
    let admitted = stream::iter(parts).map(move |Part { blanks, waiting }| {
        let app = App::clone(&app);
        async move {
            let replies = match waiting {
                Waiting::Admitted(replies) => replies,
                Waiting::Pending(items) => app.queue.wait(items).await?,
            };
            Ok::<_, ApiError>((blanks, replies))
        }
    });
    let in_order = admitted.buffered(AHEAD).map_ok(|(blanks, replies)| {
        let mut replies = replies.into_iter();
        let slot = |blank: Option<String>| match blank {
            Some(text) => Slot::Blank(text),
            None => Slot::Text(replies.next()),
        };
        let slots: Vec<Slot> = blanks.into_iter().map(slot).collect();
        stream::iter(slots).then(Slot::reply)
    });
    Ok(in_order.try_flatten())
}

enum Slot {
    Blank(String),
    Text(Option<oneshot::Receiver<ApiResult<Reply>>>),
}

impl Slot {
    async fn reply(self) -> ApiResult<Reply> {
        let lost = || Err(ApiError::new(Code::Internal, "the text was not tagged"));
        match self {
            Self::Blank(text) => {
                Ok(Reply { answer: Answer { text, spans: Vec::new() }, labelled: None })
            }
            Self::Text(None) => lost(),
            Self::Text(Some(reply)) => reply.await.unwrap_or_else(|_| lost()),
        }
    }
}

/// Cuts texts into parts of about `cost`.
fn parts(prepared: Vec<Prepared>, cost: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut room = 0;
    for one in prepared {
        if room == 0 || parts.is_empty() {
            parts.push(Part { blanks: Vec::new(), waiting: Waiting::Pending(Vec::new()) });
            room = cost;
        }
        let Some(Part { blanks, waiting: Waiting::Pending(items) }) = parts.last_mut() else {
            unreachable!("a new part is pending")
        };
        match one {
            Prepared::Blank(text) => blanks.push(Some(text)),
            Prepared::Item(item) => {
                room = room.saturating_sub(item.cost);
                blanks.push(None);
                items.push(item);
            }
        }
    }
    parts
}
