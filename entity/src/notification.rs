//! The outbox: notifications of alerts on channels, and their delivery.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notifications")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    #[sea_orm(indexed)]
    pub channel_id: Uuid,
    /// Null for a test.
    pub alert_id: Option<Uuid>,
    /// `triggered`, `reminder`, `resolved` or `test`.
    pub event: String,
    /// One line for people.
    #[sea_orm(column_type = "Text")]
    pub subject: String,
    /// As JSON: the alert and its server at that time, so that every attempt says the same. Null for a test.
    #[sea_orm(column_type = "Text", nullable)]
    pub content: Option<String>,
    /// `pending`, `sent` or `failed`.
    pub status: String,
    /// The message that carries it, alone or with others: the receiver's idempotency key.
    pub message_id: Uuid,
    pub attempts: i32,
    /// Null where there is no further attempt.
    pub next_attempt_at: Option<Millis>,
    /// Why the channel's other messages wait for this one: it is in transit (`sending`), the destination cannot be reached
    /// (`unreachable`), or it was too large and is sent in parts (`split`). Only the ends of its alerts wait where it is null, or
    /// where it has been in transit for long (`overtaken`), and nothing where some of its recipients have it (`partly`).
    pub hold: Option<String>,
    /// As JSON: the state of each recipient. Null before the first attempt.
    #[sea_orm(column_type = "Text", nullable)]
    pub recipients: Option<String>,
    #[sea_orm(column_type = "Text", nullable)]
    pub error: Option<String>,
    pub created_at: Millis,
    pub attempted_at: Option<Millis>,
    pub finished_at: Option<Millis>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
