//! One command for many servers.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "command_batches")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// The name, at that time, of the user who started it.
    pub username: String,
    /// The token of the program that started it.
    pub token_id: Option<Uuid>,
    #[sea_orm(column_type = "Text")]
    pub command: String,
    pub timeout_seconds: i32,
    /// How many servers run it at a time.
    pub concurrency: i32,
    pub stop_on_failure: bool,
    pub is_cancelled: bool,
    /// The instance that runs it, where there are several.
    pub instance_id: Option<Uuid>,
    pub created_at: Millis,
    pub finished_at: Option<Millis>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
