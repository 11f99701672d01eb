//! A sign-in: a family of refresh tokens, each of which replaced the one before. The API calls it a session.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "logins")]
pub struct Model {
    /// The tokens' `sid`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub user_id: Uuid,
    /// The `jti` of the only valid refresh token.
    pub current_token: Uuid,
    /// The `jti` of the token that `current_token` replaced.
    pub previous_token: Option<Uuid>,
    /// When `current_token` was issued.
    pub rotated_at: Millis,
    pub created_at: Millis,
    pub last_used_at: Millis,
    /// When `current_token` expires.
    pub expires_at: Millis,
    pub user_agent: String,
    pub address: String,
    /// By which means the user signed in: a word of the store's `Means`.
    pub means: String,
    /// When the user last proved who they are: at the sign-in, or since.
    pub proved_at: Millis,
    /// Whether the user has proved a second factor in this login.
    pub second_factor: bool,
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
