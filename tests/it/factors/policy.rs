//! `--second-factor` and `--step-up`: who must prove what for which route and socket.

use std::time::Duration;

use serde_json::json;
use signalbox::config::SecondFactorPolicy;

use super::{add_passkey, execute, in_session, login, passkey_login, set_up_app};
use crate::support::agent::FakeAgent;
use crate::support::command_line::{run, signalbox};
use crate::support::rest::Call;
use crate::support::socket::Socket;
use crate::support::{Account, PASSWORD, TestService, text_of};

/// The answers of some routes and sockets: (open, others, sockets).
async fn answers(service: &TestService, account: &Account) -> (Vec<u16>, Vec<u16>, Vec<u16>) {
    let client = &service.client;
    let status = async |call: Call| call.bearer(&account.token).send().await.status;
    let open = vec![
        status(client.get("/auth/me")).await,
        status(client.get("/service")).await,
        status(client.get("/auth/passkeys")).await,
        status(client.post("/auth/passkeys/registration")).await,
    ];
    let others = vec![
        status(client.get("/servers")).await,
        status(client.get("/api-keys/me")).await,
        status(client.get("/alerts")).await,
        status(client.get("/audit")).await,
        status(client.get("/auth/sessions")).await,
        status(client.put("/auth/me").json(json!({"full_name": "Ada"}))).await,
    ];
    let bearer = format!("Bearer {}", account.token);
    let mut sockets = Vec::new();
    for path in ["/api/v1/ws/fleet", "/api/v1/ws/alerts"] {
        let opened = Socket::connect(service.address, path, &[("Authorization", &bearer)]).await;
        sockets.push(opened.err().unwrap_or(101));
    }
    (open, others, sockets)
}

fn all(service_allows: bool) -> (Vec<u16>, Vec<u16>, Vec<u16>) {
    let (other, socket) = if service_allows { (200, 101) } else { (403, 403) };
    (vec![200; 4], vec![other; 6], vec![socket; 2])
}

#[actix_web::test]
async fn who_must_have_a_second_factor_can_only_make_one() {
    for (policy, admin_may, user_may) in [
        (SecondFactorPolicy::Off, true, true),
        (SecondFactorPolicy::Admins, false, true),
        (SecondFactorPolicy::All, false, false),
    ] {
        let service = TestService::start_with(|config| config.second_factor = policy).await;
        let (admin, user) = (service.register("admin").await, service.register("user").await);

        assert_eq!(answers(&service, &admin).await, all(admin_may), "{policy:?}, administrator");
        assert_eq!(answers(&service, &user).await, all(user_may), "{policy:?}, user");
    }
}

#[actix_web::test]
async fn making_a_factor_opens_the_service_at_once() {
    let service = TestService::start_with(|config| config.second_factor = SecondFactorPolicy::All).await;
    let (ada, eve) = (service.register("ada").await, service.register("eve").await);
    service.client.get("/servers").bearer(&ada.token).expect_error(403, "second_factor_required").await;

    let (app, _) = set_up_app(&service, &ada).await;
    add_passkey(&service, &eve).await;

    assert_eq!(answers(&service, &ada).await, all(true));
    assert_eq!(answers(&service, &eve).await, all(true));
    // Agents have keys, and no factors.
    let (_, key) = service.server_with_key(&ada, "web-1").await;
    FakeAgent::online(service.address, &key).await;
    // A session that knows the password alone has to prove the factor, and cannot make another one.
    let weak = service.sign_in(&eve).await;
    let refused = |path: &str| service.client.post(path).bearer(&weak.token);
    service.client.get("/servers").bearer(&weak.token).expect_error(403, "second_factor_required").await;
    refused("/auth/totp").expect_error(403, "step_up_required").await;
    refused("/auth/passkeys/registration").expect_error(403, "step_up_required").await;
    // Without a factor the service is closed again.
    let body = json!({"password": PASSWORD, "otp": app.code(0)});
    service.client.delete("/auth/totp").bearer(&ada.token).json(body).expect(200).await;
    service.client.get("/servers").bearer(&ada.token).expect_error(403, "second_factor_required").await;
    service.client.post("/auth/logout").bearer(&ada.token).expect(200).await;
}

#[actix_web::test]
async fn a_passkey_opens_a_session_that_knows_the_password_alone() {
    let service = TestService::start_with(|config| config.second_factor = SecondFactorPolicy::All).await;
    let ada = service.register("ada").await;
    let mut device = add_passkey(&service, &ada).await;
    let weak = service.sign_in(&ada).await;
    let prove = |body| service.client.post("/auth/step-up").bearer(&weak.token).json(body);

    prove(json!({"password": PASSWORD})).expect(200).await;
    service.client.get("/servers").bearer(&weak.token).expect_error(403, "second_factor_required").await;
    let options = service.client.post("/auth/passkeys/challenge").expect(200).await;
    prove(json!({"passkey": device.sign(&options)})).expect(200).await;

    service.client.get("/servers").bearer(&weak.token).expect(200).await;
    let tokens = passkey_login(&service, &mut device).await.expect(200).await;
    service.client.get("/servers").bearer(&in_session(&ada, &tokens).token).expect(200).await;
}

const STEP_UP: Duration = Duration::from_secs(600);

/// The answers of what needs a recent proof. A server without an agent answers 400 once it is asked, and its
/// terminal says so when it is open.
async fn guarded(service: &TestService, account: &Account, server: &str) -> [u16; 5] {
    let client = &service.client;
    let status = async |call: Call| call.bearer(&account.token).send().await.status;
    let bearer = format!("Bearer {}", account.token);
    let path = format!("/api/v1/ws/terminal/{server}");
    [
        status(client.post(format!("/commands/{server}")).json(json!({"command": "id"}))).await,
        status(client.post("/commands").json(json!({"command": "id", "server_ids": [server]}))).await,
        status(client.post("/api-keys").json(json!({"server_id": server, "name": "agent"}))).await,
        status(client.post("/auth/passkeys/registration")).await,
        Socket::connect(service.address, &path, &[("Authorization", &bearer)]).await.err().unwrap_or(101),
    ]
}

#[actix_web::test]
async fn commands_terminals_and_keys_need_a_recent_proof() {
    let service = TestService::start_with(|config| config.step_up = Some(STEP_UP)).await;
    let ada = service.register("ada").await;
    let server = service.server(&ada, "web-1").await.to_string();
    assert_eq!(guarded(&service, &ada, &server).await, [400, 201, 201, 200, 101]);

    // As if ten minutes had passed. A login that was not used yet is not cached.
    execute(&service, "UPDATE logins SET proved_at = proved_at - 600000").await;
    let old = service.sign_in(&ada).await;
    execute(&service, "UPDATE logins SET proved_at = proved_at - 600000").await;

    assert_eq!(guarded(&service, &old, &server).await, [403; 5]);
    let run = || service.client.post(format!("/commands/{server}")).bearer(&old.token).json(json!({"command": "id"}));
    run().expect_error(403, "step_up_required").await;
    service.client.get("/servers").bearer(&old.token).expect(200).await;
    // Rights come first: what does not exist for somebody asks for no proof.
    let nowhere = "/commands/019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10";
    service.client.post(nowhere).bearer(&old.token).json(json!({"command": "id"})).expect_error(404, "not_found").await;
    let prove = |body| service.client.post("/auth/step-up").bearer(&old.token).json(body);
    prove(json!({"password": "not the password"})).expect_error(400, "invalid_credentials").await;
    run().expect_error(403, "step_up_required").await;
    prove(json!({"password": PASSWORD})).expect(200).await;
    assert_eq!(guarded(&service, &old, &server).await, [400, 201, 201, 200, 101]);
}

#[actix_web::test]
async fn sharing_and_accounts_need_a_recent_proof() {
    let service = TestService::start_with(|config| config.step_up = Some(STEP_UP)).await;
    let (ada, eve) = (service.register("ada").await, service.register("eve").await);
    let server = service.server(&ada, "web-1").await.to_string();
    let client = &service.client;
    let team = client.post("/teams").bearer(&ada.token).json(json!({"name": "ops"})).expect(201).await;
    let team = format!("/teams/{}", text_of(&team["id"]));
    let grant = json!({"subject": {"username": "eve"}, "scope": {"server_id": server}, "role": "viewer"});
    let given = client.post("/grants").bearer(&ada.token).json(grant.clone()).expect(201).await;
    // A tag that is shared shares a server that gets it.
    let by_tag = json!({"subject": {"username": "eve"}, "scope": {"tag": "db"}, "role": "viewer"});
    client.post("/grants").bearer(&ada.token).json(by_tag).expect(201).await;
    let tagged = service.server(&ada, "db-1").await.to_string();
    let tagged = format!("/servers/{tagged}");
    client.put(&tagged).bearer(&ada.token).json(json!({"tags": ["db"]})).expect(200).await;
    let given = format!("/grants/{}", text_of(&given["id"]));
    let invited = client.post("/users/invitations").bearer(&ada.token).json(json!({})).expect(201).await;
    let invited = format!("/users/invitations/{}", text_of(&invited["id"]));
    let user = client.get("/auth/me").bearer(&eve.token).expect(200).await;
    let user = format!("/users/{}", text_of(&user["id"]));
    execute(&service, "UPDATE logins SET proved_at = proved_at - 600000").await;
    let old = service.sign_in(&ada).await;
    let plain = service.sign_in(&eve).await;
    execute(&service, "UPDATE logins SET proved_at = proved_at - 600000").await;

    let changes = || {
        [
            client.post("/grants").json(grant.clone()),
            client.delete(&given),
            client.post("/teams").json(json!({"name": "dev"})),
            client.put(&team).json(json!({"name": "operations"})),
            client.put(format!("{team}/members/eve")),
            client.delete(format!("{team}/members/eve")),
            client.delete(&team),
            client.post("/users/invitations").json(json!({})),
            client.delete(&invited),
            client.put(format!("/servers/{server}")).json(json!({"tags": ["web", "db"]})),
            client.post("/servers").json(json!({"name": "db-3", "host": "192.0.2.1", "tags": ["db"]})),
            client.put(&user).json(json!({"is_admin": false})),
            client.delete(&user),
        ]
    };
    for call in changes() {
        call.bearer(&old.token).expect_error(403, "step_up_required").await;
    }
    // Rights come first.
    client.delete(&user).bearer(&plain.token).expect_error(403, "forbidden").await;
    client.get("/grants").bearer(&old.token).expect(200).await;
    client.get("/users").bearer(&old.token).expect(200).await;
    let rename = json!({"name": "db-2", "tags": ["db", "disks"]});
    client.put(&tagged).bearer(&old.token).json(rename).expect(200).await;

    let prove = client.post("/auth/step-up").bearer(&old.token).json(json!({"password": PASSWORD}));
    prove.expect(200).await;
    for call in changes() {
        let status = call.bearer(&old.token).send().await.status;
        assert!([200, 201].contains(&status), "{status}");
    }
}

#[actix_web::test]
async fn by_default_only_changes_of_the_ways_to_sign_in_need_a_recent_proof() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let server = service.server(&ada, "web-1").await.to_string();
    let old = service.sign_in(&ada).await;
    execute(&service, "UPDATE logins SET proved_at = 0").await;

    assert_eq!(guarded(&service, &old, &server).await, [400, 201, 201, 403, 101]);
    let nothing = "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10";
    for call in [
        service.client.post("/auth/totp"),
        service.client.post("/auth/totp/confirm").json(json!({"otp": "000000"})),
        service.client.delete(format!("/auth/passkeys/{nothing}")),
    ] {
        call.bearer(&old.token).expect_error(403, "step_up_required").await;
    }
    let prove = service.client.post("/auth/step-up").bearer(&old.token).json(json!({"password": PASSWORD}));
    prove.expect(200).await;
    service.client.post("/auth/totp").bearer(&old.token).expect(200).await;
}

#[actix_web::test]
async fn by_default_tokens_and_enrolments_need_no_proof_also_in_a_session_from_before_the_app() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    let old = service.sign_in(&ada).await;
    set_up_app(&service, &ada).await;
    execute(&service, "UPDATE logins SET proved_at = 0").await;

    let token = json!({"name": "program", "scope": {"all": true}});
    service.client.post("/tokens").bearer(&old.token).json(token).expect(201).await;
    let enrolment = json!({"name": "machines", "uses": 1});
    service.client.post("/enrolments").bearer(&old.token).json(enrolment).expect(201).await;
}

#[actix_web::test]
async fn a_socket_is_not_renewed_by_a_session_without_the_second_factor() {
    let service = TestService::start_with(|config| config.second_factor = SecondFactorPolicy::All).await;
    let ada = service.register("ada").await;
    add_passkey(&service, &ada).await;
    let weak = service.sign_in(&ada).await;
    let bearer = format!("Bearer {}", ada.token);
    let open =
        async || Socket::connect(service.address, "/api/v1/ws/fleet", &[("Authorization", &bearer)]).await.unwrap();
    let (mut renewed, mut kept) = (open().await, open().await);

    renewed.send(json!({"type": "auth", "token": weak.token}).to_string().into()).await;
    kept.send(json!({"type": "auth", "token": ada.token}).to_string().into()).await;

    assert_eq!(renewed.close_code().await, 4403);
    // Whose renewal is right stays open until the session ends.
    service.client.post("/auth/logout").bearer(&ada.token).expect(200).await;
    assert_eq!(kept.close_code().await, 4401);
}

#[actix_web::test]
async fn the_operator_removes_lost_factors() {
    let service = TestService::start().await;
    let ada = service.register("ada").await;
    add_passkey(&service, &ada).await;
    set_up_app(&service, &ada).await;
    let storage = service.stop().await;
    let reset = |name: &str| {
        let mut command =
            signalbox(&["user", "reset-second-factor", name, "--data-dir", storage.path().to_str().unwrap()]);
        storage.named_to(&mut command);
        command
    };

    let outcome = run(reset("ada")).await;
    let nobody = run(reset("nobody")).await;

    assert_eq!(outcome.printed(), "removed from ada: authenticator app: yes, passkeys: 1\n");
    assert!(nobody.stderr.contains("nobody"), "{nobody:?}");
    let service = TestService::start_on(storage, |_| {}).await;
    service.client.get("/auth/me").bearer(&ada.token).expect_error(401, "token_revoked").await;
    let tokens = login(&service, "ada", None).expect(200).await;
    let me = service.client.get("/auth/me").bearer(&in_session(&ada, &tokens).token).expect(200).await;
    assert_eq!(me["second_factor"], json!({"totp": false, "passkeys": 0, "recovery_codes_left": 0}));
}
