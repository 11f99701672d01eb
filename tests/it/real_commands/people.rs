//! A policy that names people.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::Scene;
use crate::support::commands::answered;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::text_of;

#[actix_web::test]
async fn an_agent_obeys_the_people_whom_its_policy_names_alone() {
    let files = tempfile::tempdir().unwrap();
    // The agent is another user, who may read the owner's file.
    fs::set_permissions(&files, Permissions::from_mode(0o755)).unwrap();
    let policy = files.path().join("policy.toml");
    let people = "commands = [\"ben\", \"team:ops\"]\nterminal = [\"ben\"]\ndocker = [\"team:ops\"]\n";
    fs::write(&policy, people).unwrap();
    let scene = Scene::with_flags(&["--policy", policy.to_str().unwrap()]).await;
    let site = &scene.site;
    let by_owner =
        |method: &str, path: &str| site.service.client.call(method.parse().unwrap(), path).bearer(&site.owner.token);
    let refused = async |detail: &str| {
        let answer = answered(site.run("echo done")).await;
        let body: Value = answer.json();
        assert_eq!((answer.status, &body["code"]), (400, &json!("agent_refused")), "{body}");
        assert_eq!(body["detail"], json!(detail));
    };
    let restart = async || {
        let path = format!("/docker/{}/containers/web/restart", site.server_id);
        let answer: Value = site.post(path).send().await.json();
        answer["code"].clone()
    };
    let only = "this agent runs commands for ben, team:ops only";

    refused(only).await;
    assert_eq!(restart().await, json!("agent_refused"));
    let path = format!("/api/v1/ws/terminal/{}", site.server_id);
    let mut terminal =
        Dashboard::open(site.service.address, &path, Pass::Subprotocol(&site.owner.token), &[]).await.unwrap();
    let error = terminal.expect("error").await;
    assert_eq!(error["code"], json!("agent_refused"), "{error}");

    // The names of teams count, as they are now.
    let team = site.post("/teams").json(json!({ "name": "Night shift" })).expect(201).await;
    let member = format!("/teams/{}/members/{}", text_of(&team["id"]), site.owner.id);
    by_owner("PUT", &member).expect(200).await;
    refused(only).await;
    let team = format!("/teams/{}", text_of(&team["id"]));
    by_owner("PUT", &team).json(json!({ "name": "Ops" })).expect(200).await;
    assert_eq!(scene.run("echo done").await["output"], json!("done\n"));
    assert_ne!(restart().await, json!("agent_refused"));
    by_owner("DELETE", &member).expect(200).await;
    refused(only).await;
}
