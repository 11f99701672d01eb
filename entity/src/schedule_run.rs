//! One time at which a schedule was due: its row is written once.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "schedule_runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub schedule_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub due_at: Millis,
    /// The batch that ran it; none if it could not start.
    pub batch_id: Option<Uuid>,
    /// How it ended; none while it runs.
    #[sea_orm(column_type = "Text", nullable)]
    pub outcome: Option<String>,
    pub started_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
