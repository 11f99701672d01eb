//! Samples in the order of their arrival, one row per group commit. The history's blocks are made from them.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_journal")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    /// The process that wrote it and has the same samples in memory.
    pub writer: Uuid,
    /// In the format of `signalbox_history::journal`.
    pub data: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
