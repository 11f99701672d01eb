//! Rollouts that several instances see.

use serde_json::json;

use super::{A, B, C, Scene};
use crate::support::agent::FakeAgent;
use crate::support::cluster::Cluster;
use crate::support::eventually;
use crate::updates::{connect_at, failed, path, release, take, updatable};

/// With a release.
async fn scene() -> (Scene, tempfile::TempDir) {
    let programs = release();
    // The arguments live as long as the test's process.
    let directory: &'static str = Box::leak(programs.path().to_str().unwrap().to_owned().into_boxed_str());
    let arguments: &'static [&'static str] = Box::leak(Box::new(["--install-dir", directory]));
    (Scene::on(Cluster::told(3, arguments).await).await, programs)
}

#[actix_web::test]
async fn an_agent_gets_one_offer_at_whichever_instance_it_is() {
    let (scene, _programs) = scene().await;
    let mut agent = connect_at(scene.cluster.address(B), &scene.prepared.key, updatable()).await;
    scene.until_status(A, "online").await;

    let body = json!({ "waves": [{ "tags": [] }], "pause_minutes": 0 });
    let made = scene.post(A, "/updates/rollouts").json(body).expect(201).await;
    take(&mut agent).await;

    for reader in [A, B, C] {
        eventually("it is offered", async || {
            let now = scene.read(reader, &path(&made)).await;
            (now["servers"][0]["state"] == "offered").then_some(())
        })
        .await;
    }
    agent.expect_silence(1).await;
    drop(agent);
    let _failed: FakeAgent = connect_at(scene.cluster.address(C), &scene.prepared.key, failed("it exited")).await;
    let stopped = eventually("it has stopped", async || {
        let now = scene.read(B, &path(&made)).await;
        (now["status"] == "stopped").then_some(now)
    })
    .await;
    assert_eq!(stopped["servers"][0]["reason"], "it exited");
    let log = scene.read(A, "/audit?limit=500&action=agent.update").await;
    assert_eq!(log.as_array().unwrap().len(), 1, "{log}");
}
