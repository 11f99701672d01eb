//! The timeline of an alert.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "alert_events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub alert_id: Uuid,
    pub at: Millis,
    /// `triggered`, `silenced`, `acknowledged`, `note`, `resolved`, `rearmed`.
    pub kind: String,
    /// The user who did it; null for the service.
    pub user_id: Option<Uuid>,
    pub username: Option<String>,
    #[sea_orm(column_type = "Text", nullable)]
    pub detail: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
