//! The number of alerts of a kind whose ids are of one time range. The database itself counts them, with every alert that is
//! inserted or deleted.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "alert_buckets")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub owner_id: Uuid,
    /// Which alerts: all of the `owner`, those of a `server`, or those of a `threshold`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope_id: Uuid,
    /// The beginning of the ids, in hexadecimal: 20 of their 48 bits of milliseconds, some three days.
    #[sea_orm(primary_key, auto_increment = false)]
    pub bucket: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub metric_type: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub severity: String,
    /// Never zero.
    pub count: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
