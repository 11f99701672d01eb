//! Open invitations to make an account. One that was used, revoked or has expired has no row.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "invitations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// The administrator who invites; null for the operator on the command line.
    #[sea_orm(indexed)]
    pub owner_id: Option<Uuid>,
    /// SHA-256 of the token.
    #[sea_orm(unique)]
    pub digest: Vec<u8>,
    /// The only address that may register with it; null for any.
    #[sea_orm(column_type = "Text", nullable)]
    pub email: Option<String>,
    /// The grants that the new account gets, as a JSON list.
    #[sea_orm(column_type = "Text")]
    pub grants: String,
    pub created_at: Millis,
    pub expires_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
