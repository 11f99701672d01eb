//! Who ordered what: the signatures in the audit log, checked with a file of signers that does not come from the service.

use serde::Deserialize;
use serde_json::Value;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use signalbox_signing::verdict::{distinct, read};
use signalbox_signing::{Kind, Payload, Signers, signers_of};

use crate::audit::action;
use crate::audit::chain::Record;

/// What is known of an order in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// People have signed exactly this.
    By(String),
    /// It has no signature: the server did not ask for one.
    Unsigned,
    /// It claims signatures, and they are not of known signers, or of something else.
    Wrong(String),
}

/// An order in the log, with what proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub line: String,
    pub proof: Proof,
}

/// The order that an entry is about; none for any other entry, and for how an order ended.
pub fn order_of(record: &Record, signers: &Signers) -> Option<Order> {
    let kind = kind_of(&record.action)?;
    if record.outcome != "started" {
        return None;
    }
    let detail: Value = serde_json::from_str(&record.detail).unwrap_or_default();
    let proof = proof_of(record, kind, &detail, signers);
    let server = record.server_name.as_deref().unwrap_or("a deleted server");
    let what = detail.get("command").and_then(Value::as_str).or(record.target.as_deref()).unwrap_or_default();
    let said = match &proof {
        Proof::By(people) => format!("signed by {people}"),
        Proof::Unsigned => "not signed".to_owned(),
        Proof::Wrong(fault) => format!("FORGED OR ALTERED: {fault}"),
    };
    let Record { seq, at, action, username, .. } = record;
    let what = what.escape_debug();
    Some(Order { line: format!("{seq} {at} {username} {action} on {server}: {what}: {said}"), proof })
}

fn kind_of(name: &str) -> Option<Kind> {
    match name {
        action::COMMAND_RUN => Some(Kind::Command),
        action::TERMINAL_OPEN => Some(Kind::Terminal),
        action::CONTAINER_START
        | action::CONTAINER_STOP
        | action::CONTAINER_RESTART
        | action::CONTAINER_PAUSE
        | action::CONTAINER_UNPAUSE => Some(Kind::Container),
        _ => None,
    }
}

fn proof_of(record: &Record, kind: Kind, detail: &Value, signers: &Signers) -> Proof {
    let Some(signed) = detail.get("signed").filter(|signed| !signed.is_null()) else { return Proof::Unsigned };
    let Ok(signed) = Signed::deserialize(signed) else {
        return Proof::Wrong("the signatures cannot be read".to_owned());
    };
    let (payload, bytes) = match read(&signed) {
        Ok(read) => read,
        Err(refusal) => return Proof::Wrong(refusal.to_string()),
    };
    if let Some(fault) = difference(record, kind, detail, &payload) {
        return Proof::Wrong(fault.to_owned());
    }
    let by = signers_of(&signed, &bytes, signers, record.at);
    if distinct(&by) == 0 {
        return Proof::Wrong("no signature is by a known signer".to_owned());
    }
    let mut people: Vec<String> = by.iter().map(|signer| signer.principals.clone()).collect();
    people.sort_unstable();
    people.dedup();
    Proof::By(people.join(" and "))
}

/// What of the entry is not what was signed.
fn difference(record: &Record, kind: Kind, detail: &Value, payload: &Payload) -> Option<&'static str> {
    if payload.kind != kind {
        return Some("another kind of thing was signed");
    }
    let is_same = match kind {
        Kind::Command => {
            let command = detail.get("command").and_then(Value::as_str).unwrap_or_default();
            is_text_of(command, payload.command.as_deref().unwrap_or_default())
        }
        Kind::Terminal => true,
        Kind::Container => {
            let verb = record.action.rsplit('.').next().unwrap_or_default();
            let target = record.target.as_deref().unwrap_or_default();
            payload.action.as_deref() == Some(format!("{verb} {target}").as_str())
        }
    };
    if !is_same {
        return Some("something else was signed");
    }
    let is_current = payload.not_before <= later(record.at) && earlier(record.at) < payload.expires_at;
    if is_current { None } else { Some("it was signed for another time") }
}

/// The service's clock may differ from those of signers and servers.
const CLOCKS_MS: i64 = 300_000;

fn later(time: Timestamp) -> Timestamp {
    time.plus_millis(CLOCKS_MS)
}

fn earlier(time: Timestamp) -> Timestamp {
    time.plus_millis(-CLOCKS_MS)
}

/// Whether the log's text is this one; it cuts long ones.
fn is_text_of(logged: &str, whole: &str) -> bool {
    logged == whole
        || logged.strip_suffix('…').is_some_and(|beginning| !beginning.is_empty() && whole.starts_with(beginning))
}
