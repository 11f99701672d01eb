//! Samples of one server and hour that are not sealed yet.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "history_pieces")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
    /// Hours since the Unix epoch.
    #[sea_orm(primary_key, auto_increment = false)]
    pub hour: i64,
    /// Rises with every piece of an hour.
    #[sea_orm(primary_key, auto_increment = false)]
    pub number: i64,
    pub samples: i64,
    /// How many integers it unpacks to.
    pub cells: i64,
    /// Written and read by the service's `signalbox_history::block`; the parts one after the other, each behind its length.
    pub data: Vec<u8>,
    /// The top processes that came with the samples, if any did.
    pub processes: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
