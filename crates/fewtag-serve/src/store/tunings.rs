//! Tunings of domains: what was asked for, who works on it, how far it has come and what became of it.
//!
//! ```text
//! queued ─ claim ─▶ running ─▶ tuned | not_worth_it | failed
//!    ▲                │  └─ cancelled
//!    └─ released ─────┘     not heard of for a lease: claimed again, and lost after some attempts
//! ```
//!
//! There is one row for a domain, so it cannot be tuned twice at a time, whichever server is asked. A server that runs a tuning
//! holds its claim and says so again and again. Every write of a run names its claim: one that was cancelled, or taken
//! over by another server, writes nothing more.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use utoipa::ToSchema;

use super::write::{json, lock, parsed};
use super::{Expected, Store, Weights, now, now_ms};
use crate::error::{ApiError, ApiResult, Code};

/// How a tuning stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuningState {
    /// It waits for its turn.
    Queued,
    /// A server works on it.
    Running,
    /// The domain was tuned.
    Tuned,
    /// Nothing gained more than chance would: the domain is as it was.
    NotWorthIt,
    /// It failed, for the reason in `message`: the domain is as it was.
    Failed,
    /// It was cancelled: the domain is as it was.
    Cancelled,
    /// The servers that worked on it ended, several times: the domain is as it was.
    Lost,
}

impl TuningState {
    /// As it is written in JSON and in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Tuned => "tuned",
            Self::NotWorthIt => "not_worth_it",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

/// How a domain is to be tuned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"minutes": 2}))]
pub struct TuneOptions {
    /// About how long it may take on two quiet cores; absent: 1 for 50 sentences, at most 15.
    #[schema(exclusive_minimum = 0, maximum = 60)]
    pub minutes: Option<f64>,
    /// Where every random number comes from; absent: 0.
    pub seed: Option<u32>,
}

/// A tuning as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct TuningRow {
    /// How it stands.
    pub state: TuningState,
    /// The version of the domain whose examples are tuned with.
    pub version: i64,
    /// When it was asked for, in seconds since 1970.
    pub asked: i64,
    /// When it ended.
    pub ended: Option<i64>,
    /// How far it has come.
    pub progress: Option<Value>,
    /// What was found out.
    pub report: Option<Value>,
    /// What is to be said to people.
    pub message: Option<String>,
    /// The version of the domain that it made.
    pub result: Option<i64>,
}

/// A tuning that a run works on.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The domain.
    pub domain: String,
    /// The run.
    pub claim: String,
    /// What was asked for.
    pub options: TuneOptions,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How it stands now.
    pub state: TuningState,
    /// What was found out.
    pub report: Option<Value>,
    /// What is to be said to people.
    pub message: String,
    /// What the domain is to be tuned with.
    pub weights: Option<Weights>,
}

/// A tuning whose servers ended so many times is given up: perhaps it was its fault.
const MOST_ATTEMPTS: i64 = 3;

impl Store {
    /// Asks for a tuning, unless the domain has one under way or `most` are waiting for servers of this model.
    ///
    /// # Errors
    ///
    /// [`Code::TuningUnderWay`], [`Code::TooManyTunings`], [`Code::StorageUnavailable`].
    pub async fn ask_tuning(
        &self,
        name: &str,
        version: i64,
        options: TuneOptions,
        most: usize,
    ) -> ApiResult<()> {
        let insert = "INSERT INTO tunings \
             (domain, state, model, options, version, claim, beat, attempts, asked, ended, progress, report, message, result) \
             SELECT $1, 'queued', $6, $2, $3, '', 0, 0, $4, 0, '', '', '', 0 \
             WHERE (SELECT COUNT(*) FROM tunings WHERE state = 'queued' AND model = $6) < $5 \
             ON CONFLICT (domain) DO UPDATE SET state = 'queued', model = $6, options = $2, version = $3, claim = '', beat = 0, \
             attempts = 0, asked = $4, ended = 0, progress = '', report = '', message = '', result = 0 \
             WHERE tunings.state NOT IN ('queued', 'running')";
        let insert = sqlx::query(insert).bind(name).bind(json(&options)).bind(version).bind(now());
        let insert = insert.bind(i64::try_from(most).unwrap_or(i64::MAX)).bind(&self.model);
        if insert.execute(&self.pool).await?.rows_affected() > 0 {
            return Ok(());
        }
        let state = self.tuning(name).await?.map(|row| row.state);
        if let Some(TuningState::Queued | TuningState::Running) = state {
            let message = format!("`{name}` is being tuned: wait for it, or cancel it");
            return Err(ApiError::new(Code::TuningUnderWay, message));
        }
        let message = format!("{most} tunings are waiting, and no more are taken: try again later");
        Err(ApiError::new(Code::TooManyTunings, message).retry_after(60))
    }

    /// The latest tuning of a domain.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn tuning(&self, name: &str) -> ApiResult<Option<TuningRow>> {
        let select = "SELECT state, version, asked, ended, progress, report, message, result \
                      FROM tunings WHERE domain = $1";
        let row = sqlx::query(select).bind(name).fetch_optional(&self.pool).await?;
        Ok(row.map(|row| tuning(&row)).transpose()?)
    }

    /// Takes the tuning for this server's model that has waited longest, or one whose run was not heard of for `lease`.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn claim_tuning(&self, claim: &str, lease: Duration) -> ApiResult<Option<Held>> {
        let free = "(state = 'queued' OR (state = 'running' AND beat < $3 AND attempts < $5)) AND model = $4";
        let update = format!(
            "UPDATE tunings SET state = 'running', claim = $1, beat = $2, attempts = attempts + 1 WHERE {free} AND \
             domain = (SELECT domain FROM tunings WHERE {free} ORDER BY asked, domain LIMIT 1) RETURNING domain, options"
        );
        let update = sqlx::query(&update).bind(claim).bind(now_ms()).bind(before(lease));
        let update = update.bind(&self.model).bind(MOST_ATTEMPTS);
        let Some(row) = update.fetch_optional(&self.pool).await? else { return Ok(None) };
        let (domain, options) = (row.try_get(0)?, parsed(&row, 1)?);
        Ok(Some(Held { domain, claim: claim.to_owned(), options }))
    }

    /// Gives up tunings whose servers ended too often; answers how many.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn give_up_tunings(&self, lease: Duration) -> ApiResult<u64> {
        let message = format!(
            "the servers that worked on it ended {MOST_ATTEMPTS} times before it did; tune again, or see their logs"
        );
        let update = "UPDATE tunings SET state = 'lost', ended = $1, message = $2 \
                      WHERE state = 'running' AND beat < $3 AND attempts >= $4";
        let update = sqlx::query(update).bind(now()).bind(message).bind(before(lease));
        Ok(update.bind(MOST_ATTEMPTS).execute(&self.pool).await?.rows_affected())
    }

    /// Says that a run is at work, on which version of the domain and how far; answers whether it is still wanted.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn beat(&self, held: &Held, version: i64, progress: &Value) -> ApiResult<bool> {
        let update = "UPDATE tunings SET beat = $3, version = $4, progress = $5 \
                      WHERE domain = $1 AND claim = $2 AND state = 'running'";
        let update = sqlx::query(update).bind(&held.domain).bind(&held.claim).bind(now_ms());
        let update = update.bind(version).bind(json(progress));
        Ok(update.execute(&self.pool).await?.rows_affected() > 0)
    }

    /// Puts a tuning back that another run is to begin again: this one was told to end.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn release_tuning(&self, held: &Held) -> ApiResult<()> {
        let update = "UPDATE tunings SET state = 'queued', claim = '', attempts = attempts - 1 \
                      WHERE domain = $1 AND claim = $2 AND state = 'running'";
        sqlx::query(update).bind(&held.domain).bind(&held.claim).execute(&self.pool).await?;
        Ok(())
    }

    /// Cancels what waits or runs.
    ///
    /// # Errors
    ///
    /// [`Code::TuningNotFound`] if nothing does, [`Code::StorageUnavailable`].
    pub async fn cancel_tuning(&self, name: &str) -> ApiResult<()> {
        let update = "UPDATE tunings SET state = 'cancelled', ended = $2 \
                      WHERE domain = $1 AND state IN ('queued', 'running')";
        let update = sqlx::query(update).bind(name).bind(now());
        if update.execute(&self.pool).await?.rows_affected() > 0 {
            return Ok(());
        }
        self.version(name).await?;
        let message = format!("`{name}` is not being tuned, so there is nothing to cancel");
        Err(ApiError::new(Code::TuningNotFound, message))
    }

    /// Ends a run, and tunes the domain as it is now if there are weights for it; answers whether the run was still wanted.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn end_tuning(&self, held: &Held, ended: Ended) -> ApiResult<bool> {
        let mut transaction = self.pool.begin().await?;
        let mut result = 0;
        if let Some(weights) = ended.weights.clone() {
            // The domain before the tuning, as `delete` does: two that lock in another order could wait for each other.
            result = match lock(&mut transaction, &held.domain, &Expected::Any).await {
                Err(error) if error.code == Code::DomainNotFound => return Ok(false),
                locked => locked?.version,
            };
            self.put_weights(&mut transaction, (&held.domain, result), weights).await?;
        }
        let is_wanted = end(&mut transaction, held, &ended, result).await?;
        if is_wanted {
            transaction.commit().await?; // Otherwise nothing of it happened.
        }
        Ok(is_wanted)
    }
}

async fn end(
    connection: &mut AnyConnection,
    held: &Held,
    ended: &Ended,
    result: i64,
) -> Result<bool, sqlx::Error> {
    let update = "UPDATE tunings SET state = $3, ended = $4, report = $5, message = $6, result = $7 \
                  WHERE domain = $1 AND claim = $2 AND state = 'running'";
    let report = ended.report.as_ref().map_or(String::new(), json);
    let update = sqlx::query(update).bind(&held.domain).bind(&held.claim).bind(ended.state.name());
    let update = update.bind(now()).bind(report).bind(&ended.message).bind(result);
    Ok(update.execute(connection).await?.rows_affected() > 0)
}

/// The latest beat of a run that is not heard of any more.
fn before(lease: Duration) -> i64 {
    now_ms().saturating_sub(i64::try_from(lease.as_millis()).unwrap_or(i64::MAX))
}

fn tuning(row: &AnyRow) -> Result<TuningRow, sqlx::Error> {
    let state: String = row.try_get(0)?;
    let state = serde_json::from_value(Value::String(state));
    let some = |number: i64| (number > 0).then_some(number);
    let value = |column: usize| -> Result<Option<Value>, sqlx::Error> {
        let is_empty = row.try_get::<String, _>(column)?.is_empty();
        if is_empty { Ok(None) } else { parsed(row, column).map(Some) }
    };
    let message: String = row.try_get(6)?;
    Ok(TuningRow {
        state: state.map_err(|error| sqlx::Error::Decode(error.into()))?,
        version: row.try_get(1)?,
        asked: row.try_get(2)?,
        ended: some(row.try_get(3)?),
        progress: value(4)?,
        report: value(5)?,
        message: Some(message).filter(|message| !message.is_empty()),
        result: some(row.try_get(7)?),
    })
}
