//! The audit log: who did what, from where, to which server, and what came of it. The database refuses to change a row.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_log")]
pub struct Model {
    /// From 1, without gaps.
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub at: Millis,
    /// Whose things it concerns: who may read it.
    pub owner_id: Uuid,
    /// Who did it; null when it was no user that is known for sure.
    pub user_id: Option<Uuid>,
    /// What they were called then.
    #[sea_orm(column_type = "Text")]
    pub username: String,
    pub login_id: Option<Uuid>,
    #[sea_orm(column_type = "Text")]
    pub address: String,
    #[sea_orm(column_type = "Text")]
    pub action: String,
    pub server_id: Option<Uuid>,
    #[sea_orm(column_type = "Text", nullable)]
    pub server_name: Option<String>,
    #[sea_orm(column_type = "Text", nullable)]
    pub target: Option<String>,
    #[sea_orm(column_type = "Text")]
    pub outcome: String,
    /// A JSON object.
    #[sea_orm(column_type = "Text")]
    pub detail: String,
    /// SHA-256 of this row and the hash before it.
    pub hash: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
