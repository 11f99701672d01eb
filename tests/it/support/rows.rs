//! Rows as a service would write them, for tests below its API.

use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use signalbox::audit::Actor;
use signalbox::store::rollouts::{UpdateRollout, UpdateRolloutServer};
use signalbox::store::{Alert, NewServer, NewUser, Registration, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::Storage;

/// A user, the first of a store.
pub async fn owner(store: &Store) -> Uuid {
    let user = NewUser {
        id: Uuid::now_v7(),
        email: "ada@example.com".to_owned(),
        username: "ada".to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    };
    store.create_user(user, Registration::Open, "", None).await.unwrap().id
}

/// A server with one tag.
pub async fn server(store: &Store, owner_id: Uuid, name: &str, tag: &str) -> Uuid {
    let new = NewServer { tags: vec![tag.to_owned()], ..new_server(owner_id, name) };
    store.create_server(new, Actor::command_line()).await.unwrap().record.id
}

/// A server to be.
pub fn new_server(owner_id: Uuid, name: &str) -> NewServer {
    NewServer {
        owner_id,
        name: name.to_owned(),
        host: "192.0.2.10".to_owned(),
        port: 22,
        description: String::new(),
        tags: Vec::new(),
    }
}

/// A rollout that has begun.
pub fn rollout(id: Uuid, owner_id: Uuid, now: Timestamp) -> UpdateRollout {
    UpdateRollout {
        id,
        owner_id,
        version: "9.0.0".to_owned(),
        release: "e30=".to_owned(),
        signature: "signed".to_owned(),
        waves: "[[]]".to_owned(),
        pause_seconds: 60,
        max_failed: 0,
        status: "running".to_owned(),
        stopped_reason: None,
        wave: 0,
        wave_since: now.into(),
        created_by: "ada".to_owned(),
        created_at: now.into(),
        ended_at: None,
    }
}

/// A server of its first wave.
pub fn member(rollout_id: Uuid, server_id: Uuid, now: Timestamp) -> UpdateRolloutServer {
    UpdateRolloutServer {
        rollout_id,
        server_id,
        wave: 0,
        state: "waiting".to_owned(),
        reason: None,
        from_version: "1.2.3".to_owned(),
        session_id: None,
        offers: 0,
        changed_at: now.into(),
    }
}

/// An alert that opens now.
pub fn alert(owner_id: Uuid, server_id: Uuid, threshold_id: Uuid) -> Alert {
    let now = Timestamp::now();
    Alert {
        id: Uuid::now_v7(),
        owner_id,
        server_id,
        threshold_id,
        metric_type: "cpu".to_owned(),
        target: None,
        worst_target: None,
        series: None,
        unit: None,
        threshold_value: 90.0,
        clear_value: None,
        comparison: "gt".to_owned(),
        duration_seconds: 0,
        severity: "warning".to_owned(),
        status: "active".to_owned(),
        value: 97.5,
        peak_value: 97.5,
        message: "cpu is high".to_owned(),
        is_silenced: false,
        sample_at: now.into(),
        notify_at: None,
        triggered_at: now.into(),
        acknowledged_at: None,
        acknowledged_by: None,
        resolved_at: None,
        resolved_by: None,
        threshold_revision: 0,
        rearmed_at: None,
    }
}

/// Does to a database what a failover does that loses the last changes: it lacks all but the first entry of the audit log, and what
/// this statement undoes.
pub async fn fail_over(storage: &Storage, undo: &str) {
    let database = writable_audit_log(&storage.direct_url()).await;
    let lost = [
        undo,
        "DELETE FROM audit_log WHERE seq > 1",
        "UPDATE audit_head SET seq = 1, hash = (SELECT hash FROM audit_log WHERE seq = 1)",
    ];
    for sql in lost {
        database.execute_unprepared(sql).await.unwrap();
    }
}

/// The database, after somebody removed what keeps the audit log as it is.
pub async fn writable_audit_log(url: &str) -> DatabaseConnection {
    let connection = Database::connect(url).await.unwrap();
    let triggers: &[&str] = if url.starts_with("sqlite:") {
        &["DROP TRIGGER audit_log_no_update", "DROP TRIGGER audit_log_no_delete"]
    } else {
        &["DROP TRIGGER audit_log_append_only ON audit_log"]
    };
    for sql in triggers {
        connection.execute_unprepared(sql).await.unwrap();
    }
    connection
}
