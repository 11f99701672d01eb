//! Why a connection ended, and what follows.

use std::time::Duration;

use signalbox_protocol::close;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::dial::DialError;
use crate::exit::Exit;

/// The end of an attempt or of a session.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The agent must not reconnect: it was stopped or refused.
    #[error("{0}")]
    ForGood(Exit),
    /// Reconnecting soon would start a fight that neither wins. Never reconnecting would let a copy of this machine, which may
    /// not live for long, disconnect it for good.
    #[error(
        "another agent connected with a key of the same server and took over; \
         give each machine a server and a key of its own"
    )]
    Replaced,
    #[error("the service asked to come back later ({0})")]
    Busy(String),
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the service gave no answer to the key within {} s", .0.as_secs_f64())]
    NoAuthResponse(Duration),
    #[error("the service refused for now: {0}")]
    Refused(String),
    #[error("the service closed the connection: {code} {reason}")]
    Closed { code: u16, reason: String },
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("nothing was heard from the service for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("the service has stored nothing for {} s, and says that it could", .0.as_secs_f64())]
    Unacknowledged(Duration),
    #[error("the service does not read what it is sent")]
    Unread,
    #[error("the machine slept for {} s", .0.as_secs())]
    Suspended(Duration),
}

impl Ended {
    /// The meaning of a close frame.
    pub fn by_close(frame: Option<CloseFrame>) -> Self {
        let Some(frame) = frame else {
            return Self::Broken("closed without a reason".to_owned());
        };
        let (code, reason) = (u16::from(frame.code), frame.reason.to_string());
        match code {
            close::UNAUTHORIZED => Self::ForGood(Exit::KeyRefused(or(reason, "wrong or revoked"))),
            close::SERVER_DELETED => Self::ForGood(Exit::ServerDeleted),
            close::REPLACED => Self::Replaced,
            close::RESTARTING => Self::Busy(or(reason, "restarting")),
            close::OVERLOADED => Self::Busy(or(reason, "overloaded")),
            _ => Self::Closed { code, reason },
        }
    }
}

fn or(text: String, fallback: &str) -> String {
    if text.is_empty() { fallback.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_close(code: u16, reason: &'static str) -> String {
        format!("{:?}", Ended::by_close(Some(CloseFrame { code: code.into(), reason: reason.into() })))
    }

    #[test]
    fn each_close_code_has_its_meaning() {
        let cases = [
            (4401, "key revoked", r#"ForGood(KeyRefused("key revoked"))"#),
            (4401, "", r#"ForGood(KeyRefused("wrong or revoked"))"#),
            (4404, "", "ForGood(ServerDeleted)"),
            (4409, "replaced", "Replaced"),
            (1012, "", r#"Busy("restarting")"#),
            (1013, "", r#"Busy("overloaded")"#),
            (4400, "bad sample", r#"Closed { code: 4400, reason: "bad sample" }"#),
            (4408, "", r#"Closed { code: 4408, reason: "" }"#),
            (1000, "bye", r#"Closed { code: 1000, reason: "bye" }"#),
        ];

        for (code, reason, expected) in cases {
            assert_eq!(by_close(code, reason), expected);
        }
    }
}
