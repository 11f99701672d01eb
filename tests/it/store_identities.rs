//! People of identity providers, below the API: what two requests at once must not break.

use futures_util::future::join_all;
use signalbox::store::{FirstSignIn, LogoutNotice, Means, NewIdentity, NewLogin, NewUser, ProviderLogin, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;

const ISSUER: &str = "https://sso.example.com";

fn identity(subject: &str) -> NewIdentity {
    NewIdentity {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
        email: Some(format!("{subject}@example.com")),
        groups: vec!["ops".to_owned()],
    }
}

fn user(username: &str, email: &str) -> NewUser {
    NewUser {
        id: Uuid::now_v7(),
        email: email.to_owned(),
        username: username.to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    }
}

pub fn login(user_id: Uuid, sid: &str) -> ProviderLogin {
    let now = Timestamp::now();
    let login = NewLogin {
        id: Uuid::now_v7(),
        user_id,
        username: String::new(),
        refresh_token: Uuid::now_v7(),
        expires_at: now.plus_millis(60_000),
        user_agent: "a browser".to_owned(),
        address: "192.0.2.1".to_owned(),
        means: Means::Provider,
        proved_at: now,
        now,
    };
    ProviderLogin { login, sid: Some(sid.to_owned()) }
}

async fn join(store: &Store, username: &str, subject: &str) -> FirstSignIn {
    let new = user(username, &format!("{subject}@example.com"));
    store.join_by_identity(&new, &identity(subject), &login(new.id, "s")).await.unwrap()
}

#[actix_web::test]
async fn a_person_who_comes_many_times_at_once_gets_one_account() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;

    let outcomes = join_all((0..8).map(|_| join(&store, "ada", "42"))).await;

    let created = outcomes.iter().filter(|outcome| matches!(outcome, FirstSignIn::Created(..))).count();
    assert_eq!(created, 1, "{outcomes:?}");
    let known = store.find_identity(ISSUER, "42").await.unwrap().unwrap();
    assert!(store.find_user(known.user_id).await.unwrap().is_some());
    assert_eq!(store.find_identity("https://another.test", "42").await.unwrap(), None);
}

#[actix_web::test]
async fn people_of_one_name_who_come_at_once_get_different_user_names() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let subjects: Vec<String> = (0..6).map(|number| format!("person-{number}")).collect();

    for _ in 0..subjects.len() {
        join_all(subjects.iter().map(|subject| join(&store, "ada", subject))).await;
    }

    let mut names = Vec::new();
    for subject in &subjects {
        let known = store.find_identity(ISSUER, subject).await.unwrap().expect("an account");
        names.push(store.find_user(known.user_id).await.unwrap().unwrap().username);
    }
    names.sort();
    assert_eq!(names, ["ada", "ada-2", "ada-3", "ada-4", "ada-5", "ada-6"]);
}

#[actix_web::test]
async fn a_logout_message_counts_once_however_many_arrive_at_once() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    assert!(matches!(join(&store, "ada", "42").await, FirstSignIn::Created(..)));
    let now = Timestamp::now();
    let notice = |jti: &str, expires_at: Timestamp| LogoutNotice {
        issuer: ISSUER.to_owned(),
        subject: Some("42".to_owned()),
        sid: Some("s".to_owned()),
        jti: jti.to_owned(),
        expires_at,
    };
    let once = notice("once", now.plus_millis(60_000));

    let outcomes = join_all((0..6).map(|_| store.end_external_logins(&once, "192.0.2.9", now))).await;

    let ended: Vec<usize> =
        outcomes.into_iter().filter_map(|outcome| outcome.unwrap().map(|ended| ended.len())).collect();
    assert_eq!(ended, [1]);
    // What is too old is refused by its age, so it need not be remembered.
    let old = notice("old", now.plus_millis(-1));
    assert!(store.end_external_logins(&old, "", now).await.unwrap().is_some());
    assert!(store.end_external_logins(&old, "", now).await.unwrap().is_some());
}
