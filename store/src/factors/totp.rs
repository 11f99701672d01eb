//! Authenticator apps (RFC 6238) and recovery codes. The caller has checked a code; what is decided here is that it counts
//! once, whichever instance it is shown to.

use entity::{Millis, recovery_code, totp as secret};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, QueryFilter, TryInsertResult};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Proof, forget_codes, forget_proofs_without_factor, lock, proved};
use crate::audit::Entry;
use crate::audit_log::record_in;
use crate::{Store, StoreError, Totp};

/// Recovery codes that a user gets.
pub const CODES: usize = 10;

/// How many wrong codes an account may have shown, and for how long they count.
#[derive(Debug, Clone, Copy)]
pub struct Throttle {
    /// Wrong codes after which all are refused.
    pub max_failures: i32,
    /// After this time they are forgotten.
    pub within_ms: i64,
    /// The present time.
    pub now: Timestamp,
}

impl Throttle {
    /// Failures since then count.
    fn since(self) -> Millis {
        Millis::from(self.now.plus_millis(-self.within_ms))
    }

    /// When this account may show codes again; `None` unless it has shown too many wrong ones.
    pub fn reached_until(self, totp: &Totp) -> Option<Timestamp> {
        let until = Timestamp::from(totp.failing_since).plus_millis(self.within_ms);
        (totp.failures >= self.max_failures && until > self.now).then_some(until)
    }

    /// The same as a condition of a query.
    fn is_open(self) -> Condition {
        Condition::any()
            .add(secret::Column::Failures.lt(self.max_failures))
            .add(secret::Column::FailingSince.lte(self.since()))
    }
}

impl Store {
    /// Stores the secret of an authenticator app that its user has yet to confirm, in place of an earlier one. False when the
    /// user has a confirmed one.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoAccount`] when the account was deleted.
    pub async fn begin_totp(&self, user_id: Uuid, sealed: Vec<u8>, now: Timestamp) -> Result<bool, StoreError> {
        let now = Millis::from(now);
        let row = Totp {
            user_id,
            sealed,
            created_at: now,
            confirmed_at: None,
            last_step: 0,
            failures: 0,
            failing_since: now,
        };
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !lock(&transaction, user_id).await? {
                return Err(StoreError::NoAccount);
            }
            secret::Entity::delete_many()
                .filter(secret::Column::UserId.eq(user_id))
                .filter(secret::Column::ConfirmedAt.is_null())
                .exec(&transaction)
                .await?;
            let outcome = secret::Entity::insert(row.clone().into_active_model().reset_all())
                .on_conflict_do_nothing_on([secret::Column::UserId])
                .exec_without_returning(&transaction)
                .await?;
            transaction.commit().await?;
            Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
        })
        .await
    }

    /// The authenticator app of a user, confirmed or not.
    pub async fn find_totp(&self, user_id: Uuid) -> Result<Option<Totp>, StoreError> {
        Ok(secret::Entity::find_by_id(user_id).one(&self.read).await?)
    }

    /// Turns on the authenticator app whose secret is still `sealed`, with a code of this step, and gives the user new
    /// recovery codes. False when another request was first, or the login has ended.
    pub async fn confirm_totp(
        &self,
        sealed: &[u8],
        step: i64,
        codes: &[Vec<u8>],
        proof: Proof,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let confirmed = secret::Entity::update_many()
                .col_expr(secret::Column::ConfirmedAt, Millis::from(proof.now).into())
                .col_expr(secret::Column::LastStep, step.into())
                .filter(secret::Column::UserId.eq(user_id))
                .filter(secret::Column::Sealed.eq(sealed))
                .filter(secret::Column::ConfirmedAt.is_null())
                .exec(&transaction)
                .await?;
            if confirmed.rows_affected == 0 {
                return Ok(false);
            }
            forget_codes(&transaction, user_id).await?;
            let rows = codes.iter().map(|digest| recovery_code::Model { user_id, digest: digest.clone() });
            let rows = rows.map(|code| code.into_active_model().reset_all());
            recovery_code::Entity::insert_many(rows).exec_without_returning(&transaction).await?;
            if !proved(&transaction, proof).await? {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Accepts a code of this step, which must be later than that of the last accepted one. False when it is not, or when
    /// there were too many wrong codes.
    pub async fn accept_step(&self, user_id: Uuid, step: i64, throttle: Throttle) -> Result<bool, StoreError> {
        self.retried(|| async {
            // The condition lets one of two requests with the same code through, at any isolation level.
            let accepted = secret::Entity::update_many()
                .col_expr(secret::Column::LastStep, step.into())
                .col_expr(secret::Column::Failures, 0.into())
                .filter(secret::Column::UserId.eq(user_id))
                .filter(secret::Column::ConfirmedAt.is_not_null())
                .filter(secret::Column::LastStep.lt(step))
                .filter(throttle.is_open())
                .exec(&self.write)
                .await?;
            Ok(accepted.rows_affected > 0)
        })
        .await
    }

    /// Counts a wrong code.
    pub async fn refuse_code(&self, user_id: Uuid, throttle: Throttle) -> Result<(), StoreError> {
        let is_old = || secret::Column::FailingSince.lte(throttle.since());
        self.retried(|| async {
            let counted = Expr::case(is_old(), 1).finally(Expr::col(secret::Column::Failures).add(1));
            let since = Expr::case(is_old().or(secret::Column::Failures.eq(0)), Millis::from(throttle.now))
                .finally(Expr::col(secret::Column::FailingSince));
            secret::Entity::update_many()
                .col_expr(secret::Column::Failures, counted.into())
                .col_expr(secret::Column::FailingSince, since.into())
                .filter(secret::Column::UserId.eq(user_id))
                .exec(&self.write)
                .await?;
            Ok(())
        })
        .await
    }

    /// Uses a recovery code up. False when the user has no such code, or when there were too many wrong codes.
    pub async fn use_recovery_code(&self, digest: &[u8], throttle: Throttle, entry: Entry) -> Result<bool, StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let reset = secret::Entity::update_many()
                .col_expr(secret::Column::Failures, 0.into())
                .filter(secret::Column::UserId.eq(user_id))
                .filter(secret::Column::ConfirmedAt.is_not_null())
                .filter(throttle.is_open())
                .exec(&transaction)
                .await?;
            let used =
                recovery_code::Entity::delete_by_id((user_id, digest.to_vec())).exec(&transaction).await?.rows_affected;
            if reset.rows_affected == 0 || used == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Removes the authenticator app and the recovery codes of the user whom `entry` concerns. False when there was none.
    pub async fn remove_totp(&self, entry: Entry) -> Result<bool, StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock(&transaction, user_id).await?;
            if secret::Entity::delete_by_id(user_id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            forget_codes(&transaction, user_id).await?;
            forget_proofs_without_factor(&transaction, user_id).await?;
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}
