//! Second factors of users: authenticator apps and their recovery codes ([`totp`]), and passkeys ([`passkeys`]).

pub(crate) mod passkeys;
pub(crate) mod totp;

use entity::{Millis, login, passkey, recovery_code, totp as secret};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait, QueryFilter, QuerySelect};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::{Store, StoreError};
use crate::audit::Entry;

/// By which means a user signed in, or proved again who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The password alone.
    Password,
    /// The password and a code of the authenticator app.
    PasswordOtp,
    /// The password and a recovery code.
    PasswordRecoveryCode,
    /// A code of the authenticator app; only to prove again.
    Otp,
    /// A passkey, which checked who uses it.
    Passkey,
    /// The identity provider, whose own factors are not known here.
    Provider,
}

impl Means {
    /// The word in the database, the audit log and the API.
    pub fn word(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::PasswordOtp => "password_otp",
            Self::PasswordRecoveryCode => "password_recovery_code",
            Self::Otp => "otp",
            Self::Passkey => "passkey",
            Self::Provider => "provider",
        }
    }

    /// Whether it proves a second factor.
    pub fn has_second_factor(self) -> bool {
        match self {
            Self::Password | Self::Provider => false,
            Self::PasswordOtp | Self::PasswordRecoveryCode | Self::Otp | Self::Passkey => true,
        }
    }
}

/// Which second factors a user has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondFactors {
    /// Whether an authenticator app is set up.
    pub totp: bool,
    /// The number of passkeys.
    pub passkeys: u64,
    /// The number of recovery codes that were not used.
    pub recovery_codes_left: u64,
}

impl SecondFactors {
    /// Whether the user has none.
    pub fn is_empty(&self) -> bool {
        !self.totp && self.passkeys == 0
    }
}

/// A user's proof of who they are, in a login that they have.
#[derive(Debug, Clone, Copy)]
pub struct Proof {
    /// The login.
    pub login_id: Uuid,
    /// The means of the proof.
    pub means: Means,
    /// The present time.
    pub now: Timestamp,
}

impl Store {
    /// Which second factors a user has.
    pub async fn second_factors(&self, user_id: Uuid) -> Result<SecondFactors, StoreError> {
        factors_of(&self.read, user_id).await
    }

    /// Notes that a user has proved who they are. False when the login has ended.
    pub async fn prove(&self, proof: Proof, entry: Entry) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !proved(&transaction, proof).await? {
                return Ok(false);
            }
            record_in(&transaction, entry.clone().detail(json!({ "means": proof.means.word() }))).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Removes all second factors of the user whom `entry` concerns, and ends their logins: anyone who has a lost device may
    /// have one of them.
    pub async fn reset_second_factors(&self, entry: Entry) -> Result<SecondFactors, StoreError> {
        let user_id = entry.owner_id;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let before = factors_of(&transaction, user_id).await?;
            secret::Entity::delete_by_id(user_id).exec(&transaction).await?;
            forget_codes(&transaction, user_id).await?;
            passkey::Entity::delete_many().filter(passkey::Column::UserId.eq(user_id)).exec(&transaction).await?;
            let ended =
                login::Entity::delete_many().filter(login::Column::UserId.eq(user_id)).exec(&transaction).await?;
            let detail = json!({
                "totp": before.totp, "passkeys": before.passkeys, "ended_sessions": ended.rows_affected,
            });
            record_in(&transaction, entry.clone().detail(detail)).await?;
            transaction.commit().await?;
            Ok(before)
        })
        .await
    }
}

async fn factors_of(connection: &impl ConnectionTrait, user_id: Uuid) -> Result<SecondFactors, StoreError> {
    let confirmed = secret::Entity::find_by_id(user_id).filter(secret::Column::ConfirmedAt.is_not_null());
    let passkeys = passkey::Entity::find().filter(passkey::Column::UserId.eq(user_id));
    let codes = recovery_code::Entity::find().filter(recovery_code::Column::UserId.eq(user_id));
    Ok(SecondFactors {
        totp: confirmed.count(connection).await? > 0,
        passkeys: passkeys.count(connection).await?,
        recovery_codes_left: codes.count(connection).await?,
    })
}

/// Notes in a login that its user has proved who they are. False when it has ended, as all do when an account is disabled.
async fn proved(connection: &impl ConnectionTrait, proof: Proof) -> Result<bool, StoreError> {
    let mut update = login::Entity::update_many().col_expr(login::Column::ProvedAt, Millis::from(proof.now).into());
    if proof.means.has_second_factor() {
        update = update.col_expr(login::Column::SecondFactor, true.into());
    }
    let updated = update.filter(login::Column::Id.eq(proof.login_id)).exec(connection).await?;
    Ok(updated.rows_affected > 0)
}

async fn forget_codes(connection: &impl ConnectionTrait, user_id: Uuid) -> Result<(), StoreError> {
    recovery_code::Entity::delete_many().filter(recovery_code::Column::UserId.eq(user_id)).exec(connection).await?;
    Ok(())
}

/// Takes the proof of a second factor from all logins of a user who has none left: where one is required, they have to make
/// one again.
async fn forget_proofs_without_factor(connection: &impl ConnectionTrait, user_id: Uuid) -> Result<(), StoreError> {
    if factors_of(connection, user_id).await?.is_empty() {
        login::Entity::update_many()
            .col_expr(login::Column::SecondFactor, false.into())
            .filter(login::Column::UserId.eq(user_id))
            .exec(connection)
            .await?;
    }
    Ok(())
}

/// Makes other changes of the user's factors wait for the end of this transaction. False when there is no such user.
async fn lock(connection: &impl ConnectionTrait, user_id: Uuid) -> Result<bool, StoreError> {
    use entity::user;

    let locked = user::Entity::find_by_id(user_id).select_only().column(user::Column::Id).lock_exclusive();
    Ok(locked.into_tuple::<Uuid>().one(connection).await?.is_some())
}
