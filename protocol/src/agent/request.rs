//! A question and its answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Asks the agent a question, with one of a closed list of methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the service; the response repeats it.
    pub request_id: Uuid,
    /// The method, such as `docker.list`.
    pub method: String,
    /// The method's parameters; null when it has none.
    #[serde(default)]
    pub params: Value,
    /// After this many milliseconds the service no longer waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The user's name and address, for the log that the agent keeps on its own host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Answers a [`Request`]: `result` when `ok`, `error` otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The request, command or stream that this answers.
    pub request_id: Uuid,
    /// Whether the agent did what it was asked.
    pub ok: bool,
    /// The method's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why the agent refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RequestError>,
}

impl Response {
    /// The response with this outcome.
    pub fn new(request_id: Uuid, outcome: Result<Value, RequestError>) -> Self {
        match outcome {
            Ok(result) => Self { request_id, ok: true, result: Some(result), error: None },
            Err(error) => Self { request_id, ok: false, result: None, error: Some(error) },
        }
    }

    /// Returns the outcome. `ok: false` without an error is an error, too.
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
    /// For programs, such as `agent_refused` or `container_not_found`.
    pub code: String,
    /// For people.
    pub detail: String,
    /// Why, for programs. A signature did not suffice: `not_signed`, `unknown_signer`, `wrong_server`, `expired`, `replayed` or
    /// `not_enough_approvals`. A build is not taken: `updates_off`, `unknown_signer`, `malformed`, `not_newer`, `no_build`,
    /// `failed_before` or `busy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RequestError {
    /// An error with this code and detail.
    pub fn new(code: &str, detail: &str) -> Self {
        Self { code: code.to_owned(), detail: detail.to_owned(), reason: None }
    }
}
