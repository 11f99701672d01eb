//! The store itself, below the API: what must hold on every database.

use serde_json::json;
use signalbox::store::{
    Commit, Connected, Departure, Disconnected, Means, NewLogin, NewUser, Registration, Rotation, Store, TokenRotation,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{owner, server};

async fn open() -> (Storage, Store) {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    (storage, store)
}

fn user(name: &str) -> NewUser {
    NewUser {
        id: Uuid::now_v7(),
        email: format!("{name}@example.com"),
        username: name.to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

#[actix_web::test]
async fn a_store_that_was_closed_says_so() {
    let (_storage, store) = open().await;
    let left = store.clone();

    assert!(store.find_user(Uuid::now_v7()).await.is_ok());
    store.close().await;

    assert!(left.find_user(Uuid::now_v7()).await.unwrap_err().is_closed());
}

fn exchange(login_id: Uuid, shown: Uuid, now: i64) -> TokenRotation {
    TokenRotation {
        login_id,
        shown,
        fresh: Uuid::now_v7(),
        now: at(now),
        expires_at: at(1_000_000),
        grace_ms: 10_000,
        address: String::new(),
    }
}

async fn login(store: &Store) -> (Uuid, Uuid) {
    let user = store.create_user(user("ada"), Registration::Open, "192.0.2.1", None).await.unwrap();
    let (id, refresh_token) = (Uuid::now_v7(), Uuid::now_v7());
    let new = NewLogin {
        id,
        user_id: user.id,
        username: user.username.clone(),
        refresh_token,
        expires_at: at(1_000_000),
        user_agent: String::new(),
        address: String::new(),
        means: Means::Password,
        proved_at: at(0),
        now: at(0),
    };
    assert!(store.create_login(&new, &user.password_hash).await.unwrap().is_some());
    (id, refresh_token)
}

#[actix_web::test]
async fn of_two_first_accounts_one_is_the_administrator() {
    let (_storage, store) = open().await;

    let (ada, bob) = tokio::join!(
        store.create_user(user("ada"), Registration::Open, "192.0.2.1", None),
        store.create_user(user("bob"), Registration::Open, "192.0.2.1", None)
    );

    assert_eq!(usize::from(ada.unwrap().is_admin) + usize::from(bob.unwrap().is_admin), 1);
    store.close().await;
}

#[actix_web::test]
async fn of_two_rotations_of_one_token_one_rotates_and_one_repeats() {
    let (_storage, store) = open().await;
    let (id, token) = login(&store).await;
    let rotate = || store.rotate_login(exchange(id, token, 10));

    let (one, two) = tokio::join!(rotate(), rotate());

    let current = |rotation: Rotation| match rotation {
        Rotation::Rotated(login) => (true, login.current_token),
        Rotation::Repeated(login) => (false, login.current_token),
        other => panic!("{other:?}"),
    };
    let (one, two) = (current(one.unwrap()), current(two.unwrap()));
    assert_ne!(one.0, two.0, "one of the two rotates");
    assert_eq!(one.1, two.1, "both are given the same successor");
    store.close().await;
}

#[actix_web::test]
async fn a_spent_token_ends_its_login_for_good() {
    let (_storage, store) = open().await;
    let (id, token) = login(&store).await;
    let rotate = |shown, now| store.rotate_login(exchange(id, shown, now));
    let Rotation::Rotated(rotated) = rotate(token, 10).await.unwrap() else { panic!("the first use rotates") };

    let reused = rotate(token, 10_011).await.unwrap();
    let current = rotate(rotated.current_token, 10_012).await.unwrap();

    assert!(matches!(reused, Rotation::Reused), "{reused:?}");
    assert!(matches!(current, Rotation::Gone), "{current:?}");
    assert_eq!(store.find_caller(id).await.unwrap(), None);
    store.close().await;
}

#[actix_web::test]
async fn every_server_has_the_time_when_it_was_seen() {
    let (_storage, store) = open().await;
    let owner_id = owner(&store).await;
    let mut seen = Vec::new();
    // On SQLite one more than a statement has.
    for number in 0..65 {
        seen.push((server(&store, owner_id, &format!("web-{number}"), "web").await, at(number)));
    }
    let unseen = server(&store, owner_id, "db-1", "db").await;

    store.commit(Uuid::nil(), &Commit { seen: seen.clone(), ..Commit::default() }).await.unwrap();

    // A late write sets nothing back.
    let late = seen.iter().map(|(id, at)| (*id, at.plus_millis(-1))).collect();
    store.commit(Uuid::nil(), &Commit { seen: late, ..Commit::default() }).await.unwrap();
    for (id, expected) in seen {
        let found = store.find_server(owner_id, id).await.unwrap().unwrap();
        assert_eq!(found.record.last_seen_at.map(Timestamp::from), Some(expected));
    }
    assert_eq!(store.find_server(owner_id, unseen).await.unwrap().unwrap().record.last_seen_at, None);
    store.close().await;
}

#[actix_web::test]
async fn a_fleet_that_comes_or_goes_at_once_is_written_to_the_last_server() {
    let (_storage, store) = open().await;
    let owner_id = owner(&store).await;
    let mut connected = Vec::new();
    // On SQLite one more than a statement has.
    for number in 0..65 {
        let server_id = server(&store, owner_id, &format!("web-{number}"), "web").await;
        let (session_id, key_id, at) = (Uuid::now_v7(), Uuid::nil(), at(number));
        let agent = json!({ "hostname": format!("web-{number}") }).to_string();
        connected.push(Connected { server_id, session_id, key_id, agent, at, claim: None });
    }
    let gone = |came: &Connected, session_id: Uuid, replaced: Vec<Uuid>| {
        let (server_id, last_seen_at) = (came.server_id, came.at);
        Disconnected { server_id, session_id, replaced, last_seen_at, why: Departure::Left }
    };
    let [first, second, rest @ ..] = connected.as_slice() else { panic!("there are 65") };
    let mut disconnected: Vec<Disconnected> = rest.iter().map(|came| gone(came, came.session_id, Vec::new())).collect();
    // One that holds the server no more, and one that took it over and was not written.
    disconnected.push(gone(first, Uuid::now_v7(), Vec::new()));
    disconnected.push(gone(second, Uuid::now_v7(), vec![second.session_id]));

    store.commit(Uuid::nil(), &Commit { connected: connected.clone(), ..Commit::default() }).await.unwrap();
    for came in &connected {
        let row = store.find_server(owner_id, came.server_id).await.unwrap().unwrap().record;
        assert_eq!((row.session_id, row.agent.as_deref()), (Some(came.session_id), Some(came.agent.as_str())));
        assert_eq!(row.last_seen_at.map(Timestamp::from), Some(came.at));
    }

    store.commit(Uuid::nil(), &Commit { disconnected, ..Commit::default() }).await.unwrap();
    for came in &connected {
        let row = store.find_server(owner_id, came.server_id).await.unwrap().unwrap().record;
        assert_eq!(row.session_id, (came.server_id == first.server_id).then_some(first.session_id));
    }
    store.close().await;
}

#[actix_web::test]
async fn migrations_can_be_taken_back_and_applied_again() {
    use migration::{Migrator, MigratorTrait};
    let (storage, store) = open().await;
    store.create_user(user("ada"), Registration::Open, "192.0.2.1", None).await.unwrap();
    store.close().await;
    let connection = sea_orm::Database::connect(storage.direct_url()).await.unwrap();

    Migrator::down(&connection, None).await.unwrap();
    Migrator::up(&connection, None).await.unwrap();
    connection.close().await.unwrap();

    let store = storage.store().await;
    assert!(!store.has_users().await.unwrap(), "the tables are new");
    store.create_user(user("ada"), Registration::Open, "192.0.2.1", None).await.unwrap();
    store.close().await;
}

#[actix_web::test]
async fn instances_that_start_together_migrate_once() {
    let storage = Storage::empty().await;

    let stores = futures_util::future::join_all((0..4).map(|_| storage.store())).await;

    for store in stores {
        store.ping().await.unwrap();
        store.close().await;
    }
}
