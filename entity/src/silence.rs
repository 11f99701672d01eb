//! Times without notifications: once, or every week.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "silences")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// With neither a server nor a tag it applies to every server of its owner.
    pub server_id: Option<Uuid>,
    pub tag: Option<String>,
    #[sea_orm(column_type = "Text")]
    pub reason: String,
    /// Once: beginning and end. Weekly: the range in which the schedule applies, where they are given.
    pub starts_at: Option<Millis>,
    pub ends_at: Option<Millis>,
    /// Weekly: the days on which it begins, 1 (Monday) to 7, separated by commas.
    pub weekdays: Option<String>,
    /// Minutes after midnight, in the local time of the time zone.
    pub start_minute: Option<i32>,
    pub duration_minutes: Option<i32>,
    /// A name of the IANA database.
    pub time_zone: Option<String>,
    pub created_by: String,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
