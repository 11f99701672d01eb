//! A time that has certainly passed. One row.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "clock")]
pub struct Model {
    /// Always 1.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i16,
    /// The boot of the machine that wrote it: changes at every boot.
    pub boot_id: String,
    /// That machine's time since its boot, suspended or not, in milliseconds.
    pub boot_ms: i64,
    /// The time that had certainly passed, in milliseconds since the epoch.
    pub certain_ms: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
