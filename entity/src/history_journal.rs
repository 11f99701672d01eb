//! Samples in the order in which they came: one row a group commit. What the history's blocks are made from.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_journal")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    /// The process that wrote it and holds the same samples in memory.
    pub writer: Uuid,
    /// Written and read by the service's `signalbox_history::journal`.
    pub data: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
