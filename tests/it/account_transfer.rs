//! The servers of a deleted account continue at another one: agents, alerts, thresholds, commands and history.

use serde_json::{Value, json};
use signalbox::audit::Actor;
use signalbox::store::{AccountDeletion, Alert, AlertAudience, AlertChange, StoreError};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::alerts::{Alarms, Threshold};
use crate::support::rows::alert;
use crate::support::{Account, PASSWORD, TestService, eventually, in_time, text_of};

struct Scene {
    service: TestService,
    admin: Account,
    bob: Account,
    server_id: Uuid,
    key: String,
}

impl Scene {
    async fn start() -> Self {
        let service = TestService::start().await;
        let (admin, bob) = (service.register("admin").await, service.register("bob").await);
        let (server_id, key) = service.server_with_key(&bob, "web-1").await;
        Self { service, admin, bob, server_id, key }
    }

    fn of(&self, account: &Account) -> Alarms {
        Alarms::of(&self.service, account, self.server_id)
    }

    /// Deletes bob's account, whose servers go to the administrator.
    async fn delete_bob(&self) {
        let path = format!("/users/{}?servers_to={}", self.bob.id, self.admin.id);
        self.service.client.delete(path).bearer(&self.admin.token).expect(200).await;
    }

    /// The length of the administrator's list of alerts for a query.
    async fn alerts(&self, query: &str) -> String {
        let path = format!("/alerts?limit=2{query}");
        let page = self.service.client.get(path).bearer(&self.admin.token).expect_answer(200).await;
        assert_eq!(page.json().as_array().unwrap().len(), 2, "{query}");
        page.header("X-Total-Count").to_owned()
    }
}

fn opened(alert: &Alert) -> AlertChange {
    AlertChange::Opened { alert: Box::new(alert.clone()), audience: AlertAudience::default() }
}

/// With times the total comes from other counters.
const QUERIES: [&str; 2] = ["", "&since=2020-01-01T00:00:00Z"];

#[actix_web::test]
async fn a_connected_agent_comes_back_as_the_new_owners() {
    let scene = Scene::start().await;
    let mut agent = FakeAgent::online(scene.service.address, &scene.key).await;
    agent.store(1, vec![sample_at(Timestamp::now())]).await;
    let mut fleet = crate::support::dashboard::Dashboard::open(
        scene.service.address,
        "/api/v1/ws/fleet",
        crate::support::dashboard::Pass::Header(&scene.admin.token),
        &[],
    )
    .await
    .unwrap();
    assert_eq!(fleet.until("fleet").await["servers"], json!([]));

    scene.delete_bob().await;

    in_time("the agent is asked to connect again", agent.expect_close(1012)).await;
    fleet.until("servers").await;
    let mut agent = FakeAgent::online(scene.service.address, &scene.key).await;
    agent.store(2, vec![sample_at(Timestamp::now())]).await;
    let admin = scene.of(&scene.admin);
    let server = admin.read(&format!("/servers/{}", scene.server_id)).await;
    assert_eq!((&server["name"], &server["status"]), (&json!("web-1"), &json!("online")));
    let history = admin.read(&format!("/metrics/{}/history", scene.server_id)).await;
    assert!(!history.as_array().unwrap().is_empty(), "{history}");
    let shown = async { while !fleet.next().await.to_string().contains(&scene.server_id.to_string()) {} };
    in_time("the fleet's socket has the server", shown).await;
}

#[actix_web::test]
async fn thresholds_of_servers_and_their_alerts_move_and_those_for_tags_end() {
    let scene = Scene::start().await;
    let bob = scene.of(&scene.bob);
    let own = bob.add(Threshold::cpu(50.0)).await;
    let everywhere = bob.add(Threshold::cpu(60.0).everywhere()).await;
    let mut probe = bob.probe(&scene.key).await;
    probe.cpu(90.0).await;
    for threshold in [own, everywhere] {
        bob.until(threshold, "active").await;
    }

    scene.delete_bob().await;

    let admin = scene.of(&scene.admin);
    admin.until(everywhere, "resolved").await;
    assert_eq!(admin.only(own).await["status"], "active");
    let thresholds = admin.read("/alerts/thresholds").await;
    assert_eq!(thresholds.as_array().unwrap().len(), 1);
    assert_eq!(thresholds[0]["id"], json!(own));
    // The evaluator knows the new owner.
    let mut socket = admin.watch().await;
    let mut probe = admin.probe(&scene.key).await;
    probe.cpu(10.0).await;
    admin.until(own, "resolved").await;
    probe.cpu(90.0).await;
    let told = socket.until("alert").await;
    assert_eq!(told["threshold_id"], json!(own));
    admin.until(own, "active").await;
    assert_eq!(admin.of_threshold(own).await.len(), 2);
}

#[actix_web::test]
async fn lists_and_counts_of_alerts_are_those_of_the_new_owner() {
    let scene = Scene::start().await;
    let opened_at_once: Vec<Alert> = (0..7).map(|_| alert(scene.bob.id, scene.server_id, Uuid::now_v7())).collect();
    let changes: Vec<AlertChange> = opened_at_once.iter().map(opened).collect();
    scene.service.state.store.change_alerts(&changes).await.unwrap();

    scene.delete_bob().await;

    for query in QUERIES {
        assert_eq!(scene.alerts(query).await, "7", "{query}");
    }
    // An evaluator that still had the old owner writes for the new one.
    let late = alert(scene.bob.id, scene.server_id, Uuid::now_v7());
    let written = scene.service.state.store.change_alerts(&[opened(&late)]).await.unwrap();
    assert_eq!(written[0].as_ref().map(|alert| alert.owner_id), Some(scene.admin.id));
    assert_eq!(scene.alerts("").await, "8");
}

#[actix_web::test]
async fn the_deletion_of_an_account_with_many_alerts_can_be_interrupted_and_asked_for_again() {
    let scene = Scene::start().await;
    let store = &scene.service.state.store;
    let new_alert = || alert(scene.bob.id, scene.server_id, Uuid::now_v7());
    let open = new_alert();
    store.change_alerts(&[opened(&open)]).await.unwrap();
    // More than two transactions move.
    for _ in 0..11 {
        let past: Vec<Alert> = (0..100).map(|_| new_alert()).collect();
        let at = Timestamp::now();
        let ended = |alert: &Alert| AlertChange::Resolved { id: alert.id, by: "recovery", sample_at: at, at };
        let changes: Vec<AlertChange> = past.iter().flat_map(|alert| [opened(alert), ended(alert)]).collect();
        store.change_alerts(&changes).await.unwrap();
    }
    let (user_id, servers_to) = (scene.bob.id, Some(scene.admin.id));
    let deletion = AccountDeletion { user_id, servers_to, verified_hash: None, now: Timestamp::now() };

    // A service that ends now has done no more than this.
    let deleted = store.delete_account(deletion, Actor::command_line()).await.unwrap().unwrap();

    assert!(!deleted.is_gone);
    let admin = scene.of(&scene.admin);
    let bob = admin.read("/users?q=bob").await[0].clone();
    assert_eq!((&bob["disabled"], &bob["servers"], &bob["sessions"]), (&json!(true), &json!(0), &json!(0)));
    let form = [("username", "bob"), ("password", PASSWORD)];
    scene.service.client.post("/auth/login").form(&form).expect_error(401, "invalid_credentials").await;
    admin.read(&format!("/servers/{}", scene.server_id)).await;
    // It may have ended since: no rule raises it.
    assert_eq!(store.find_alert(open.id).await.unwrap().map(|alert| alert.owner_id), Some(scene.admin.id));

    scene.delete_bob().await;

    assert_eq!(admin.read("/users?q=bob").await, json!([]));
    for query in QUERIES {
        assert_eq!(scene.alerts(query).await, "1101", "{query}");
    }
}

#[actix_web::test]
async fn a_deletion_does_not_continue_while_the_account_has_a_server_or_is_enabled() {
    let scene = Scene::start().await;

    let with_server = scene.service.state.store.finish_deletion(scene.bob.id).await;
    let enabled = scene.service.state.store.finish_deletion(scene.admin.id).await;

    assert!(matches!(with_server, Err(StoreError::OwnsServers)), "{with_server:?}");
    assert!(matches!(enabled, Err(StoreError::EnabledAgain)), "{enabled:?}");
    scene.of(&scene.admin).read("/users").await;
    scene.of(&scene.bob).read(&format!("/servers/{}", scene.server_id)).await;
}

#[actix_web::test]
async fn commands_keep_their_history_and_a_running_batch_ends() {
    let scene = Scene::start().await;
    let (second, _) = scene.service.server_with_key(&scene.bob, "web-2").await;
    let mut agent = FakeAgent::online(scene.service.address, &scene.key).await;
    let body = json!({"command": "sleep 60", "server_ids": [scene.server_id, second], "concurrency": 1});
    let batch = scene.service.client.post("/commands").bearer(&scene.bob.token).json(body).expect(201).await;
    in_time("the first command is sent", agent.next()).await;

    scene.delete_bob().await;

    let admin = scene.of(&scene.admin);
    let history = |id: Uuid| {
        let admin = admin.clone();
        async move { admin.read(&format!("/commands/{id}")).await }
    };
    let waiting = eventually("what waited never runs", async || {
        let commands = history(second).await;
        Some(commands[0].clone()).filter(|command| command["status"] != "queued" && command["status"] != "running")
    })
    .await;
    assert_eq!((&waiting["username"], &waiting["batch_id"]), (&json!("bob"), &Value::Null));
    assert_eq!(history(scene.server_id).await[0]["command"], "sleep 60");
    let path = format!("/commands/batches/{}", text_of(&batch["id"]));
    scene.service.client.get(path).bearer(&scene.admin.token).expect_error(404, "not_found").await;
}

#[actix_web::test]
async fn each_server_has_an_entry_about_its_new_owner() {
    let scene = Scene::start().await;

    scene.delete_bob().await;

    let path = format!("/audit?server_id={}", scene.server_id);
    let entries = scene.service.client.get(path).bearer(&scene.admin.token).expect(200).await;
    let entry = &entries[0];
    assert_eq!((&entry["action"], &entry["server_name"]), (&json!("server.transfer"), &json!("web-1")));
    assert_eq!(entry["detail"], json!({"from": "bob", "to": "admin"}));
}

#[actix_web::test]
async fn a_grant_of_a_tag_contains_the_servers_that_came_from_another_account() {
    let scene = Scene::start().await;
    let carol = scene.service.register("carol").await;
    let client = &scene.service.client;
    let path = format!("/servers/{}", scene.server_id);
    client.put(&path).bearer(&scene.bob.token).json(json!({"tags": ["db", "eu"]})).expect(200).await;
    let grant = json!({"subject": {"username": "carol"}, "scope": {"tag": "db"}, "role": "viewer"});
    let listed = async || {
        let list = client.get("/servers").bearer(&carol.token).expect_answer(200).await;
        (list.json().as_array().unwrap().len(), list.header("X-Total-Count").to_owned())
    };
    client.post("/grants").bearer(&scene.bob.token).json(grant.clone()).expect(201).await;
    assert_eq!(listed().await, (1, "1".to_owned()));

    scene.delete_bob().await;

    // The grant ended with the account of its giver.
    assert_eq!(listed().await, (0, "0".to_owned()));
    client.post("/grants").bearer(&scene.admin.token).json(grant).expect(201).await;
    assert_eq!(listed().await, (1, "1".to_owned()));
    client.put(&path).bearer(&scene.admin.token).json(json!({"tags": ["eu"]})).expect(200).await;
    assert_eq!(listed().await, (0, "0".to_owned()));
}
