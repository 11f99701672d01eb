//! Tokens of programs: each acts for a user, on some servers and up to a role.

use std::sync::Arc;

use entity::{Millis, program_token, user};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::roles::{Rights, Role};
use super::{Caller, Page, PageRequest, Quota, Store, StoreError};
use crate::audit::{Actor, Entry, action};

/// The servers for which a token is: those of them that its user can see.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenScope {
    /// All, future ones too.
    #[serde(with = "all")]
    All,
    /// Those with a tag, future ones too.
    Tag(String),
    /// These.
    ServerIds(Vec<Uuid>),
}

/// `{"all": true}`.
mod all {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        bool::deserialize(deserializer).map(|_| ())
    }
}

/// What a token may do at most. Its user's own rights bound it further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLimits {
    /// The token.
    pub id: Uuid,
    /// Its name, for people.
    pub name: Arc<str>,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
    /// On which servers.
    pub scope: TokenScope,
    /// The networks that it may be used from; none for any.
    pub networks: Vec<String>,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// A token, as its user sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramToken {
    /// What it may do.
    pub limits: TokenLimits,
    /// The public part, by which it is found.
    pub prefix: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// From which address.
    pub last_used_address: Option<String>,
}

/// A token to insert. The caller has checked that its user sees the servers.
#[derive(Debug, Clone)]
pub struct NewProgramToken {
    /// The user whose rights it has, at most.
    pub user_id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// The public part, by which it is found.
    pub prefix: String,
    /// The digest of the whole token.
    pub digest: Vec<u8>,
    /// Up to which role.
    pub role: Role,
    /// The rights of an operator.
    pub rights: Rights,
    /// On which servers.
    pub scope: TokenScope,
    /// The networks that it may be used from; none for any.
    pub networks: Vec<String>,
    /// Whether the user who makes it has proved a second factor.
    pub second_factor: bool,
    /// The present time.
    pub now: Timestamp,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// A token whose public part somebody shows.
#[derive(Debug, Clone)]
pub struct KnownToken {
    /// The token.
    pub id: Uuid,
    /// The digest of the whole token.
    pub digest: Vec<u8>,
}

impl ProgramToken {
    /// None for a row that only a later version understands: it allows nothing.
    fn of_row(row: program_token::Model) -> Option<Self> {
        Some(Self {
            limits: TokenLimits {
                id: row.id,
                name: row.name.into(),
                role: Role::of_word(&row.role).filter(|role| Role::GRANTED.contains(role))?,
                rights: Rights::of_joined(&row.rights),
                scope: serde_json::from_str(&row.scope).ok()?,
                networks: serde_json::from_str(&row.networks).ok()?,
                expires_at: row.expires_at.into(),
            },
            prefix: row.prefix,
            created_at: row.created_at.into(),
            last_used_at: row.last_used_at.map(Timestamp::from),
            last_used_address: row.last_used_address,
        })
    }
}

impl Store {
    /// Inserts a token.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, and [`StoreError::NoAccount`] when it was disabled or
    /// deleted.
    pub async fn create_program_token(&self, new: NewProgramToken, actor: Actor) -> Result<ProgramToken, StoreError> {
        let user_id = new.user_id;
        let row = row_of(new);
        let token = ProgramToken::of_row(row.clone()).ok_or(StoreError::NoAccount)?;
        let entry = entry(action::TOKEN_CREATE, user_id, actor, &row);
        let entry = entry.detail(json!({
            "name": row.name, "prefix": row.prefix, "role": row.role, "rights": token.limits.rights.words(),
            "scope": token.limits.scope, "networks": token.limits.networks, "expires_at": token.limits.expires_at,
        }));
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            // Waits for somebody who disables the account: that ends its tokens.
            let enabled = user::Entity::find_by_id(user_id).filter(user::Column::DisabledAt.is_null());
            if enabled.lock_exclusive().one(&transaction).await?.is_none() {
                return Err(StoreError::NoAccount);
            }
            self.expect_room(&transaction, user_id, Quota::Tokens).await?;
            let new = row.clone().into_active_model().reset_all();
            program_token::Entity::insert(new).exec_without_returning(&transaction).await?;
            record_in(&transaction, entry.clone()).await?;
            transaction.commit().await?;
            Ok(token.clone())
        })
        .await
    }

    /// Lists the tokens of a user, newest first.
    pub async fn list_program_tokens(
        &self,
        user_id: Uuid,
        page: PageRequest,
    ) -> Result<Page<ProgramToken>, StoreError> {
        let query = program_token::Entity::find().filter(program_token::Column::UserId.eq(user_id));
        let total = query.clone().count(&self.read).await?;
        let rows = query
            .order_by_desc(program_token::Column::CreatedAt)
            .order_by_desc(program_token::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items: rows.into_iter().filter_map(ProgramToken::of_row).collect(), total })
    }

    /// Finds the token with this public part, of any user.
    pub async fn find_program_token(&self, prefix: &str) -> Result<Option<KnownToken>, StoreError> {
        let found: Option<(Uuid, Vec<u8>)> = program_token::Entity::find()
            .filter(program_token::Column::Prefix.eq(prefix))
            .select_only()
            .columns([program_token::Column::Id, program_token::Column::Digest])
            .into_tuple()
            .one(&self.read)
            .await?;
        Ok(found.map(|(id, digest)| KnownToken { id, digest }))
    }

    /// The caller of a token whose user's account is enabled, expired or not. It never has the powers of an administrator.
    pub async fn find_token_caller(&self, id: Uuid) -> Result<Option<Caller>, StoreError> {
        let found = program_token::Entity::find_by_id(id).find_also_related(user::Entity).one(&self.read).await?;
        let Some((row, Some(user))) = found else { return Ok(None) };
        if user.disabled_at.is_some() {
            return Ok(None);
        }
        let second_factor = row.second_factor;
        Ok(ProgramToken::of_row(row).map(|token| Caller {
            user_id: user.id,
            login_id: id,
            username: user.username.into(),
            is_admin: false,
            proved_at: token.created_at,
            second_factor,
            token: Some(Arc::new(token.limits)),
        }))
    }

    /// Removes a token of this user. Returns whether it still existed.
    pub async fn revoke_program_token(&self, user_id: Uuid, id: Uuid, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            let token = program_token::Entity::find_by_id(id).filter(program_token::Column::UserId.eq(user_id));
            let Some(row) = token.lock_exclusive().one(&transaction).await? else { return Ok(false) };
            program_token::Entity::delete_by_id(id).exec(&transaction).await?;
            let entry = entry(action::TOKEN_REVOKE, user_id, actor.clone(), &row);
            record_in(&transaction, entry.detail(json!({ "name": row.name, "prefix": row.prefix }))).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Notes when and from where a token was used.
    pub async fn note_token_use(&self, id: Uuid, at: Timestamp, address: &str) -> Result<(), StoreError> {
        self.retried(|| async {
            program_token::Entity::update_many()
                .col_expr(program_token::Column::LastUsedAt, Millis::from(at).into())
                .col_expr(program_token::Column::LastUsedAddress, Expr::value(address))
                .filter(program_token::Column::Id.eq(id))
                .exec(&self.write)
                .await?;
            Ok(())
        })
        .await
    }
}

/// Removes all tokens of a user.
pub(super) async fn end_tokens(connection: &impl ConnectionTrait, user_id: Uuid) -> Result<(), StoreError> {
    let tokens = program_token::Entity::delete_many().filter(program_token::Column::UserId.eq(user_id));
    tokens.exec(connection).await?;
    Ok(())
}

fn row_of(new: NewProgramToken) -> program_token::Model {
    program_token::Model {
        id: Uuid::now_v7(),
        user_id: new.user_id,
        name: new.name,
        prefix: new.prefix,
        digest: new.digest,
        role: new.role.word().to_owned(),
        rights: new.rights.joined(),
        scope: json!(new.scope).to_string(),
        networks: json!(new.networks).to_string(),
        second_factor: new.second_factor,
        created_at: new.now.into(),
        expires_at: new.expires_at.into(),
        last_used_at: None,
        last_used_address: None,
    }
}

/// The audit entry about a token: it contains the public part, never the rest.
fn entry(action: &'static str, user_id: Uuid, actor: Actor, row: &program_token::Model) -> Entry {
    Entry::new(action, user_id, actor).target(row.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_stored_as_requests_write_it() {
        let id = Uuid::from_u128(7);
        let scopes = [
            (TokenScope::All, r#"{"all":true}"#.to_owned()),
            (TokenScope::Tag("db".to_owned()), r#"{"tag":"db"}"#.to_owned()),
            (TokenScope::ServerIds(vec![id]), format!(r#"{{"server_ids":["{id}"]}}"#)),
        ];

        for (scope, text) in scopes {
            assert_eq!(json!(scope).to_string(), text);
            assert_eq!(serde_json::from_str::<TokenScope>(&text).unwrap(), scope);
        }
    }

    #[test]
    fn a_row_of_a_later_version_is_no_token() {
        let row = row_of(NewProgramToken {
            user_id: Uuid::nil(),
            name: "scraper".to_owned(),
            prefix: "sbt_0".to_owned(),
            digest: Vec::new(),
            role: Role::Viewer,
            rights: Rights::NONE,
            scope: TokenScope::All,
            networks: Vec::new(),
            second_factor: false,
            now: Timestamp::default(),
            expires_at: Timestamp::default(),
        });

        assert!(ProgramToken::of_row(row.clone()).is_some());
        for (role, scope, networks) in [
            ("owner", r#"{"all":true}"#, "[]"),
            ("auditor", r#"{"all":true}"#, "[]"),
            ("viewer", r#"{"team":"db"}"#, "[]"),
            ("viewer", r#"{"all":true}"#, "{}"),
        ] {
            let (role, scope, networks) = (role.to_owned(), scope.to_owned(), networks.to_owned());
            let row = program_token::Model { role, scope, networks, ..row.clone() };
            assert_eq!(ProgramToken::of_row(row), None);
        }
    }
}
