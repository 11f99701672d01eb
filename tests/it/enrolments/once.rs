//! The same request again: one machine is one server, and one key.

use futures_util::future::join_all;
use serde_json::{Value, json};
use signalbox_protocol::Encoding;
use uuid::Uuid;

use super::{Enrolment, Scene};
use crate::support::agent::FakeAgent;
use crate::support::rest::Call;
use crate::support::{eventually, text_of};

impl Scene {
    fn enrol_as(&self, enrolment: &Enrolment, id: &str) -> Call {
        let body = json!({"hostname": "web", "request_id": id});
        self.service.client.post("/enrol").bearer(&enrolment.token).json(body)
    }

    async fn lets_in(&self, enrolled: &Value) -> bool {
        let key = text_of(&enrolled["key"]);
        eventually("the key is judged", async || {
            let mut agent = FakeAgent::connect(self.service.address, Encoding::Json).await;
            let answer = agent.authenticate(&key).await;
            // Where everything is slow, the agent is to try again, whatever its key is.
            let comes_back = matches!(answer.code.as_deref(), Some("restarting" | "overloaded"));
            (!comes_back).then_some(answer.success)
        })
        .await
    }
}

fn id() -> String {
    Uuid::new_v4().simple().to_string()
}

#[actix_web::test]
async fn a_machine_that_lost_its_answer_gets_the_same_server_and_another_key() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": 1})).await;
    let id = id();
    let lost = scene.enrol_as(&enrolment, &id).expect(201).await;

    let again = scene.enrol_as(&enrolment, &id).expect(201).await;

    assert_eq!((&again["server_id"], &again["name"]), (&lost["server_id"], &lost["name"]));
    assert_ne!(again["key"], lost["key"]);
    assert!(!scene.lets_in(&lost).await, "the key of the lost answer works");
    assert!(scene.lets_in(&again).await);
    assert_eq!(
        (scene.server_names().await, scene.read("/api-keys/me").await.as_array().unwrap().len()),
        (vec!["web".to_owned()], 1)
    );
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 0);
}

#[actix_web::test]
async fn once_the_agent_has_connected_nobody_gets_another_key() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let id = id();
    let enrolled = scene.enrol_as(&enrolment, &id).expect(201).await;
    FakeAgent::online(scene.service.address, &text_of(&enrolled["key"])).await;

    scene.enrol_as(&enrolment, &id).expect_error(400, "bad_request").await;

    assert!(scene.lets_in(&enrolled).await, "the agent's key was revoked");
    assert_eq!(scene.server_names().await.len(), 1);
}

#[actix_web::test]
async fn a_key_that_its_owner_revoked_is_not_replaced() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({})).await;
    let id = id();
    scene.enrol_as(&enrolment, &id).expect(201).await;
    let path = format!("/api-keys/{}", text_of(&scene.read("/api-keys/me").await[0]["id"]));
    scene.service.client.delete(path).bearer(&scene.owner.token).expect(200).await;

    scene.enrol_as(&enrolment, &id).expect_error(400, "bad_request").await;

    assert_eq!(scene.read("/api-keys/me").await, json!([]));
}

#[actix_web::test]
async fn the_same_id_with_another_enrolment_or_after_the_server_is_deleted_makes_a_server() {
    let scene = Scene::start().await;
    let (one, other) = (scene.enrolment(json!({})).await, scene.enrolment(json!({})).await);
    let id = id();
    let first = scene.enrol_as(&one, &id).expect(201).await;

    let second = scene.enrol_as(&other, &id).expect(201).await;

    assert_ne!(first["server_id"], second["server_id"]);
    let path = format!("/servers/{}", text_of(&first["server_id"]));
    scene.service.client.delete(path).bearer(&scene.owner.token).expect(200).await;
    let third = scene.enrol_as(&one, &id).expect(201).await;
    assert!(third["server_id"] != first["server_id"] && third["server_id"] != second["server_id"], "{third}");
    assert_eq!(scene.shown(&one).await["uses_left"], 998);
}

#[actix_web::test]
async fn the_same_request_many_times_at_once_makes_one_server_with_one_key_that_works() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": 2})).await;
    let id = id();

    let answers = join_all((0..8).map(|_| scene.enrol_as(&enrolment, &id).expect(201))).await;

    assert!(answers.iter().all(|answer| answer["server_id"] == answers[0]["server_id"]), "{answers:?}");
    let mut working = 0;
    for answer in &answers {
        working += usize::from(scene.lets_in(answer).await);
    }
    assert_eq!(working, 1);
    assert_eq!((scene.server_names().await.len(), &scene.shown(&enrolment).await["uses_left"]), (1, &json!(1)));
}
