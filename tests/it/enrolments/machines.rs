//! Many machines at once: no two are alike, and the last use is given out once.

use std::collections::HashSet;

use futures_util::future::join_all;
use serde_json::json;

use super::Scene;
use crate::support::agent::FakeAgent;
use crate::support::{eventually, text_of, uuid_of};

#[actix_web::test]
async fn fifty_machines_at_once_share_ten_uses() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": 10})).await;

    let answers = join_all((0..50).map(|number| scene.enrol(&enrolment.token, &format!("web-{number}")).send())).await;

    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!((made.len(), refused.len()), (10, 40));
    for answer in refused {
        assert_eq!((answer.status, &answer.json()["code"]), (403, &json!("enrolment_used_up")), "{answer}");
    }
    assert_eq!(scene.server_names().await.len(), 10);
    assert_eq!(scene.read("/api-keys/me").await.as_array().unwrap().len(), 10);
    assert_eq!(scene.shown(&enrolment).await["uses_left"], 0);
}

/// As clones of an image come up: with few host names among them.
#[actix_web::test]
async fn of_a_hundred_machines_with_one_token_no_two_are_alike() {
    let scene = Scene::start().await;
    let enrolment = scene.enrolment(json!({"uses": 100, "tags": ["cloned"]})).await;

    let mut enrolled = Vec::new();
    for some in 0..5 {
        let calls =
            (0..20).map(|number| scene.enrol(&enrolment.token, &format!("node-{}", (some + number) % 3)).expect(201));
        enrolled.extend(join_all(calls).await);
    }

    for field in ["key", "server_id", "name"] {
        let different: HashSet<String> = enrolled.iter().map(|one| text_of(&one[field])).collect();
        assert_eq!(different.len(), 100, "{field}");
    }
    let servers = scene.read("/servers?limit=500&tag=cloned").await;
    assert_eq!(servers.as_array().unwrap().len(), 100);
    let mut agents = Vec::new();
    for one in enrolled.iter().step_by(10) {
        let agent = FakeAgent::online(scene.service.address, &text_of(&one["key"])).await;
        assert_eq!(agent.server_id, Some(uuid_of(&one["server_id"])));
        agents.push(agent);
    }
    eventually("ten agents are online", async || {
        let online = scene.read("/servers?limit=500&status=online").await;
        (online.as_array().unwrap().len() == agents.len()).then_some(())
    })
    .await;
}
