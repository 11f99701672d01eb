//! Where a user is told of alerts.

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
    /// What of the settings may be shown: a host, an e-mail address.
    pub destination: String,
    /// The severities that are told, separated by commas.
    pub severities: String,
    /// As JSON: of servers with one of these tags alone; of all when empty.
    #[sea_orm(column_type = "Text")]
    pub tags: String,
    /// How often an alert is told again until somebody acknowledges it; 0 for never.
    pub repeat_minutes: i32,
    pub tells_recovery: bool,
    pub is_enabled: bool,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
