use entity::{Millis, api_key, server};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, EntityTrait, IntoActiveModel, JoinType, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect, RelationTrait,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{ApiKey, Page, PageRequest, Store, StoreError};

/// A key to be. The caller has made sure that the server belongs to whoever asks.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    pub server_id: Uuid,
    pub name: String,
    pub prefix: String,
    pub digest: Vec<u8>,
    pub expires_at: Option<Timestamp>,
}

impl Store {
    pub async fn create_api_key(&self, new: NewApiKey) -> Result<ApiKey, StoreError> {
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
        api_key::Entity::insert(row).exec_without_returning(&self.write).await?;
        Ok(key)
    }

    /// The keys of all of an owner's servers, newest first.
    pub async fn list_api_keys(&self, owner_id: Uuid, page: PageRequest) -> Result<Page<ApiKey>, StoreError> {
        let query = api_key::Entity::find()
            .join(JoinType::InnerJoin, api_key::Relation::Server.def())
            .filter(server::Column::OwnerId.eq(owner_id));
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

    /// The key with this public part, for whoever shows the whole of it.
    pub async fn find_api_key(&self, prefix: &str) -> Result<Option<ApiKey>, StoreError> {
        Ok(api_key::Entity::find().filter(api_key::Column::Prefix.eq(prefix)).one(&self.read).await?)
    }

    /// A key of one of this owner's servers.
    pub async fn find_own_api_key(&self, owner_id: Uuid, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        let found = api_key::Entity::find_by_id(id)
            .join(JoinType::InnerJoin, api_key::Relation::Server.def())
            .filter(server::Column::OwnerId.eq(owner_id))
            .one(&self.read)
            .await?;
        Ok(found)
    }

    pub async fn delete_api_key(&self, id: Uuid) -> Result<bool, StoreError> {
        Ok(api_key::Entity::delete_by_id(id).exec(&self.write).await?.rows_affected > 0)
    }
}
