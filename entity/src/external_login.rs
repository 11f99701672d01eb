//! A login that came from an identity provider.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "external_logins")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub login_id: Uuid,
    #[sea_orm(indexed)]
    pub identity_id: Uuid,
    /// The provider's name of its session, if it has one: ending that session ends this login.
    #[sea_orm(indexed)]
    pub sid: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::external_identity::Entity",
        from = "Column::IdentityId",
        to = "super::external_identity::Column::Id"
    )]
    Identity,
}

impl Related<super::external_identity::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Identity.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
