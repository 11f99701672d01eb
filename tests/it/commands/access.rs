//! Who may run and read: other users' servers, commands and batches do not exist.

use serde_json::json;
use uuid::Uuid;

use crate::support::Account;
use crate::support::agent::FakeAgent;
use crate::support::site::Site;

/// The calls for one command, as (method is POST, path).
fn calls(server_id: Uuid, command_id: Uuid) -> [(bool, String); 4] {
    [
        (true, format!("/commands/{server_id}?wait=0")),
        (false, format!("/commands/{server_id}")),
        (false, format!("/commands/{server_id}/{command_id}")),
        (true, format!("/commands/{server_id}/{command_id}/cancel")),
    ]
}

async fn expect_all(site: &Site, account: Option<&Account>, calls: &[(bool, String)], status: u16) {
    let client = &site.service.client;
    for (is_post, path) in calls {
        let call = if *is_post { client.post(path).json(json!({"command": "id"})) } else { client.get(path) };
        let call = if let Some(account) = account { call.bearer(&account.token) } else { call };
        call.expect_refusal(status).await;
    }
}

#[actix_web::test]
async fn without_a_token_there_are_no_commands() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    expect_all(&site, None, &calls(site.server_id, id), 401).await;
    let batches = [(true, "/commands".to_owned()), (false, "/commands/batches".to_owned())];
    expect_all(&site, None, &batches, 401).await;
    let key = Account { token: site.key.clone(), ..site.owner.clone() };
    expect_all(&site, Some(&key), &calls(site.server_id, id), 401).await;

    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn somebody_elses_server_and_an_unknown_one_are_not_found() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    let stranger = site.service.register("stranger").await;

    expect_all(&site, Some(&stranger), &calls(site.server_id, id), 404).await;
    expect_all(&site, Some(&site.owner), &calls(Uuid::now_v7(), id), 404).await;

    agent.expect_silence(1).await;
    assert_eq!(site.command(id).await["status"], "running");
}

#[actix_web::test]
async fn a_command_is_found_under_its_own_server_only() {
    let site = Site::start().await;
    let (other_id, _) = site.other_server().await;
    let stranger = site.service.register("stranger").await;
    let (strange_id, _) = site.service.server_with_key(&stranger, "web-3").await;
    let mut agent = site.agent().await;
    let running = site.running(&mut agent, "running").await;
    let ended = site.running(&mut agent, "ended").await;
    agent.finish(ended).await;

    for id in [running, ended, Uuid::now_v7()] {
        expect_all(&site, Some(&site.owner), &calls(other_id, id)[2..], 404).await;
        expect_all(&site, Some(&stranger), &calls(strange_id, id)[2..], 404).await;
    }

    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn somebody_elses_batch_and_an_unknown_one_are_not_found() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let batch =
        site.post("/commands").json(json!({"command": "true", "server_ids": [site.server_id]})).expect(201).await;
    agent.expect_execute().await;
    let id = batch["id"].as_str().unwrap();
    let stranger = site.service.register("stranger").await;

    let of = |id: &str| [(false, format!("/commands/batches/{id}")), (true, format!("/commands/batches/{id}/cancel"))];
    expect_all(&site, Some(&stranger), &of(id), 404).await;
    expect_all(&site, Some(&site.owner), &of(&Uuid::now_v7().to_string()), 404).await;

    let theirs = site.service.client.get("/commands/batches").bearer(&stranger.token).expect_answer(200).await;
    assert_eq!((theirs.json(), theirs.header("X-Total-Count")), (json!([]), "0"));
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn the_command_of_a_deleted_server_is_gone() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let ended = site.running(&mut agent, "ended").await;
    agent.finish(ended).await;
    let running = site.running(&mut agent, "running").await;
    let waiting = site.run("waiting");
    agent.expect_execute().await;

    site.delete_server().await;

    let told = crate::support::commands::answered(waiting).await;
    assert!(told.status == 404 || told.json()["status"] == "lost", "{told}");
    for id in [ended, running] {
        expect_all(&site, Some(&site.owner), &calls(site.server_id, id), 404).await;
    }
}

#[actix_web::test]
async fn the_agent_of_another_server_receives_nothing() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let mut agent = site.agent().await;

    let id = site.running(&mut agent, "mine").await;
    agent.finish(id).await;

    other.expect_silence(1).await;
}
