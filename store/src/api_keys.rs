use entity::{Millis, api_key, server};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, EntityTrait, IntoActiveModel, JoinType, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, RelationTrait,
};
use serde_json::json;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::audit_log::record_in;
use super::failure::no_server;
use super::{ApiKey, Page, PageRequest, Quota, Store, StoreError, Visibility};
use crate::audit::{Actor, Entry, action};

/// An API key to insert. The caller has checked that the server belongs to the user.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// The server's owner.
    pub owner_id: Uuid,
    /// The server that the key is for.
    pub server_id: Uuid,
    /// The key's name, for people.
    pub name: String,
    /// The public part of the key, by which it is found.
    pub prefix: String,
    /// The digest of the secret part.
    pub digest: Vec<u8>,
    /// When the key expires; none for never.
    pub expires_at: Option<Timestamp>,
}

/// What the service needs to know of a key that an agent shows.
#[derive(Debug, Clone)]
pub struct KnownKey {
    /// The key.
    pub id: Uuid,
    /// The server that the key is for.
    pub server_id: Uuid,
    /// The server's owner.
    pub owner_id: Uuid,
    /// How many sessions have held the server so far; used where there are several instances.
    pub session_epoch: i64,
    /// Whether a session holds the server.
    pub is_held: bool,
    /// The stored description of the last agent, as JSON.
    pub agent: Option<String>,
    /// The digest of the secret part.
    pub digest: Vec<u8>,
    /// When the key expires; none for never.
    pub expires_at: Option<Timestamp>,
}

impl Store {
    /// Inserts a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::QuotaExceeded`] when the account has too many, and [`StoreError::NoServer`] when the server was deleted.
    pub async fn create_api_key(&self, new: NewApiKey, actor: Actor) -> Result<ApiKey, StoreError> {
        let key = ApiKey {
            id: Uuid::now_v7(),
            server_id: new.server_id,
            name: new.name,
            prefix: new.prefix,
            digest: new.digest,
            created_at: Millis::from(Timestamp::now()),
            last_used_at: None,
            expires_at: new.expires_at.map(Millis::from),
        };
        let row = key.clone().into_active_model().reset_all();
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            self.expect_room(&transaction, new.owner_id, Quota::ApiKeys).await?;
            api_key::Entity::insert(row.clone()).exec_without_returning(&transaction).await.map_err(no_server)?;
            record_in(&transaction, entry(action::API_KEY_CREATE, new.owner_id, actor.clone(), &key)).await?;
            transaction.commit().await?;
            Ok(key.clone())
        })
        .await
    }

    /// Lists the keys of all these servers, or of one of them, newest first.
    pub async fn list_api_keys(
        &self,
        managed: &Visibility,
        server_id: Option<Uuid>,
        page: PageRequest,
    ) -> Result<Page<ApiKey>, StoreError> {
        let one = Condition::all().add_option(server_id.map(|id| api_key::Column::ServerId.eq(id)));
        let query = api_key::Entity::find()
            .join(JoinType::InnerJoin, api_key::Relation::Server.def())
            .filter(self.branches(managed).await?.condition())
            .filter(one);
        let total = query.clone().count(&self.read).await?;
        let items = query
            .order_by_desc(api_key::Column::CreatedAt)
            .order_by_desc(api_key::Column::Id)
            .limit(page.limit)
            .offset(page.offset)
            .all(&self.read)
            .await?;
        Ok(Page { items, total })
    }

    /// Finds the key with this public part, of any owner.
    pub async fn find_api_key(&self, prefix: &str) -> Result<Option<KnownKey>, StoreError> {
        let query = api_key::Entity::find()
            .join(JoinType::InnerJoin, api_key::Relation::Server.def())
            .filter(api_key::Column::Prefix.eq(prefix))
            .select_only()
            .column(api_key::Column::Id)
            .column(api_key::Column::ServerId)
            .column(server::Column::OwnerId)
            .column(server::Column::SessionEpoch)
            .column(server::Column::SessionId)
            .column(server::Column::Agent)
            .column(api_key::Column::Digest)
            .column(api_key::Column::ExpiresAt);
        type Found = (Uuid, Uuid, Uuid, i64, Option<Uuid>, Option<String>, Vec<u8>, Option<Millis>);
        let found = query.into_tuple::<Found>().one(&self.read).await?;
        Ok(found.map(|(id, server_id, owner_id, session_epoch, session_id, agent, digest, expires_at)| {
            let (is_held, expires_at) = (session_id.is_some(), expires_at.map(Timestamp::from));
            KnownKey { id, server_id, owner_id, session_epoch, is_held, agent, digest, expires_at }
        }))
    }

    /// Finds a key of one of these servers.
    pub async fn find_managed_api_key(&self, managed: &Visibility, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        let found = api_key::Entity::find_by_id(id)
            .join(JoinType::InnerJoin, api_key::Relation::Server.def())
            .filter(self.branches(managed).await?.any())
            .one(&self.read)
            .await?;
        Ok(found)
    }

    /// Removes a key of one of this owner's servers. Returns whether it still existed.
    pub async fn delete_api_key(&self, owner_id: Uuid, key: &ApiKey, actor: Actor) -> Result<bool, StoreError> {
        self.retried(|| async {
            let transaction = self.write.begin().await?;
            if api_key::Entity::delete_by_id(key.id).exec(&transaction).await?.rows_affected == 0 {
                return Ok(false);
            }
            record_in(&transaction, entry(action::API_KEY_REVOKE, owner_id, actor.clone(), key)).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}

/// The audit entry about a key: it contains the public part, never the rest.
fn entry(action: &'static str, owner_id: Uuid, actor: Actor, key: &ApiKey) -> Entry {
    let expires_at = key.expires_at.map(Timestamp::from);
    Entry::new(action, owner_id, actor)
        .on_server(key.server_id)
        .target(key.id)
        .detail(json!({ "name": key.name, "prefix": key.prefix, "expires_at": expires_at }))
}
