//! Thresholds: which values of a metric raise an alert. On one server, on those with a tag, or on all of an owner's.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "alert_thresholds")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    /// With neither a server nor a tag it applies to every server of its owner.
    #[sea_orm(indexed)]
    pub server_id: Option<Uuid>,
    pub tag: Option<String>,
    pub metric_type: String,
    /// Only for `series`: the name of the open series.
    #[sea_orm(column_type = "Text", nullable)]
    pub series: Option<String>,
    pub threshold_value: f64,
    /// The value at which an alert recovers. Defaults to the threshold's value.
    pub clear_value: Option<f64>,
    pub comparison: String,
    pub duration_seconds: i32,
    /// A mount path, interface, sensor or pattern of container names; null means the worst of all.
    #[sea_orm(column_type = "Text", nullable)]
    pub target: Option<String>,
    /// Only for `container_state`: which states, separated by commas; null means all.
    pub states: Option<String>,
    pub severity: String,
    pub is_enabled: bool,
    /// Since when it has its present terms: alerts that it raised before ended with the earlier ones.
    pub armed_at: Millis,
    /// Counts its terms: an alert belongs to one revision.
    pub revision: i32,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
