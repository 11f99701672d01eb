//! The sealed history: a part of a compressed columnar block.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_blocks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    /// The resolution: 0 samples, 1 minutes, 2 quarters of an hour, 3 hours; 4 top processes.
    #[sea_orm(primary_key, auto_increment = false)]
    pub tier: i16,
    /// The length: 0 an hour, 1 a day, 2 a month of 32 days.
    #[sea_orm(primary_key, auto_increment = false)]
    pub span: i16,
    /// The beginning, in hours since the Unix epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub start: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub part: i32,
    /// For the whole block.
    pub rows: i64,
    /// For the whole block, in milliseconds since the Unix epoch.
    pub first_at: i64,
    pub last_at: i64,
    /// In the format of `signalbox_history::block`.
    pub data: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
