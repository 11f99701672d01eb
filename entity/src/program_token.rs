//! Tokens of programs. Each acts for a user, on some servers and with a role. One that was revoked has no row.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "program_tokens")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub user_id: Uuid,
    pub name: String,
    /// The public part of the token, by which it is found.
    #[sea_orm(unique)]
    pub prefix: String,
    /// SHA-256 of the whole token.
    pub digest: Vec<u8>,
    pub role: String,
    /// The rights of an operator, separated by commas.
    pub rights: String,
    /// The servers, as JSON.
    #[sea_orm(column_type = "Text")]
    pub scope: String,
    /// The networks that it may be used from, as a JSON list; an empty one for any.
    #[sea_orm(column_type = "Text")]
    pub networks: String,
    /// Whether it was made in a login with a second factor.
    pub second_factor: bool,
    pub created_at: Millis,
    pub expires_at: Millis,
    pub last_used_at: Option<Millis>,
    #[sea_orm(column_type = "Text", nullable)]
    pub last_used_address: Option<String>,
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
