//! A server of a rollout.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "update_rollout_servers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub rollout_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    #[sea_orm(indexed)]
    pub server_id: Uuid,
    pub wave: i32,
    /// `waiting`, `offered`, `updated`, `failed` or `refused`.
    #[sea_orm(column_type = "Text")]
    pub state: String,
    /// Why it failed, for people, or the code of the refusal.
    #[sea_orm(column_type = "Text", nullable)]
    pub reason: Option<String>,
    /// The version that its agent had when the rollout began.
    #[sea_orm(column_type = "Text")]
    pub from_version: String,
    /// The session that held the server at the last offer.
    pub session_id: Option<Uuid>,
    /// How often it was offered.
    pub offers: i32,
    pub changed_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::server::Entity", from = "Column::ServerId", to = "super::server::Column::Id")]
    Server,
}

impl Related<super::server::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Server.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
