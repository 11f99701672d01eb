use std::sync::Arc;

use entity::{Millis, login, user};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::advisory_lock::{LockKey, try_lock};
use super::audit_log::record_in;
use super::{Login, Means, Page, PageRequest, Store, StoreError, TokenLimits, TokenScope};
use crate::audit::{Actor, ByToken, Entry, action};

/// A sign-in to insert.
#[derive(Debug, Clone)]
pub struct NewLogin {
    /// The login's id.
    pub id: Uuid,
    /// The user who signed in.
    pub user_id: Uuid,
    /// The user's name.
    pub username: String,
    /// The first refresh token.
    pub refresh_token: Uuid,
    /// When that token expires.
    pub expires_at: Timestamp,
    /// The browser or program, as it names itself.
    pub user_agent: String,
    /// The address that the user signed in from.
    pub address: String,
    /// By which means they signed in.
    pub means: Means,
    /// When they proved who they are: now, or when the identity provider last asked them.
    pub proved_at: Timestamp,
    /// The present time.
    pub now: Timestamp,
}

/// The user of an access token, while its login lives, or of a token of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user_id: Uuid,
    /// The login, or the token of a program.
    pub login_id: Uuid,
    /// The user's name.
    pub username: Arc<str>,
    /// Whether the user is an administrator.
    pub is_admin: bool,
    /// When they last proved who they are: at the sign-in, or since.
    pub proved_at: Timestamp,
    /// Whether they have proved a second factor in this login.
    pub second_factor: bool,
    /// What the token allows, if a program calls with its own.
    pub token: Option<Arc<TokenLimits>>,
}

impl Caller {
    /// Whether it is a program whose token is for some of its user's servers.
    pub fn is_for_some_servers(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.scope != TokenScope::All)
    }

    /// The caller and the address of the connection, for the audit log.
    pub fn at(&self, address: String) -> Actor {
        let token = self.token.as_ref().map(|token| ByToken { id: token.id, name: token.name.clone() });
        let login_id = token.is_none().then_some(self.login_id);
        Actor { user_id: Some(self.user_id), username: self.username.clone(), login_id, token, address }
    }
}

/// A refresh token that was shown, and its successor.
#[derive(Debug, Clone)]
pub struct TokenRotation {
    /// The login.
    pub login_id: Uuid,
    /// The token that was shown.
    pub shown: Uuid,
    /// Its successor.
    pub fresh: Uuid,
    /// The present time.
    pub now: Timestamp,
    /// When `fresh` expires.
    pub expires_at: Timestamp,
    /// For how long the same token may be shown again.
    pub grace_ms: i64,
    /// The address that showed it.
    pub address: String,
}

/// The result of showing a refresh token.
#[derive(Debug, Clone)]
pub enum Rotation {
    /// It was the current one; the login has its successor now.
    Rotated(Login),
    /// It was rotated a moment ago: the client lost the answer, so it gets the same successor again.
    Repeated(Login),
    /// It was spent long ago: somebody has a copy, so the login ended.
    Reused,
    /// The login has ended or expired.
    Gone,
}

impl Store {
    /// Creates a login for a caller who showed the password of `verified_hash`; none when that is no longer the user's
    /// password, or the account is disabled. Verifying takes a while, in which either may have changed.
    pub async fn create_login(&self, new: &NewLogin, verified_hash: &str) -> Result<Option<Login>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Makes a change of the account wait for the end of this transaction.
            let locked = user::Entity::update_many()
                .col_expr(user::Column::LastLoginAt, Millis::from(new.now).into())
                .filter(user::Column::Id.eq(new.user_id))
                .filter(user::Column::DisabledAt.is_null())
                .filter(user::Column::PasswordHash.eq(verified_hash))
                .exec(&transaction)
                .await?;
            if locked.rows_affected == 0 {
                return Ok(None);
            }
            let login = insert(&transaction, new).await?;
            transaction.commit().await?;
            Ok(Some(login))
        })
        .await
    }

    /// Exchanges a refresh token for its successor, in one transaction.
    pub async fn rotate_login(&self, rotation: TokenRotation) -> Result<Rotation, StoreError> {
        let TokenRotation { login_id, shown, fresh, now, expires_at, grace_ms, address } = rotation;
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // The condition on the current token serialises two rotations of one token, at any isolation level.
            let rotated = login::Entity::update_many()
                .col_expr(login::Column::PreviousToken, Expr::col(login::Column::CurrentToken))
                .col_expr(login::Column::CurrentToken, fresh.into())
                .col_expr(login::Column::RotatedAt, Millis::from(now).into())
                .col_expr(login::Column::LastUsedAt, Millis::from(now).into())
                .col_expr(login::Column::ExpiresAt, Millis::from(expires_at).into())
                .filter(login::Column::Id.eq(login_id))
                .filter(login::Column::CurrentToken.eq(shown))
                .filter(login::Column::ExpiresAt.gt(Millis::from(now)))
                .exec(&transaction)
                .await?;
            let Some(login) = login::Entity::find_by_id(login_id).one(&transaction).await? else {
                return Ok(Rotation::Gone);
            };
            let outcome = if rotated.rows_affected == 1 {
                Rotation::Rotated(login)
            } else if login.current_token == shown {
                Rotation::Gone
            } else if login.previous_token == Some(shown) && now.millis_since(login.rotated_at.into()) <= grace_ms {
                Rotation::Repeated(login)
            } else {
                let ended = login::Entity::delete_by_id(login_id).exec(&transaction).await?;
                if ended.rows_affected > 0 {
                    let entry = Entry::new(action::SESSION_END, login.user_id, Actor::service(address.clone()))
                        .target(login_id);
                    record_in(&transaction, entry.detail(json!({ "reason": "token_reused" }))).await?;
                }
                Rotation::Reused
            };
            transaction.commit().await?;
            Ok(outcome)
        })
        .await
    }

    /// The caller of a login that has not ended, or of a token that was not revoked.
    pub async fn find_caller(&self, login_id: Uuid) -> Result<Option<Caller>, StoreError> {
        let found: Option<(Uuid, String, bool, Millis, bool)> = login::Entity::find_by_id(login_id)
            .inner_join(user::Entity)
            .select_only()
            .column(user::Column::Id)
            .column(user::Column::Username)
            .column(user::Column::IsAdmin)
            .column(login::Column::ProvedAt)
            .column(login::Column::SecondFactor)
            .into_tuple()
            .one(&self.read)
            .await?;
        let Some((user_id, username, is_admin, proved_at, second_factor)) = found else {
            return self.find_token_caller(login_id).await;
        };
        Ok(Some(Caller {
            user_id,
            login_id,
            username: username.into(),
            is_admin,
            proved_at: proved_at.into(),
            second_factor,
            token: None,
        }))
    }

    /// Lists the logins of a user that have not expired, newest first.
    pub async fn list_logins(&self, user_id: Uuid, page: PageRequest) -> Result<Page<Login>, StoreError> {
        let query = login::Entity::find()
            .filter(login::Column::UserId.eq(user_id))
            .filter(login::Column::ExpiresAt.gt(Millis::from(Timestamp::now())));
        let total = query.clone().count(&self.read).await?;
        let items = query
            .order_by_desc(login::Column::CreatedAt)
            .order_by_desc(login::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items, total })
    }

    /// Ends logins, each of the user whom its entry concerns, all or none. Returns those that existed.
    pub async fn end_logins(&self, ending: &[(Uuid, Entry)]) -> Result<Vec<Uuid>, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let mut ended = Vec::new();
            for (login_id, entry) in ending {
                let result = login::Entity::delete_many()
                    .filter(login::Column::Id.eq(*login_id))
                    .filter(login::Column::UserId.eq(entry.owner_id))
                    .exec(&transaction)
                    .await?;
                if result.rows_affected > 0 {
                    record_in(&transaction, entry.clone().target(*login_id)).await?;
                    ended.push(*login_id);
                }
            }
            transaction.commit().await?;
            Ok(ended)
        })
        .await
    }

    /// Removes logins whose last refresh token has expired.
    pub async fn forget_expired_logins(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if !try_lock(&transaction, LockKey::Logins).await? {
                return Ok(0);
            }
            let result = login::Entity::delete_many()
                .filter(login::Column::ExpiresAt.lte(Millis::from(now)))
                .exec(&transaction)
                .await?;
            transaction.commit().await?;
            Ok(result.rows_affected)
        })
        .await
    }
}

/// Notes the sign-in of a user who did not use the password, and makes a change of the account wait for the end of this
/// transaction. False when the account is disabled or deleted.
pub(super) async fn admit(connection: &impl ConnectionTrait, new: &NewLogin) -> Result<bool, StoreError> {
    let admitted = user::Entity::update_many()
        .col_expr(user::Column::LastLoginAt, Millis::from(new.now).into())
        .filter(user::Column::Id.eq(new.user_id))
        .filter(user::Column::DisabledAt.is_null())
        .exec(connection)
        .await?;
    Ok(admitted.rows_affected > 0)
}

/// Inserts a login and its audit entry.
pub(super) async fn insert(connection: &impl ConnectionTrait, new: &NewLogin) -> Result<Login, StoreError> {
    insert_with(connection, new, json!({ "user_agent": new.user_agent, "means": new.means.word() })).await
}

/// Inserts a login, and its audit entry with this detail.
pub(super) async fn insert_with(
    connection: &impl ConnectionTrait,
    new: &NewLogin,
    detail: Value,
) -> Result<Login, StoreError> {
    let now = Millis::from(new.now);
    let login = Login {
        id: new.id,
        user_id: new.user_id,
        current_token: new.refresh_token,
        previous_token: None,
        rotated_at: now,
        created_at: now,
        last_used_at: now,
        expires_at: new.expires_at.into(),
        user_agent: new.user_agent.clone(),
        address: new.address.clone(),
        means: new.means.word().to_owned(),
        proved_at: new.proved_at.into(),
        second_factor: new.means.has_second_factor(),
    };
    let row = login.clone().into_active_model().reset_all();
    login::Entity::insert(row).exec_without_returning(connection).await?;
    let actor = Actor {
        user_id: Some(new.user_id),
        username: new.username.as_str().into(),
        login_id: Some(new.id),
        token: None,
        address: new.address.clone(),
    };
    record_in(connection, Entry::new(action::LOGIN, new.user_id, actor).detail(detail)).await?;
    Ok(login)
}
