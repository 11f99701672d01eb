//! The servers of commands that wait for signatures.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "approval_servers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub approval_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub server_id: Uuid,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::server::Entity", from = "Column::ServerId", to = "super::server::Column::Id")]
    Server,
}

impl Related<super::server::Entity> for Entity {
    fn to() -> RelationDef {
        Relation::Server.def()
    }
}

impl ActiveModelBehavior for ActiveModel {}
