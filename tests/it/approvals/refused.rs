//! Commands whose signatures agents refuse.

use serde_json::{Value, json};

use super::{LONG, Scene, path};
use crate::support::signers::signing_agent;
use crate::support::{eventually, text_of};

#[actix_web::test]
async fn only_what_no_agent_ran_for_the_sake_of_its_signatures_waits_again() {
    let mut scene = Scene::start().await;
    let (other, key) = scene.site.other_server().await;
    let mut second = signing_agent(scene.site.service.address, &key, "web-2", 2).await;
    let (third, _) = scene.site.service.server_with_key(&scene.site.owner, "web-3").await;
    // What each of two agents says, and whether the command waits again. The third server is offline.
    let cases = [
        (Some("not_enough_approvals"), Some("unknown_signer"), Some("unknown_signer")),
        (Some("not_enough_approvals"), Some("not_enough_approvals"), Some("not_enough_approvals")),
        (Some("not_enough_approvals"), None, None),
        (Some("not_enough_approvals"), Some("replayed"), None),
        (Some("expired"), Some("expired"), None),
    ];

    for (first_says, second_says, expected) in cases {
        let payload = scene.signers.payload("uptime", LONG, &json!({ "servers": ["web-1", "web-2"] }));
        let mut body = scene.body(&payload, &["ada", "eve"]);
        body["server_ids"] = json!([scene.site.server_id, other, third]);
        let asked = scene.site.post("/commands/approvals").json(body).expect(201).await;
        for (agent, says) in [(&mut scene.agent, first_says), (&mut second, second_says)] {
            let sent = agent.expect_execute().await;
            match says {
                Some(reason) => agent.refuse_signatures(sent.command_id, reason).await,
                None => agent.finish(sent.command_id).await,
            }
        }
        let batch = format!("/commands/batches/{}", text_of(&asked["id"]));
        eventually("the batch ends", async || {
            Some(scene.site.read(&batch).await).filter(|batch| batch["finished_at"].is_string())
        })
        .await;

        let after = scene.site.read(&path(&asked)).await;
        let (status, missing) = if expected.is_some() { ("awaiting_approval", 1) } else { ("approved", 0) };
        assert_eq!((&after["status"], &after["missing"]), (&json!(status), &json!(missing)), "{after}");
        assert_eq!(after["refused_reason"], json!(expected), "{after}");
        if expected.is_some() {
            scene.by(&scene.site.owner, "DELETE", path(&asked)).expect(200).await;
        }
    }
}

#[actix_web::test]
async fn what_agents_refuse_in_a_batch_that_was_cancelled_waits_no_more() {
    let mut scene = Scene::start().await;
    let asked = scene.ask(&scene.payload(), &["ada", "eve"]).await;
    let sent = scene.agent.expect_execute().await;

    let batch = format!("/commands/batches/{}", text_of(&asked["id"]));
    scene.by(&scene.site.owner, "POST", format!("{batch}/cancel")).expect(200).await;
    scene.agent.refuse_signatures(sent.command_id, "unknown_signer").await;
    eventually("the batch ends", async || {
        Some(scene.site.read(&batch).await).filter(|batch| batch["finished_at"].is_string())
    })
    .await;

    let after = scene.site.read(&path(&asked)).await;
    assert_eq!((&after["status"], &after["refused_reason"]), (&json!("approved"), &Value::Null), "{after}");
}
