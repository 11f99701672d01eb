//! Challenges that a passkey has answered, until they expire: none is accepted twice.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "spent_challenges")]
pub struct Model {
    /// The random part of the challenge.
    #[sea_orm(primary_key, auto_increment = false)]
    pub nonce: Vec<u8>,
    #[sea_orm(indexed)]
    pub expires_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
