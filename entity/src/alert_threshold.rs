//! Rules: which values of a metric are worth an alert. On one server, on those with a tag, or on all of an owner's.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "alert_thresholds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// With neither a server nor a tag it is for every server of its owner.
    #[sea_orm(indexed)]
    pub server_id: Option<Uuid>,
    pub tag: Option<String>,
    pub metric_type: String,
    /// Of `series`: the name of the open series.
    #[sea_orm(column_type = "Text", nullable)]
    pub series: Option<String>,
    pub threshold_value: f64,
    /// Where it counts as recovered; the threshold itself unless told.
    pub clear_value: Option<f64>,
    pub comparison: String,
    pub duration_seconds: i32,
    /// A mount path, interface, sensor or pattern of container names; null means the worst of all.
    #[sea_orm(column_type = "Text", nullable)]
    pub target: Option<String>,
    /// Of `container_state`: which states, separated by commas; null means all.
    pub states: Option<String>,
    pub severity: String,
    pub is_enabled: bool,
    /// Since when it is what it is: what it raised before that has ended with what it was.
    pub armed_at: Millis,
    /// Counts what it has been before: an alert belongs to one of these.
    pub revision: i32,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
