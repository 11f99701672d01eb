//! Unsealed samples of one server and hour.

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
    /// In the format of `signalbox_history::block`: the parts one after the other, each after its length.
    pub data: Vec<u8>,
    /// The top processes of these samples; null without any.
    pub processes: Option<Vec<u8>>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
