//! A command that recurs.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "schedules")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    /// It runs with the rights of this user.
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// The user's name when it was made.
    #[sea_orm(column_type = "Text")]
    pub username: String,
    #[sea_orm(column_type = "Text")]
    pub name: String,
    #[sea_orm(column_type = "Text")]
    pub command: String,
    /// The named servers, as a JSON list of ids, beside those of the tag.
    #[sea_orm(column_type = "Text")]
    pub server_ids: String,
    #[sea_orm(column_type = "Text", nullable)]
    pub tag: Option<String>,
    pub timeout_seconds: i32,
    pub concurrency: i32,
    pub stop_on_failure: bool,
    /// What operators signed for all its runs, as JSON.
    #[sea_orm(column_type = "Text", nullable)]
    pub signed: Option<String>,
    #[sea_orm(column_type = "Text")]
    pub cron: String,
    /// A name of the IANA database.
    #[sea_orm(column_type = "Text")]
    pub time_zone: String,
    pub is_enabled: bool,
    /// How serious it is if a run fails.
    #[sea_orm(column_type = "Text")]
    pub severity: String,
    /// It is not due from then on.
    pub until_at: Option<Millis>,
    /// When it is due next; none if it never is again.
    pub next_at: Option<Millis>,
    /// How often it was due and did not run, and when that was last.
    pub missed: i64,
    pub missed_at: Option<Millis>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
