//! The signatures that a command has while it waits for more.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "approval_signatures")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub approval_id: Uuid,
    /// Whose signature it is, so that none counts twice: the fingerprint of an SSH key, or the account that used a passkey.
    #[sea_orm(primary_key, auto_increment = false, column_type = "Text")]
    pub signer: String,
    /// As it came, in JSON.
    pub signature: Vec<u8>,
    /// The user who brought it, with the name at that time.
    pub user_id: Uuid,
    #[sea_orm(column_type = "Text")]
    pub username: String,
    pub signed_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
