//! Destinations of a user's notifications.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notification_channels")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    pub name: String,
    pub kind: String,
    /// Addresses and secrets, encrypted.
    pub settings: Vec<u8>,
    /// The part of the settings that may be shown: a host, an e-mail address.
    pub destination: String,
    /// The severities that it receives, separated by commas.
    pub severities: String,
    /// As JSON: the tags of the servers that it is for; empty for all servers.
    #[sea_orm(column_type = "Text")]
    pub tags: String,
    /// How often it repeats an alert until somebody acknowledges it; 0 for never.
    pub repeat_minutes: i32,
    pub tells_recovery: bool,
    pub is_enabled: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
