//! Unsealed samples that several instances read; only on PostgreSQL.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_samples")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    /// Hours since the Unix epoch. It follows from `at` and selects the partition.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: i64,
    /// Milliseconds since the Unix epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub at: i64,
    /// In the format of `signalbox_history::codec`.
    pub data: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
