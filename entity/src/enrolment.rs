//! Enrolments. Each lets machines make themselves servers of its owner, a number of times. One that was revoked has no row.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "enrolments")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    pub name: String,
    /// The public part of the token, by which it is found.
    #[sea_orm(unique)]
    pub prefix: String,
    /// SHA-256 of the whole token.
    pub digest: Vec<u8>,
    /// The tags of each server, as a JSON list.
    #[sea_orm(column_type = "Text")]
    pub tags: String,
    /// What others may do to each server, as a JSON list.
    #[sea_orm(column_type = "Text")]
    pub grants: String,
    /// The text of the agents' policy.
    #[sea_orm(column_type = "Text", nullable)]
    pub policy: Option<String>,
    /// How often it may be used.
    pub uses: i32,
    pub uses_left: i32,
    /// The networks that it may be used from, as a JSON list; an empty one for any.
    #[sea_orm(column_type = "Text")]
    pub networks: String,
    pub created_at: Millis,
    pub expires_at: Millis,
    pub last_used_at: Option<Millis>,
    #[sea_orm(column_type = "Text", nullable)]
    pub last_used_address: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::user::Entity", from = "Column::OwnerId", to = "super::user::Column::Id")]
    Owner,
}

impl Related<super::user::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Owner.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
