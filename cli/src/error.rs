//! Why a call did not do what it should, and the exit code of it.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use signalbox_signing::Reason;

/// Why the program ends without success.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments, the environment or the contexts do not say what to do.
    #[error("{0}")]
    Usage(String),
    /// It did not work, for a reason that the text says.
    #[error("{0}")]
    Failed(String),
    /// The service refused.
    #[error("{0}")]
    Refused(Refusal),
    /// The service, or what stands before it, refused for now, and said how long to wait.
    #[error("{refusal}")]
    Deferred { refusal: Refusal, retry_after: Duration },
    /// No connection came about, so the service got nothing; another attempt may succeed.
    #[error("{0}")]
    NotSent(String),
    /// The connection was lost, or there was no answer; another attempt may succeed.
    #[error("{0}")]
    Unreachable(String),
    /// A signal ended the wait, as Ctrl-C does.
    #[error("{text}")]
    Interrupted { exit_code: u8, text: String },
    /// The remote command ended with this exit code. Its own output says why.
    #[error("the command ended with exit code {0}")]
    Remote(u8),
    /// Nobody reads the output any more, as after `| head`.
    #[error("nobody reads the output")]
    NoReader,
}

/// What the service answered in place of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub code: String,
    pub detail: String,
    /// Why signatures did not suffice.
    pub reason: Option<Reason>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

/// An error as the API writes it. `detail` is a sentence, or for 422 a list of faults.
#[derive(Deserialize)]
struct ErrorBody {
    detail: Value,
    #[serde(default)]
    code: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Fault {
    #[serde(default)]
    loc: Vec<Value>,
    msg: String,
}

impl Failure {
    /// The exit code of a call that makes no sense.
    pub const USAGE: u8 = 2;
    /// As of a program that SIGINT ended.
    pub const INTERRUPTED: u8 = 130;
    const FAILED: u8 = 1;

    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    /// The code of a refusal; empty for everything else.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) | Self::Deferred { refusal, .. } => &refusal.code,
            Self::Usage(_)
            | Self::Failed(_)
            | Self::NotSent(_)
            | Self::Unreachable(_)
            | Self::Interrupted { .. }
            | Self::Remote(_)
            | Self::NoReader => "",
        }
    }

    /// Whether another attempt may succeed although nothing is changed here.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::Unreachable(_) => true,
            // Also what a proxy answers while nothing is behind it, and Cloudflare with statuses of its own.
            Self::Refused(refusal) | Self::Deferred { refusal, .. } => matches!(refusal.status, 502..=504 | 520..=524),
            Self::Usage(_) | Self::Failed(_) | Self::Interrupted { .. } | Self::Remote(_) | Self::NoReader => false,
        }
    }

    /// Whether to ask again after a request that changed nothing: also after one that came too soon after others.
    pub fn is_passing_for_reads(&self) -> bool {
        let is_too_soon = match self {
            Self::Refused(refusal) | Self::Deferred { refusal, .. } => refusal.status == 429,
            Self::Usage(_)
            | Self::Failed(_)
            | Self::NotSent(_)
            | Self::Unreachable(_)
            | Self::Interrupted { .. }
            | Self::Remote(_)
            | Self::NoReader => false,
        };
        is_too_soon || self.is_passing()
    }

    /// How long the service wants to be left alone.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Deferred { retry_after, .. } => *retry_after,
            Self::Usage(_)
            | Self::Failed(_)
            | Self::Refused(_)
            | Self::NotSent(_)
            | Self::Unreachable(_)
            | Self::Interrupted { .. }
            | Self::Remote(_)
            | Self::NoReader => Duration::ZERO,
        }
    }

    /// The same failure, with more to know about it.
    pub fn and(self, more: &str) -> Self {
        let with = |text: &str| format!("{text}; {more}");
        match self {
            Self::Usage(text) => Self::Usage(with(&text)),
            Self::Failed(text) => Self::Failed(with(&text)),
            Self::Refused(refusal) => Self::Refused(Refusal { detail: with(&refusal.detail), ..refusal }),
            Self::Deferred { refusal, retry_after } => {
                Self::Deferred { refusal: Refusal { detail: with(&refusal.detail), ..refusal }, retry_after }
            }
            Self::NotSent(text) => Self::NotSent(with(&text)),
            Self::Unreachable(text) => Self::Unreachable(with(&text)),
            Self::Interrupted { exit_code, text } => Self::Interrupted { exit_code, text: with(&text) },
            Self::Remote(_) | Self::NoReader => self,
        }
    }

    /// What to print before the program ends; nothing where everything was said.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Usage(_)
            | Self::Failed(_)
            | Self::Refused(_)
            | Self::Deferred { .. }
            | Self::NotSent(_)
            | Self::Unreachable(_)
            | Self::Interrupted { .. } => Some(self.to_string()),
            Self::Remote(_) | Self::NoReader => None,
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => Self::USAGE,
            Self::Failed(_) | Self::Refused(_) | Self::Deferred { .. } | Self::NotSent(_) | Self::Unreachable(_) => {
                Self::FAILED
            }
            Self::Interrupted { exit_code, .. } => *exit_code,
            Self::Remote(code) => *code,
            // The reader of a list has what it wanted. What acts continues: see `output::even_if_unread`.
            Self::NoReader => 0,
        }
    }
}

impl Refusal {
    /// From the body of an answer, which may be that of a proxy.
    pub fn of(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice::<ErrorBody>(body) {
            Ok(body) => {
                let reason = body.reason.as_deref().and_then(Reason::of);
                Self { status, code: body.code, detail: detail_of(body.detail), reason }
            }
            Err(_) => {
                let detail = format!("the service answered with status {status}");
                Self { status, code: String::new(), detail, reason: None }
            }
        }
    }
}

/// One line of a `detail`, whichever of the two forms it has.
fn detail_of(detail: Value) -> String {
    match detail {
        Value::String(text) => text,
        other => match serde_json::from_value::<Vec<Fault>>(other) {
            Ok(faults) => faults.iter().map(Fault::line).collect::<Vec<_>>().join(", "),
            Err(_) => "the service refused without a reason".to_owned(),
        },
    }
}

impl Fault {
    /// `name: field required`, without the part of the request that the field is in.
    fn line(&self) -> String {
        let words = self.loc.iter().skip(1).map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        let place = words.collect::<Vec<_>>().join(".");
        if place.is_empty() { self.msg.clone() } else { format!("{place}: {}", self.msg) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::NoReader } else { Self::Failed(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_a_request_are_one_line() {
        let body = br#"{"detail": [{"loc": ["body", "name"], "msg": "field required", "type": "a"},
            {"loc": ["body", "tags", 1], "msg": "is too long", "type": "b"}, {"loc": ["body"], "msg": "no JSON", "type": "c"}],
            "status_code": 422}"#;

        let refusal = Refusal::of(422, body);

        assert_eq!(refusal.detail, "name: field required, tags.1: is too long, no JSON");
    }

    #[test]
    fn an_answer_of_a_proxy_is_named_by_its_status() {
        let refusal = Refusal::of(502, b"<html>Bad Gateway</html>");

        assert_eq!(refusal.detail, "the service answered with status 502");
        assert_eq!(refusal.code, "");
    }

    #[test]
    fn what_a_proxy_answers_for_a_service_that_is_away_passes() {
        let refused = |status| Failure::Refused(Refusal::of(status, b""));

        for status in [502, 503, 504, 520, 524] {
            assert!(refused(status).is_passing() && refused(status).is_passing_for_reads(), "{status}");
        }
        for status in [400, 404, 500, 505, 519, 525] {
            assert!(!refused(status).is_passing() && !refused(status).is_passing_for_reads(), "{status}");
        }
        // What it was to change has not been changed.
        assert!(!refused(429).is_passing() && refused(429).is_passing_for_reads());
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));

        assert_eq!((failure.line(), failure.exit_code()), (None, 0));
    }
}
