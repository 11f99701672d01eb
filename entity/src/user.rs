//! Users who may sign in.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub email: String,
    /// `email` in lower case; unique.
    #[sea_orm(unique)]
    pub email_key: String,
    pub username: String,
    /// `username` in lower case; unique.
    #[sea_orm(unique)]
    pub username_key: String,
    pub full_name: String,
    /// A PHC string.
    pub password_hash: String,
    pub is_admin: bool,
    /// Since when the account cannot sign in; null while it can.
    pub disabled_at: Option<Millis>,
    /// The last sign-in; null if there was none.
    pub last_login_at: Option<Millis>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
