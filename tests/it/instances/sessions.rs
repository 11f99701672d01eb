//! Which session holds a server, when several instances are asked.

use serde_json::json;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::ServiceMessage;

use super::{A, B, C, Scene};
use crate::support::agent::{FakeAgent, auth, sample_aged};
use crate::support::cluster::Cluster;
use crate::support::{eventually, text_of};

#[actix_web::test]
async fn the_newest_connection_wins_wherever_it_is() {
    let scene = Scene::start().await;
    let mut first = scene.agent(B).await;

    let mut second = scene.agent(C).await;
    first.expect_close(4409).await;
    second.store(1, vec![sample_aged(2)]).await;
    let mut third = scene.agent(A).await;
    second.expect_close(4409).await;
    third.store(2, vec![sample_aged(1)]).await;

    for instance in [A, B, C] {
        scene.until_status(instance, "online").await;
        assert_eq!(scene.moments(instance, scene.server_id()).await.len(), 2);
    }
}

#[actix_web::test]
async fn the_newest_connection_wins_whatever_the_instances_clocks_say() {
    // The owner signs in where the clock is right.
    let scene = Scene::on(Cluster::ahead_by(&[0, 2 * 3_600_000, -2 * 3_600_000]).await).await;
    let mut here = scene.agent(A).await;

    for (number, instance) in [B, C, B, A, C, A].into_iter().enumerate() {
        let mut there = scene.agent(instance).await;

        here.expect_close(4409).await;
        there.store(u64::try_from(number + 1).unwrap(), vec![sample_aged(10 - number as i64)]).await;
        here = there;
    }
    assert_eq!(scene.moments(A, scene.server_id()).await.len(), 6);
}

/// An agent that was replaced would stay away for an hour.
#[actix_web::test]
async fn an_agent_whose_session_a_failover_forgot_may_come_back_at_once() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    // As if the new primary only had a session from before.
    let lose = format!(
        "UPDATE servers SET session_id = '01890000-0000-7000-8000-000000000000' WHERE id = '{}'",
        scene.server_id()
    );
    scene.cluster.storage.execute(&[&lose]).await;

    agent.expect_close(1012).await;
    let mut again = scene.agent(C).await;
    again.store(1, vec![sample_aged(1)]).await;
}

#[actix_web::test]
async fn the_server_stays_online_while_its_agent_moves() {
    let scene = Scene::start().await;
    let mut dashboard = scene.watch(A).await;
    assert_eq!(dashboard.expect("status").await["status"], "pending");
    let mut agents = vec![scene.agent(B).await];
    assert_eq!(dashboard.expect("status").await["status"], "online");

    for instance in [C, A, B] {
        agents.push(scene.agent(instance).await);
    }
    let sample = sample_aged(1);
    agents.last_mut().unwrap().store(1, vec![sample.clone()]).await;

    // A dashboard does not learn that it went.
    loop {
        let message = dashboard.next().await;
        if message["type"] == "metrics" {
            assert_eq!(message["data"]["timestamp"], json!(sample.timestamp));
            return;
        }
        assert_eq!(message["data"]["status"], "online", "{message}");
    }
}

#[actix_web::test]
async fn calls_find_the_agent_where_it_is_now() {
    let scene = Scene::start().await;
    let mut first = scene.agent(B).await;
    let mut second = scene.agent(C).await;
    first.expect_close(4409).await;
    let path = format!("/docker/{}/containers", scene.server_id());

    for instance in [A, B, C] {
        let (_, answer) = super::exchange(&mut second, scene.get(instance, &path), Ok(json!([]))).await;
        assert_eq!(answer.status, 200, "{instance}: {answer}");
    }
}

#[actix_web::test]
async fn a_revoked_key_ends_its_session_at_another_instance() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;

    let path = format!("/api-keys/{}", scene.prepared.key_id);
    scene.client(A).delete(path).bearer(&scene.prepared.token).expect(200).await;

    agent.expect_close(4401).await;
    let mut again = FakeAgent::connect(scene.cluster.address(C), Encoding::Json).await;
    assert!(!again.authenticate(&scene.prepared.key).await.success);
}

#[actix_web::test]
async fn of_those_that_come_at_once_one_is_left() {
    let scene = Scene::start().await;
    let path = format!("/docker/{}/containers", scene.server_id());

    for _ in 0..5 {
        let (mut first, mut second) = tokio::join!(shown(&scene, B), shown(&scene, C));
        // One of them learns that the other is newer, perhaps before it was authenticated; or that the other was faster.
        let (code, held) = tokio::select! {
            code = first.close_code() => (code, &mut second),
            code = second.close_code() => (code, &mut first),
        };
        assert!(matches!(code, 4409 | 1013), "{code}");
        let answering = async {
            loop {
                match held.next().await {
                    ServiceMessage::Request(request) => held.answer(&request, Ok(json!([]))).await,
                    ServiceMessage::AuthResponse(response) => assert!(response.success, "{response:?}"),
                    other => panic!("expected a request, got {other:?}"),
                }
            }
        };
        // It may be authenticated a moment after the other's end.
        let answered = eventually("the one that is left answers", async || {
            (scene.get(A, &path).send().await.status == 200).then_some(())
        });
        tokio::select! {
            () = answered => {}
            _ = answering => {}
        }
    }
}

/// An agent that has shown its key and not yet read the answer.
async fn shown(scene: &Scene, instance: usize) -> FakeAgent {
    let mut agent = FakeAgent::connect(scene.cluster.address(instance), Encoding::Json).await;
    agent.send(&auth(&scene.prepared.key)).await;
    agent
}

#[actix_web::test]
async fn the_use_of_a_key_is_shown_everywhere() {
    let scene = Scene::start().await;
    let _agent = scene.agent(B).await;

    let used = eventually("the key was used", async || {
        let keys = scene.read(C, "/api-keys/me").await;
        keys[0]["last_used_at"].is_string().then(|| text_of(&keys[0]["last_used_at"]))
    })
    .await;

    assert!(used.ends_with('Z'), "{used}");
}
