//! Samples that are not sealed, where several instances read them: on PostgreSQL alone.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_samples")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    /// Hours since the Unix epoch; follows from `at`, and names the partition.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: i64,
    /// Milliseconds since the Unix epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub at: i64,
    /// Written and read by the service's `signalbox_history::codec`.
    pub data: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
