//! What the engine reports about a container, and what the agent passes on. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::Event;

/// The longest name, image or other text that is passed on, in bytes.
const MAX_BYTES: usize = 256;

/// A line of `/events`. Newer engines have only these fields, older ones have more.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EngineEvent {
    r#type: String,
    action: String,
    actor: Actor,
    #[serde(rename = "timeNano")]
    time_nanos: i64,
    #[serde(rename = "time")]
    time_seconds: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Attributes")]
    attributes: Option<BTreeMap<String, String>>,
}

/// The actions that are passed on, and the signal that may explain one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Start,
    Die,
    Kill,
    Oom,
    HealthStatus,
    Stop,
    Restart,
    Pause,
    Unpause,
    Destroy,
    Rename,
}

impl Action {
    /// Docker appends the health to the action; Podman has another name for the removal.
    fn of(text: &str) -> Option<Self> {
        let word = text.split(':').next().unwrap_or_default().trim();
        Some(match word {
            "start" => Self::Start,
            "die" => Self::Die,
            "kill" => Self::Kill,
            "oom" => Self::Oom,
            "health_status" => Self::HealthStatus,
            "stop" => Self::Stop,
            "restart" => Self::Restart,
            "pause" => Self::Pause,
            "unpause" => Self::Unpause,
            "destroy" | "remove" => Self::Destroy,
            "rename" => Self::Rename,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Die => "die",
            Self::Kill => "kill",
            Self::Oom => "oom",
            Self::HealthStatus => "health_status",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Unpause => "unpause",
            Self::Destroy => "destroy",
            Self::Rename => "rename",
        }
    }

    /// A signal is no event by itself; its effect is.
    pub fn is_told(self) -> bool {
        self != Self::Kill
    }

    /// Whether containers have other states or names after it. A stop changes one that was about to restart.
    pub fn changes_the_list(self) -> bool {
        match self {
            Self::Start
            | Self::Die
            | Self::Stop
            | Self::Restart
            | Self::Pause
            | Self::Unpause
            | Self::Destroy
            | Self::Rename => true,
            Self::Kill | Self::Oom | Self::HealthStatus => false,
        }
    }
}

/// An event of a container.
#[derive(Debug, PartialEq)]
pub struct ContainerEvent {
    pub action: Action,
    pub container_id: String,
    pub at_ms: i64,
    /// Which signal was sent.
    pub signal: Option<i64>,
    /// The exit code of a container that died.
    pub exit_code: Option<i64>,
    pub event: Event,
}

impl ContainerEvent {
    /// None for an event that is of no use.
    pub fn of(told: EngineEvent) -> Option<Self> {
        if told.r#type != "container" {
            return None;
        }
        let action = Action::of(&told.action)?;
        let attributes = told.actor.attributes.unwrap_or_default();
        let mut fields = Map::new();
        let mut set = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
        let attribute = |name: &str| attributes.get(name).map(|text| Value::from(bounded(text)));
        set("action", action.name().into());
        set("container_id", bounded(&told.actor.id).into());
        set("name", attribute("name").unwrap_or_default());
        set("image", attribute("image").unwrap_or_default());
        let at = moment(told.time_nanos, told.time_seconds);
        set("timestamp", at.to_string().into());
        let number = |name: &str| attributes.get(name).and_then(|number| number.parse::<i64>().ok());
        let (signal, exit_code) = (number("signal"), number("exitCode"));
        if action == Action::Die {
            set("exit_code", exit_code.into());
        }
        if action == Action::HealthStatus {
            let health = told.action.split_once(':').map(|(_, health)| Value::from(bounded(health.trim())));
            set("health", health.or_else(|| attribute("health_status")).unwrap_or_default());
        }
        let event = Event { kind: "container".to_owned(), fields };
        Some(Self { action, container_id: told.actor.id, at_ms: at.as_millis(), signal, exit_code, event })
    }

    /// A container's new health.
    pub fn health(&self) -> Option<&str> {
        self.event.fields.get("health").and_then(Value::as_str)
    }

    pub fn set_health(&mut self, health: Option<&str>) {
        self.event.fields.insert("health".to_owned(), health.map(bounded).into());
    }

    /// How often the engine has restarted the container automatically.
    pub fn set_restart_count(&mut self, count: u64) {
        self.event.fields.insert("restart_count".to_owned(), count.into());
    }

    /// Whether a user requested it. None where the engine does not say.
    pub fn set_requested(&mut self, requested: Option<bool>) {
        self.event.fields.insert("requested".to_owned(), requested.into());
    }
}

fn moment(nanos: i64, seconds: i64) -> Timestamp {
    let millis = if nanos == 0 { seconds.saturating_mul(1000) } else { nanos / 1_000_000 };
    Timestamp::from_millis(millis)
}

pub fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn happened(event: Value) -> Option<ContainerEvent> {
        ContainerEvent::of(serde_json::from_value(event).unwrap())
    }

    fn fields(event: Value) -> Value {
        Value::Object(happened(event).unwrap().event.fields)
    }

    #[test]
    fn a_death_has_its_exit_code() {
        let event = json!({
            "status": "die", "id": "75af", "from": "busybox", "Type": "container", "Action": "die",
            "Actor": {"ID": "75af", "Attributes": {"exitCode": "137", "image": "busybox", "name": "web", "secret": "x"}},
            "scope": "local", "time": 1_795_273_931, "timeNano": 1_795_273_931_395_650_335_i64,
        });

        let expected = json!({
            "action": "die", "container_id": "75af", "name": "web", "image": "busybox", "exit_code": 137,
            "timestamp": Timestamp::from_millis(1_795_273_931_395),
        });
        assert_eq!(fields(event), expected);
    }

    #[test]
    fn health_is_read_in_every_form() {
        let docker =
            json!({"Type": "container", "Action": "health_status: unhealthy", "Actor": {"ID": "1"}, "time": 1});
        let podman = json!({
            "Type": "container", "Action": "health_status", "time": 1,
            "Actor": {"ID": "1", "Attributes": {"health_status": "unhealthy"}},
        });

        assert_eq!(fields(docker.clone())["health"], "unhealthy");
        assert_eq!(fields(docker), fields(podman));
    }

    #[test]
    fn a_removal_has_one_name() {
        for action in ["destroy", "remove"] {
            assert_eq!(fields(json!({"Type": "container", "Action": action}))["action"], "destroy");
        }
    }

    #[test]
    fn other_actions_are_not_passed_on() {
        for (kind, action) in [("container", "exec_start: sh"), ("image", "die"), ("container", "init"), ("", "")] {
            assert_eq!(
                happened(json!({"Type": kind, "Action": action, "Actor": {"Attributes": null}})),
                None,
                "{action}"
            );
        }
    }

    #[test]
    fn a_signal_is_understood_and_not_passed_on() {
        let event = json!({
            "Type": "container", "Action": "kill", "Actor": {"ID": "1", "Attributes": {"signal": "15"}}, "time": 2,
        });

        let kill = happened(event).unwrap();

        assert_eq!((kill.signal, kill.at_ms, kill.action.is_told()), (Some(15), 2_000, false));
    }

    #[test]
    fn texts_are_bounded() {
        let name = "é".repeat(300);
        let event = json!({"Type": "container", "Action": "start", "Actor": {"Attributes": {"name": name}}});

        assert_eq!(fields(event)["name"], "é".repeat(128));
    }
}
