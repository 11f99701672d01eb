//! Schedules that are due, below the API.

use signalbox::audit::{Actor, Entry, action};
use signalbox::store::{Schedule, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::owner;

/// The present, plus so many milliseconds.
fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_795_000_000_000 + millis)
}

/// A schedule that is due so many milliseconds before the present.
async fn due_before(store: &Store, owner_id: Uuid, millis: i64) -> Uuid {
    let id = Uuid::now_v7();
    let new = Schedule {
        id,
        owner_id,
        username: "ada".to_owned(),
        name: "backup".to_owned(),
        command: "true".to_owned(),
        server_ids: "[]".to_owned(),
        tag: None,
        timeout_seconds: 60,
        concurrency: 1,
        stop_on_failure: false,
        signed: None,
        cron: "0 3 * * *".to_owned(),
        time_zone: "UTC".to_owned(),
        is_enabled: true,
        severity: "warning".to_owned(),
        until_at: None,
        next_at: Some(at(-millis).into()),
        missed: 0,
        missed_at: None,
        created_at: at(0).into(),
        updated_at: at(0).into(),
    };
    let entry = Entry::new(action::SCHEDULE_CREATE, owner_id, Actor::command_line());
    store.create_schedule(&new, entry).await.unwrap();
    id
}

#[actix_web::test]
async fn what_can_still_run_comes_before_what_was_missed() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let owner_id = owner(&store).await;
    let missed = due_before(&store, owner_id, 86_400_000).await;
    for number in 1..=110 {
        due_before(&store, owner_id, 86_400_000 - number).await;
    }
    let newer = due_before(&store, owner_id, 1_000).await;
    let older = due_before(&store, owner_id, 90_000).await;
    due_before(&store, owner_id, -1).await;

    let due = store.due_schedules(at(0), at(-90_000)).await.unwrap();

    let ids: Vec<Uuid> = due.iter().map(|schedule| schedule.id).collect();
    assert_eq!((ids.len(), &ids[..3]), (100, &[older, newer, missed][..]));
}
