//! Writes about a server or an account that somebody has just deleted, below the API: the caller's right was checked before.

use signalbox::audit::{Actor, Entry, action};
use signalbox::store::{
    Approval, Command, CommandBatch, CommandChange, CommandWrite, GrantScope, GrantSubject, NewApiKey, NewApproval,
    NewGrant, Reach, Rights, Role, SilenceTerms, Store, StoreError, ThresholdTerms,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{owner, server};

fn only(server_id: Uuid) -> Reach {
    Reach { server_id: Some(server_id), tag: None }
}

fn threshold(reach: Reach) -> ThresholdTerms {
    ThresholdTerms {
        reach,
        metric_type: "cpu".to_owned(),
        series: None,
        threshold_value: 90.0,
        clear_value: None,
        comparison: "gt".to_owned(),
        duration_seconds: 0,
        target: None,
        states: None,
        severity: "warning".to_owned(),
        enabled: true,
    }
}

fn silence(reach: Reach) -> SilenceTerms {
    SilenceTerms { reach, reason: String::new(), starts_at: None, ends_at: None, schedule: None }
}

fn api_key(owner_id: Uuid, server_id: Uuid) -> NewApiKey {
    let (name, prefix) = ("agent".to_owned(), "sbk_00".to_owned());
    NewApiKey { owner_id, server_id, name, prefix, digest: vec![7; 32], expires_at: None }
}

fn grant(owner_id: Uuid, server_id: Uuid) -> NewGrant {
    NewGrant {
        owner_id,
        giver_id: owner_id,
        subject: GrantSubject::User(owner_id),
        scope: GrantScope::Server(server_id),
        role: Role::Viewer,
        rights: Rights::NONE,
    }
}

fn command(owner_id: Uuid, server_id: Uuid, batch_id: Option<Uuid>) -> Command {
    Command {
        id: Uuid::now_v7(),
        server_id,
        batch_id,
        owner_id,
        user_id: owner_id,
        login_id: None,
        username: "ada".to_owned(),
        address: String::new(),
        token_name: None,
        command: "true".to_owned(),
        stdin: None,
        signed: None,
        timeout_seconds: 60,
        status: "queued".to_owned(),
        is_cancel_requested: false,
        exit_code: None,
        duration_ms: None,
        is_truncated: false,
        output: None,
        output_parts: None,
        error_code: None,
        error_detail: None,
        error_reason: None,
        created_at: Timestamp::now().into(),
        started_at: None,
        finished_at: None,
    }
}

fn batch(owner_id: Uuid) -> CommandBatch {
    CommandBatch {
        id: Uuid::now_v7(),
        owner_id,
        username: "ada".to_owned(),
        token_id: None,
        command: "true".to_owned(),
        timeout_seconds: 60,
        concurrency: 1,
        stop_on_failure: false,
        is_cancelled: false,
        instance_id: None,
        created_at: Timestamp::now().into(),
        finished_at: None,
    }
}

fn approval(user_id: Uuid, servers: Vec<Uuid>) -> NewApproval {
    let now = Timestamp::now();
    let approval = Approval {
        id: Uuid::now_v7(),
        user_id,
        login_id: None,
        username: "ada".to_owned(),
        address: String::new(),
        command: "true".to_owned(),
        stdin: None,
        timeout_seconds: 60,
        concurrency: 1,
        stop_on_failure: false,
        payload: b"{}".to_vec(),
        needed: 2,
        status: "awaiting_approval".to_owned(),
        not_before: now.into(),
        expires_at: now.plus_millis(3_600_000).into(),
        created_at: now.into(),
        ended_at: None,
        batch_id: None,
        refused_reason: None,
    };
    NewApproval { approval, servers, signatures: Vec::new() }
}

async fn write(store: &Store, write: CommandWrite) -> Result<Vec<bool>, StoreError> {
    store.write_commands(&[CommandChange { write, entries: Vec::new(), can_wait: false }]).await
}

#[actix_web::test]
async fn what_is_for_a_deleted_server_is_refused_with_its_reason() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let (kept, gone) = (server(&store, owner_id, "web-1", "web").await, server(&store, owner_id, "web-2", "web").await);
    let by = Actor::command_line;
    let of_kept = store.create_threshold(owner_id, threshold(only(kept)), by()).await.unwrap();
    let silent = store.create_silence(owner_id, silence(only(kept)), by()).await.unwrap();
    assert!(store.delete_server(owner_id, gone, by()).await.unwrap());

    let batch = batch(owner_id);
    let commands = vec![command(owner_id, kept, Some(batch.id)), command(owner_id, gone, Some(batch.id))];
    let waits = Entry::new(action::APPROVAL_CREATE, owner_id, by());
    let refused = [
        ("key", store.create_api_key(api_key(owner_id, gone), by()).await.err()),
        ("threshold", store.create_threshold(owner_id, threshold(only(gone)), by()).await.err()),
        ("threshold moved", store.change_threshold(&of_kept, threshold(only(gone)), by()).await.err()),
        ("silence", store.create_silence(owner_id, silence(only(gone)), by()).await.err()),
        ("silence moved", store.change_silence(&silent, silence(only(gone)), by(), Timestamp::now()).await.err()),
        ("grant", store.create_grant(grant(owner_id, gone), by()).await.err()),
        ("approval", store.create_approval(&approval(owner_id, vec![kept, gone]), waits).await.err()),
        ("command", write(&store, CommandWrite::New(Box::new(command(owner_id, gone, None)))).await.err()),
        ("batch", write(&store, CommandWrite::NewBatch(Box::new(batch.clone()), commands, None)).await.err()),
    ];

    for (what, error) in refused {
        assert!(matches!(error, Some(StoreError::NoServer)), "{what}: {error:?}");
    }
    assert_eq!(store.find_threshold(of_kept.id).await.unwrap(), Some(of_kept));
    assert_eq!(store.find_silence(silent.id).await.unwrap(), Some(silent));
    assert!(store.batch_commands(batch.id).await.unwrap().is_empty());
}

#[actix_web::test]
async fn a_grant_for_a_tag_of_a_deleted_account_does_not_miss_a_server() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let giver_id = owner(&store).await;
    let (owner_id, scope) = (Uuid::now_v7(), GrantScope::Tag("web".to_owned()));

    let new = NewGrant { owner_id, scope, ..grant(giver_id, Uuid::now_v7()) };
    let refused = store.create_grant(new, Actor::command_line()).await;

    assert!(matches!(refused, Err(StoreError::Database(_))), "{refused:?}");
}

#[actix_web::test]
async fn a_deleted_account_gets_no_authenticator_app() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;

    let refused = store.begin_totp(Uuid::now_v7(), vec![7; 32], Timestamp::now()).await;

    assert!(matches!(refused, Err(StoreError::NoAccount)), "{refused:?}");
}
