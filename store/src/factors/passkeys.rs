//! Passkeys. The caller has verified what an authenticator signed; what is decided here is that a challenge counts once and
//! that an authenticator's count of signatures only grows, whichever instance is asked.

use entity::{Millis, passkey, spent_challenge};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QueryOrder, QuerySelect, SqlErr, TryInsertResult,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Proof, forget_proofs_without_factor, lock, proved};
use crate::audit::{Actor, Entry, action};
use crate::audit_log::record_in;
use crate::{Login, NewLogin, Page, PageRequest, Passkey, Store, StoreError, logins};

/// Passkeys that a user may have: enough for all their devices.
pub const MAX_PASSKEYS: u64 = 25;

/// A challenge that an authenticator has answered.
#[derive(Debug, Clone)]
pub struct SpentChallenge {
    /// Its random part.
    pub nonce: Vec<u8>,
    /// When nobody would accept it any more.
    pub expires_at: Timestamp,
}

/// A passkey to insert.
#[derive(Debug, Clone)]
pub struct NewPasskey {
    /// The id that the authenticator gave it.
    pub credential_id: Vec<u8>,
    /// The public key (COSE).
    pub public_key: Vec<u8>,
    /// The authenticator's count of signatures.
    pub sign_count: i64,
    /// The passkey's name, for people.
    pub name: String,
}

/// A verified signature of a passkey.
#[derive(Debug, Clone)]
pub struct PasskeyUse {
    /// The passkey.
    pub passkey_id: Uuid,
    /// The authenticator's count of signatures; 0 if it does not count.
    pub sign_count: i64,
    /// What was signed.
    pub challenge: SpentChallenge,
}

/// What follows from the signature.
#[derive(Debug, Clone)]
pub enum Signed {
    /// The user signs in.
    In(Box<NewLogin>),
    /// The user proves again who they are, with the entry about it.
    Proof(Proof, Box<Entry>),
}

/// The outcome of registering or using a passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered<T> {
    /// It was done.
    Done(T),
    /// The challenge was answered before.
    Spent,
    /// The authenticator's count did not grow: there is a copy of it. Or the passkey is gone.
    CountedBack,
    /// The account is disabled or deleted, or the login has ended.
    Gone,
    /// A passkey with the same id exists.
    Known,
    /// The user has [`MAX_PASSKEYS`].
    TooMany,
}

impl Store {
    /// Adds a passkey for the user whom `proof`'s login belongs to, `actor`.
    pub async fn add_passkey(
        &self,
        user_id: Uuid,
        new: NewPasskey,
        challenge: SpentChallenge,
        proof: Proof,
        actor: Actor,
    ) -> Result<Answered<Passkey>, StoreError> {
        let passkey = Passkey {
            id: Uuid::now_v7(),
            user_id,
            credential_id: new.credential_id,
            public_key: new.public_key,
            sign_count: new.sign_count,
            name: new.name,
            created_at: Millis::from(proof.now),
            last_used_at: None,
        };
        let row = passkey.clone().into_active_model().reset_all();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !lock(&transaction, user_id).await? {
                return Ok(Answered::Gone);
            }
            let theirs = passkey::Entity::find().filter(passkey::Column::UserId.eq(user_id));
            if theirs.count(&transaction).await? >= MAX_PASSKEYS {
                return Ok(Answered::TooMany);
            }
            if !spend(&transaction, &challenge, proof.now).await? {
                return Ok(Answered::Spent);
            }
            let inserted = passkey::Entity::insert(row.clone()).exec_without_returning(&transaction).await;
            if let Err(error) = inserted {
                return match error.sql_err() {
                    Some(SqlErr::UniqueConstraintViolation(_)) => Ok(Answered::Known),
                    _ => Err(error.into()),
                };
            }
            if !proved(&transaction, proof).await? {
                return Ok(Answered::Gone);
            }
            record_in(&transaction, entry(action::PASSKEY_CREATE, actor.clone(), &passkey)).await?;
            transaction.commit().await?;
            Ok(Answered::Done(passkey.clone()))
        })
        .await
    }

    /// Lists the passkeys of a user, newest first.
    pub async fn list_passkeys(&self, user_id: Uuid, page: PageRequest) -> Result<Page<Passkey>, StoreError> {
        let theirs = passkey::Entity::find().filter(passkey::Column::UserId.eq(user_id));
        let total = theirs.clone().count(&self.read).await?;
        let items = theirs
            .order_by_desc(passkey::Column::CreatedAt)
            .order_by_desc(passkey::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items, total })
    }

    /// Finds the passkey with this id of the authenticator, of any user.
    pub async fn find_passkey(&self, credential_id: &[u8]) -> Result<Option<Passkey>, StoreError> {
        let found = passkey::Entity::find().filter(passkey::Column::CredentialId.eq(credential_id));
        Ok(found.one(&self.read).await?)
    }

    /// Accepts a verified signature, with what follows from it.
    pub async fn use_passkey(
        &self,
        used: PasskeyUse,
        signed: Signed,
        now: Timestamp,
    ) -> Result<Answered<Option<Login>>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !spend(&transaction, &used.challenge, now).await? {
                return Ok(Answered::Spent);
            }
            // An authenticator that counts says a larger number each time; a smaller one comes from a copy.
            let has_grown = match used.sign_count {
                0 => Condition::all().add(passkey::Column::SignCount.eq(0)),
                count => Condition::all().add(passkey::Column::SignCount.lt(count)),
            };
            let counted = passkey::Entity::update_many()
                .col_expr(passkey::Column::SignCount, used.sign_count.into())
                .col_expr(passkey::Column::LastUsedAt, Millis::from(now).into())
                .filter(passkey::Column::Id.eq(used.passkey_id))
                .filter(has_grown)
                .exec(&transaction)
                .await?;
            if counted.rows_affected == 0 {
                return Ok(Answered::CountedBack);
            }
            let login = match &signed {
                Signed::In(new) => {
                    if !logins::admit(&transaction, new).await? {
                        return Ok(Answered::Gone);
                    }
                    Some(logins::insert(&transaction, new).await?)
                }
                Signed::Proof(proof, entry) => {
                    if !proved(&transaction, *proof).await? {
                        return Ok(Answered::Gone);
                    }
                    let detail = json!({ "means": proof.means.word() });
                    record_in(&transaction, Entry::clone(entry).detail(detail)).await?;
                    None
                }
            };
            transaction.commit().await?;
            Ok(Answered::Done(login))
        })
        .await
    }

    /// Removes a passkey of this user. False when they have no such passkey.
    pub async fn remove_passkey(&self, user_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            lock(&transaction, user_id).await?;
            let theirs = passkey::Entity::find_by_id(id).filter(passkey::Column::UserId.eq(user_id));
            let Some(passkey) = theirs.one(&transaction).await? else { return Ok(false) };
            passkey::Entity::delete_by_id(id).exec(&transaction).await?;
            forget_proofs_without_factor(&transaction, user_id).await?;
            record_in(&transaction, entry(action::PASSKEY_DELETE, actor.clone(), &passkey)).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// Notes that a challenge was answered, and forgets those that have expired. False when it was answered before.
async fn spend(
    connection: &impl ConnectionTrait,
    challenge: &SpentChallenge,
    now: Timestamp,
) -> Result<bool, StoreError> {
    spent_challenge::Entity::delete_many()
        .filter(spent_challenge::Column::ExpiresAt.lt(Millis::from(now)))
        .exec(connection)
        .await?;
    let row = spent_challenge::Model { nonce: challenge.nonce.clone(), expires_at: challenge.expires_at.into() };
    let outcome = spent_challenge::Entity::insert(row.into_active_model().reset_all())
        .on_conflict_do_nothing_on([spent_challenge::Column::Nonce])
        .exec_without_returning(connection)
        .await?;
    Ok(matches!(outcome, TryInsertResult::Inserted(rows) if rows > 0))
}

/// The audit entry about a passkey.
fn entry(action: &'static str, actor: Actor, passkey: &Passkey) -> Entry {
    Entry::new(action, passkey.user_id, actor).target(passkey.id).detail(json!({ "name": passkey.name }))
}
