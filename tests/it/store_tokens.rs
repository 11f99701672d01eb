//! Tokens of programs, below the API: what the store keeps of them, and what two requests at once must not break.

use futures_util::future::join_all;
use signalbox::audit::Actor;
use signalbox::config::Quotas;
use signalbox::store::{
    AccountPatch, NewProgramToken, NewUser, PageRequest, ProgramToken, Registration, Rights, Role, Store, StoreError,
    TokenScope,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;

const PAGE: PageRequest = PageRequest { limit: 100, offset: 0 };

async fn user(store: &Store, name: &str) -> Uuid {
    let new = NewUser {
        id: Uuid::now_v7(),
        email: format!("{name}@example.com"),
        username: name.to_owned(),
        full_name: String::new(),
        password_hash: String::new(),
    };
    store.create_user(new, Registration::Open, "", None).await.unwrap().id
}

fn new(user_id: Uuid, number: u64) -> NewProgramToken {
    let now = Timestamp::now();
    NewProgramToken {
        user_id,
        name: format!("program {number}"),
        prefix: format!("sbt_{number:016x}"),
        digest: vec![7; 32],
        role: Role::Operator,
        rights: Rights::ALL,
        scope: TokenScope::Tag("db".to_owned()),
        networks: vec!["10.0.0.0/8".to_owned()],
        second_factor: true,
        now,
        expires_at: now.plus_millis(60_000),
    }
}

async fn made(store: &Store, user_id: Uuid, number: u64) -> ProgramToken {
    store.create_program_token(new(user_id, number), Actor::command_line()).await.unwrap()
}

#[actix_web::test]
async fn a_token_is_found_by_its_public_part_and_calls_for_its_user() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let ada = user(&store, "ada").await;
    let token = made(&store, ada, 1).await;

    let found = store.find_program_token(&token.prefix).await.unwrap().unwrap();
    let caller = store.find_caller(token.limits.id).await.unwrap().unwrap();

    assert_eq!((found.id, found.digest), (token.limits.id, vec![7; 32]));
    assert!(store.find_program_token("sbt_00").await.unwrap().is_none());
    assert_eq!((caller.user_id, &*caller.username, caller.login_id), (ada, "ada", token.limits.id));
    assert!(caller.second_factor && !caller.is_admin, "also of an administrator");
    assert_eq!(caller.token.as_deref(), Some(&token.limits));
    let listed = store.list_program_tokens(ada, PAGE).await.unwrap();
    assert_eq!((listed.items, listed.total), (vec![token], 1));
}

#[actix_web::test]
async fn a_use_is_noted_with_its_address() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let ada = user(&store, "ada").await;
    let token = made(&store, ada, 1).await;
    let at = Timestamp::from_millis(1_700_000_000_000);

    store.note_token_use(token.limits.id, at, "192.0.2.7").await.unwrap();

    let listed = store.list_program_tokens(ada, PAGE).await.unwrap().items;
    assert_eq!((listed[0].last_used_at, listed[0].last_used_address.as_deref()), (Some(at), Some("192.0.2.7")));
}

#[actix_web::test]
async fn only_its_user_revokes_a_token_and_once() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let (ada, bob) = (user(&store, "ada").await, user(&store, "bob").await);
    let id = made(&store, ada, 1).await.limits.id;
    let revoke = |user_id| store.revoke_program_token(user_id, id, Actor::command_line());

    assert!(!revoke(bob).await.unwrap());
    assert_eq!(store.logins_among(&[id, Uuid::nil()]).await.unwrap(), [id].into());
    let outcomes = join_all((0..4).map(|_| revoke(ada))).await;

    assert_eq!(outcomes.into_iter().filter(|outcome| *outcome.as_ref().unwrap()).count(), 1);
    assert!(store.find_caller(id).await.unwrap().is_none());
    assert!(store.logins_among(&[id]).await.unwrap().is_empty());
}

#[actix_web::test]
async fn tokens_at_once_stay_within_the_quota() {
    let storage = Storage::fresh().await;
    let store = storage.store().await.with_quotas(Quotas { tokens: 2, ..Quotas::default() });
    let ada = user(&store, "ada").await;

    let making = (0..6).map(|number| store.create_program_token(new(ada, number), Actor::command_line()));
    let outcomes = join_all(making).await;

    let refused = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::QuotaExceeded { limit: 2, .. })));
    assert_eq!(refused.count(), 4);
    assert_eq!(store.list_program_tokens(ada, PAGE).await.unwrap().total, 2);
}

#[actix_web::test]
async fn a_disabled_account_has_no_tokens_and_gets_none() {
    let storage = Storage::fresh().await;
    let store = storage.store().await;
    let (admin, bob) = (user(&store, "admin").await, user(&store, "bob").await);
    let kept = made(&store, admin, 1).await.limits.id;
    let gone = made(&store, bob, 2).await.limits.id;
    let patch = AccountPatch { is_admin: None, is_disabled: Some(true) };
    store.change_account(bob, patch, Actor::command_line()).await.unwrap();

    let refused = store.create_program_token(new(bob, 3), Actor::command_line()).await;

    assert!(matches!(refused, Err(StoreError::NoAccount)), "{refused:?}");
    assert_eq!(store.logins_among(&[kept, gone]).await.unwrap(), [kept].into());
}
