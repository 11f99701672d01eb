//! Who a user is at an identity provider.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "external_identities")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub user_id: Uuid,
    /// The provider's address; unique together with `subject`.
    pub issuer: String,
    /// The provider's name of the person, which never changes and never means anybody else.
    pub subject: String,
    /// The e-mail address at the last sign-in; empty if the provider named none.
    pub email: String,
    /// The groups at the last sign-in: a JSON array of names.
    #[sea_orm(column_type = "Text")]
    pub groups: String,
    pub created_at: Millis,
    pub last_sign_in_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
