//! The audit log: who did what, from where, to which server, and with what result. The database refuses to change a row.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_log")]
pub struct Model {
    /// From 1, without gaps.
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub at: Millis,
    /// The user whose property it concerns, and who may read it.
    pub owner_id: Uuid,
    /// The user who did it; null where nobody has proved who they are.
    pub user_id: Option<Uuid>,
    /// The actor's name at that time.
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
    /// SHA-256 of this row and the previous hash.
    pub hash: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
