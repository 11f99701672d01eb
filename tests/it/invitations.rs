//! Invitations: who may make an account where registration is closed, once.

use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox::config::Registration;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::{Account, TestService, assert_timestamp, keys_of, registration, text_of};

async fn closed() -> (TestService, Account) {
    let service = TestService::start_with(|config| config.registration = Registration::Closed).await;
    let admin = service.register("admin").await;
    (service, admin)
}

async fn invite(service: &TestService, by: &Account, body: Value) -> Value {
    service.client.post("/users/invitations").bearer(&by.token).json(body).expect(201).await
}

async fn open(service: &TestService, by: &Account) -> Vec<Value> {
    let listed = service.client.get("/users/invitations").bearer(&by.token).expect(200).await;
    listed.as_array().unwrap().clone()
}

/// For how long it is good, in whole hours.
fn hours_left(fresh: &Value) -> i64 {
    let left = Timestamp::parse(&text_of(&fresh["expires_at"])).unwrap().millis_since(Timestamp::now());
    (left + 1_800_000) / 3_600_000
}

/// A registration with an invitation.
fn invited(username: &str, invitation: &Value) -> Value {
    let mut body = registration(username);
    body["invitation"] = invitation["token"].clone();
    body
}

#[actix_web::test]
async fn an_invitation_is_good_for_as_many_hours_as_asked() {
    let (service, admin) = closed().await;

    let fresh = invite(&service, &admin, json!({"expires_in_hours": 5})).await;

    assert_eq!(hours_left(&fresh), 5);
}

#[actix_web::test]
async fn an_invitation_lets_one_person_in_where_registration_is_closed() {
    let (service, admin) = closed().await;
    service.client.post("/auth/register").json(registration("bob")).expect_error(403, "registration_closed").await;

    let fresh = invite(&service, &admin, json!({})).await;

    assert_eq!(keys_of(&fresh), ["expires_at", "id", "token", "url"]);
    assert_timestamp(&fresh["expires_at"]);
    assert_eq!(hours_left(&fresh), 72);
    let token = text_of(&fresh["token"]);
    assert_eq!(text_of(&fresh["url"]), format!("http://{}/register#invitation={token}", service.address));
    let answer = service.client.post("/auth/register").json(invited("bob", &fresh)).expect(201).await;
    let again = service.client.post("/auth/register").json(invited("carol", &fresh));
    again.expect_error(403, "invitation_invalid").await;
    let me = service.client.get("/auth/me").bearer(&text_of(&answer["access_token"])).expect(200).await;
    assert_eq!((&me["username"], &me["is_admin"]), (&json!("bob"), &json!(false)));
    assert_eq!(open(&service, &admin).await, Vec::<Value>::new());
    let entries = service.client.get("/audit?all=true&action=user.register").bearer(&admin.token).expect(200).await;
    assert_eq!(entries[0]["detail"], json!({"invitation": fresh["id"]}));
}

#[actix_web::test]
async fn of_registrations_with_one_invitation_at_once_one_wins() {
    let (service, admin) = closed().await;
    let fresh = invite(&service, &admin, json!({})).await;

    let attempts = (0..6).map(|number| {
        let body = invited(&format!("guest-{number}"), &fresh);
        service.client.post("/auth/register").json(body).send()
    });
    let mut statuses: Vec<u16> = join_all(attempts).await.into_iter().map(|answer| answer.status).collect();

    statuses.sort_unstable();
    assert_eq!(statuses, [201, 403, 403, 403, 403, 403]);
    let listed = service.client.get("/users").bearer(&admin.token).expect(200).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[actix_web::test]
async fn unknown_revoked_expired_and_foreign_invitations_look_the_same() {
    let (service, admin) = closed().await;
    let for_carol = invite(&service, &admin, json!({"email": "Carol@example.com"})).await;
    let revoked = invite(&service, &admin, json!({})).await;
    let path = format!("/users/invitations/{}", text_of(&revoked["id"]));
    service.client.delete(&path).bearer(&admin.token).expect(200).await;
    service.client.delete(&path).bearer(&admin.token).expect_error(404, "not_found").await;
    let expired = signalbox::auth::invitation::generate().unwrap();
    let now = signalbox_protocol::Timestamp::now();
    let new = signalbox::store::NewInvitation {
        owner_id: Some(admin.id),
        digest: expired.digest,
        email: None,
        grants: Vec::new(),
        now: now.plus_millis(-2_000),
        expires_at: now.plus_millis(-1_000),
    };
    service.state.store.create_invitation(new, signalbox::audit::Actor::command_line()).await.unwrap();
    let expired = json!({"token": secrecy::ExposeSecret::expose_secret(&expired.token)});

    let mut answers = Vec::new();
    for invitation in [&for_carol, &revoked, &expired, &json!({"token": "sbi_nonsense"}), &json!({"token": ""})] {
        let call = service.client.post("/auth/register").json(invited("bob", invitation));
        answers.push(call.expect_error(403, "invitation_invalid").await);
    }

    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(open(&service, &admin).await.len(), 1);
    // The address is compared without regard to case, and a taken name does not use the invitation up.
    let mut taken = invited("admin", &for_carol);
    taken["email"] = json!("carol@example.com");
    service.client.post("/auth/register").json(taken).expect_error(400, "username_taken").await;
    service.client.post("/auth/register").json(invited("carol", &for_carol)).expect(201).await;
}

#[actix_web::test]
async fn open_invitations_are_listed_without_their_tokens() {
    let (service, admin) = closed().await;
    let server = service.server(&admin, "web-1").await;
    let grants = json!([
        {"scope": {"server_id": server}, "role": "operator", "rights": ["logs", "commands", "logs"]},
        {"scope": {"tag": "production"}, "role": "viewer"},
        {"scope": {"all": true}, "role": "operator"},
    ]);
    let body = json!({"email": "bob@example.com", "grants": grants, "expires_in_hours": 1});
    let fresh = invite(&service, &admin, body).await;

    let mut listed = open(&service, &admin).await;

    for field in ["created_at", "expires_at"] {
        assert_timestamp(&listed[0][field].take());
    }
    let expected = json!([
        {"scope": {"server_id": server}, "role": "operator", "rights": ["commands", "logs"]},
        {"scope": {"tag": "production"}, "role": "viewer", "rights": []},
        {"scope": {"all": true}, "role": "operator", "rights": ["containers", "commands", "logs", "terminal"]},
    ]);
    let expected = json!([{
        "id": fresh["id"], "email": "bob@example.com", "grants": expected, "invited_by": "admin",
        "created_at": null, "expires_at": null,
    }]);
    assert_eq!(json!(listed), expected);
    let entries = service.client.get("/audit?action=invitation").bearer(&admin.token).expect(200).await;
    assert_eq!(entries[0]["target"], fresh["id"]);
    assert!(!entries.to_string().contains(&text_of(&fresh["token"])), "{entries}");
}

#[actix_web::test]
async fn who_registers_with_an_invitation_has_its_grants_at_once() {
    let (service, admin) = closed().await;
    let server = service.server(&admin, "web-1").await;
    service.server(&admin, "web-2").await;
    let grant = json!({"scope": {"server_id": server}, "role": "operator", "rights": ["logs"]});
    let fresh = invite(&service, &admin, json!({"grants": [grant]})).await;

    let bob = service.client.post("/auth/register").json(invited("bob", &fresh)).expect(201).await;

    let token = text_of(&bob["access_token"]);
    let seen = service.client.get("/servers").bearer(&token).expect(200).await;
    assert_eq!(seen.as_array().map(Vec::len), Some(1), "{seen}");
    assert_eq!((&seen[0]["id"], &seen[0]["role"]), (&json!(server), &json!("operator")));
    assert_eq!(seen[0]["rights"], json!(["logs"]));
    let given = service.client.get("/grants").bearer(&admin.token).expect(200).await;
    assert_eq!((&given[0]["giver"]["username"], &given[0]["subject"]["username"]), (&json!("admin"), &json!("bob")));
    let own = json!({"name": "own", "host": "192.0.2.9"});
    let own = service.client.post("/servers").bearer(&token).json(own).expect(201).await;
    let foreign = json!({"grants": [{"scope": {"server_id": own["id"]}, "role": "viewer"}]});
    let call = service.client.post("/users/invitations").bearer(&admin.token).json(foreign);
    call.expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn a_faulty_invitation_gets_all_its_faults() {
    let (service, admin) = closed().await;
    let body = json!({
        "email": "nobody",
        "expires_in_hours": 721,
        "grants": [
            {"scope": {"all": true, "tag": "a"}, "role": "viewer"},
            {"scope": {"all": false}, "role": "owner"},
            {"scope": {"tag": "a"}, "role": "viewer", "rights": ["logs"]},
            {"scope": {"tag": "a"}, "role": "operator", "rights": ["root"]},
        ],
    });

    let call = service.client.post("/users/invitations").bearer(&admin.token).json(body);

    call.expect_some_faults(
        422,
        &[
            ("body.email", "value_error.email"),
            ("body.expires_in_hours", "value_error.number.not_le"),
            ("body.grants.0.scope", "value_error.reach"),
            ("body.grants.1.role", "type_error.enum"),
            ("body.grants.1.scope", "value_error.reach"),
            ("body.grants.2.rights", "value_error.rights"),
            ("body.grants.3.rights.0", "type_error.enum"),
        ],
    )
    .await;
    let many = json!({"grants": vec![json!({"scope": {"all": true}, "role": "viewer"}); 51]});
    let call = service.client.post("/users/invitations").bearer(&admin.token).json(many);
    call.expect_some_faults(422, &[("body.grants", "value_error.list.max_items")]).await;
}

#[actix_web::test]
async fn at_most_a_hundred_are_open() {
    let (service, admin) = closed().await;
    let first = invite(&service, &admin, json!({})).await;
    for _ in 1..100 {
        invite(&service, &admin, json!({})).await;
    }

    let one_more = || service.client.post("/users/invitations").bearer(&admin.token).json(json!({}));
    one_more().expect_error(400, "quota_exceeded").await;
    let path = format!("/users/invitations/{}", text_of(&first["id"]));
    service.client.delete(path).bearer(&admin.token).expect(200).await;

    one_more().expect(201).await;
    let page = service.client.get("/users/invitations?limit=3").bearer(&admin.token).expect_answer(200).await;
    assert_eq!((page.header("X-Total-Count"), page.json().as_array().unwrap().len()), ("100", 3));
}

#[actix_web::test]
async fn invitations_end_with_the_administrator_who_made_them() {
    let (service, admin) = closed().await;
    let for_bob = invite(&service, &admin, json!({})).await;
    let bob = service.client.post("/auth/register").json(invited("bob", &for_bob)).expect(201).await;
    let path = format!("/users/{}", text_of(&bob["user"]["id"]));
    let change = |body| service.client.put(&path).bearer(&admin.token).json(body);
    change(json!({"is_admin": true})).expect(200).await;
    let by_bob = service.client.post("/users/invitations").bearer(&text_of(&bob["access_token"])).json(json!({}));
    let by_bob = by_bob.expect(201).await;

    change(json!({"is_admin": false})).expect(200).await;

    let call = service.client.post("/auth/register").json(invited("carol", &by_bob));
    call.expect_error(403, "invitation_invalid").await;
}

#[actix_web::test]
async fn the_first_account_needs_what_it_always_needed() {
    let service = TestService::start_with(|config| config.registration = Registration::Closed).await;
    let mut body = registration("admin");
    body["invitation"] = json!("sbi_nonsense");

    service.client.post("/auth/register").json(body).expect_error(403, "invitation_invalid").await;

    assert_eq!(service.client.get("/service").expect(200).await["needs_setup"], true);
    let admin = service.register("admin").await;
    let me = service.client.get("/auth/me").bearer(&admin.token).expect(200).await;
    assert_eq!(me["is_admin"], true);
    let unknown = format!("/users/invitations/{}", Uuid::now_v7());
    service.client.delete(unknown).bearer(&admin.token).expect_error(404, "not_found").await;
}
