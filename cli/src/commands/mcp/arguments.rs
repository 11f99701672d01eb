//! The arguments of tools. Unknown ones are refused: an assistant that misspells a filter must not get everything.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;

use crate::error::Failure;
use crate::output::time::parse_moment;

pub fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::usage(format!("the arguments: {error}")))
}

/// A time as an argument has it.
pub fn moment(text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    text.map(parse_moment).transpose().map_err(Failure::usage)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListServers {
    pub tag: Option<String>,
    pub status: Option<String>,
    pub search: Option<String>,
    pub limit: Option<usize>,
    #[serde(default)]
    pub offset: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadMetrics {
    pub server: String,
    #[serde(default)]
    pub names: Vec<String>,
    pub search: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub points: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAlerts {
    pub status: Option<String>,
    pub server: Option<String>,
    pub severity: Option<String>,
    pub limit: Option<usize>,
    #[serde(default)]
    pub offset: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadLogs {
    pub server: String,
    pub container: Option<String>,
    pub file: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub search: Option<String>,
    #[serde(default)]
    pub regex: bool,
    pub lines: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListContainers {
    pub server: String,
    #[serde(default)]
    pub running: bool,
    pub search: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessesAt {
    pub server: String,
    pub at: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeAlert {
    pub alert: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartContainer {
    pub server: String,
    pub container: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    pub server: String,
    pub command: String,
    pub stdin: Option<String>,
    pub timeout_seconds: Option<u32>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_misspelt_argument_is_named() {
        let arguments = json!({"sever": "web-1"}).as_object().cloned().unwrap();

        let refusal = read::<ProcessesAt>(arguments).unwrap_err().to_string();

        assert!(refusal.contains("unknown field `sever`"), "{refusal}");
    }
}
