//! A message of an identity provider about the end of a session, which counts once.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "logout_tokens")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub issuer: String,
    /// The provider's name of the message.
    #[sea_orm(primary_key, auto_increment = false)]
    pub jti: String,
    /// When the message is too old to be believed anyway.
    pub expires_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
