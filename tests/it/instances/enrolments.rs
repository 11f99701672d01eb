//! Enrolments with several instances: the last use is given out once, and one that is revoked ends everywhere at once.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{A, B, C, Scene};
use crate::support::rest::Call;
use crate::support::{eventually, text_of};

impl Scene {
    async fn enrolment(&self, uses: u32) -> (String, String) {
        let body = json!({"name": "rack 4", "uses": uses, "tags": ["enrolled"]});
        let made = self.post(A, "/enrolments").json(body).expect(201).await;
        (text_of(&made["id"]), text_of(&made["token"]))
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
async fn the_same_request_at_two_instances_makes_one_server() {
    let scene = Scene::start().await;
    let (_, token) = scene.enrolment(2).await;
    let body = json!({"hostname": "web", "request_id": "6b1f0c5e9a3d4e7f8a2b1c0d9e8f7a6b"});

    let answers = join_all([A, B, C, A].map(|instance| scene.enrol(instance, &token, body.clone()).expect(201))).await;

    let servers: HashSet<String> = answers.iter().map(|answer| text_of(&answer["server_id"])).collect();
    let keys: HashSet<String> = answers.iter().map(|answer| text_of(&answer["key"])).collect();
    assert_eq!((servers.len(), keys.len()), (1, 4));
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
