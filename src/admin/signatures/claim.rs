//! What the first entry of an order claims: who signed it, and for which server.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use signalbox_agent::signed::Allowed;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use signalbox_signing::repeat::{EARLY_MS, LATE_MS};
use signalbox_signing::verdict::{distinct, read};
use signalbox_signing::{Kind, Payload, Signers, signers_of};

use crate::audit::chain::Record;

/// The clock of the service may differ from those of signers and servers.
const CLOCKS_MS: i64 = 300_000;

/// A payload may name two thousand servers.
const SHOWN_SERVERS: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// People have signed exactly this.
    Signed(SignedBy),
    /// It has no signature.
    Unsigned {
        /// Whether the server asks for signatures of it.
        is_asked: bool,
        /// Whether servers run it without one.
        is_allowed: bool,
    },
    /// It claims signatures, and they are not of known signers, or of something else.
    Wrong(String),
}

/// The people who have signed an order, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedBy {
    people: String,
    servers: String,
    /// What signers call its server, if the entry says that.
    pub called: Option<String>,
    /// Why an agent would not have run it.
    pub fault: Option<String>,
    /// The ways in which it may be used once.
    pub uses: Vec<String>,
}

impl fmt::Display for SignedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signed by {} for {}", self.people, self.servers)?;
        if self.called.is_none() {
            f.write_str(" (the entry does not say what signers call its server)")?;
        }
        Ok(())
    }
}

/// What those who sign call the server of an order; none in entries of earlier versions, and where it asks for no signatures.
pub(super) fn name_for_signers(detail: &Value) -> Option<&str> {
    detail.get("signing")?.get("name")?.as_str()
}

impl Claim {
    pub fn of(record: &Record, kind: Kind, detail: &Value, (signers, allowed): (&Signers, &Allowed)) -> Self {
        let Some(signed) = detail.get("signed").filter(|signed| !signed.is_null()) else {
            let command = detail.get("command").and_then(Value::as_str).filter(|_| kind == Kind::Command);
            let is_allowed = command.is_some_and(|command| allowed.words_of(command).is_some());
            return Self::Unsigned { is_asked: detail.get("signing").is_some(), is_allowed };
        };
        let Ok(signed) = Signed::deserialize(signed) else {
            return Self::Wrong("the signatures cannot be read".to_owned());
        };
        let (payload, bytes) = match read(&signed) {
            Ok(read) => read,
            Err(refusal) => return Self::Wrong(refusal.detail.escape_debug().to_string()),
        };
        if let Some(fault) = difference(record, kind, detail, &payload) {
            return Self::Wrong(fault.to_owned());
        }
        let by = signers_of(&signed, &bytes, signers, record.at);
        let count = distinct(&by);
        if count == 0 {
            return Self::Wrong("no signature is by a known signer".to_owned());
        }
        let mut people: Vec<String> = by.iter().map(|signer| signer.principals.clone()).collect();
        people.sort_unstable();
        people.dedup();
        let uses = uses(&payload, record.at);
        let servers = servers(&payload);
        let called = name_for_signers(detail);
        let fault = match (called, needed(detail)) {
            (Some(name), _) if !payload.servers.iter().any(|server| server == name) => {
                Some(format!("it was signed for {servers}, and signers call the server {}", name.escape_debug()))
            }
            (_, Some(needed)) if (count as u64) < needed => {
                Some(format!("{count} of the {needed} people whom the server asks for have signed"))
            }
            _ if uses.is_empty() => Some("it recurs, and was not due then".to_owned()),
            _ => None,
        };
        Self::Signed(SignedBy { people: people.join(" and "), servers, called: called.map(str::to_owned), fault, uses })
    }
}

/// How many people the server asks for.
fn needed(detail: &Value) -> Option<u64> {
    detail.get("signing")?.get("approvals")?.as_u64()
}

fn servers(payload: &Payload) -> String {
    let shown = payload.servers.iter().take(SHOWN_SERVERS).map(|name| name.escape_debug().to_string());
    let shown = shown.collect::<Vec<_>>().join(", ");
    match payload.servers.len().saturating_sub(SHOWN_SERVERS) {
        0 => shown,
        others => format!("{shown} and {others} others"),
    }
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
    let (earliest, latest) = (record.at.plus_millis(-CLOCKS_MS), record.at.plus_millis(CLOCKS_MS));
    let is_current = payload.not_before <= latest && earliest < payload.expires_at;
    if is_current { None } else { Some("it was signed for another time") }
}

/// The ways in which a payload could be used once at about this time, as agents note them. None if it recurs and was not due.
fn uses(payload: &Payload, at: Timestamp) -> Vec<String> {
    let Payload { nonce, repeat, not_before, expires_at, .. } = payload;
    let Some(repeat) = repeat else { return vec![nonce.clone()] };
    let Ok(recurrence) = repeat.read() else { return Vec::new() };
    let until = at.plus_millis(EARLY_MS + CLOCKS_MS);
    let mut time = at.plus_millis(-LATE_MS - CLOCKS_MS);
    let mut uses = Vec::new();
    // An expression is due once a minute at most.
    while let Some(due) = recurrence.next_after(time).filter(|due| *due <= until) {
        if (*not_before..*expires_at).contains(&due) {
            uses.push(format!("{nonce}@{due}"));
        }
        time = due;
    }
    uses
}

/// Whether the log's text is this one; it cuts long ones.
fn is_text_of(logged: &str, whole: &str) -> bool {
    logged == whole
        || logged.strip_suffix('…').is_some_and(|beginning| !beginning.is_empty() && whole.starts_with(beginning))
}
