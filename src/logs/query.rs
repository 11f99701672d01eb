//! Searches logs; the agent does the work.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

use super::{Log, Logs};
use crate::registry::{CallError, Question};

/// An agent searches for at most 5 s; the rest is for the network.
const DEADLINE: Duration = Duration::from_secs(15);

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// The most lines to return, the newest ones.
    pub tail: u32,
    /// The text or the regular expression to find.
    pub q: Option<String>,
    pub regex: bool,
}

/// The result of a search, oldest line first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SearchResult {
    pub lines: Vec<FoundLine>,
    /// Whether a part of the log was not searched.
    #[serde(default)]
    pub truncated: bool,
    /// The time of the oldest line that was searched, if a part was not.
    #[serde(default)]
    pub stopped_at: Option<Timestamp>,
}

pub type FoundLine = LogLine;

impl Logs {
    /// Searches a log. `by` names the person in the log of the agent's own host.
    pub async fn search(&self, log: &Log, search: &Search, by: String) -> Result<SearchResult, CallError> {
        let mut params = json!(search);
        if let Some(fields) = params.as_object_mut() {
            fields.insert("source".to_owned(), json!(log.source.name()));
            fields.insert("container_id".to_owned(), json!(log.source.container_id()));
            fields.insert("path".to_owned(), json!(log.source.path()));
        }
        let question = Question { method: "logs.query", params, deadline: DEADLINE, by: Some(by) };
        self.registry.ask(log.server_id, question).await
    }
}
