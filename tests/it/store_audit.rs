//! The audit log in the store, below the API: what must hold on every database.

use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use serde_json::{Value, json};
use signalbox::audit::chain::{Broken, Head, Verifier};
use signalbox::audit::{Actor, Entry, Outcome, action};
use signalbox::store::{AuditChanges, CommandChange, CommandWrite, ServerPatch, Store, Visibility};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{fail_over, new_server, owner};

struct Scene {
    storage: Storage,
    store: Store,
}

impl Scene {
    async fn set() -> Self {
        let storage = Storage::fresh().await;
        let store = storage.store().await;
        Self { storage, store }
    }

    /// The database without the store.
    async fn raw(&self) -> DatabaseConnection {
        Database::connect(self.storage.direct_url()).await.unwrap()
    }

    /// A user. The log's first entry is about them.
    async fn owner(&self) -> Uuid {
        owner(&self.store).await
    }

    async fn verify(&self) -> Result<Head, Broken> {
        let mut verifier = Verifier::new(None);
        for record in self.store.audit_after(None, 10_000).await.unwrap() {
            verifier.take(&record)?;
        }
        verifier.finish(&self.store.audit_head().await.unwrap())
    }
}

fn entry() -> Entry {
    Entry::new("command.run", Uuid::nil(), Actor::command_line())
}

#[actix_web::test]
async fn an_action_is_recorded_as_started_and_with_its_outcome() {
    let scene = Scene::set().await;
    let owner_id = scene.owner().await;
    let server = scene.store.create_server(new_server(owner_id, "web-1"), Actor::command_line()).await.unwrap();
    let (id, job) = (server.record.id, Uuid::now_v7());
    let told = |outcome| entry().on_server(id).target(job).outcome(outcome).detail(json!({ "command": "true" }));

    scene.store.record(told(Outcome::Started)).await.unwrap();
    scene.store.record(told(Outcome::Failed("agent_offline".into()))).await.unwrap();

    let records = scene.store.audit_after(Some(2), 10).await.unwrap();
    assert_eq!(
        records.iter().map(|record| record.outcome.as_str()).collect::<Vec<_>>(),
        ["started", "failed: agent_offline"]
    );
    for record in records {
        assert_eq!(record.server_name.as_deref(), Some("web-1"), "looked up");
        assert_eq!(record.target, Some(job.to_string()));
        assert_eq!(record.detail, r#"{"command":"true"}"#);
    }
    scene.verify().await.unwrap();
}

#[actix_web::test]
async fn an_order_notes_what_its_server_asks_of_those_who_sign() {
    let scene = Scene::set().await;
    let owner_id = scene.owner().await;
    let server = scene.store.create_server(new_server(owner_id, "web-1"), Actor::command_line()).await.unwrap();
    let raw = scene.raw().await;
    let signing = json!({ "name": "vault", "approvals": 2 });
    let details = async |capabilities: Value, signing: &Value| {
        let mut reported = signing.clone();
        if let Some(fields) = reported.as_object_mut() {
            // They are many, and stay out of the log.
            let signer = json!({ "name": "ada", "kind": "ssh-ed25519", "fingerprint": "SHA256:a" });
            fields.extend([("signers".to_owned(), json!([signer])), ("more_signers".to_owned(), json!(3))]);
        }
        let agent = json!({ "version": "1", "capabilities": capabilities, "signing": reported });
        raw.execute_unprepared(&format!("UPDATE servers SET agent = '{agent}'")).await.unwrap();
        let before = scene.store.audit_head().await.unwrap().seq;
        let told = |action, outcome| Entry { action, ..entry() }.on_server(server.record.id).outcome(outcome);
        let orders = [
            told(action::COMMAND_RUN, Outcome::Started).detail(json!({ "command": "true" })),
            told(action::TERMINAL_OPEN, Outcome::Started),
            told(action::CONTAINER_STOP, Outcome::Started),
            told(action::COMMAND_RUN, Outcome::Ok),
        ];
        for order in orders {
            scene.store.record(order).await.unwrap();
        }
        let records = scene.store.audit_after(Some(before), 10).await.unwrap();
        records.iter().map(|record| serde_json::from_str(&record.detail).unwrap()).collect::<Vec<Value>>()
    };

    let signed = details(json!(["commands", "commands_signed", "docker_signed"]), &signing).await;
    let unnamed = details(json!(["terminal_signed"]), &Value::Null).await;
    let open = details(json!(["commands", "terminal"]), &Value::Null).await;

    let command = json!({ "command": "true" });
    let asked = json!({ "signing": signing });
    assert_eq!(signed, [json!({ "command": "true", "signing": signing }), json!({}), asked, json!({})]);
    assert_eq!(unnamed, [command.clone(), json!({ "signing": {} }), json!({}), json!({})]);
    assert_eq!(open, [command, json!({}), json!({}), json!({})]);
    scene.verify().await.unwrap();
}

#[actix_web::test]
async fn entries_of_one_change_say_the_same_as_each_alone() {
    let scene = Scene::set().await;
    let owner_id = scene.owner().await;
    let raw = scene.raw().await;
    let mut servers = vec![None, Some(Uuid::now_v7())];
    for name in ["web-1", "vault"] {
        let made = scene.store.create_server(new_server(owner_id, name), Actor::command_line()).await.unwrap();
        servers.push(Some(made.record.id));
    }
    let signing = json!({ "name": "vault", "approvals": 2, "signers": [], "more_signers": 0 });
    let agent = json!({ "version": "1", "capabilities": ["commands_signed"], "signing": signing });
    raw.execute_unprepared(&format!("UPDATE servers SET agent = '{agent}' WHERE name = 'vault'")).await.unwrap();
    let entries: Vec<Entry> = (0..150)
        .map(|number: usize| {
            let outcome = if number.is_multiple_of(3) { Outcome::Ok } else { Outcome::Started };
            let told = entry().target(number.to_string()).outcome(outcome);
            servers[number % servers.len()].into_iter().fold(told, Entry::on_server)
        })
        .collect();
    let before = scene.store.audit_head().await.unwrap().seq;

    let change = CommandChange { write: CommandWrite::AuditOnly, entries: entries.clone(), can_wait: false };
    scene.store.write_commands(&[change]).await.unwrap();
    for entry in entries {
        scene.store.record(entry).await.unwrap();
    }

    let records = scene.store.audit_after(Some(before), 1_000).await.unwrap();
    let said = records.iter().map(|it| (&it.target, it.server_id, &it.server_name, &it.outcome, &it.detail));
    let said: Vec<_> = said.collect();
    assert_eq!(said[..150], said[150..]);
    let noted = |name: &str| said.iter().filter(|it| it.2.as_deref() == Some(name) && it.4.contains("signing")).count();
    assert_eq!((said.len(), noted("vault"), noted("web-1")), (300, 48, 0));
    assert_eq!(scene.verify().await.unwrap().seq, before + 300);
    raw.close().await.unwrap();
}

#[actix_web::test]
async fn an_entry_about_no_server_or_one_that_is_gone_has_no_name() {
    let scene = Scene::set().await;

    scene.store.record(entry()).await.unwrap();
    scene.store.record(entry().on_server(Uuid::now_v7())).await.unwrap();

    let names: Vec<_> = scene.store.audit_after(None, 10).await.unwrap().into_iter().map(|r| r.server_name).collect();
    assert_eq!(names, [None, None]);
}

#[actix_web::test]
async fn who_follows_the_log_learns_that_it_has_lost_entries() {
    let scene = Scene::set().await;
    for _ in 0..3 {
        scene.store.record(entry()).await.unwrap();
    }
    let read = scene.store.audit_head().await.unwrap();
    let changes = async |last: &Head| scene.store.audit_changes(last, &["command.run"], 10).await.unwrap();
    assert_eq!(changes(&read).await, AuditChanges { records: Vec::new(), up_to: read.clone(), is_rewound: false });

    fail_over(&scene.storage, "SELECT 1").await;

    // Fewer entries than were read, as many others, or more.
    for count in 1..=4_usize {
        let again = changes(&read).await;
        assert!(again.is_rewound, "{count}: {again:?}");
        assert_eq!((again.records.len(), again.up_to.seq), (count, i64::try_from(count).unwrap()));
        scene.store.record(entry()).await.unwrap();
        let next = changes(&again.up_to).await;
        assert_eq!((next.records.len(), next.is_rewound), (1, false), "{count}: {next:?}");
    }
}

#[actix_web::test]
async fn many_at_once_make_one_chain() {
    let scene = Scene::set().await;
    let other = scene.storage.store().await;

    let appends = (0..100).map(|number| if number % 2 == 0 { &scene.store } else { &other }.record(entry()));
    let outcomes = futures_util::future::join_all(appends).await;

    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(scene.verify().await.unwrap().seq, 100);
    other.close().await;
}

#[actix_web::test]
async fn a_change_that_fails_leaves_neither_entry_nor_gap() {
    let scene = Scene::set().await;
    let owner_id = scene.owner().await;
    let server = scene.store.create_server(new_server(owner_id, "web-1"), Actor::command_line()).await.unwrap();
    let key = signalbox::store::NewApiKey {
        owner_id,
        server_id: server.record.id,
        name: "agent".to_owned(),
        prefix: "sbk_0123456789abcdef".to_owned(),
        digest: vec![0; 32],
        expires_at: None,
    };
    scene.store.create_api_key(key.clone(), Actor::command_line()).await.unwrap();

    // The public part is already used.
    scene.store.create_api_key(key, Actor::command_line()).await.unwrap_err();
    let (patch, now) = (ServerPatch::default(), Timestamp::now());
    let nobodys = scene.store.update_server(owner_id, Uuid::now_v7(), patch, Actor::command_line(), now);
    assert!(nobodys.await.unwrap().is_none());
    let elses = Entry::new(action::SESSION_END, owner_id, Actor::command_line());
    assert!(scene.store.end_logins(&[(Uuid::now_v7(), elses)]).await.unwrap().is_empty());

    assert_eq!(scene.verify().await.unwrap().seq, 3);
}

#[actix_web::test]
async fn a_change_whose_entry_cannot_be_written_does_not_happen() {
    let scene = Scene::set().await;
    let owner_id = scene.owner().await;
    let raw = scene.raw().await;
    raw.execute_unprepared("DELETE FROM audit_head").await.unwrap();

    scene.store.create_server(new_server(owner_id, "web-1"), Actor::command_line()).await.unwrap_err();

    assert!(scene.store.servers_after(&Visibility::of_owner(owner_id), None, 10).await.unwrap().is_empty());
    raw.close().await.unwrap();
}

#[actix_web::test]
async fn the_database_refuses_to_change_or_remove_entries() {
    let scene = Scene::set().await;
    for _ in 0..3 {
        scene.store.record(entry()).await.unwrap();
    }
    let raw = scene.raw().await;
    let mut statements = vec![
        "UPDATE audit_log SET username = 'eve' WHERE seq = 2",
        "DELETE FROM audit_log WHERE seq = 3",
        "DELETE FROM audit_log",
    ];
    if scene.storage.config().database_url().starts_with("sqlite:") {
        statements.push("INSERT OR REPLACE INTO audit_log SELECT * FROM audit_log WHERE seq = 2");
        statements.push("REPLACE INTO audit_log (rowid, at, owner_id, username, address, action, outcome, detail, hash) SELECT 2, at, owner_id, 'eve', address, action, outcome, detail, hash FROM audit_log WHERE seq = 1");
    } else {
        statements.push("TRUNCATE audit_log");
        statements
            .push("INSERT INTO audit_log SELECT * FROM audit_log ON CONFLICT (seq) DO UPDATE SET username = 'eve'");
    }

    for statement in statements {
        let error = raw.execute_unprepared(statement).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{statement}: {error}");
    }

    assert_eq!(scene.verify().await.unwrap().seq, 3);
    raw.close().await.unwrap();
}
