//! Commands that do not run: no agent is connected, the agent refuses, or there are too many.

use serde_json::{Value, json};

use crate::support::agent::FakeAgent;
use crate::support::commands::answered;
use crate::support::site::Site;

/// How many commands one agent may be busy with.
const MAX_RUNNING: usize = 256;

#[actix_web::test]
async fn a_server_without_its_agent_is_offline_at_once_and_nothing_is_kept() {
    let site = Site::start().await;

    for query in ["", "?wait=0", "?wait=5"] {
        let call = site.post(site.commands_path() + query).json(json!({"command": "true"}));
        call.expect_error(400, "agent_offline").await;
    }
    let agent = site.agent().await;
    agent.socket.close().await;
    site.until_status("offline").await;
    site.post(site.commands_path()).json(json!({"command": "true"})).expect_error(400, "agent_offline").await;

    assert!(site.commands().await.is_empty());
    site.agent().await.expect_silence(1).await;
}

#[actix_web::test]
async fn an_agent_that_refuses_is_quoted() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let pending = site.run("rm -rf /");
    let id = agent.expect_execute().await.command_id;
    agent.refuse(id, "agent_refused", "commands are switched off on this machine").await;
    let answer = answered(pending).await;

    assert_eq!(answer.status, 400, "{answer}");
    let error =
        json!({"detail": "commands are switched off on this machine", "status_code": 400, "code": "agent_refused"});
    assert_eq!(answer.json(), error);
    let command = site.command(id).await;
    assert_eq!((&command["status"], &command["exit_code"]), (&json!("failed"), &Value::Null));
    assert_eq!(command["error"]["code"], "agent_refused");
    assert_eq!(command["error"]["detail"], "commands are switched off on this machine");
}

#[actix_web::test]
async fn a_refusal_is_found_by_who_did_not_wait() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    agent.refuse(id, "agent_refused", "no").await;

    assert_eq!(site.until_command(id, "failed").await["error"], json!({"code": "agent_refused", "detail": "no"}));
}

#[actix_web::test]
async fn a_command_that_the_agent_could_not_start_is_its_error_and_no_refusal() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let detail = "cannot start the shell: Resource temporarily unavailable";

    let pending = site.run("true");
    let id = agent.expect_execute().await.command_id;
    agent.refuse(id, "agent_error", detail).await;
    let answer = answered(pending).await;

    assert_eq!(answer.json(), json!({"detail": detail, "status_code": 400, "code": "agent_error"}), "{answer}");
    assert_eq!(site.command(id).await["error"], json!({"code": "agent_error", "detail": detail}));
}

#[actix_web::test]
async fn an_agent_may_refuse_in_any_words() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let long = "x".repeat(100_000);

    // Of a code without a character nothing is left that says that it is a refusal.
    for (code, detail, expected) in [
        ("agent_refused", "nul \0 byte", "agent_refused"),
        ("", "", "agent_error"),
        ("\0", "\0", "agent_error"),
        (long.as_str(), long.as_str(), "agent_refused"),
    ] {
        let pending = site.run("true");
        let id = agent.expect_execute().await.command_id;
        agent.refuse(id, code, detail).await;
        let answer = answered(pending).await;

        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!(expected)), "{answer}");
        assert!(answer.text.len() < 10_000, "an error is a sentence, not {} bytes", answer.text.len());
        assert_eq!(site.until_command(id, "failed").await["exit_code"], Value::Null);
    }
}

#[actix_web::test]
async fn only_the_agent_that_was_asked_can_refuse() {
    let site = Site::start().await;
    let (_, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    other.refuse(id, "agent_refused", "forged").await;
    other.settle(1).await;

    assert_eq!(site.command(id).await["status"], "running");
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}

#[actix_web::test]
async fn a_refusal_after_the_end_changes_nothing() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;
    agent.finish(id).await;
    let before = site.command(id).await;

    agent.refuse(id, "agent_refused", "too late").await;
    agent.settle(1).await;

    assert_eq!(site.command(id).await, before);
}

#[actix_web::test]
async fn one_command_more_than_may_run_is_busy_and_an_end_makes_room() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut ids = Vec::new();
    for number in 0..MAX_RUNNING {
        ids.push(site.running(&mut agent, &number.to_string()).await);
    }

    let one_more = || site.post(site.commands_path()).json(json!({"command": "one more"}));
    one_more().expect_error(503, "busy").await;
    agent.expect_silence(1).await;
    assert_eq!(site.commands().await.len(), MAX_RUNNING, "what is not taken leaves nothing behind");
    agent.finish(ids[7]).await;

    let id = site.running(&mut agent, "now").await;
    agent.finish(id).await;
}

#[actix_web::test]
async fn of_many_commands_that_come_at_once_no_more_than_may_run() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let all: Vec<_> = (0..MAX_RUNNING + 16).map(|_| site.run_body("?wait=0", json!({"command": "true"}))).collect();
    let mut statuses = Vec::new();
    for pending in all {
        statuses.push(answered(pending).await.status);
    }

    let begun = statuses.iter().filter(|status| **status == 200).count();
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(begun <= MAX_RUNNING, "{begun}");
    assert_eq!(agent.settle(1).await.len(), begun);
}

#[actix_web::test]
async fn a_busy_agent_delays_no_other() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let mut agent = site.agent().await;
    for number in 0..MAX_RUNNING {
        site.running(&mut agent, &number.to_string()).await;
    }

    let id = site.begin_on(other_id, "true").await;

    assert_eq!(other.expect_execute().await.command_id, id);
}
