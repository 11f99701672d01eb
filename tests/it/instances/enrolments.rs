//! Enrolments with several instances: the last use is given out once, one that is revoked ends everywhere at once, and those with
//! grants are in nobody's way.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox_protocol::Encoding;

use super::clocks::counted;
use super::{A, B, C, Scene};
use crate::support::agent::FakeAgent;
use crate::support::rest::Call;
use crate::support::{eventually, registration, text_of};

impl Scene {
    async fn enrolment(&self, uses: u32) -> (String, String) {
        let body = json!({"name": "rack 4", "uses": uses, "tags": ["enrolled"]});
        let made = self.post(A, "/enrolments").json(body).expect(201).await;
        (text_of(&made["id"]), text_of(&made["token"]))
    }

    /// How many transactions were begun again because of another one, at all instances.
    async fn retries(&self) -> f64 {
        let mut retries = 0.0;
        for instance in [A, B, C] {
            retries += counted(self.cluster.at(instance), "signalbox_transaction_retries_total").await;
        }
        retries
    }

    fn enrol(&self, instance: usize, token: &str, body: Value) -> Call {
        self.client(instance).post("/enrol").bearer(token).json(body)
    }
}

#[actix_web::test]
async fn machines_at_every_instance_share_the_uses_and_no_two_are_alike() {
    let scene = Scene::start().await;
    let (_, token) = scene.enrolment(9).await;

    let calls = (0..30).map(|number| scene.enrol([A, B, C][number % 3], &token, json!({"hostname": "web"})).send());
    let answers = join_all(calls).await;

    let made: Vec<Value> = answers.iter().filter(|answer| answer.status == 201).map(|answer| answer.json()).collect();
    let refused = answers.iter().filter(|answer| answer.status == 403).count();
    assert_eq!((made.len(), refused), (9, 21));
    for field in ["name", "key", "server_id"] {
        assert_eq!(made.iter().map(|one| text_of(&one[field])).collect::<HashSet<_>>().len(), 9, "{field}");
    }
    // The others learn of it: a list at each has them all.
    for instance in [A, B, C] {
        eventually("the servers are listed", async || {
            let listed =
                scene.client(instance).get("/servers?tag=enrolled").bearer(&scene.prepared.token).expect(200).await;
            (listed.as_array().unwrap().len() == 9).then_some(())
        })
        .await;
    }
}

#[actix_web::test]
async fn the_same_request_at_several_instances_makes_one_server_with_one_key_that_works() {
    let scene = Scene::start().await;
    let (_, token) = scene.enrolment(2).await;
    let body = json!({"hostname": "web", "request_id": "6b1f0c5e9a3d4e7f8a2b1c0d9e8f7a6b"});

    let answers = join_all([A, B, C, A].map(|instance| scene.enrol(instance, &token, body.clone()).expect(201))).await;

    let servers: HashSet<String> = answers.iter().map(|answer| text_of(&answer["server_id"])).collect();
    let keys: HashSet<String> = answers.iter().map(|answer| text_of(&answer["key"])).collect();
    assert_eq!((servers.len(), keys.len()), (1, 4));
    let mut working = 0;
    for (answer, instance) in answers.iter().zip([C, B, A, B]) {
        let mut agent = FakeAgent::connect(scene.cluster.address(instance), Encoding::Json).await;
        working += usize::from(agent.authenticate(&text_of(&answer["key"])).await.success);
    }
    assert_eq!(working, 1, "one machine has one key that works");
}

#[actix_web::test]
async fn one_that_is_revoked_ends_at_all() {
    let scene = Scene::start().await;
    let (id, token) = scene.enrolment(9).await;
    scene.enrol(C, &token, json!({"hostname": "web"})).expect(201).await;

    scene.client(B).delete(format!("/enrolments/{id}")).bearer(&scene.prepared.token).expect(200).await;

    for instance in [A, B, C] {
        scene.enrol(instance, &token, json!({"hostname": "web"})).expect_error(401, "token_revoked").await;
    }
}

/// Repeats a call that the service is too busy for, on a machine under load, until it has made something.
async fn made(call: impl Fn() -> Call) {
    eventually("it is made", async || {
        let answer = call().send().await;
        assert!(answer.status == 201 || answer.json()["code"] == "busy", "{answer}");
        (answer.status == 201).then_some(())
    })
    .await;
}

/// PostgreSQL ends one of two transactions that wait for each other after a second, and the service begins it again: nobody would see
/// more of it than the pause, so the retries are counted, too.
#[actix_web::test]
async fn machines_that_enrol_for_somebody_do_not_wait_for_those_who_wait_for_them() {
    const EACH: usize = 24;
    let scene = Scene::start().await;
    let bob = scene.client(A).post("/auth/register").json(registration("bob")).expect(201).await;
    let bob = text_of(&bob["access_token"]);
    let grants = json!([{"subject": {"username": "bob"}, "role": "viewer"}]);
    let body = json!({"name": "rack 4", "uses": EACH, "grants": grants});
    let granting = text_of(&scene.post(A, "/enrolments").json(body).expect(201).await["token"]);
    let body = json!({"name": "rack 5", "uses": EACH});
    let own = scene.client(A).post("/enrolments").bearer(&bob).json(body).expect(201).await;
    let own = text_of(&own["token"]);
    let before = scene.retries().await;

    let calls = (0..EACH).flat_map(|number| {
        let instance = move |shift: usize| [A, B, C][(number + shift) % 3];
        let server = json!({"name": format!("db-{number}"), "host": "192.0.2.10"});
        let (scene, granting, own, bob) = (&scene, &granting, &own, &bob);
        let calls: [Box<dyn Fn() -> Call>; 3] = [
            Box::new(move || scene.enrol(instance(0), granting, json!({"hostname": "web"}))),
            Box::new(move || scene.enrol(instance(1), own, json!({"hostname": "web"}))),
            Box::new(move || scene.client(instance(2)).post("/servers").bearer(bob).json(server.clone())),
        ];
        calls
    });
    join_all(calls.map(made)).await;

    assert_eq!(scene.retries().await, before, "a transaction was in the way of another");
    eventually("each has the servers", async || {
        let seen = scene.client(B).get("/servers?limit=500").bearer(&bob).expect(200).await;
        let with = |role: &str| seen.as_array().unwrap().iter().filter(|server| server["role"] == role).count();
        ((with("viewer"), with("owner")) == (EACH, 2 * EACH)).then_some(())
    })
    .await;
}
