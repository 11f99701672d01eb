//! `/alerts`: thresholds, silences and alerts.

mod access;
pub mod alerts;
mod notes;
mod silence_faults;
mod silences;
mod socket;
mod threshold_changes;
mod threshold_faults;
mod thresholds;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::rest::Call;
use crate::support::site::Site;
use crate::support::text_of;

impl Site {
    pub fn get(&self, path: impl AsRef<str>) -> Call {
        self.service.client.get(path).bearer(&self.owner.token)
    }

    pub fn put(&self, path: impl AsRef<str>) -> Call {
        self.service.client.put(path).bearer(&self.owner.token)
    }

    pub fn delete(&self, path: impl AsRef<str>) -> Call {
        self.service.client.delete(path).bearer(&self.owner.token)
    }

    /// The request of the specification, for this site's server.
    pub fn cpu_threshold(&self) -> Value {
        json!({"server_id": self.server_id, "metric_type": "cpu", "threshold_value": 90, "comparison": "gt",
               "enabled": true})
    }

    pub async fn new_threshold(&self, body: Value) -> Value {
        self.post("/alerts/thresholds").json(body).expect(201).await
    }

    pub async fn new_silence(&self, body: Value) -> Value {
        self.post("/alerts/silences").json(body).expect(201).await
    }

    /// The ids of a list, in its order, and its total.
    pub async fn listed(&self, path: &str) -> (Vec<String>, String) {
        let answer = self.get(path).expect_answer(200).await;
        let list = answer.json();
        let ids = list.as_array().unwrap().iter().map(|item| text_of(&item["id"])).collect();
        (ids, answer.header("X-Total-Count").to_owned())
    }

    /// The newest entry of the audit log.
    pub async fn last_entry(&self) -> Value {
        self.read("/audit?limit=1").await[0].clone()
    }
}

fn threshold_path(threshold: &Value) -> String {
    format!("/alerts/thresholds/{}", text_of(&threshold["id"]))
}

fn silence_path(silence: &Value) -> String {
    format!("/alerts/silences/{}", text_of(&silence["id"]))
}

/// `base` with other fields.
fn with(mut base: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

/// `base` without some fields.
fn without(mut base: Value, names: &[&str]) -> Value {
    for name in names {
        base.as_object_mut().unwrap().remove(*name);
    }
    base
}

/// A threshold for one server.
pub fn of_server(server_id: Uuid) -> Value {
    json!({"server_id": server_id, "metric_type": "memory", "threshold_value": 80, "comparison": "gte"})
}
