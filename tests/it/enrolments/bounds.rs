//! When a token does not count, and what it never opens.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::config::Quotas;
use signalbox::store::{Enrolling, Newcomer};
use signalbox_protocol::{Encoding, Timestamp};
use uuid::Uuid;

use super::{Enrolment, Scene};
use crate::support::agent::FakeAgent;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::rest::Client;
use crate::support::{PASSWORD, TestService, eventually, text_of, uuid_of};

#[actix_web::test]
async fn a_token_is_refused_from_another_network() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"networks": ["127.0.0.9", "10.0.0.0/8"]})).await;
    let base = format!("http://{}/api/v1", scene.service.address);
    let from = |last| {
        let client = Client::from_address(base.clone(), Ipv4Addr::new(127, 0, 0, last));
        client.post("/enrol").bearer(&enrolment.token).json(json!({"hostname": "web"}))
    };

    let refused = from(8).expect_answer(401).await;

    assert_eq!(refused.json()["code"], "token_invalid");
    assert_eq!(refused.header("WWW-Authenticate"), "Bearer");
    assert!(!refused.text.contains(&enrolment.token), "{refused}");
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 1_000);
    from(9).expect(201).await;
}

#[actix_web::test]
async fn an_enrolment_expires() {
    let scene = Scene::start().await;
    // It ends before a thousand machines have used it up; on a machine under load it may end before it is created.
    let (enrolment, expires_at) = eventually("the enrolment is created in time", async || {
        let expires_at = Timestamp::now().plus_millis(5_000).to_string();
        let body = json!({"name": "rack 4", "uses": 1_000, "expires_at": expires_at});
        let answer = scene.create(body).send().await;
        assert!([201, 422].contains(&answer.status), "{answer}");
        let enrolment = |made: Value| Enrolment { id: uuid_of(&made["id"]), token: text_of(&made["token"]) };
        (answer.status == 201).then(|| (enrolment(answer.json()), expires_at))
    })
    .await;

    let code = eventually("the enrolment has expired", async || {
        let answer = scene.enrol(&enrolment.token, "web").send().await;
        (answer.status != 201).then(|| (answer.status, text_of(&answer.json()["code"])))
    })
    .await;

    assert_eq!(code, (401, "token_expired".to_owned()));
    assert_eq!(scene.shown(&enrolment).await["expires_at"], json!(expires_at), "it stays in the list");
}

#[actix_web::test]
async fn an_enrolment_that_ends_after_its_token_was_read_says_how() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"expires_at": Timestamp::now().plus_millis(60_000).to_string()})).await;
    let store = &scene.service.state.store;
    let newcomer = Newcomer {
        enrolment_id: enrolment.id,
        owner_id: scene.owner.id,
        hostname: "web".to_owned(),
        request: None,
        key_prefix: "prefix".to_owned(),
        key_digest: Vec::new(),
        address: "127.0.0.1".to_owned(),
        now: Timestamp::now().plus_millis(60_001),
    };

    assert_eq!(store.enrol(newcomer.clone(), Actor::command_line()).await.unwrap(), Enrolling::Expired);
    scene.revoke(&enrolment).await;
    assert_eq!(store.enrol(newcomer, Actor::command_line()).await.unwrap(), Enrolling::Ended);
    assert!(scene.server_names().await.is_empty());
}

#[actix_web::test]
async fn a_revoked_enrolment_makes_nothing_and_its_servers_stay() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let enrolled = scene.enrol(&enrolment.token, "web").expect(201).await;

    scene.revoke(&enrolment).await;

    scene.enrol(&enrolment.token, "web").expect_error(401, "token_revoked").await;
    let path = format!("/enrolments/{}", enrolment.id);
    scene.service.client.delete(path).bearer(&scene.owner.token).expect_error(404, "not_found").await;
    assert_eq!(scene.server_names().await, ["web"]);
    FakeAgent::online(scene.service.address, &text_of(&enrolled["key"])).await;
}

#[actix_web::test]
async fn text_that_is_no_token_of_an_enrolment_is_refused() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let body = json!({"name": "program", "scope": {"all": true}, "role": "manager"});
    let program = scene.service.client.post("/tokens").bearer(&scene.owner.token).json(body).expect(201).await;
    let (_, key) = scene.service.server_with_key(&scene.owner, "db").await;
    let (prefix, secret) = enrolment.token.split_at("sbe_".len() + 16);

    for text in [prefix, "sbe_", &scene.owner.token, &text_of(&program["token"]), &key] {
        scene.enrol(text, "web").expect_error(401, "token_invalid").await;
    }
    for text in [format!("sbe_{}{secret}", "0".repeat(16)), format!("{prefix}_{}", "A".repeat(43))] {
        scene.enrol(&text, "web").expect_error(401, "token_revoked").await;
    }
    for path in [format!("/enrol?token={}", enrolment.token), format!("/enrol?access_token={}", enrolment.token)] {
        let call = scene.service.client.post(path).json(json!({"hostname": "web"}));
        call.expect_error(401, "not_authenticated").await;
    }
    assert_eq!(scene.server_names().await, ["db"]);
}

/// Every operation and socket of openapi.json that asks for a token.
#[actix_web::test]
async fn the_token_opens_nothing_else() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let server_id = scene.service.server(&scene.owner, "db").await;
    let document = signalbox::http::openapi::document();
    let mut asked = 0;

    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation.get("security").is_none() || path == "/api/v1/enrol" {
                continue;
            }
            asked += 1;
            let id =
                if path.contains("/servers/{id}") || path.contains("server_id") { server_id } else { enrolment.id };
            let target = with_ids(path, id);
            if path.contains("/ws/") {
                for pass in Pass::three_ways(&enrolment.token) {
                    let refused = Dashboard::open(scene.service.address, &target, pass, &[]).await;
                    assert_eq!(refused.err(), Some(401), "{target}");
                }
                continue;
            }
            let method = method.to_uppercase().parse().unwrap();
            let answer = scene.service.root.call(method, &target).bearer(&enrolment.token).send().await;
            assert_eq!((answer.status, &answer.json()["code"]), (401, &json!("token_invalid")), "{target}: {answer}");
        }
    }

    assert!(asked > 100, "{asked}");
    let mut agent = FakeAgent::connect(scene.service.address, Encoding::Json).await;
    assert!(!agent.authenticate(&enrolment.token).await.success);
}

fn with_ids(path: &str, id: Uuid) -> String {
    let filled = path.split('/').map(|part| if part.starts_with('{') { id.to_string() } else { part.to_owned() });
    filled.collect::<Vec<_>>().join("/")
}

#[actix_web::test]
async fn enrolments_end_for_good_when_their_owner_is_disabled() {
    let service = TestService::start().await;
    let administrator = service.register("administrator").await;
    let scene = Scene::of(service).await;
    let enrolment = scene.enrolment(json!({})).await;
    scene.enrol(&enrolment.token, "web").expect(201).await;
    let set = |disabled: bool| {
        let path = format!("/users/{}", scene.owner.id);
        scene.service.client.put(path).bearer(&administrator.token).json(json!({"disabled": disabled})).expect(200)
    };

    set(true).await;

    scene.enrol(&enrolment.token, "web").expect_error(401, "token_revoked").await;
    set(false).await;
    scene.enrol(&enrolment.token, "web").expect_error(401, "token_revoked").await;
    let owner = scene.service.sign_in(&scene.owner).await;
    assert_eq!(scene.service.client.get("/enrolments").bearer(&owner.token).expect(200).await, json!([]));
}

#[actix_web::test]
async fn enrolments_end_with_their_owners_account() {
    let service = TestService::start().await;
    service.register("administrator").await;
    let scene = Scene::of(service).await;
    let enrolment = scene.enrolment(json!({})).await;

    let delete = scene.service.client.delete("/auth/me").bearer(&scene.owner.token).json(json!({"password": PASSWORD}));
    delete.expect(200).await;

    scene.enrol(&enrolment.token, "web").expect_error(401, "token_revoked").await;
}

#[actix_web::test]
async fn the_quotas_of_the_owner_hold_and_a_refused_machine_takes_no_use() {
    let quotas = Quotas { servers: 2, api_keys: 3, enrolments: 2, ..Quotas::default() };
    let scene = Scene::of(TestService::start_with(|config| config.quotas = quotas).await).await;
    let enrolment = scene.enrolment(json!({"uses": 10})).await;
    scene.enrolment(json!({})).await;
    let refused = scene.create(json!({"name": "x", "uses": 1})).expect_error(400, "quota_exceeded").await;
    assert!(text_of(&refused["detail"]).contains("--quota-enrolments"), "{refused}");
    scene.enrol(&enrolment.token, "web").expect(201).await;
    let second = scene.enrol(&enrolment.token, "web").expect(201).await;

    let refused = scene.enrol(&enrolment.token, "web").expect_error(400, "quota_exceeded").await;

    assert!(text_of(&refused["detail"]).contains("--quota-servers"), "{refused}");
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 8);
    let path = format!("/servers/{}", text_of(&second["server_id"]));
    scene.service.client.delete(path).bearer(&scene.owner.token).expect(200).await;
    scene.enrol(&enrolment.token, "web").expect(201).await;
    let usage = scene.read("/auth/quotas").await;
    let used =
        |name: &str| usage.as_array().unwrap().iter().find(|quota| quota["name"] == name).unwrap()["used"].clone();
    assert_eq!((used("servers"), used("enrolments")), (json!(2), json!(2)));
}

#[actix_web::test]
async fn a_use_that_is_used_up_says_so() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": 1})).await;
    scene.enrol(&enrolment.token, "web").expect(201).await;

    let refused = scene.enrol(&enrolment.token, "web").expect_error(403, "enrolment_used_up").await;

    assert!(text_of(&refused["detail"]).contains("create another"), "{refused}");
    let shown: Value = scene.shown(&enrolment).await;
    assert_eq!((&shown["uses"], &shown["uses_left"]), (&json!(1), &json!(0)));
}
