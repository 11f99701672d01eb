//! A question and its answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Asks the agent for something, by a closed list of methods that the agent implements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub request_id: Uuid,
    /// Such as `docker.list`.
    pub method: String,
    #[serde(default)]
    pub params: Value,
    /// After this many milliseconds nobody waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Who asks, for the log that the agent keeps on its own host: a user's name and address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Answers a [`Request`]: `result` when `ok`, `error` otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub request_id: Uuid,
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RequestError>,
}

impl Response {
    pub fn new(request_id: Uuid, outcome: Result<Value, RequestError>) -> Self {
        match outcome {
            Ok(result) => Self { request_id, ok: true, result: Some(result), error: None },
            Err(error) => Self { request_id, ok: false, result: None, error: Some(error) },
        }
    }

    /// The outcome. `ok: false` without an error still is an error.
    pub fn into_outcome(self) -> Result<Value, RequestError> {
        if self.ok {
            return Ok(self.result.unwrap_or_default());
        }
        Err(self.error.unwrap_or_else(|| RequestError::new("agent_error", "the agent gave no reason")))
    }
}

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestError {
    /// Such as `agent_refused` or `container_not_found`.
    pub code: String,
    pub detail: String,
}

impl RequestError {
    pub fn new(code: &str, detail: &str) -> Self {
        Self { code: code.to_owned(), detail: detail.to_owned() }
    }
}
