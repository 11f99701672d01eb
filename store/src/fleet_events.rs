//! The events of all servers that somebody sees, for a page about a time and not about a server.

use entity::server_event;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect};

use super::server_events::in_range;
use super::{Page, PageRequest, ServerEvent, ServerEventFilter, Store, StoreError, Visibility};

impl Store {
    /// Lists the events of all visible servers, newest first.
    pub async fn list_fleet_events(
        &self,
        visible: &Visibility,
        filter: ServerEventFilter,
        page: PageRequest,
    ) -> Result<Page<ServerEvent>, StoreError> {
        use server_event::Column;
        let condition = in_range(filter).add(Column::ServerId.in_subquery(self.branches(visible).await?.ids()));
        let query = server_event::Entity::find().filter(condition);
        let total = query.clone().count(&self.read).await?;
        let newest_first = query.order_by_desc(Column::At).order_by_desc(Column::Id);
        let items = newest_first.limit(page.limit).offset(page.offset).all(&self.read).await?;
        Ok(Page { items, total })
    }
}
