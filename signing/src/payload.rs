//! The bytes that are signed: JSON that names the servers, what is to run there, and when.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::MAX_PAYLOAD_CHARACTERS;

use crate::repeat::{Repeat, RepeatError};

/// The only version. A payload of another one may mean something that this build does not know, so it is refused.
const VERSION: u32 = 1;

/// The longest time from `not_before` to `expires_at`: agents remember nonces for as long.
pub const MAX_VALIDITY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The longest time from `not_before` to `expires_at` of a payload that recurs: agents remember each time at which it was due.
pub const MAX_REPEAT_MS: i64 = 366 * MAX_VALIDITY_MS;

/// The most servers of one payload.
const MAX_SERVERS: usize = 2_000;

/// The longest name of a server, in bytes.
pub const MAX_NAME_BYTES: usize = 100;

/// As in the API of commands.
const MAX_COMMAND_CHARACTERS: usize = 32_768;

/// A verb and the name or the id of a container.
const MAX_ACTION_BYTES: usize = 300;

/// The longest time that a command may run or a terminal may stay open, in seconds.
const MAX_TIMEOUT_SECONDS: u32 = 86_400;

/// 128 random bits have 22 characters in base64url and 32 in hexadecimal digits.
const NONCE_CHARACTERS: std::ops::RangeInclusive<usize> = 22..=128;

/// What is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// The version.
    pub v: u32,
    /// The names that the servers have for signers.
    pub servers: Vec<String>,
    pub kind: Kind,
    /// The text for the shell, of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A verb and a container, such as `restart web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Of a command's standard input, in lower-case hexadecimal digits; none if it has no input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_sha256: Option<String>,
    /// How long a command may run, a terminal may stay open, or a container has to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// When a command recurs; none if it runs once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    pub not_before: Timestamp,
    pub expires_at: Timestamp,
    /// Random, so that no payload equals another.
    pub nonce: String,
}

/// What kind of thing is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Command,
    Terminal,
    Container,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Command => "command",
            Self::Terminal => "terminal",
            Self::Container => "container",
        })
    }
}

/// Why bytes are not a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    #[error("the payload is not base64 (the standard alphabet, with padding, without line breaks)")]
    NotBase64,
    #[error("the payload is too long")]
    TooLong,
    #[error("the payload is not the JSON that is signed: {0}")]
    NotJson(String),
    #[error("the payload has version {0}, and this program knows version 1 only")]
    UnknownVersion(u32),
    #[error("the payload's `{field}` {fault}")]
    Invalid { field: &'static str, fault: &'static str },
}

/// Decodes the base64 of a payload. Only one text stands for the same bytes.
pub fn decode(text: &str) -> Result<Vec<u8>, PayloadError> {
    if text.len() > MAX_PAYLOAD_CHARACTERS {
        return Err(PayloadError::TooLong);
    }
    BASE64_STANDARD.decode(text).map_err(|_| PayloadError::NotBase64)
}

/// The SHA-256 of a command's input, as a payload has it.
pub fn input_hash(input: &str) -> String {
    digest(&SHA256, input.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Payload {
    /// Whether this is the standard input that was signed. An empty one and none are the same: a command reads nothing from
    /// either.
    pub fn is_for_input(&self, stdin: Option<&str>) -> bool {
        let input = stdin.unwrap_or_default();
        match &self.stdin_sha256 {
            Some(hash) => *hash == input_hash(input),
            None => input.is_empty(),
        }
    }

    /// Reads the bytes that were signed. Unknown and repeated keys are refused: the signer meant something by them.
    pub fn parse(bytes: &[u8]) -> Result<Self, PayloadError> {
        if bytes.len() > MAX_PAYLOAD_CHARACTERS {
            return Err(PayloadError::TooLong);
        }
        let version: Versioned = serde_json::from_slice(bytes).map_err(not_json)?;
        if version.v != VERSION {
            return Err(PayloadError::UnknownVersion(version.v));
        }
        let payload: Self = serde_json::from_slice(bytes).map_err(not_json)?;
        match payload.fault() {
            Some((field, fault)) => Err(PayloadError::Invalid { field, fault }),
            None => Ok(payload),
        }
    }

    /// The first field that is out of its bounds, and why.
    fn fault(&self) -> Option<(&'static str, &'static str)> {
        self.fault_of_kind().or_else(|| {
            let is_name = |name: &String| (1..=MAX_NAME_BYTES).contains(&name.len());
            if !(1..=MAX_SERVERS).contains(&self.servers.len()) || !self.servers.iter().all(is_name) {
                return Some(("servers", "needs 1 to 2000 names of 1 to 100 bytes"));
            }
            if self.timeout_seconds.is_some_and(|seconds| seconds > MAX_TIMEOUT_SECONDS) {
                return Some(("timeout_seconds", "is longer than a day"));
            }
            if let Some(fault) = self.fault_of_times() {
                return Some(fault);
            }
            let is_of_nonce = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte);
            if !NONCE_CHARACTERS.contains(&self.nonce.len()) || !self.nonce.bytes().all(is_of_nonce) {
                return Some(("nonce", "needs 22 to 128 characters of base64 or hexadecimal digits (128 random bits)"));
            }
            None
        })
    }

    fn fault_of_times(&self) -> Option<(&'static str, &'static str)> {
        let validity = self.expires_at.millis_since(self.not_before);
        let Some(repeat) = &self.repeat else {
            let is_short = (1..=MAX_VALIDITY_MS).contains(&validity);
            return (!is_short).then_some(("expires_at", "has to be after `not_before`, by 24 hours at most"));
        };
        if self.kind != Kind::Command {
            return Some(("repeat", "belongs to commands only"));
        }
        match repeat.read() {
            Ok(_) if (1..=MAX_REPEAT_MS).contains(&validity) => None,
            Ok(_) => Some(("expires_at", "has to be after `not_before`, by 366 days at most")),
            Err(RepeatError::Fields) => Some(("repeat", "needs a cron expression with five fields")),
            Err(RepeatError::Syntax) => Some(("repeat", "has a field in its cron expression that is none")),
            Err(RepeatError::Never) => Some(("repeat", "has a cron expression that is never due")),
            Err(RepeatError::Zone) => Some(("repeat", "needs the time zone UTC: what is signed recurs in UTC")),
        }
    }

    fn fault_of_kind(&self) -> Option<(&'static str, &'static str)> {
        let Self { kind, command, action, stdin_sha256, timeout_seconds, .. } = self;
        match (kind, command, action) {
            (Kind::Command, Some(command), None) => {
                let length = command.chars().take(MAX_COMMAND_CHARACTERS + 1).count();
                if !(1..=MAX_COMMAND_CHARACTERS).contains(&length) {
                    return Some(("command", "needs 1 to 32768 characters"));
                }
            }
            (Kind::Terminal, None, None) => {}
            (Kind::Container, None, Some(action)) => {
                if action.len() > MAX_ACTION_BYTES {
                    return Some(("action", "is too long"));
                }
            }
            (Kind::Command, ..) => return Some(("command", "is needed by this kind, and no `action`")),
            (Kind::Terminal, ..) => return Some(("kind", "is a terminal, which has neither `command` nor `action`")),
            (Kind::Container, ..) => return Some(("action", "is needed by this kind, and no `command`")),
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match stdin_sha256 {
            Some(_) if *kind != Kind::Command => return Some(("stdin_sha256", "belongs to commands only")),
            Some(hash) if hash.len() != 64 || !hash.bytes().all(is_digit) => {
                return Some(("stdin_sha256", "needs 64 hexadecimal digits in lower case"));
            }
            Some(_) | None => {}
        }
        match (kind, timeout_seconds) {
            (Kind::Command | Kind::Terminal, None | Some(0)) => Some(("timeout_seconds", "is needed by this kind")),
            _ => None,
        }
    }
}

/// Read first, so that a newer payload is not refused for its unknown fields.
#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

fn not_json(error: serde_json::Error) -> PayloadError {
    PayloadError::NotJson(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sound() -> Value {
        json!({
            "v": 1,
            "servers": ["web-1"],
            "kind": "command",
            "command": "systemctl restart nginx",
            "timeout_seconds": 60,
            "not_before": "2026-11-26T10:00:00Z",
            "expires_at": "2026-11-26T10:05:00Z",
            "nonce": "0123456789abcdef0123456789abcdef",
        })
    }

    fn with(changes: &[(&str, Value)]) -> Result<Payload, PayloadError> {
        let mut value = sound();
        for (name, change) in changes {
            match change {
                Value::Null => _ = value.as_object_mut().unwrap().remove(*name),
                other => value[*name] = other.clone(),
            }
        }
        Payload::parse(value.to_string().as_bytes())
    }

    #[test]
    fn each_kind_says_what_it_needs() {
        let terminal = [("kind", json!("terminal")), ("command", Value::Null)];
        let action = ("action", json!("restart web"));
        let container = [("kind", json!("container")), ("command", Value::Null), action.clone()];

        assert_eq!(with(&[]).unwrap().command.as_deref(), Some("systemctl restart nginx"));
        assert_eq!(with(&terminal).unwrap().kind, Kind::Terminal);
        assert_eq!(with(&container).unwrap().action.as_deref(), Some("restart web"));
        for (name, change) in [action, ("command", Value::Null), ("timeout_seconds", Value::Null)] {
            assert!(with(&[(name, change)]).is_err(), "{name}");
        }
        assert!(with(&terminal[..1]).is_err());
        assert!(with(&container[..2]).is_err());
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_its_field() {
        let hash = json!("A".repeat(64));
        let cases = [
            ("servers", json!([])),
            ("servers", json!([""])),
            ("servers", json!(vec!["a"; 2_001])),
            ("command", json!("")),
            ("command", json!("x".repeat(32_769))),
            ("stdin_sha256", hash),
            ("timeout_seconds", json!(0)),
            ("timeout_seconds", json!(86_401)),
            ("expires_at", json!("2026-11-26T10:00:00Z")),
            ("expires_at", json!("2026-11-27T10:00:00.001Z")),
            ("nonce", json!("short")),
            ("nonce", json!("0123456789abcdef0123456789abcde ")),
        ];

        for (field, value) in cases {
            match with(&[(field, value.clone())]) {
                Err(PayloadError::Invalid { field: named, .. }) => assert_eq!(named, field, "{value}"),
                other => panic!("{field} {value}: {other:?}"),
            }
        }
        assert!(with(&[("expires_at", json!("2026-11-27T10:00:00Z"))]).is_ok());
    }

    #[test]
    fn what_recurs_may_hold_for_a_year_and_says_when() {
        let repeat = |cron: &str, zone: &str| ("repeat", json!({ "cron": cron, "time_zone": zone }));
        let year = ("expires_at", json!("2027-11-27T10:00:00Z"));
        let faulty = |fields: &[(&str, Value)]| match with(fields) {
            Err(PayloadError::Invalid { field, .. }) => field,
            other => panic!("{fields:?}: {other:?}"),
        };

        let daily = repeat("0 3 * * *", "UTC");
        let payload = with(&[daily.clone(), year.clone()]).unwrap();
        assert_eq!(payload.repeat, Some(Repeat { cron: "0 3 * * *".into(), time_zone: "UTC".into() }));
        assert_eq!(faulty(&[daily.clone(), ("expires_at", json!("2027-11-27T10:00:00.001Z"))]), "expires_at");
        assert_eq!(faulty(std::slice::from_ref(&year)), "expires_at");
        for repeat in [repeat("0 3 * *", "UTC"), repeat("0 25 * * *", "UTC"), repeat("0 3 * * *", "Europe/Berlin")] {
            assert_eq!(faulty(&[repeat, year.clone()]), "repeat");
        }
        assert_eq!(faulty(&[daily, ("kind", json!("terminal")), ("command", Value::Null)]), "repeat");
        let unknown = ("repeat", json!({ "cron": "0 3 * * *", "time_zone": "UTC", "seconds": 1 }));
        assert!(matches!(with(&[unknown]), Err(PayloadError::NotJson(_))));
    }

    #[test]
    fn unknown_and_repeated_keys_are_refused() {
        let text = sound().to_string();
        let twice = text.replacen("\"v\":1", "\"v\":1,\"v\":1", 1);
        let again = text.replacen("\"command\":", "\"command\":\"true\",\"command\":", 1);

        assert!(matches!(with(&[("repeat", json!("daily"))]), Err(PayloadError::NotJson(_))));
        assert_ne!(twice, text);
        assert_ne!(again, text);
        for altered in [twice, again, format!("{text}x"), format!("[{text}]"), String::new()] {
            assert!(matches!(Payload::parse(altered.as_bytes()), Err(PayloadError::NotJson(_))), "{altered}");
        }
    }

    #[test]
    fn a_newer_version_is_named_whatever_its_fields_are() {
        assert_eq!(with(&[("v", json!(2)), ("repeat", json!(1))]), Err(PayloadError::UnknownVersion(2)));
    }

    #[test]
    fn only_one_text_of_base64_stands_for_the_same_bytes() {
        assert_eq!(decode("YQ=="), Ok(b"a".to_vec()));
        for other in ["YQ", "YR==", "YQ==\n", "Y Q==", "YQ=", "_-=="] {
            assert_eq!(decode(other), Err(PayloadError::NotBase64), "{other:?}");
        }
        assert_eq!(decode(&"A".repeat(MAX_PAYLOAD_CHARACTERS + 4)), Err(PayloadError::TooLong));
    }
}
