//! Commands that wait for signatures, where several instances get them.

use actix_web::rt;
use serde_json::json;

use super::{A, B, C, Scene};
use crate::support::signers::{Signers, signing_agent};
use crate::support::{eventually, text_of};

#[actix_web::test]
async fn signatures_at_several_instances_start_it_once() {
    let (scene, signers) = (Scene::start().await, Signers::new());
    let mut agent = signing_agent(scene.cluster.address(B), &scene.prepared.key, "web-1", 2).await;
    scene.until_status(A, "online").await;

    for _ in 0..5 {
        let payload = signers.payload("uptime", 3_600_000, &json!({}));
        let body = json!({
            "server_ids": [scene.server_id()], "command": "uptime", "signed": signers.signed(&["ada"], &payload),
        });
        let waiting = scene.post(A, "/commands/approvals").json(body).expect(201).await;
        let path = format!("/commands/approvals/{}", text_of(&waiting["id"]));
        assert_eq!(scene.read(C, &path).await["status"], "awaiting_approval");

        let signing = [(A, "ben"), (C, "cleo")].map(|(instance, name)| {
            let signature = signers.signature(name, &payload);
            rt::spawn(scene.post(instance, format!("{path}/signatures")).json(signature).send())
        });
        let mut statuses = Vec::new();
        for one in signing {
            statuses.push(one.await.unwrap().status);
        }

        assert!(statuses.contains(&200) && statuses.iter().all(|status| [200, 400].contains(status)), "{statuses:?}");
        let sent = agent.expect_execute().await;
        agent.finish(sent.command_id).await;
        for reader in [A, B, C] {
            let read = async || Some(scene.read(reader, &path).await).filter(|it| it["status"] == "approved");
            eventually("it is approved everywhere", read).await;
        }
    }
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn what_agents_refuse_waits_again_at_every_instance_and_runs_once_more() {
    let (scene, signers) = (Scene::start().await, Signers::new());
    let mut agent = signing_agent(scene.cluster.address(B), &scene.prepared.key, "web-1", 2).await;
    scene.until_status(A, "online").await;
    let payload = signers.payload("uptime", 3_600_000, &json!({}));
    let body = json!({
        "server_ids": [scene.server_id()], "command": "uptime", "signed": signers.signed(&["ada", "eve"], &payload),
    });

    let asked = scene.post(A, "/commands/approvals").json(body).expect(201).await;
    let sent = agent.expect_execute().await;
    agent.refuse_signatures(sent.command_id, "not_enough_approvals").await;

    let path = format!("/commands/approvals/{}", text_of(&asked["id"]));
    for reader in [A, B, C] {
        let read = async || Some(scene.read(reader, &path).await).filter(|it| it["refused_reason"].is_string());
        let waits = eventually("it waits again everywhere", read).await;
        assert_eq!((&waits["status"], &waits["missing"]), (&json!("awaiting_approval"), &json!(1)), "{waits}");
    }
    let signing = [(A, "ben"), (C, "cleo")].map(|(instance, name)| {
        let signature = signers.signature(name, &payload);
        rt::spawn(scene.post(instance, format!("{path}/signatures")).json(signature).send())
    });
    for one in signing {
        assert!([200, 400].contains(&one.await.unwrap().status));
    }
    let sent = agent.expect_execute().await;
    agent.finish(sent.command_id).await;
    let approved = async || Some(scene.read(C, &path).await).filter(|it| it["status"] == "approved");
    let approved = eventually("it is approved", approved).await;
    assert!(approved["batch_id"] != asked["id"], "{approved}");
    let batch = format!("/commands/batches/{}", text_of(&approved["batch_id"]));
    let ended = async || Some(scene.read(B, &batch).await).filter(|batch| batch["finished_at"].is_string());
    assert_eq!(eventually("the batch ends", ended).await["counts"]["succeeded"], 1);
    agent.expect_silence(1).await;
}
