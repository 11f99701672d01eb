//! What calls send that make something.

use serde_json::{Value, json};
use uuid::Uuid;

/// One that is not due while the test runs.
pub fn schedule(server_id: Uuid, name: String) -> Value {
    let times = json!({"cron": "0 0 29 2 *", "time_zone": "UTC"});
    let mut body = json!({"name": name, "server_ids": [server_id], "command": "true"});
    body.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    body
}

pub fn view(name: String, shared_with: &str) -> Value {
    json!({"name": name, "definition": {"version": 1, "series": ["cpu_percent"]}, "shared_with": shared_with})
}

pub fn dashboard(name: String, shared_with: &str) -> Value {
    json!({"name": name, "layout": {"version": 1, "panels": []}, "shared_with": shared_with})
}
