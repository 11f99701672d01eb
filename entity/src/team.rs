//! Teams of users, who get grants together.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "teams")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub name: String,
    /// `name` in lower case; unique.
    #[sea_orm(unique)]
    pub name_key: String,
    /// Who manages it; null once that account is deleted.
    #[sea_orm(indexed)]
    pub created_by: Option<Uuid>,
    /// The identity provider whose group of this name it is: its members are that group's. Null for a team that a person made.
    #[sea_orm(column_type = "Text", nullable)]
    pub issuer: Option<String>,
    pub created_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
