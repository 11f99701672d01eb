//! Short texts that people keep for themselves.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    #[sea_orm(column_type = "Text")]
    pub text: String,
    pub created_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
