//! Passkeys, which WebAuthn calls credentials.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "passkeys")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub user_id: Uuid,
    /// The id that the authenticator gave it.
    #[sea_orm(unique)]
    pub credential_id: Vec<u8>,
    /// The public key as the authenticator sent it (COSE, RFC 9052).
    pub public_key: Vec<u8>,
    /// The authenticator's count of signatures; stays 0 if it does not count.
    pub sign_count: i64,
    pub name: String,
    pub created_at: Millis,
    pub last_used_at: Option<Millis>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::user::Entity", from = "Column::UserId", to = "super::user::Column::Id")]
    User,
}

impl Related<super::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::User.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
