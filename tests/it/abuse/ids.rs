//! Other users' ids, and how long it takes to learn that they do not exist.

use signalbox::auth::access::{AccessError, Action};
use signalbox::auth::token::TokenKind;
use signalbox::state::State;
use signalbox::store::Caller;
use uuid::Uuid;

use crate::support::{Account, TestService};

/// The caller, as a handler knows them.
async fn caller(state: &State, account: &Account) -> Caller {
    let claims = state.accounts.tokens.check(&account.token, TokenKind::Access).unwrap();
    state.accounts.logins.caller(claims.sid).await.unwrap().unwrap()
}

#[actix_web::test]
async fn a_foreign_server_is_looked_for_as_one_that_is_nobodys() {
    let service = TestService::start().await;
    let (alice, mallory) = (service.register("alice").await, service.register("mallory").await);
    let server_id = service.server(&alice, "web-1").await;
    service.client.get(format!("/metrics/{server_id}")).bearer(&alice.token).expect_error(404, "no_metrics").await;
    let state = service.state.clone();
    let (alice, mallory) = (caller(&state, &alice).await, caller(&state, &mallory).await);

    // From here on an answer cannot come from the database.
    state.store.clone().close().await;

    assert!(state.accounts.access.server(&alice, server_id, Action::See).await.is_ok());
    for id in [server_id, Uuid::now_v7()] {
        let answer = state.accounts.access.server(&mallory, id, Action::See).await;
        assert!(matches!(answer, Err(AccessError::Store(_))), "{answer:?}");
    }
}
