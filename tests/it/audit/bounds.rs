//! Refused sign-ins: recorded for the account that they tried, once a minute.

use serde_json::Value;

use super::{entries, told};
use crate::support::{Account, TestService, eventually};

async fn guess(service: &TestService, name: &str) {
    let form = [("username", name), ("password", "a wrong guess")];
    service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
}

async fn until_count(service: &TestService, account: &Account, count: usize) -> Vec<Value> {
    eventually("so many entries", || async {
        let entries = entries(service, account).await;
        (entries.len() >= count).then_some(entries)
    })
    .await
}

#[actix_web::test]
async fn a_refused_sign_in_is_recorded_once_a_minute() {
    let service = TestService::start().await;
    let account = service.register("alice").await;

    for name in ["alice", "ALICE", "alice@example.com"] {
        guess(&service, name).await;
    }
    until_count(&service, &account, 3).await;
    // Written after everything that may still be in transit.
    service.sign_in(&account).await;

    let entries = until_count(&service, &account, 4).await;
    assert_eq!(told(&entries[2..]), ["login refused", "login ok"]);
    let refused = &entries[2];
    assert_eq!(refused["username"], "alice");
    assert_eq!(refused["user_id"], Value::Null, "nobody has proved who they are");
    assert_eq!(refused["login_id"], Value::Null);
    assert_eq!(refused["address"], "127.0.0.1");
}

#[actix_web::test]
async fn others_do_not_see_guesses_at_an_account() {
    let service = TestService::start().await;
    let (alice, bob) = (service.register("alice").await, service.register("bob").await);

    guess(&service, "alice").await;
    guess(&service, "nobody").await;
    until_count(&service, &alice, 3).await;

    assert_eq!(entries(&service, &bob).await.len(), 2);
    let page = signalbox::store::PageRequest { limit: 10, offset: 0 };
    let all = service.state.store.list_audit(signalbox::store::AuditFilter::default(), page).await.unwrap();
    assert_eq!(all.total, 5, "there is no account that is called nobody");
}
