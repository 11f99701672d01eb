//! Accounts and their sessions: a decision of one instance applies at every other within about a second.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{A, B, C, Scene};
use crate::support::alerts::ALERTS_PATH;
use crate::support::cluster::Cluster;
use crate::support::rest::Call;
use crate::support::tokens::claims_of;
use crate::support::{Answer, PASSWORD, eventually, registration, text_of};

/// Another session of the owner.
struct OtherSession {
    token: String,
    refresh_token: String,
}

async fn sign_in(scene: &Scene, instance: usize) -> OtherSession {
    let form = [("username", "owner"), ("password", PASSWORD)];
    let tokens = scene.client(instance).post("/auth/login").form(&form).expect(200).await;
    OtherSession { token: text_of(&tokens["access_token"]), refresh_token: text_of(&tokens["refresh_token"]) }
}

fn me(scene: &Scene, instance: usize, token: &str) -> Call {
    scene.client(instance).get("/auth/me").bearer(token)
}

/// Waits until an instance takes a token no more.
async fn until_refused(scene: &Scene, instance: usize, token: &str) {
    eventually(&format!("the token is refused at {instance}"), async || {
        (me(scene, instance, token).send().await.status == 401).then_some(())
    })
    .await;
}

async fn refresh(scene: &Scene, instance: usize, token: &str) -> Answer {
    scene.client(instance).post("/auth/refresh").json(json!({"refresh_token": token})).send().await
}

#[actix_web::test]
async fn a_token_of_one_is_good_at_all() {
    let scene = Scene::start().await;

    for made in [A, B, C] {
        let session = sign_in(&scene, made).await;
        for used in [A, B, C] {
            me(&scene, used, &session.token).expect(200).await;
        }
        let answer = refresh(&scene, (made + 1) % 3, &session.refresh_token).await;
        assert_eq!(answer.status, 200, "{answer}");
    }
}

#[actix_web::test]
async fn signing_out_ends_tokens_and_sockets_at_the_others() {
    let scene = Scene::start().await;
    let session = sign_in(&scene, B).await;
    let watching = Scene {
        prepared: crate::support::process::Prepared { token: session.token.clone(), ..scene.prepared },
        cluster: scene.cluster,
    };
    let mut of_server = watching.watch(C).await;
    let mut of_all = watching.open(B, ALERTS_PATH).await;
    let mut of_fleet = watching.open(C, "/api/v1/ws/fleet").await;
    me(&watching, B, &session.token).expect(200).await;

    watching.post(A, "/auth/logout").expect(200).await;

    me(&watching, A, &session.token).expect_refusal(401).await;
    for instance in [B, C] {
        until_refused(&watching, instance, &session.token).await;
        let answer = refresh(&watching, instance, &session.refresh_token).await;
        assert_eq!(answer.status, 401, "{answer}");
    }
    for socket in [&mut of_server, &mut of_all, &mut of_fleet] {
        socket.expect_close(4401).await;
    }
}

#[actix_web::test]
async fn a_new_password_ends_every_other_session_everywhere() {
    let scene = Scene::start().await;
    let other = sign_in(&scene, B).await;
    me(&scene, B, &other.token).expect(200).await;

    let body = json!({"current_password": PASSWORD, "new_password": "another horse battery"});
    scene.post(A, "/auth/change-password").json(body).expect(200).await;

    until_refused(&scene, B, &other.token).await;
    until_refused(&scene, C, &other.token).await;
    for instance in [A, B, C] {
        me(&scene, instance, &scene.prepared.token).expect(200).await;
        let old = [("username", "owner"), ("password", PASSWORD)];
        scene.client(instance).post("/auth/login").form(&old).expect_error(401, "invalid_credentials").await;
    }
    let new = [("username", "owner"), ("password", "another horse battery")];
    scene.client(C).post("/auth/login").form(&new).expect(200).await;
}

#[actix_web::test]
async fn a_session_that_is_ended_from_the_list_of_another_instance_is_dead() {
    let scene = Scene::start().await;
    let other = sign_in(&scene, B).await;

    let listed = scene.read(C, "/auth/sessions").await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let id = text_of(&claims_of(&other.token)["sid"]);
    scene.client(C).delete(format!("/auth/sessions/{id}")).bearer(&scene.prepared.token).expect(200).await;

    until_refused(&scene, A, &other.token).await;
    until_refused(&scene, B, &other.token).await;
}

#[actix_web::test]
async fn a_refresh_at_two_instances_at_once_leaves_one_session_that_works() {
    let scene = Scene::start().await;
    let mut session = sign_in(&scene, A).await;

    for _ in 0..5 {
        let spent = session.refresh_token.clone();
        let (first, second) = tokio::join!(refresh(&scene, A, &spent), refresh(&scene, B, &spent));

        assert_eq!((first.status, second.status), (200, 200), "{first} {second}");
        let tokens = [first, second].map(|answer| text_of(&answer.json()["refresh_token"]));
        assert_eq!(tokens[0], tokens[1], "a repeated request gets the same again");
        session = OtherSession { token: session.token, refresh_token: tokens[0].clone() };
    }

    let answer = refresh(&scene, C, &session.refresh_token).await;
    assert_eq!(answer.status, 200, "{answer}");
}

#[actix_web::test]
async fn an_e_mail_that_is_registered_at_two_instances_at_once_is_one_account() {
    let scene = Scene::start().await;

    for round in 0..5 {
        let name = format!("racer-{round}");
        let register = |instance: usize| scene.client(instance).post("/auth/register").json(registration(&name)).send();
        let answers = tokio::join!(register(A), register(B), register(C));
        let answers = [answers.0, answers.1, answers.2];

        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        let made = statuses.iter().filter(|status| **status == 201).count();
        assert_eq!(made, 1, "{statuses:?}");
        let codes: BTreeSet<_> =
            answers.iter().filter(|it| it.status != 201).map(|it| text_of(&it.json()["code"])).collect();
        let taken = |code: &String| code == "email_taken" || code == "username_taken";
        assert!(codes.iter().all(taken), "{codes:?}");
    }
}

#[actix_web::test]
async fn a_profile_that_is_changed_at_one_is_read_at_all() {
    let scene = Scene::start().await;

    let call = scene.client(A).put("/auth/me").bearer(&scene.prepared.token);
    call.json(json!({"full_name": "Ada Lovelace"})).expect(200).await;

    for instance in [B, C] {
        let told: Value = me(&scene, instance, &scene.prepared.token).expect(200).await;
        assert_eq!(told["full_name"], "Ada Lovelace", "{instance}");
    }
}

#[actix_web::test]
async fn one_of_those_who_register_first_at_once_is_the_administrator() {
    let cluster = Cluster::start(3).await;
    let register = async |instance: usize| {
        let client = &cluster.at(instance).client;
        let made = client.post("/auth/register").json(registration(&format!("first-{instance}"))).expect(201).await;
        text_of(&made["access_token"])
    };

    let (first, second, third) = tokio::join!(register(A), register(B), register(C));

    let mut administrators = 0;
    for token in [first, second, third] {
        let me = cluster.at(B).client.get("/auth/me").bearer(&token).expect(200).await;
        administrators += usize::from(me["is_admin"] == true);
    }
    assert_eq!(administrators, 1);
}

/// A second account, of the scene's first administrator, and its tokens.
async fn another(scene: &Scene) -> (String, OtherSession) {
    let made = scene.client(A).post("/auth/register").json(registration("colleague")).expect(201).await;
    let (token, refresh_token) = (text_of(&made["access_token"]), text_of(&made["refresh_token"]));
    (text_of(&made["user"]["id"]), OtherSession { token, refresh_token })
}

#[actix_web::test]
async fn disabling_at_one_ends_sessions_and_sockets_at_the_others() {
    let scene = Scene::start().await;
    let (id, session) = another(&scene).await;
    let address = scene.cluster.address(C);
    let pass = crate::support::dashboard::Pass::Header(&session.token);
    let mut socket = crate::support::dashboard::Dashboard::open(address, "/api/v1/ws/fleet", pass, &[]).await.unwrap();
    me(&scene, B, &session.token).expect(200).await;

    let path = format!("/users/{id}");
    let disable = scene.client(A).put(&path).bearer(&scene.prepared.token).json(json!({"disabled": true}));
    disable.expect(200).await;

    socket.expect_close(4401).await;
    for instance in [B, C] {
        until_refused(&scene, instance, &session.token).await;
        let answer = refresh(&scene, instance, &session.refresh_token).await;
        assert_eq!(answer.status, 401, "{answer}");
        let login = [("username", "colleague"), ("password", PASSWORD)];
        scene.client(instance).post("/auth/login").form(&login).expect_error(401, "invalid_credentials").await;
    }
}

#[actix_web::test]
async fn a_demoted_administrator_is_none_at_the_others() {
    let scene = Scene::start().await;
    let (id, session) = another(&scene).await;
    let change = |body| scene.client(A).put(format!("/users/{id}")).bearer(&scene.prepared.token).json(body);
    change(json!({"is_admin": true})).expect(200).await;
    eventually("B knows the administrator", async || {
        (scene.client(B).get("/users").bearer(&session.token).send().await.status == 200).then_some(())
    })
    .await;

    change(json!({"is_admin": false})).expect(200).await;

    eventually("B knows the administrator no more", async || {
        (scene.client(B).get("/users").bearer(&session.token).send().await.status == 403).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn agents_at_another_instance_follow_their_server_to_its_new_owner() {
    let scene = Scene::start().await;
    let (id, session) = another(&scene).await;
    let body = json!({"name": "web-9", "host": "192.0.2.9"});
    let server = scene.client(A).post("/servers").bearer(&session.token).json(body).expect(201).await;
    let key = json!({"server_id": server["id"], "name": "agent"});
    let key = scene.client(A).post("/api-keys").bearer(&session.token).json(key).expect(201).await;
    let address = scene.cluster.address(B);
    let mut agent = crate::support::agent::FakeAgent::online(address, &text_of(&key["key"])).await;

    let owner = scene.client(A).get("/auth/me").bearer(&scene.prepared.token).expect(200).await;
    let path = format!("/users/{id}?servers_to={}", text_of(&owner["id"]));
    scene.client(A).delete(path).bearer(&scene.prepared.token).expect(200).await;

    agent.expect_close(1012).await;
    let _agent = crate::support::agent::FakeAgent::online(address, &text_of(&key["key"])).await;
    eventually("C shows the server online to its new owner", async || {
        let path = format!("/servers/{}", text_of(&server["id"]));
        let answer = scene.client(C).get(path).bearer(&scene.prepared.token).send().await;
        (answer.status == 200 && answer.json()["status"] == "online").then_some(())
    })
    .await;
}
