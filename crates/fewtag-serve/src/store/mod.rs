//! Domains in SQLite or PostgreSQL: the same tables, the same statements.
//!
//! A change is one transaction: its first statement adds 1 to the domain's version, which locks the domain in both
//! databases, and only then are the examples read and written. An acknowledged change is on the disk (SQLite:
//! write-ahead log, synced at every commit). Versions never repeat, not even when a domain is deleted and made again,
//! so that name and version name one state for ever: this is what caches and `ETag`s rest on.

mod domain;
mod tuned;
mod tunings;
mod write;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::any::{AnyPoolOptions, AnyRow};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyPool, Executor, Row};

use crate::config::Database;
use crate::error::{ApiError, ApiResult, Code};

pub use domain::{Declared, Domain, DomainInfo, Example, LabelledSpan};
pub use tuned::{TunedInfo, Weights};
pub use tunings::{Ended, Held, TuneOptions, TuningRow, TuningState};
use write::{Locked, lock, parsed, write};

/// Which version a change is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Whichever there is.
    Any,
    /// One of these.
    OneOf(Vec<i64>),
}

impl Expected {
    /// Refuses another version of a domain than the expected ones.
    ///
    /// # Errors
    ///
    /// [`Code::VersionConflict`].
    pub fn check(&self, name: &str, version: i64) -> ApiResult<()> {
        match self {
            Self::OneOf(wanted) if !wanted.contains(&version) => {
                let message = format!(
                    "`{name}` was changed meanwhile and has version {version}: read it again"
                );
                Err(ApiError::new(Code::VersionConflict, message).at("If-Match"))
            }
            _ => Ok(()),
        }
    }
}

/// An example within a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// `None`: the store gives one.
    pub id: Option<i64>,
    /// The text.
    pub text: String,
    /// Its labels.
    pub spans: Vec<LabelledSpan>,
    /// Where it came from, if another program manages it; else empty.
    pub source: String,
}

/// All that a change may change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// The examples, in the order of their ids.
    pub examples: Vec<Draft>,
    /// The labels that are known by name.
    pub declared: Declared,
    /// Tuned weights that take the place of those that count; none: these stay.
    pub weights: Option<Weights>,
}

/// What a change did.
#[derive(Debug)]
pub struct Changed<T> {
    /// The new version of the domain.
    pub version: i64,
    /// The ids of the domain's examples after it.
    pub ids: Vec<i64>,
    /// What the change answered.
    pub done: T,
}

/// The database.
#[derive(Clone)]
pub struct Store {
    pool: AnyPool,
    /// The checksum of the server's model: tuned weights are for one model only.
    model: String,
}

/// How long a request waits for a connection to PostgreSQL before it is told that there is none.
const POSTGRES_PATIENCE: Duration = Duration::from_secs(2);
/// The same for a file, which is never away: only a machine that is very busy opens it late.
const SQLITE_PATIENCE: Duration = Duration::from_secs(30);

impl Store {
    /// Opens the database for a server of this model, and brings its tables up to date.
    ///
    /// # Errors
    ///
    /// If the database cannot be opened, or was written by a later version.
    pub async fn open(database: &Database, model: &str) -> Result<Self, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let (url, n_connections, patience) = match database {
            Database::Sqlite(path) => {
                (format!("sqlite://{}?mode=rwc", path.display()), 4, SQLITE_PATIENCE)
            }
            Database::Postgres(url) => (url.clone(), 16, POSTGRES_PATIENCE),
        };
        let is_sqlite = matches!(database, Database::Sqlite(_));
        let pool = AnyPoolOptions::new()
            .max_connections(n_connections)
            .acquire_timeout(patience)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if is_sqlite {
                        connection.execute(PRAGMAS).await?;
                    }
                    Ok(())
                })
            })
            .connect(&url)
            .await?;
        migrator().run(&pool).await?;
        Ok(Self { pool, model: model.to_owned() })
    }

    /// Whether the database answers.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn ping(&self) -> ApiResult<()> {
        self.pool.execute("SELECT 1").await?;
        Ok(())
    }

    /// All domains by name.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn list(&self) -> ApiResult<Vec<DomainInfo>> {
        let rows = sqlx::query(
            "SELECT name, version, n_examples, labels, updated, \
             (SELECT COUNT(*) FROM tuned t WHERE t.domain = name AND t.model = $1) FROM domains WHERE deleted = 0 ORDER BY name",
        )
        .bind(&self.model)
        .fetch_all(&self.pool)
        .await?;
        let info = |row: &AnyRow| {
            Ok(DomainInfo {
                name: row.try_get(0)?,
                version: row.try_get(1)?,
                examples: row.try_get(2)?,
                labels: parsed(row, 3)?,
                updated: row.try_get(4)?,
                tuned: row.try_get::<i64, _>(5)? > 0,
            })
        };
        Ok(rows.iter().map(info).collect::<Result<_, sqlx::Error>>()?)
    }

    /// The current version of a domain: the one cheap question before a cached domain is used.
    ///
    /// # Errors
    ///
    /// [`Code::DomainNotFound`], [`Code::StorageUnavailable`].
    pub async fn version(&self, name: &str) -> ApiResult<i64> {
        let row = sqlx::query("SELECT version FROM domains WHERE name = $1 AND deleted = 0")
            .bind(name)
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.ok_or_else(|| not_found(name))?.try_get(0)?)
    }

    /// A domain with its examples; one statement, so one state.
    ///
    /// # Errors
    ///
    /// As [`Store::version`].
    pub async fn read(&self, name: &str) -> ApiResult<Domain> {
        let rows = sqlx::query(
            "SELECT d.version, d.labels, d.declared, e.id, e.text, e.spans, t.version, t.figures FROM domains d \
             LEFT JOIN tuned t ON t.domain = d.name AND t.model = $2 AND t.version = \
             (SELECT MAX(version) FROM tuned WHERE domain = d.name AND model = $2) \
             LEFT JOIN examples e ON e.domain = d.name WHERE d.name = $1 AND d.deleted = 0 ORDER BY e.id",
        )
        .bind(name)
        .bind(&self.model)
        .fetch_all(&self.pool)
        .await?;
        let first = rows.first().ok_or_else(|| not_found(name))?;
        let (version, labels) = (first.try_get(0)?, parsed(first, 1)?);
        let Declared { labels: declared, meanings } = parsed(first, 2)?;
        let tuned = tuned::info(first, 6)?;
        let mut examples = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(id) = row.try_get::<Option<i64>, _>(3)? {
                let (text, spans) = (row.try_get(4)?, parsed(row, 5)?);
                examples.push(Example { id: id.to_string(), text, spans });
            }
        }
        let name = name.to_owned();
        Ok(Domain { name, version, labels, declared, meanings, tuned, examples })
    }

    /// Makes a domain with these examples and labels.
    ///
    /// # Errors
    ///
    /// [`Code::DomainExists`], [`Code::StorageUnavailable`].
    pub async fn create(&self, name: &str, mut content: Content) -> ApiResult<Changed<()>> {
        let weights = content.weights.take();
        let mut transaction = self.pool.begin().await?;
        let row = sqlx::query(
            "INSERT INTO domains (name, version, next_id, n_examples, labels, updated, deleted) \
             VALUES ($1, 1, 1, 0, '[]', $2, 0) \
             ON CONFLICT (name) DO UPDATE SET deleted = 0, version = domains.version + 1, updated = $2 \
             WHERE domains.deleted = 1 RETURNING version, next_id",
        )
        .bind(name)
        .bind(now())
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(row) = row else {
            let message = format!("there is a domain `{name}` already");
            return Err(ApiError::new(Code::DomainExists, message));
        };
        let version = row.try_get(0)?;
        let ids = write(&mut transaction, name, row.try_get(1)?, &[], content).await?;
        if let Some(weights) = weights {
            self.put_weights(&mut transaction, (name, version), weights).await?;
        }
        transaction.commit().await?;
        Ok(Changed { version, ids, done: () })
    }

    /// Changes the examples and labels of a domain by `change`, if its version is the expected one.
    ///
    /// # Errors
    ///
    /// [`Code::VersionConflict`], [`Code::DomainNotFound`], [`Code::StorageUnavailable`], and those of `change`.
    pub async fn change<T>(
        &self,
        name: &str,
        expected: Expected,
        change: impl FnOnce(&mut Content, i64) -> ApiResult<T>,
    ) -> ApiResult<Changed<T>> {
        let mut transaction = self.pool.begin().await?;
        let Locked { version, next_id, declared } = lock(&mut transaction, name, &expected).await?;
        let rows = sqlx::query(
            "SELECT id, text, spans, source FROM examples WHERE domain = $1 ORDER BY id",
        )
        .bind(name)
        .fetch_all(&mut *transaction)
        .await?;
        let draft = |row: &AnyRow| {
            let (id, text, spans) = (row.try_get(0)?, row.try_get(1)?, parsed(row, 2)?);
            Ok(Draft { id: Some(id), text, spans, source: row.try_get(3)? })
        };
        let before = rows.iter().map(draft).collect::<Result<Vec<_>, sqlx::Error>>()?;
        let mut after = Content { examples: before.clone(), declared, weights: None };
        let done = change(&mut after, next_id)?;
        if let Some(weights) = after.weights.take() {
            self.put_weights(&mut transaction, (name, version), weights).await?;
        }
        let ids = write(&mut transaction, name, next_id, &before, after).await?;
        transaction.commit().await?;
        Ok(Changed { version, ids, done })
    }

    /// Deletes a domain.
    ///
    /// # Errors
    ///
    /// As [`Store::change`].
    pub async fn delete(&self, name: &str, expected: Expected) -> ApiResult<()> {
        let mut transaction = self.pool.begin().await?;
        lock(&mut transaction, name, &expected).await?;
        for statement in [
            "DELETE FROM examples WHERE domain = $1",
            "DELETE FROM tuned WHERE domain = $1",
            "DELETE FROM tunings WHERE domain = $1",
            "UPDATE domains SET deleted = 1, n_examples = 0, labels = '[]', declared = '{}' WHERE name = $1",
        ] {
            sqlx::query(statement).bind(name).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Closes the connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

const PRAGMAS: &str =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;";

fn migrator() -> Migrator {
    let steps = [
        (1, "domains", include_str!("../../migrations/1_domains.sql")),
        (2, "declared", include_str!("../../migrations/2_declared.sql")),
        (3, "tuned", include_str!("../../migrations/3_tuned.sql")),
    ];
    let migration = |(number, name, sql): (i64, &'static str, &'static str)| {
        Migration::new(number, name.into(), MigrationType::Simple, sql.into(), false)
    };
    Migrator { migrations: steps.map(migration).to_vec().into(), ..Migrator::DEFAULT }
}

fn not_found(name: &str) -> ApiError {
    ApiError::new(Code::DomainNotFound, format!("there is no domain `{name}`"))
}

fn now() -> i64 {
    now_ms() / 1000
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
