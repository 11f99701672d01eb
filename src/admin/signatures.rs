//! Who ordered what: the signatures in the audit log, checked with a file of signers that does not come from the service.
//!
//! An order has an entry before it is sent, with what people signed ([`Claim`]), and one with how it ended ([`Fate`]). Both are
//! judged together, after the whole log was read: what an agent refused is no forgery, whatever it was.

mod claim;
mod fate;

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use signalbox_agent::signed::Allowed;
use signalbox_signing::{Kind, Signers};
use uuid::Uuid;

use self::claim::{Claim, SignedBy};
use self::fate::Fate;
use crate::audit::action;
use crate::audit::chain::Record;

/// Reads the log, entry by entry from the first.
pub struct Review<'a> {
    signers: &'a Signers,
    /// What servers run without a signature.
    allowed: &'a Allowed,
    /// Whether an entry is not believed when it asks for less than another one would.
    is_strict: bool,
    orders: Vec<Order>,
    /// Where the orders are whose end has not come yet, the oldest first.
    open: HashMap<Place, VecDeque<usize>>,
}

/// Server, action and order, or target in entries of earlier versions, which the two entries of an order have in common.
type Place = (Uuid, String, String);

struct Order {
    seq: i64,
    server_id: Uuid,
    /// The beginning of its line: what somebody ordered, when and where.
    what: String,
    claim: Claim,
    fate: Fate,
}

/// What a review has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// A line of each order.
    pub lines: Vec<String>,
    /// How many are forged, altered, or lack the signatures that their server asks for.
    pub wrong: usize,
}

/// What agents may take once, with the entry that has: the server, and what its agent notes.
type Uses = HashMap<(String, String), i64>;

impl<'a> Review<'a> {
    pub fn new(signers: &'a Signers, allowed: &'a Allowed) -> Self {
        Self { signers, allowed, is_strict: false, orders: Vec::new(), open: HashMap::new() }
    }

    /// For a log whose servers all ask for signatures: an entry that does not say so was changed, and an order whose end is not known
    /// has used its signatures. A server is who signers call so.
    pub fn strict(self, is_strict: bool) -> Self {
        Self { is_strict, ..self }
    }

    /// Takes the next entry.
    pub fn take(&mut self, record: &Record) {
        let Some(kind) = kind_of(&record.action) else { return };
        let detail: Value = serde_json::from_str(&record.detail).unwrap_or_default();
        let server_id = record.server_id.unwrap_or_default();
        // A container has many orders, one after the other or at once.
        let order = detail.get("order_id").and_then(Value::as_str).or(record.target.as_deref());
        let place = (server_id, record.action.clone(), order.unwrap_or_default().to_owned());
        if record.outcome == "started" {
            self.open.entry(place).or_default().push_back(self.orders.len());
            let claim = Claim::of(record, kind, &detail, (self.signers, self.allowed));
            let what = what(record, &detail);
            self.orders.push(Order { seq: record.seq, server_id, what, claim, fate: Fate::Unknown });
        } else if let Slot::Occupied(mut slot) = self.open.entry(place) {
            let oldest = slot.get_mut().pop_front();
            if slot.get().is_empty() {
                slot.remove();
            }
            if let Some(order) = oldest.and_then(|index| self.orders.get_mut(index)) {
                order.fate = Fate::of(kind, &record.outcome, &detail);
            }
        }
    }

    /// Judges all orders.
    pub fn finish(self) -> Report {
        let (mut uses, mut wrong) = (Uses::new(), 0);
        let lines = self.orders.iter().map(|order| {
            let (said, is_wrong) = order.judged(&mut uses, self.is_strict);
            wrong += usize::from(is_wrong);
            format!("{}: {said}", order.what)
        });
        let lines = lines.collect();
        Report { lines, wrong }
    }
}

impl Order {
    /// What is to be said of it, and whether it is wrong.
    fn judged(&self, uses: &mut Uses, is_strict: bool) -> (String, bool) {
        let said = match &self.claim {
            Claim::Signed(signed) => signed.to_string(),
            Claim::Unsigned { .. } => "not signed".to_owned(),
            Claim::Wrong(fault) => fault.clone(),
        };
        if let Fate::NotRun(why) = &self.fate {
            return (format!("{said}: {why}"), false);
        }
        let forged = |fault: &str| (format!("FORGED OR ALTERED: {fault}"), true);
        match &self.claim {
            Claim::Wrong(fault) | Claim::Signed(SignedBy { fault: Some(fault), .. }) => forged(fault),
            Claim::Signed(SignedBy { called: None, .. }) if is_strict => {
                forged("the entry does not say what signers call its server")
            }
            Claim::Signed(signed) => match self.use_one(signed, uses, is_strict) {
                Some(before) => forged(&format!("the signatures were used before, by entry {before}")),
                None => (said, false),
            },
            Claim::Unsigned { is_asked: true, is_allowed: false } => {
                ("NOT SIGNED, and the server asks for signatures".to_owned(), true)
            }
            Claim::Unsigned { is_asked, is_allowed: true } if *is_asked || is_strict => {
                (format!("{said}, as the server allows"), false)
            }
            Claim::Unsigned { .. } if is_strict => ("NOT SIGNED".to_owned(), true),
            Claim::Unsigned { .. } => (said, false),
        }
    }

    /// Uses up one of the ways in which it may be used once. Returns the entry that has used them all before.
    fn use_one(&self, signed: &SignedBy, uses: &mut Uses, is_strict: bool) -> Option<i64> {
        // What is not known to have run leaves the signatures to what has.
        if self.fate != Fate::Ran && !is_strict {
            return None;
        }
        let server = signed.called.clone().filter(|_| is_strict).unwrap_or_else(|| self.server_id.to_string());
        let mut before = None;
        for key in &signed.uses {
            match uses.entry((server.clone(), key.clone())) {
                Slot::Occupied(used) => before = Some(*used.get()),
                Slot::Vacant(free) => {
                    free.insert(self.seq);
                    return None;
                }
            }
        }
        before
    }
}

fn what(record: &Record, detail: &Value) -> String {
    let Record { seq, at, action, username, .. } = record;
    let server = record.server_name.as_deref().unwrap_or("a deleted server");
    let called = claim::name_for_signers(detail).filter(|name| *name != server);
    let called = called.map(|name| format!(", which signers call {}", name.escape_debug())).unwrap_or_default();
    let what = detail.get("command").and_then(Value::as_str).or(record.target.as_deref()).unwrap_or_default();
    // The log may have been written by somebody who would like to move a cursor.
    let (username, server, what) = (username.escape_debug(), server.escape_debug(), what.escape_debug());
    format!("{seq} {at} {username} {action} on {server}{called}: {what}")
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
