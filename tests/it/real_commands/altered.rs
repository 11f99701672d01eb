//! An audit log that somebody has rewritten, with hashes that fit: the signatures still show what was changed.

use entity::{audit_entry, audit_head};
use sea_orm::sea_query::Expr;
use sea_orm::{ActiveModelTrait, DatabaseConnection, EntityTrait, IntoActiveModel};
use serde_json::{Value, json};
use signalbox::audit::action;
use signalbox::audit::chain::{BEGINNING, Record, hash};

use super::signed::{Signed, echo};
use crate::support::eventually;
use crate::support::rows::writable_audit_log;
use crate::support::storage::direct;

/// A log of what people have signed, and the database that it is in.
pub(super) struct Log {
    pub host: Signed,
    pub records: Vec<Record>,
    connection: DatabaseConnection,
}

impl Log {
    /// Two commands, a terminal and an action on a container, all of them signed by Ada.
    async fn start() -> Self {
        let host = Signed::start().await;
        for _ in 0..2 {
            let done = host.run(&host.signed("ada", &echo())).await;
            assert_eq!(done.status, 200, "{done}");
        }
        let mut terminal = host.open_terminal(Some(&host.signed("ada", &json!({ "kind": "terminal" })))).await;
        terminal.send(json!({ "type": "input", "data": { "data": "exit\n" } })).await;
        terminal.until("exit").await;
        let restart = json!({ "kind": "container", "action": "restart web", "timeout_seconds": null });
        host.restart(json!({ "signed": host.signed("ada", &restart) })).await;
        let store = &host.scene.site.service.state.store;
        // A command that was waited for may be answered before its end is written.
        let orders = [action::COMMAND_RUN, action::TERMINAL_OPEN, action::CONTAINER_RESTART];
        let records = eventually("all ends are in the log", async || {
            let records = store.audit_after(None, 1_000).await.unwrap();
            let is_end = |record: &&Record| orders.contains(&record.action.as_str()) && record.outcome != "started";
            (records.iter().filter(is_end).count() == 4).then_some(records)
        });
        let records = records.await;
        Self::of(host, records).await
    }

    pub async fn of(host: Signed, records: Vec<Record>) -> Self {
        let url = direct(&host.scene.site.service.state.config.database_url());
        Self { host, records, connection: writable_audit_log(&url).await }
    }

    /// The place of an order.
    pub fn order(&self, action: &str, number: usize) -> usize {
        let is_order = |record: &Record| record.action == action && record.outcome == "started";
        self.records.iter().enumerate().filter(|(_, record)| is_order(record)).nth(number).unwrap().0
    }

    /// The log with one entry changed.
    pub fn with(&self, place: usize, change: impl Fn(&mut Record)) -> Vec<Record> {
        let mut records = self.records.clone();
        change(&mut records[place]);
        records
    }

    /// Writes a log as somebody would who controls the database: with hashes that fit.
    pub async fn write(&self, mut records: Vec<Record>) {
        let mut previous = BEGINNING.to_vec();
        for record in &mut records {
            record.hash = hash(record, &previous).to_vec();
            previous.clone_from(&record.hash);
            let row = audit_entry::Model::from(record.clone()).into_active_model().reset_all();
            audit_entry::Entity::update(row).exec(&self.connection).await.unwrap();
        }
        let head = audit_head::Entity::update_many().col_expr(audit_head::Column::Hash, Expr::value(previous));
        head.exec(&self.connection).await.unwrap();
    }
}

/// Changes the details of an entry.
pub(super) fn detail(change: impl Fn(&mut Value)) -> impl Fn(&mut Record) {
    move |record| {
        let mut detail = serde_json::from_str(&record.detail).unwrap();
        change(&mut detail);
        record.detail = detail.to_string();
    }
}

#[actix_web::test]
async fn a_rewritten_log_is_whole_and_its_signatures_show_what_was_altered() {
    let log = Log::start().await;
    let command = log.order(action::COMMAND_RUN, 0);
    let signed_of = |place: usize| {
        let detail: Value = serde_json::from_str(&log.records[place].detail).unwrap();
        detail["signed"].clone()
    };
    let of_eve = log.host.signed("eve", &echo());
    let mixed = json!({ "payload": signed_of(command)["payload"], "signatures": of_eve["signatures"] });
    let other_text = log.host.signed("ada", &json!({ "kind": "command", "command": "echo gone" }));
    let edited = json!({ "payload": other_text["payload"], "signatures": signed_of(command)["signatures"] });
    let first = signed_of(command);
    let forged = |why: &str| format!("FORGED OR ALTERED: {why}");
    let cases = [
        (
            "the text",
            log.with(command, detail(|detail| detail["command"] = json!("echo gone"))),
            forged("something else was signed"),
        ),
        (
            "the text, in the payload as well",
            log.with(
                command,
                detail(|detail| (detail["command"], detail["signed"]) = (json!("echo gone"), edited.clone())),
            ),
            forged("no signature is by a known signer"),
        ),
        (
            "the server",
            log.with(command, |record| {
                record.server_name = Some("db-1".to_owned());
                detail(|detail| detail["signing"]["name"] = json!("db-1"))(record);
            }),
            forged("it was signed for web-1, and signers call the server db-1"),
        ),
        (
            "the kind",
            log.with(command, |record| record.action = action::TERMINAL_OPEN.to_owned()),
            forged("another kind of thing was signed"),
        ),
        (
            "the time",
            log.with(command, |record| record.at = record.at.plus_millis(3_600_000)),
            forged("it was signed for another time"),
        ),
        (
            "the signature",
            log.with(command, detail(|detail| detail["signed"] = mixed.clone())),
            forged("no signature is by a known signer"),
        ),
        (
            "the signer",
            log.with(command, detail(|detail| detail["signed"] = of_eve.clone())),
            forged("no signature is by a known signer"),
        ),
        (
            "that it was signed",
            log.with(command, detail(|detail| detail["signed"] = Value::Null)),
            "NOT SIGNED, and the server asks for signatures".to_owned(),
        ),
        (
            "how often it was signed",
            log.with(log.order(action::COMMAND_RUN, 1), detail(|detail| detail["signed"] = first.clone())),
            forged(&format!("the signatures were used before, by entry {}", log.records[command].seq)),
        ),
        (
            "the signature of a terminal",
            log.with(log.order(action::TERMINAL_OPEN, 0), detail(|detail| detail["signed"] = first.clone())),
            forged("another kind of thing was signed"),
        ),
        (
            "the container",
            log.with(log.order(action::CONTAINER_RESTART, 0), |record| record.target = Some("db".to_owned())),
            forged("something else was signed"),
        ),
    ];

    // Anyone who can change an entry can say that its server asks for nothing.
    let less = [
        (
            "that a signature was asked for, and that it was signed",
            log.with(command, detail(|detail| detail.as_object_mut().unwrap().retain(|key, _| key == "command"))),
            "NOT SIGNED".to_owned(),
        ),
        (
            "which server asked for it",
            log.with(command, detail(|detail| _ = detail.as_object_mut().unwrap().remove("signing"))),
            forged("the entry does not say what signers call its server"),
        ),
    ];

    let before = log.host.verify("allowed_signers").await;
    assert_eq!(
        (before.code, before.stdout.matches(": signed by ada@example.org for web-1\n").count()),
        (Some(0), 4),
        "{before:?}"
    );
    for (what, records, said) in cases {
        log.write(records).await;
        let found = log.host.verify("allowed_signers").await;
        assert_eq!(found.code, Some(1), "{what}: {found:?}");
        assert_eq!(found.stdout.matches(&format!(": {said}\n")).count(), 1, "{what}: {found:?}");
        assert!(found.stderr.ends_with("without the signatures that servers ask for: 1\n"), "{what}: {found:?}");
    }
    for (what, records, said) in less {
        log.write(records).await;
        assert_eq!(log.host.verify("allowed_signers").await.code, Some(0), "{what}: it is not noticed");
        let found = log.host.verify_strictly("allowed_signers").await;
        assert_eq!(found.code, Some(1), "{what}: {found:?}");
        assert_eq!(found.stdout.matches(&format!(": {said}\n")).count(), 1, "{what}: {found:?}");
    }
    log.write(log.records.clone()).await;
    let strictly = log.host.verify_strictly("allowed_signers").await;
    assert_eq!((strictly.code, &strictly.stdout), (Some(0), &before.stdout), "{strictly:?}");
    let after = log.host.verify("allowed_signers").await;
    assert_eq!((after.code, &after.stdout), (Some(0), &before.stdout), "{after:?}");
}
