//! What is signed. Pure.

use serde::Serialize;
use signalbox_protocol::Timestamp;
use signalbox_signing::payload::input_hash;
use signalbox_signing::{Kind, Payload, Repeat};

use crate::error::Failure;
use crate::output::text::{shell_word, visible};
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
    input: Input,
}

/// The standard input of an order.
#[derive(Debug)]
enum Input {
    /// Who signs has chosen it.
    Own { bytes: usize },
    /// Somebody else has, so who signs has to see it.
    Foreign(String),
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
        let payload = checked(&bytes, input)?;
        Ok(Self { bytes, payload, input: Input::Own { bytes: input.map_or(0, str::len) } })
    }

    /// Of the bytes that somebody else has signed, and the input that belongs to them. Reads them as the agent will.
    pub fn read(bytes: Vec<u8>, stdin: Option<&str>) -> Result<Self, Failure> {
        let payload = checked(&bytes, stdin)?;
        Ok(Self { bytes, payload, input: Input::Foreign(stdin.unwrap_or_default().to_owned()) })
    }

    /// Refuses what nobody can ask others to sign: a command that runs once waits for signatures, and nothing else does. A service
    /// that offers something else wants more than it says.
    pub fn expect_single_command(&self) -> Result<(), Failure> {
        match (self.payload.kind, &self.payload.repeat) {
            (Kind::Command, None) => Ok(()),
            (Kind::Command, Some(repeat)) => Err(unsignable(&format!(
                "it recurs ({}), and only a command that runs once waits for signatures: ask who sent it",
                visible(&repeat.cron)
            ))),
            (kind @ (Kind::Terminal | Kind::Container), _) => Err(unsignable(&format!(
                "it is for a {kind}, and only a command that runs once waits for signatures: ask who sent it"
            ))),
        }
    }

    /// All of it except the nonce, for the person who signs.
    pub fn lines(&self) -> Vec<String> {
        // Names every field: a new one has to be shown before this compiles.
        let Payload {
            v: _,
            servers,
            kind,
            command,
            action,
            stdin_sha256,
            timeout_seconds,
            repeat,
            not_before,
            expires_at,
            nonce: _,
        } = &self.payload;
        let names: Vec<String> = servers.iter().map(|name| shell_word(&visible(name))).collect();
        let mut lines = vec![line("servers", &names.join(", "))];
        match kind {
            Kind::Command => lines.push(line("command", command.as_deref().unwrap_or_default())),
            Kind::Container => lines.push(line("container", action.as_deref().unwrap_or_default())),
            Kind::Terminal => {
                lines.push(line("terminal", "everything that is typed, also by anyone who controls the service"))
            }
        }
        match (stdin_sha256, &self.input) {
            (Some(hash), Input::Own { bytes }) => lines.push(line("input", &format!("{bytes} bytes, SHA-256 {hash}"))),
            (Some(hash), Input::Foreign(text)) => {
                lines.push(line("input", &format!("{} bytes, SHA-256 {hash}", text.len())));
                lines.push(line("", text));
            }
            (None, _) => {}
        }
        if let Some(seconds) = timeout_seconds {
            lines.push(line("timeout", &format!("{seconds} s")));
        }
        if let Some(Repeat { cron, time_zone }) = repeat {
            lines.push(line("recurs", &format!("{cron} ({time_zone}), once each time that it is due")));
        }
        let (from, until) = (local(*not_before), local(*expires_at));
        lines.push(line("valid", &format!("from {from} to {until}")));
        lines
    }
}

/// Reads the bytes as the agent will, with the input that is to belong to them.
fn checked(bytes: &[u8], stdin: Option<&str>) -> Result<Payload, Failure> {
    let payload = Payload::parse(bytes).map_err(|error| unsignable(&error))?;
    if !payload.is_for_input(stdin) {
        return Err(unsignable(&"it is for another standard input than the one that belongs to it"));
    }
    Ok(payload)
}

fn unsignable(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("this cannot be signed: {error}"))
}

/// What takes several lines is indented, so that none of it looks like another field.
fn line(name: &str, text: &str) -> String {
    let text: Vec<String> = text.split('\n').map(visible).collect();
    format!("  {name:<9}  {}", text.join("\n             "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn what_a_terminal_hides_is_marked() {
        let command = Subject::Command { command: "rm -rf /srv/\u{200b}old\u{a0}/", stdin: None, timeout_seconds: 60 };

        let lines = order(&["web\u{2060}-1"], command).unwrap().lines();

        assert_eq!(lines[..2], ["  servers    'web�-1'", "  command    rm -rf /srv/�old�/"]);
    }

    /// What a service that was taken over could offer to sign.
    fn offered(fields: &[(&str, serde_json::Value)], stdin: Option<&str>) -> Order {
        let subject = Subject::Command { command: "sh", stdin, timeout_seconds: 60 };
        let bytes = order(&["web-1"], subject).unwrap().bytes;
        let mut payload: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        for (name, value) in fields {
            payload[*name] = value.clone();
        }
        payload.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        Order::read(payload.to_string().into_bytes(), stdin).unwrap()
    }

    #[test]
    fn what_recurs_is_shown_and_not_signed_for_somebody_else() {
        let repeat = json!({ "cron": "* * * * *", "time_zone": "UTC" });
        let order = offered(&[("repeat", repeat), ("expires_at", json!("2027-11-26T10:00:00Z"))], None);

        assert!(order.lines().contains(&"  recurs     * * * * * (UTC), once each time that it is due".to_owned()));
        let refusal = order.expect_single_command().unwrap_err().to_string();
        assert!(refusal.starts_with("this cannot be signed: it recurs (* * * * *)"), "{refusal}");
        assert!(offered(&[], None).expect_single_command().is_ok());
    }

    #[test]
    fn a_terminal_and_a_container_are_not_signed_for_somebody_else() {
        let terminal = offered(&[("kind", json!("terminal")), ("command", json!(null))], None);
        let container = [("kind", json!("container")), ("command", json!(null)), ("action", json!("stop web"))];

        for (order, kind) in [(terminal, "terminal"), (offered(&container, None), "container")] {
            let refusal = order.expect_single_command().unwrap_err().to_string();
            assert!(refusal.contains(&format!("it is for a {kind}")), "{refusal}");
        }
    }

    #[test]
    fn the_input_of_somebody_else_is_shown_and_an_own_one_counted() {
        let own = Subject::Command { command: "sh", stdin: Some("id\n  valid      always"), timeout_seconds: 60 };

        let foreign = offered(&[], Some("id\n  valid      always")).lines();
        let own = order(&["web-1"], own).unwrap().lines();

        assert!(foreign[2].starts_with("  input      22 bytes, SHA-256 "), "{foreign:?}");
        assert_eq!(foreign[3], "             id\n               valid      always");
        assert!(own[2].starts_with("  input      22 bytes, SHA-256 ") && own.len() + 1 == foreign.len(), "{own:?}");
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
