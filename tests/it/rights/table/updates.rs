//! What each operation of releases and rollouts needs.

use serde_json::json;
use signalbox::auth::access::Action::{Manage, See};

use super::super::objects::Object;
use super::{Line, Needs, Programs, on};

/// Rollouts concern all servers of an account, and only its own.
pub fn lines() -> Vec<Line> {
    let lines = vec![
        on("GET /api/v1/updates", Needs::Account),
        on("GET /api/v1/updates/rollouts", Needs::Account),
        on("POST /api/v1/updates/rollouts", Needs::Account)
            .json(|_| json!({"waves": [{"tags": []}]}))
            .fails(400, "no_release"),
        on("GET /api/v1/updates/rollouts/{id}", Needs::Mine).of(Object::Rollout),
        on("POST /api/v1/updates/rollouts/{id}/pause", Needs::Mine).of(Object::Rollout),
        on("POST /api/v1/updates/rollouts/{id}/resume", Needs::Mine).of(Object::Rollout),
        on("POST /api/v1/updates/rollouts/{id}/cancel", Needs::Mine).of(Object::Rollout),
    ];
    let with_programs = |line: Line| {
        let action = if line.operation.starts_with("GET") { See } else { Manage };
        line.programs(Programs::Account(action))
    };
    lines.into_iter().map(with_programs).collect()
}
