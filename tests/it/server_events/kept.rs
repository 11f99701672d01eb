//! How long events are retained, how many, and that each is written once.

use serde_json::json;
use signalbox::store::{
    Commit, Connected, Departure, Disconnected, NewServerEvent, PageRequest, ServerEventFilter, Share, Store,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{owner, server};

const DAY: i64 = 86_400_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

struct Scene {
    _storage: Storage,
    store: Store,
    server_id: Uuid,
}

impl Scene {
    async fn set() -> Self {
        let storage = Storage::fresh().await;
        let store = storage.store().await;
        let owner_id = owner(&store).await;
        let server_id = server(&store, owner_id, "web-1", "web").await;
        Self { _storage: storage, store, server_id }
    }

    async fn tell(&self, kind: &str, millis: i64) {
        let event = NewServerEvent::new(self.server_id, kind, at(millis), json!({}));
        self.store.record_events(&[event]).await.unwrap();
    }

    /// Kinds and times, newest first.
    async fn told(&self) -> Vec<(String, i64)> {
        let page = PageRequest { limit: 500, offset: 0 };
        let found = self.store.list_events(self.server_id, ServerEventFilter::default(), page).await.unwrap();
        found.items.into_iter().map(|event| (event.kind, event.at.0)).collect()
    }

    async fn connect(&self, session_id: Uuid, millis: i64) {
        let agent = json!({ "boot_id": "a" }).to_string();
        let key_id = Uuid::nil();
        let connected = Connected { server_id: self.server_id, session_id, key_id, agent, at: at(millis), claim: None };
        let commit = Commit { connected: vec![connected], ..Commit::default() };
        self.store.commit(Uuid::nil(), &commit).await.unwrap();
    }

    async fn disconnect(&self, session_id: Uuid, millis: i64) {
        let gone = Disconnected {
            server_id: self.server_id,
            session_id,
            replaced: Vec::new(),
            last_seen_at: at(millis),
            why: Departure::Silent,
        };
        let commit = Commit { disconnected: vec![gone], ..Commit::default() };
        self.store.commit(Uuid::nil(), &commit).await.unwrap();
    }
}

fn kinds(told: &[(&str, i64)]) -> Vec<(String, i64)> {
    told.iter().map(|(kind, at)| ((*kind).to_owned(), *at)).collect()
}

#[actix_web::test]
async fn only_the_session_that_holds_the_server_has_events_and_once() {
    let scene = Scene::set().await;
    let (one, other) = (Uuid::now_v7(), Uuid::now_v7());

    scene.connect(one, DAY).await;
    scene.connect(one, DAY).await;
    scene.connect(other, DAY + 5_000).await;
    scene.disconnect(one, DAY + 6_000).await;
    scene.disconnect(other, DAY + 9_000).await;
    scene.disconnect(other, DAY + 9_000).await;

    assert_eq!(scene.told().await, kinds(&[("offline", DAY + 9_000), ("online", DAY)]));
}

#[actix_web::test]
async fn a_gap_of_a_moment_is_no_outage_and_a_longer_one_is() {
    let scene = Scene::set().await;
    let [one, two, three] = [Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7()];
    scene.connect(one, DAY).await;
    scene.disconnect(one, DAY + 5_000).await;
    scene.connect(two, DAY + 6_900).await;
    assert_eq!(scene.told().await, kinds(&[("online", DAY)]));

    scene.disconnect(two, DAY + 10_000).await;
    scene.connect(three, DAY + 12_000).await;

    let told = [("online", DAY + 12_000), ("offline", DAY + 10_000), ("online", DAY)];
    assert_eq!(scene.told().await, kinds(&told));
}

#[actix_web::test]
async fn a_service_that_was_killed_saw_nothing_after_the_last_time() {
    let scene = Scene::set().await;
    scene.connect(Uuid::now_v7(), DAY).await;

    scene.store.forget_sessions().await.unwrap();
    scene.store.forget_sessions().await.unwrap();
    assert_eq!(scene.told().await, kinds(&[("unwatched", DAY), ("online", DAY)]));
    let missed = [DAY, 2 * DAY].map(at);
    assert_eq!(scene.store.miss_servers(&Share::All, missed[0], at(3 * DAY)).await.unwrap(), 0);
    assert_eq!(scene.store.miss_servers(&Share::All, missed[1], at(3 * DAY)).await.unwrap(), 1);
    assert_eq!(scene.store.miss_servers(&Share::All, missed[1], at(4 * DAY)).await.unwrap(), 0);

    assert_eq!(scene.told().await[0], ("offline".to_owned(), 3 * DAY));
}

#[actix_web::test]
async fn who_returns_a_moment_after_being_missed_was_missing_and_is_online() {
    let scene = Scene::set().await;
    scene.connect(Uuid::now_v7(), DAY).await;
    scene.store.forget_sessions().await.unwrap();
    assert_eq!(scene.store.miss_servers(&Share::All, at(DAY + 1), at(DAY + 500)).await.unwrap(), 1);

    scene.connect(Uuid::now_v7(), DAY + 1_000).await;

    let told = [("online", DAY + 1_000), ("offline", DAY + 500), ("unwatched", DAY), ("online", DAY)];
    assert_eq!(scene.told().await, kinds(&told));
}

#[actix_web::test]
async fn what_is_too_old_goes_but_not_what_is_so_since() {
    let scene = Scene::set().await;
    for (kind, day) in [("online", 1), ("offline", 2), ("online", 3), ("container", 4), ("reboot", 20)] {
        scene.tell(kind, day * DAY).await;
    }

    while scene.store.forget_events(at(10 * DAY)).await.unwrap() > 0 {}

    assert_eq!(scene.told().await, kinds(&[("reboot", 20 * DAY), ("online", 3 * DAY)]));
}

#[actix_web::test]
async fn a_server_keeps_its_newest_events() {
    let scene = Scene::set().await;
    scene.tell("online", 0).await;
    for day in 1..=20 {
        scene.tell("container", day * DAY).await;
    }

    scene.store.trim_events(5).await.unwrap();

    let told = scene.told().await;
    let days: Vec<i64> = told.iter().map(|(_, at)| at / DAY).collect();
    assert_eq!(days, [20, 19, 18, 17, 16, 0]);
}

#[actix_web::test]
async fn nothing_is_written_of_a_server_that_is_gone() {
    let scene = Scene::set().await;
    let gone = NewServerEvent::new(Uuid::now_v7(), "container", at(DAY), json!({}));

    scene.store.record_events(std::slice::from_ref(&gone)).await.unwrap();

    let page = PageRequest { limit: 5, offset: 0 };
    let found = scene.store.list_events(gone.server_id, ServerEventFilter::default(), page).await.unwrap();
    assert_eq!(found.total, 0);
}
