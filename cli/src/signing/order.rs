//! What is signed. Pure.

use serde::Serialize;
use signalbox_protocol::Timestamp;
use signalbox_signing::payload::input_hash;
use signalbox_signing::{Kind, Payload};

use crate::error::Failure;
use crate::output::text::{clean, shell_word};
use crate::output::time::local;

/// What servers are asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Command {
        command: &'a str,
        stdin: Option<&'a str>,
        timeout_seconds: u64,
    },
    /// For how long it may stay open.
    Terminal {
        open_seconds: u64,
    },
    /// A verb and a container, such as `restart web`, and how long the container may take to stop.
    Container {
        action: &'a str,
        timeout_seconds: Option<u32>,
    },
}

/// An order, ready to be signed.
#[derive(Debug)]
pub struct Order {
    /// What is signed.
    pub bytes: Vec<u8>,
    payload: Payload,
    stdin_bytes: usize,
}

/// In the order of the documents, for people who read what they signed.
#[derive(Serialize)]
struct Fields<'a> {
    v: u32,
    servers: &'a [String],
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
    not_before: Timestamp,
    expires_at: Timestamp,
    nonce: &'a str,
}

impl Order {
    /// For the servers of these names, from the first time to the second. `nonce` is random.
    pub fn new(
        servers: &[String],
        subject: Subject<'_>,
        (not_before, expires_at): (Timestamp, Timestamp),
        nonce: &str,
    ) -> Result<Self, Failure> {
        let mut fields = Fields {
            v: 1,
            servers,
            kind: Kind::Command,
            command: None,
            action: None,
            stdin_sha256: None,
            timeout_seconds: None,
            not_before,
            expires_at,
            nonce,
        };
        let mut input = None;
        match subject {
            Subject::Command { command, stdin, timeout_seconds } => {
                fields.command = Some(command);
                fields.stdin_sha256 = stdin.map(input_hash);
                fields.timeout_seconds = Some(timeout_seconds);
                input = stdin;
            }
            Subject::Terminal { open_seconds } => {
                fields.kind = Kind::Terminal;
                fields.timeout_seconds = Some(open_seconds);
            }
            Subject::Container { action, timeout_seconds } => {
                fields.kind = Kind::Container;
                fields.action = Some(action);
                fields.timeout_seconds = timeout_seconds.map(u64::from);
            }
        }
        let bytes = serde_json::to_vec(&fields).map_err(|error| unsignable(&error))?;
        Self::read(bytes, input)
    }

    /// Of the bytes that somebody else has signed, and the input that belongs to them. Reads them as the agent will.
    pub fn read(bytes: Vec<u8>, stdin: Option<&str>) -> Result<Self, Failure> {
        let payload = Payload::parse(&bytes).map_err(|error| unsignable(&error))?;
        if payload.stdin_sha256 != stdin.map(input_hash) {
            return Err(unsignable(&"it is for another standard input than the one that belongs to it"));
        }
        Ok(Self { bytes, payload, stdin_bytes: stdin.map_or(0, str::len) })
    }

    /// All of it except the nonce, for the person who signs.
    pub fn lines(&self) -> Vec<String> {
        let Payload { servers, kind, command, action, stdin_sha256, timeout_seconds, .. } = &self.payload;
        let names: Vec<String> = servers.iter().map(|name| shell_word(&clean(name))).collect();
        let mut lines = vec![line("servers", &names.join(", "))];
        match kind {
            Kind::Command => lines.push(line("command", command.as_deref().unwrap_or_default())),
            Kind::Container => lines.push(line("container", action.as_deref().unwrap_or_default())),
            Kind::Terminal => {
                lines.push(line("terminal", "everything that is typed, also by anyone who controls the service"))
            }
        }
        if let Some(hash) = stdin_sha256 {
            lines.push(line("input", &format!("{} bytes, SHA-256 {hash}", self.stdin_bytes)));
        }
        if let Some(seconds) = timeout_seconds {
            lines.push(line("timeout", &format!("{seconds} s")));
        }
        let (from, until) = (local(self.payload.not_before), local(self.payload.expires_at));
        lines.push(line("valid", &format!("from {from} to {until}")));
        lines
    }
}

fn unsignable(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("this cannot be signed: {error}"))
}

/// What takes several lines is indented, so that none of it looks like another field.
fn line(name: &str, text: &str) -> String {
    let text: Vec<String> = text.split('\n').map(clean).collect();
    format!("  {name:<9}  {}", text.join("\n             "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef0123456789abcdef";

    fn order(servers: &[&str], subject: Subject<'_>) -> Result<Order, Failure> {
        let servers: Vec<String> = servers.iter().map(|name| (*name).to_owned()).collect();
        let times = ["2026-11-26T09:59:00Z", "2026-11-26T10:10:00Z"].map(|text| Timestamp::parse(text).unwrap());
        Order::new(&servers, subject, times.into(), NONCE)
    }

    #[test]
    fn a_payload_has_the_fields_of_its_kind_and_no_others() {
        let command = Subject::Command { command: "tr a b", stdin: Some("a"), timeout_seconds: 60 };
        let container = Subject::Container { action: "restart web", timeout_seconds: None };
        let text = |subject| String::from_utf8(order(&["web-1"], subject).unwrap().bytes).unwrap();
        let times = r#""not_before":"2026-11-26T09:59:00.000Z","expires_at":"2026-11-26T10:10:00.000Z""#;
        let nonce = format!(r#""nonce":"{NONCE}""#);

        let hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert_eq!(
            text(command),
            format!(
                r#"{{"v":1,"servers":["web-1"],"kind":"command","command":"tr a b","stdin_sha256":"{hash}","timeout_seconds":60,{times},{nonce}}}"#
            )
        );
        assert_eq!(
            text(Subject::Terminal { open_seconds: 900 }),
            format!(r#"{{"v":1,"servers":["web-1"],"kind":"terminal","timeout_seconds":900,{times},{nonce}}}"#)
        );
        assert_eq!(
            text(container),
            format!(r#"{{"v":1,"servers":["web-1"],"kind":"container","action":"restart web",{times},{nonce}}}"#)
        );
    }

    #[test]
    fn no_text_looks_like_another_field() {
        let command = "true\n  servers    db-1\n\u{1b}[2J";
        let lines = order(&["web-1", "a, b"], Subject::Command { command, stdin: None, timeout_seconds: 60 });

        let lines = lines.unwrap().lines();

        assert_eq!(lines[0], "  servers    web-1, 'a, b'");
        assert_eq!(lines[1], "  command    true\n               servers    db-1\n             �[2J");
    }

    #[test]
    fn another_input_than_the_signed_one_is_refused() {
        let subject = Subject::Command { command: "cat", stdin: Some("a"), timeout_seconds: 60 };
        let bytes = order(&["web-1"], subject).unwrap().bytes;

        assert!(Order::read(bytes.clone(), Some("a")).is_ok());
        for other in [None, Some("b")] {
            let refusal = Order::read(bytes.clone(), other).unwrap_err().to_string();
            assert!(refusal.ends_with("it is for another standard input than the one that belongs to it"), "{refusal}");
        }
    }

    #[test]
    fn what_no_agent_would_take_is_not_signed() {
        let refused = order(&[], Subject::Terminal { open_seconds: 60 }).unwrap_err().to_string();

        assert_eq!(refused, "this cannot be signed: the payload's `servers` needs 1 to 2000 names of 1 to 100 bytes");
    }
}
