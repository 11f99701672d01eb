//! Alerts that thresholds or failed schedules raised. Each keeps the terms of its threshold at that time.

use sea_orm::entity::prelude::*;

use crate::Millis;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "alerts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    #[sea_orm(indexed)]
    pub owner_id: Uuid,
    #[sea_orm(indexed)]
    pub server_id: Uuid,
    /// The threshold, or the schedule where the metric type is `schedule`. It may be deleted by now.
    pub threshold_id: Uuid,
    /// The revision of the threshold.
    pub threshold_revision: i32,
    pub metric_type: String,
    /// Only for `series`: the name of the open series.
    #[sea_orm(column_type = "Text", nullable)]
    pub series: Option<String>,
    /// Only for `series`: the unit of the values; of a counter the unit of its rate.
    #[sea_orm(column_type = "Text", nullable)]
    pub unit: Option<String>,
    /// The threshold's target; for a container rule the container, for a schedule its name.
    #[sea_orm(column_type = "Text", nullable)]
    pub target: Option<String>,
    /// Which disk, interface or sensor was the worst, where the threshold names none.
    #[sea_orm(column_type = "Text", nullable)]
    pub worst_target: Option<String>,
    pub threshold_value: f64,
    pub clear_value: Option<f64>,
    pub comparison: String,
    pub duration_seconds: i32,
    pub severity: String,
    pub status: String,
    /// The value when it fired, and the worst value since then.
    pub value: f64,
    pub peak_value: f64,
    #[sea_orm(column_type = "Text")]
    pub message: String,
    /// Whether a silence applied when it fired.
    pub is_silenced: bool,
    /// The time, by the agent's clock, of the sample that last changed this alert.
    pub sample_at: Millis,
    /// When to check whether to notify somebody (again); null for never.
    pub notify_at: Option<Millis>,
    pub triggered_at: Millis,
    pub acknowledged_at: Option<Millis>,
    pub acknowledged_by: Option<Uuid>,
    pub resolved_at: Option<Millis>,
    /// `recovery`, `threshold_deleted`, or a user's id.
    pub resolved_by: Option<String>,
    /// When the metric had recovered, so that the threshold could fire again.
    pub rearmed_at: Option<Millis>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
