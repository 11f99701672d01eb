//! Alerts, as dashboards are told of them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// An alert: the same object as in the REST API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    pub id: Uuid,
    pub threshold_id: Uuid,
    pub server_id: Uuid,
    pub metric_type: String,
    /// Of `series`: the name of the open series.
    #[serde(default)]
    pub series: Option<String>,
    /// Of `series`: the unit of the values; of a counter that of its rate.
    #[serde(default)]
    pub unit: Option<String>,
    /// What the threshold names; of a container rule the container. Null means the worst of all.
    pub target: Option<String>,
    /// Which disk, interface or sensor that was.
    pub worst_target: Option<String>,
    pub threshold_value: f64,
    pub clear_value: Option<f64>,
    pub comparison: String,
    pub duration_seconds: i32,
    /// What was measured when it fired.
    pub value: f64,
    /// The worst since.
    pub peak_value: f64,
    /// `active`, `acknowledged` or `resolved`.
    pub status: String,
    pub severity: String,
    pub message: String,
    /// Somebody had asked for silence when it fired: it was recorded, and nobody was told.
    pub silenced: bool,
    pub triggered_at: Timestamp,
    pub acknowledged_at: Option<Timestamp>,
    pub acknowledged_by: Option<Uuid>,
    pub resolved_at: Option<Timestamp>,
    /// `recovery`, `threshold_deleted`, or the id of the user who did it.
    pub resolved_by: Option<String>,
}
