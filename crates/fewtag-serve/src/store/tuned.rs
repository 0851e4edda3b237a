//! The tuned weights of domains.
//!
//! They are kept as the saved domain that tuning made: its weights and settings count, its examples are those that it was tuned with. A
//! domain keeps its weights while its examples change. The latest ones count; those before are kept for the way back, and
//! no others. Weights of another model than the server's do not count, and are there again when that model is.

use fewtag::tune::Figures;
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use utoipa::ToSchema;

use super::write::{json, lock, parsed};
use super::{Expected, Store, not_found};
use crate::error::{ApiError, ApiResult, Code};

/// Weights to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// The saved domain.
    pub file: Vec<u8>,
    /// What they are worth.
    pub figures: Figures,
}

/// The weights that count.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TunedInfo {
    /// The version of the domain that brought them.
    pub version: i64,
    /// What they were found to be worth, on sentences that were left out.
    pub figures: Figures,
}

/// The weights that count, and those before.
const KEPT: i64 = 2;

impl Store {
    /// The saved domain with the weights that a version of a domain brought; none if they were taken back.
    ///
    /// # Errors
    ///
    /// [`Code::StorageUnavailable`].
    pub async fn weights(&self, name: &str, version: i64) -> ApiResult<Option<Vec<u8>>> {
        let select = "SELECT file FROM tuned WHERE domain = $1 AND version = $2 AND model = $3";
        let row = sqlx::query(select).bind(name).bind(version).bind(&self.model);
        let row = row.fetch_optional(&self.pool).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// The weights that count.
    ///
    /// # Errors
    ///
    /// [`Code::DomainNotFound`], [`Code::StorageUnavailable`].
    pub async fn tuned(&self, name: &str) -> ApiResult<Option<TunedInfo>> {
        let select = "SELECT t.version, t.figures FROM domains d LEFT JOIN tuned t ON t.domain = d.name AND t.model = $2 \
                      WHERE d.name = $1 AND d.deleted = 0 ORDER BY t.version DESC LIMIT 1";
        let row = sqlx::query(select).bind(name).bind(&self.model).fetch_optional(&self.pool);
        let row = row.await?.ok_or_else(|| not_found(name))?;
        Ok(info(&row, 0)?)
    }

    /// Goes back to the weights that a domain had before its latest ones; answers its new version.
    ///
    /// # Errors
    ///
    /// [`Code::NotTuned`] if it has none, and as [`Store::change`].
    pub async fn undo_tuning(&self, name: &str, expected: Expected) -> ApiResult<i64> {
        let mut transaction = self.pool.begin().await?;
        let version = lock(&mut transaction, name, &expected).await?.version;
        let delete = "DELETE FROM tuned WHERE domain = $1 AND model = $2 AND version = \
                      (SELECT MAX(version) FROM tuned WHERE domain = $1 AND model = $2)";
        let delete = sqlx::query(delete).bind(name).bind(&self.model);
        if delete.execute(&mut *transaction).await?.rows_affected() == 0 {
            let message = format!("`{name}` is not tuned, so there is nothing to go back from");
            return Err(ApiError::new(Code::NotTuned, message));
        }
        transaction.commit().await?;
        Ok(version)
    }

    /// Lets weights count from this version on.
    pub(super) async fn put_weights(
        &self,
        connection: &mut AnyConnection,
        (name, version): (&str, i64),
        Weights { file, figures }: Weights,
    ) -> Result<(), sqlx::Error> {
        let insert =
            "INSERT INTO tuned (domain, version, model, figures, file) VALUES ($1, $2, $3, $4, $5)";
        let insert = sqlx::query(insert).bind(name).bind(version).bind(&self.model);
        insert.bind(json(&figures)).bind(file).execute(&mut *connection).await?;
        let delete = "DELETE FROM tuned WHERE domain = $1 AND model = $2 AND version NOT IN \
                      (SELECT version FROM tuned WHERE domain = $1 AND model = $2 ORDER BY version DESC LIMIT $3)";
        let delete = sqlx::query(delete).bind(name).bind(&self.model).bind(KEPT);
        delete.execute(connection).await?;
        Ok(())
    }
}

/// Version and figures of weights, in this column and the next.
pub(super) fn info(row: &AnyRow, column: usize) -> Result<Option<TunedInfo>, sqlx::Error> {
    let version: Option<i64> = row.try_get(column)?;
    version.map(|version| Ok(TunedInfo { version, figures: parsed(row, column + 1)? })).transpose()
}
