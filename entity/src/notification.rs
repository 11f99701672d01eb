//! The outbox: what is to be told of an alert on a channel, and what came of it.

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
    /// What it says, in a line.
    #[sea_orm(column_type = "Text")]
    pub subject: String,
    /// As JSON: the alert and its server as they were then, so that every attempt says the same. Null for a test.
    #[sea_orm(column_type = "Text", nullable)]
    pub content: Option<String>,
    /// `pending`, `sent` or `failed`.
    pub status: String,
    /// The message that carries it, alone or with others: the receiver's idempotency key.
    pub message_id: Uuid,
    pub attempts: i32,
    /// Null where it is not tried again.
    pub next_attempt_at: Option<Millis>,
    /// Why the channel's others wait for this: it is being sent (`sending`), or the destination cannot be reached
    /// (`unreachable`). They do not wait where it is null, or where it has been on its way for long (`overtaken`).
    pub hold: Option<String>,
    /// As JSON: how each recipient stands. Null before the first attempt.
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
