//! What several shares have in common.

use entity::server;
use sea_orm::{Condition, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::{Branches, Shares};
use crate::{Store, StoreError};

impl Store {
    /// Whether some server is in all of these shares.
    pub async fn have_a_server_in_common(&self, all: &[Shares]) -> Result<bool, StoreError> {
        if all.iter().any(Shares::is_empty) {
            return Ok(false);
        }
        let each = all.iter().map(|shares| Branches { conditions: shares.branches(None), tagged: None }.any());
        let common = server::Entity::find().filter(each.fold(Condition::all(), Condition::add));
        let found = common.select_only().column(server::Column::Id).limit(1).into_tuple::<Uuid>();
        Ok(found.one(&self.read).await?.is_some())
    }
}
