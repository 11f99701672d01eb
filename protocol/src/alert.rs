//! Alerts, as dashboards receive them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

/// Who owns the server of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The account's id.
    pub id: Uuid,
    /// The user name.
    pub username: String,
}

/// An alert: the same object as in the REST API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The alert's id.
    pub id: Uuid,
    /// The threshold that raised it.
    pub threshold_id: Uuid,
    /// The server that it is about.
    pub server_id: Uuid,
    /// Who owns the server: others may share theirs. Absent in what earlier versions of the service wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The metric that the threshold watches, such as `cpu`, or `series`.
    pub metric_type: String,
    /// Only for `series`: the name of the open series.
    #[serde(default)]
    pub series: Option<String>,
    /// Only for `series`: the unit of the values; of a counter the unit of its rate.
    #[serde(default)]
    pub unit: Option<String>,
    /// What the threshold names, such as a disk or a container. Null: the worst of all.
    pub target: Option<String>,
    /// Which disk, interface or sensor was the worst.
    pub worst_target: Option<String>,
    /// The value that the measured one crossed, in the metric's unit.
    pub threshold_value: f64,
    /// The value at which the alert recovers, where it is not `threshold_value`.
    pub clear_value: Option<f64>,
    /// How values are compared with `threshold_value`.
    pub comparison: String,
    /// For how long the value had to be beyond `threshold_value`.
    pub duration_seconds: i32,
    /// The value when the alert fired.
    pub value: f64,
    /// The worst value since then.
    pub peak_value: f64,
    /// `active`, `acknowledged` or `resolved`.
    pub status: String,
    /// How serious the threshold says it is.
    pub severity: String,
    /// One sentence for people.
    pub message: String,
    /// Whether a silence applied when the alert fired: the service recorded it and notified nobody.
    pub silenced: bool,
    /// When it fired, by the time of the sample.
    pub triggered_at: Timestamp,
    /// When a user acknowledged it.
    pub acknowledged_at: Option<Timestamp>,
    /// The user who acknowledged it.
    pub acknowledged_by: Option<Uuid>,
    /// When it ended.
    pub resolved_at: Option<Timestamp>,
    /// `recovery`, `threshold_deleted`, or the id of the user who resolved it.
    pub resolved_by: Option<String>,
}
