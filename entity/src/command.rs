//! One command on one server: a job.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "commands")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub server_id: Uuid,
    pub batch_id: Option<Uuid>,
    /// The server's owner.
    pub owner_id: Uuid,
    /// The user who ran it, and with which login.
    pub user_id: Uuid,
    pub login_id: Option<Uuid>,
    /// The user's name and address at that time.
    pub username: String,
    pub address: String,
    /// The name, at that time, of the token of a program that ran it; `login_id` is the token's.
    #[sea_orm(column_type = "Text", nullable)]
    pub token_name: Option<String>,
    #[sea_orm(column_type = "Text")]
    pub command: String,
    /// Only while the command waits for its turn in a batch.
    #[sea_orm(column_type = "Text", nullable)]
    pub stdin: Option<String>,
    /// What operators signed for it, as JSON.
    #[sea_orm(column_type = "Text", nullable)]
    pub signed: Option<String>,
    pub timeout_seconds: i32,
    pub status: String,
    /// Somebody has asked to end it while it ran.
    pub is_cancel_requested: bool,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<i64>,
    pub is_truncated: bool,
    /// The stored text of both streams, in the order in which it came. Bytes, because PostgreSQL's text cannot contain NUL.
    pub output: Option<Vec<u8>>,
    /// How the bytes of the output are divided, as JSON.
    #[sea_orm(column_type = "Text", nullable)]
    pub output_parts: Option<String>,
    pub error_code: Option<String>,
    #[sea_orm(column_type = "Text", nullable)]
    pub error_detail: Option<String>,
    /// Why a signature did not suffice, where that is the error.
    #[sea_orm(column_type = "Text", nullable)]
    pub error_reason: Option<String>,
    pub created_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
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
