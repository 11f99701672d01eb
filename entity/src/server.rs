//! Managed machines.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "servers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// Name, host and description in lower case, one per line: to search and to sort by, the same in every database.
    #[sea_orm(column_type = "Text")]
    pub search_text: String,
    pub name: String,
    pub host: String,
    pub port: i32,
    pub description: String,
    /// The last agent's description of itself, as JSON; null until one has connected.
    #[sea_orm(column_type = "Text", nullable)]
    pub agent: Option<String>,
    /// The agent session that holds the server; null while it is offline.
    pub session_id: Option<Uuid>,
    /// The instance that holds that session, where there are several.
    #[sea_orm(indexed)]
    pub instance_id: Option<Uuid>,
    /// Incremented by each session that takes the server, where there are several instances.
    pub session_epoch: i64,
    pub last_seen_at: Option<Millis>,
    /// How many series of a recent sample the history omitted.
    pub series_dropped: i32,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
