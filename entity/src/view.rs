//! Saved views of series, and the dashboards that are made of them.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "views")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// `view` or `dashboard`.
    pub kind: String,
    pub name: String,
    #[sea_orm(column_type = "Text")]
    pub description: String,
    /// What it shows: JSON, with a version.
    #[sea_orm(column_type = "Text")]
    pub definition: String,
    /// `nobody`, `administrators` or `everyone`.
    pub shared_with: String,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
