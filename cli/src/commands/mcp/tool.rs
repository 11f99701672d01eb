//! The tools, as an assistant sees them. Pure.

use serde_json::{Map, Value, json};

/// What a token may do beyond reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowed {
    pub alerts: bool,
    pub containers: bool,
    pub commands: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    ListServers,
    ReadMetrics,
    ListAlerts,
    ReadLogs,
    ListContainers,
    ProcessesAt,
    AcknowledgeAlert,
    RestartContainer,
    RunCommand,
}

impl Tool {
    const ALL: [Self; 9] = [
        Self::ListServers,
        Self::ReadMetrics,
        Self::ListAlerts,
        Self::ReadLogs,
        Self::ListContainers,
        Self::ProcessesAt,
        Self::AcknowledgeAlert,
        Self::RestartContainer,
        Self::RunCommand,
    ];

    /// Those that a token can use.
    pub fn offered(allowed: Allowed) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |tool| tool.is_offered(allowed))
    }

    pub fn is_offered(self, allowed: Allowed) -> bool {
        match self {
            Self::AcknowledgeAlert => allowed.alerts,
            Self::RestartContainer => allowed.containers,
            Self::RunCommand => allowed.commands,
            _ => self.is_read_only(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ListServers => "list_servers",
            Self::ReadMetrics => "read_metrics",
            Self::ListAlerts => "list_alerts",
            Self::ReadLogs => "read_logs",
            Self::ListContainers => "list_containers",
            Self::ProcessesAt => "processes_at",
            Self::AcknowledgeAlert => "acknowledge_alert",
            Self::RestartContainer => "restart_container",
            Self::RunCommand => "run_command",
        }
    }

    pub fn is_read_only(self) -> bool {
        match self {
            Self::ListServers
            | Self::ReadMetrics
            | Self::ListAlerts
            | Self::ReadLogs
            | Self::ListContainers
            | Self::ProcessesAt => true,
            Self::AcknowledgeAlert | Self::RestartContainer | Self::RunCommand => false,
        }
    }

    /// Whether it may end or change what runs.
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::RestartContainer | Self::RunCommand)
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::ListServers => "Lists servers by name, with status, tags, system and what you may do there.",
            Self::ReadMetrics => {
                "Reads metrics of a server. Without `names` and `search`: the latest values of everything. With `search`: the \
                 names of series that contain a text, such as cpu, memory, disk, network or temperature. With `names`: minimum, \
                 mean, maximum and points of these series over a time."
            }
            Self::ListAlerts => "Lists alerts, newest first. Defaults to active ones.",
            Self::ReadLogs => {
                "Reads the newest lines of a server's system log, of a container's log, or of a file, oldest of them first."
            }
            Self::ListContainers => "Lists the containers of a server.",
            Self::ProcessesAt => "Lists the processes that used the most processor time and memory at a time.",
            Self::AcknowledgeAlert => "Acknowledges an alert, which stops its reminders.",
            Self::RestartContainer => "Restarts a container.",
            Self::RunCommand => {
                "Runs a command in /bin/sh on a server, and returns its exit code and output. A server that asks for signatures \
                 refuses: a person has to sign there."
            }
        }
    }

    /// JSON Schema of the arguments.
    pub fn schema(self) -> Map<String, Value> {
        let server = ("server", text("Name or id of the server"));
        let since = ("since", text("From when: 2026-11-20T09:30:00Z, or how long ago, such as 15m, 2h or 1d"));
        let until = ("until", text("Until when; defaults to now"));
        let offset = ("offset", number("How many to skip", 0, 1_000_000));
        let (properties, required): (Vec<(&str, Value)>, &[&str]) = match self {
            Self::ListServers => (
                vec![
                    ("tag", text("Only servers with this tag")),
                    ("status", one_of(&["online", "offline", "pending"])),
                    ("search", text("Only servers with this text in name, host or description")),
                    ("limit", number("How many at most; defaults to 100", 1, 499)),
                    offset,
                ],
                &[],
            ),
            Self::ReadMetrics => (
                vec![
                    server,
                    (
                        "names",
                        json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 8,
                        "description": "Series, such as cpu_percent or disk_percent:/"}),
                    ),
                    ("search", text("List the names of series with this text instead")),
                    since,
                    until,
                    ("points", number("How many points of each series; defaults to 30", 1, 200)),
                ],
                &["server"],
            ),
            Self::ListAlerts => (
                vec![
                    ("status", one_of(&["active", "acknowledged", "resolved", "all"])),
                    ("server", text("Only alerts of this server: name or id")),
                    ("severity", one_of(&["info", "warning", "critical"])),
                    ("limit", number("How many at most; defaults to 50", 1, 499)),
                    offset,
                ],
                &[],
            ),
            Self::ReadLogs => (
                vec![
                    server,
                    ("container", text("Read this container's log: name or id")),
                    ("file", text("Read this file, if the server's policy allows it: its absolute path")),
                    since,
                    until,
                    ("search", text("Only lines with this text")),
                    ("regex", json!({"type": "boolean", "description": "`search` is a regular expression"})),
                    ("lines", number("How many lines at most; defaults to 100", 1, 10_000)),
                ],
                &["server"],
            ),
            Self::ListContainers => (
                vec![
                    server,
                    ("running", json!({"type": "boolean", "description": "Only those that run"})),
                    ("search", text("Only those with this text in name or image")),
                ],
                &["server"],
            ),
            Self::ProcessesAt => (vec![server, ("at", text("The time; defaults to now"))], &["server"]),
            Self::AcknowledgeAlert => (vec![("alert", text("Id of the alert, from list_alerts"))], &["alert"]),
            Self::RestartContainer => {
                (vec![server, ("container", text("Name or id of the container"))], &["server", "container"])
            }
            Self::RunCommand => (
                vec![
                    server,
                    ("command", text("The command, for /bin/sh -c")),
                    ("stdin", text("Its standard input")),
                    ("timeout_seconds", number("After this time it is ended; defaults to 60", 1, 80)),
                ],
                &["server", "command"],
            ),
        };
        let properties: Map<String, Value> =
            properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false});
        schema.as_object().cloned().unwrap_or_default()
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str, least: u32, most: u32) -> Value {
    json!({"type": "integer", "description": description, "minimum": least, "maximum": most})
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_token_may_not_do_is_no_tool() {
        let names = |allowed| Tool::offered(allowed).map(Tool::name).collect::<Vec<_>>();
        let reading = ["list_servers", "read_metrics", "list_alerts", "read_logs", "list_containers", "processes_at"];

        assert_eq!(names(Allowed::default()), reading);
        let responder = names(Allowed { alerts: true, ..Allowed::default() });
        assert_eq!(responder, [&reading[..], &["acknowledge_alert"]].concat());
        let all = names(Allowed { alerts: true, containers: true, commands: true });
        assert_eq!(all.len(), 9);
        assert!(all.iter().all(|name| Tool::named(name).is_some_and(|tool| tool.name() == *name)));
    }
}
