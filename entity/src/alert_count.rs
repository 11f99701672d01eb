//! The number of alerts of a kind. The database itself counts them, with every change of an alert.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "alert_counts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub owner_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub threshold_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub metric_type: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub severity: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub status: String,
    /// Never zero.
    pub count: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
