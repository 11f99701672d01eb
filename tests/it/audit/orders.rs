//! `signalbox audit verify --signatures`: what it says of orders in the log, entry by entry.

use serde_json::{Value, json};
use signalbox::admin::signatures::{Report, Review};
use signalbox::audit::chain::{BEGINNING, Record};
use signalbox::audit::{Actor, Entry, Outcome, action};
use signalbox_agent::signed::Allowed;
use signalbox_protocol::Timestamp;
use signalbox_signing::Signers;
use uuid::Uuid;

use crate::support::keygen::{self, Keygen};

const ALLOWED: [&str; 1] = ["systemctl restart *"];

/// A log of orders for `web-1`, and Ada and Ben, whose signatures count.
pub(super) struct Log {
    keygen: Keygen,
    signers: Signers,
    server_id: Uuid,
    at: Timestamp,
    pub records: Vec<Record>,
}

impl Log {
    fn new() -> Self {
        Self::with_signers("")
    }

    /// With more lines of allowed signers.
    pub fn with_signers(more: &str) -> Self {
        let keygen = Keygen::new();
        let lines = ["ada", "ben"].map(|name| format!("{name} {}\n", keygen.generate(name, "ed25519", "")));
        keygen.generate("eve", "ed25519", "");
        let signers = Signers::parse(&(lines.concat() + more)).unwrap();
        let at = Timestamp::parse("2026-11-26T10:01:00Z").unwrap();
        Self { keygen, signers, server_id: Uuid::now_v7(), at, records: Vec::new() }
    }

    /// A payload of `echo done` for `web-1` that holds for ten minutes, with other fields.
    pub fn payload(fields: &Value) -> Vec<u8> {
        let mut payload = json!({
            "v": 1, "servers": ["web-1"], "kind": "command", "command": "echo done", "timeout_seconds": 60,
            "not_before": "2026-11-26T10:00:00Z", "expires_at": "2026-11-26T10:10:00Z",
            "nonce": Uuid::now_v7().simple().to_string(),
        });
        for (name, value) in fields.as_object().unwrap() {
            payload[name] = value.clone();
        }
        payload.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        payload.to_string().into_bytes()
    }

    /// Such a payload with signatures of these people.
    fn signed(&self, people: &[&str], fields: &Value) -> Value {
        let bytes = Self::payload(fields);
        let signatures: Vec<Value> = people
            .iter()
            .map(
                |name| json!({ "type": "sshsig", "signature": self.keygen.sign(name, "signalbox-command-v1", &bytes) }),
            )
            .collect();
        json!({ "payload": keygen::base64(&bytes), "signatures": signatures })
    }

    fn add(&mut self, action: &'static str, target: &str, outcome: Outcome, detail: Value) {
        let entry = Entry::new(action, Uuid::nil(), Actor::claiming("ada", ""))
            .on_server_named(self.server_id, "web-1")
            .target(target)
            .outcome(outcome)
            .detail(detail);
        let seq = i64::try_from(self.records.len()).unwrap() + 1;
        let previous = self.records.last().map_or(BEGINNING.to_vec(), |record| record.hash.clone());
        self.records.push(entry.into_record(seq, self.at, None, &previous));
    }

    /// A command and how it ended.
    pub fn command(&mut self, detail: Value, outcome: Outcome, ended: Value) {
        let target = Uuid::now_v7().to_string();
        self.add(action::COMMAND_RUN, &target, Outcome::Started, detail);
        self.add(action::COMMAND_RUN, &target, outcome, ended);
    }

    pub fn report(&self, is_strict: bool) -> Report {
        let allowed = Allowed::parse(&ALLOWED.map(str::to_owned)).unwrap();
        let mut review = Review::new(&self.signers, &allowed).strict(is_strict);
        self.records.iter().for_each(|record| review.take(record));
        review.finish()
    }

    /// What is said of each order, without who gave it.
    #[track_caller]
    pub fn expect(&self, wrong: usize, said: &[&str]) {
        self.expect_of(&self.report(false), wrong, said);
    }

    /// The same, where all servers ask for signatures.
    #[track_caller]
    fn expect_strictly(&self, wrong: usize, said: &[&str]) {
        self.expect_of(&self.report(true), wrong, said);
    }

    #[track_caller]
    fn expect_of(&self, report: &Report, wrong: usize, said: &[&str]) {
        let lines = report.lines.iter().map(|line| line.split_once("web-1").unwrap().1);
        assert_eq!(lines.collect::<Vec<_>>(), said, "{report:?}");
        assert_eq!(report.wrong, wrong, "{report:?}");
    }
}

/// The details of a command on a server that asks for signatures of so many people.
pub(super) fn asked(signed: &Value, approvals: u32) -> Value {
    json!({ "command": "echo done", "signed": signed, "signing": { "name": "web-1", "approvals": approvals } })
}

pub(super) fn refused(reason: &str) -> Value {
    json!({ "exit_code": null, "reason": reason })
}

#[test]
fn an_order_for_another_server_is_forged_unless_the_agent_refused_it() {
    let mut log = Log::new();
    let other = log.signed(&["ada"], &json!({ "servers": ["web-2", "web-3"] }));
    let own = log.signed(&["ada"], &json!({}));

    log.command(asked(&other, 1), Outcome::Refused, refused("wrong_server"));
    log.command(asked(&other, 1), Outcome::Ok, json!({}));
    log.command(asked(&own, 1), Outcome::Ok, json!({}));
    let mut renamed = asked(&own, 1);
    renamed["signing"]["name"] = json!("db-1");
    log.command(renamed, Outcome::Failed("lost".into()), json!({}));

    log.expect(
        2,
        &[
            ": echo done: signed by ada for web-2, web-3: refused by the agent (wrong_server)",
            ": echo done: FORGED OR ALTERED: it was signed for web-2, web-3, and signers call the server web-1",
            ": echo done: signed by ada for web-1",
            ", which signers call db-1: echo done: FORGED OR ALTERED: it was signed for web-1, and signers call the server db-1",
        ],
    );
}

#[test]
fn an_entry_of_an_earlier_version_is_compared_with_no_server_and_says_so() {
    let mut log = Log::new();
    let other = log.signed(&["ada"], &json!({ "servers": ["web-2"] }));

    log.command(json!({ "command": "echo done", "signed": other }), Outcome::Ok, json!({}));
    log.command(json!({ "command": "echo done" }), Outcome::Ok, json!({}));

    let words = "(the entry does not say what signers call its server)";
    log.expect(0, &[&format!(": echo done: signed by ada for web-2 {words}"), ": echo done: not signed"]);
}

#[test]
fn a_signature_that_ran_twice_on_a_server_is_found() {
    let mut log = Log::new();
    let signed = log.signed(&["ada"], &json!({}));

    log.command(asked(&signed, 1), Outcome::Failed("agent_offline".into()), json!({}));
    log.command(asked(&signed, 1), Outcome::Failed("lost".into()), json!({}));
    log.command(asked(&signed, 1), Outcome::Failed("failed".into()), json!({ "exit_code": 3 }));
    log.command(asked(&signed, 1), Outcome::Refused, refused("replayed"));
    log.command(asked(&signed, 1), Outcome::Ok, json!({}));
    let first = log.server_id;
    log.server_id = Uuid::now_v7();
    log.command(asked(&signed, 1), Outcome::Ok, json!({}));

    assert_ne!(log.server_id, first);
    log.expect(
        1,
        &[
            ": echo done: signed by ada for web-1: the agent was not connected",
            ": echo done: signed by ada for web-1",
            ": echo done: signed by ada for web-1",
            ": echo done: signed by ada for web-1: refused by the agent (replayed)",
            ": echo done: FORGED OR ALTERED: the signatures were used before, by entry 5",
            // A batch is signed once for all its servers.
            ": echo done: signed by ada for web-1",
        ],
    );
}

#[test]
fn where_all_servers_ask_an_entry_that_says_less_is_not_believed() {
    let mut log = Log::new();
    let [lost, copied, bare] = [(); 3].map(|()| log.signed(&["ada"], &json!({})));

    log.command(asked(&lost, 1), Outcome::Failed("lost".into()), json!({}));
    log.command(asked(&lost, 1), Outcome::Ok, json!({}));
    log.command(asked(&copied, 1), Outcome::Ok, json!({}));
    log.server_id = Uuid::now_v7();
    log.command(asked(&copied, 1), Outcome::Ok, json!({}));
    log.command(json!({ "command": "echo done", "signed": bare }), Outcome::Ok, json!({}));
    log.command(json!({ "command": "echo done" }), Outcome::Ok, json!({}));
    log.command(json!({ "command": "systemctl restart nginx" }), Outcome::Ok, json!({}));
    log.command(json!({ "command": "echo done" }), Outcome::Failed("agent_offline".into()), json!({}));

    log.expect_strictly(
        4,
        &[
            ": echo done: signed by ada for web-1",
            ": echo done: FORGED OR ALTERED: the signatures were used before, by entry 1",
            ": echo done: signed by ada for web-1",
            ": echo done: FORGED OR ALTERED: the signatures were used before, by entry 5",
            ": echo done: FORGED OR ALTERED: the entry does not say what signers call its server",
            ": echo done: NOT SIGNED",
            ": systemctl restart nginx: not signed, as the server allows",
            ": echo done: not signed: the agent was not connected",
        ],
    );
}

#[test]
fn what_has_no_signature_where_one_is_asked_for_is_found_unless_it_is_allowed() {
    let mut log = Log::new();
    let bare = |command: &str| json!({ "command": command, "signing": { "name": "web-1", "approvals": 1 } });

    log.command(bare("echo done"), Outcome::Refused, refused("not_signed"));
    log.command(bare("echo done"), Outcome::Ok, json!({}));
    log.command(bare("systemctl restart nginx"), Outcome::Ok, json!({}));
    log.command(bare("systemctl restart nginx; id"), Outcome::Failed("timed_out".into()), json!({}));
    let signing = json!({ "signing": {} });
    log.add(action::TERMINAL_OPEN, "a", Outcome::Started, signing.clone());
    log.add(action::TERMINAL_OPEN, "a", Outcome::Failed("agent_refused".into()), json!({ "reason": "not_signed" }));
    log.add(action::TERMINAL_OPEN, "b", Outcome::Started, signing.clone());
    log.add(action::TERMINAL_OPEN, "b", Outcome::Ok, json!({}));
    log.add(action::CONTAINER_STOP, "nginx", Outcome::Started, signing);

    let missing = "NOT SIGNED, and the server asks for signatures";
    log.expect(
        4,
        &[
            ": echo done: not signed: refused by the agent (not_signed)",
            &format!(": echo done: {missing}"),
            ": systemctl restart nginx: not signed, as the server allows",
            &format!(": systemctl restart nginx; id: {missing}"),
            ": a: not signed: refused by the agent (not_signed)",
            &format!(": b: {missing}"),
            // Nobody knows how it ended.
            &format!(": nginx: {missing}"),
        ],
    );
}

#[test]
fn too_few_people_and_strangers_are_found_where_the_agent_did_not_refuse() {
    let mut log = Log::new();
    let [one, both, stranger] = [&["ada"][..], &["ada", "ben"], &["eve"]].map(|people| log.signed(people, &json!({})));

    log.command(asked(&one, 2), Outcome::Refused, refused("not_enough_approvals"));
    log.command(asked(&one, 2), Outcome::Ok, json!({}));
    log.command(asked(&both, 2), Outcome::Ok, json!({}));
    log.command(asked(&stranger, 1), Outcome::Refused, refused("unknown_signer"));
    log.command(asked(&stranger, 1), Outcome::Ok, json!({}));

    log.expect(
        2,
        &[
            ": echo done: signed by ada for web-1: refused by the agent (not_enough_approvals)",
            ": echo done: FORGED OR ALTERED: 1 of the 2 people whom the server asks for have signed",
            ": echo done: signed by ada and ben for web-1",
            ": echo done: no signature is by a known signer: refused by the agent (unknown_signer)",
            ": echo done: FORGED OR ALTERED: no signature is by a known signer",
        ],
    );
}

#[test]
fn what_recurs_ran_when_it_was_due_and_once_each_time() {
    let mut log = Log::new();
    let repeat = json!({
        "repeat": { "cron": "0 * * * *", "time_zone": "UTC" }, "expires_at": "2026-12-26T10:00:00Z",
    });
    let signed = log.signed(&["ada"], &repeat);

    for at in ["2026-11-26T11:00:02Z", "2026-11-26T11:04:00Z", "2026-11-26T11:30:00Z", "2026-11-26T12:00:00Z"] {
        log.at = Timestamp::parse(at).unwrap();
        log.command(asked(&signed, 1), Outcome::Ok, json!({}));
    }

    log.expect(
        2,
        &[
            ": echo done: signed by ada for web-1",
            ": echo done: FORGED OR ALTERED: the signatures were used before, by entry 1",
            ": echo done: FORGED OR ALTERED: it recurs, and was not due then",
            ": echo done: signed by ada for web-1",
        ],
    );
}

#[test]
fn terminals_and_containers_are_judged_by_their_kind_and_action() {
    let mut log = Log::new();
    let none = json!(null);
    let terminal = log.signed(&["ada"], &json!({ "kind": "terminal", "command": none }));
    let restart = log.signed(&["ada"], &json!({ "kind": "container", "command": none, "action": "restart nginx" }));
    let of = |signed: &Value| json!({ "signed": signed, "signing": { "name": "web-1", "approvals": 1 } });

    for (action, target, signed) in [
        (action::TERMINAL_OPEN, "a", &terminal),
        (action::TERMINAL_OPEN, "b", &restart),
        (action::CONTAINER_RESTART, "nginx", &restart),
        (action::CONTAINER_STOP, "nginx", &restart),
        (action::CONTAINER_RESTART, "db", &terminal),
    ] {
        log.add(action, target, Outcome::Started, of(signed));
    }

    log.expect(
        3,
        &[
            ": a: signed by ada for web-1",
            ": b: FORGED OR ALTERED: another kind of thing was signed",
            ": nginx: signed by ada for web-1",
            ": nginx: FORGED OR ALTERED: something else was signed",
            ": db: FORGED OR ALTERED: another kind of thing was signed",
        ],
    );
}

#[test]
fn a_signed_terminal_that_was_open_until_its_time_was_over_is_judged() {
    let mut log = Log::new();
    let fields = json!({ "kind": "terminal", "command": null });
    let of = |signed: &Value| json!({ "signed": signed, "signing": { "name": "web-1", "approvals": 1 } });
    let (own, stranger) = (log.signed(&["ada"], &fields), log.signed(&["eve"], &fields));

    for (target, signed) in [("a", &own), ("b", &stranger)] {
        log.add(action::TERMINAL_OPEN, target, Outcome::Started, of(signed));
        log.add(action::TERMINAL_OPEN, target, Outcome::Failed("agent_refused".into()), json!({}));
    }

    log.expect(1, &[": a: signed by ada for web-1", ": b: FORGED OR ALTERED: no signature is by a known signer"]);
}

#[test]
fn orders_for_one_container_have_ends_of_their_own() {
    let mut log = Log::new();
    let none = json!(null);
    let restart = log.signed(&["ada"], &json!({ "kind": "container", "command": none, "action": "restart web" }));
    let order = |id: &str, signed: &Value| json!({ "order_id": id, "signed": signed, "signing": { "name": "web-1", "approvals": 1 } });
    let end = |id: &str| json!({ "order_id": id });

    // The service ended before this one did.
    log.add(action::CONTAINER_RESTART, "web", Outcome::Started, order("1", &restart));
    log.add(action::CONTAINER_RESTART, "web", Outcome::Started, order("2", &json!(null)));
    log.add(action::CONTAINER_RESTART, "web", Outcome::Refused, end("2"));
    log.add(action::CONTAINER_RESTART, "web", Outcome::Started, order("3", &restart));
    log.add(action::CONTAINER_RESTART, "web", Outcome::Ok, end("3"));

    log.expect(0, &[": web: signed by ada for web-1", ": web: not signed: refused", ": web: signed by ada for web-1"]);
}

#[test]
fn nothing_of_the_log_moves_the_cursor() {
    let mut log = Log::new();
    log.command(json!({ "command": "echo\u{1b}[2J" }), Outcome::Ok, json!({}));
    for record in &mut log.records {
        record.username = "ada\u{1b}[1A".to_owned();
        record.server_name = Some("web\r".to_owned());
    }

    let report = log.report(false);

    assert!(!report.lines[0].contains(char::is_control), "{report:?}");
}
