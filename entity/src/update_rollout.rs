//! A release of the agent on its way to the servers of an account.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "update_rollouts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    #[sea_orm(column_type = "Text")]
    pub version: String,
    /// The signed bytes, in base64.
    #[sea_orm(column_type = "Text")]
    pub release: String,
    /// The signature over them, armoured.
    #[sea_orm(column_type = "Text")]
    pub signature: String,
    /// The tags of each wave, as JSON: a list of lists.
    #[sea_orm(column_type = "Text")]
    pub waves: String,
    /// From the end of a wave to the beginning of the next.
    pub pause_seconds: i32,
    /// One more failure stops it.
    pub max_failed: i32,
    /// `running`, `paused`, `done`, `stopped` or `cancelled`.
    #[sea_orm(column_type = "Text")]
    pub status: String,
    /// Why it stopped, for people.
    #[sea_orm(column_type = "Text", nullable)]
    pub stopped_reason: Option<String>,
    /// The present wave, from 0.
    pub wave: i32,
    /// When it began, or in the future: when it begins.
    pub wave_since: Millis,
    /// The name of the user who began it.
    #[sea_orm(column_type = "Text")]
    pub created_by: String,
    pub created_at: Millis,
    pub ended_at: Option<Millis>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
