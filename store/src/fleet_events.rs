//! The events of all servers of an owner, for a page about a time and not about a server.

use entity::{server, server_event};
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};
use uuid::Uuid;

use super::server_events::in_range;
use super::{Page, PageRequest, ServerEvent, ServerEventFilter, Store, StoreError};

impl Store {
    /// Lists the events of all servers of an owner, newest first.
    pub async fn list_fleet_events(
        &self,
        owner_id: Uuid,
        filter: ServerEventFilter,
        page: PageRequest,
    ) -> Result<Page<ServerEvent>, StoreError> {
        use server_event::Column;
        let own = server::Entity::find()
            .select_only()
            .column(server::Column::Id)
            .filter(server::Column::OwnerId.eq(owner_id));
        let condition = in_range(filter).add(Column::ServerId.in_subquery(own.into_query()));
        let query = server_event::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let newest_first = query.order_by_desc(Column::At).order_by_desc(Column::Id);
        let items = newest_first.limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }
}
