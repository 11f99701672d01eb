//! `/commands`: shell commands on servers, one at a time and in batches.

mod access;
mod batch_restarts;
mod batch_rights;
mod batch_runs;
mod batches;
mod breaks;
mod cancel;
mod crash;
mod forgery;
mod history;
mod once;
mod output;
mod refusals;
mod restart;
mod validation;
mod wait;

use serde_json::{Value, json};
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{CommandStatus, Stream};
use uuid::Uuid;

use crate::support::commands::answered;
use crate::support::site::Site;
use crate::support::{assert_timestamp, keys_of, uuid_of};

#[actix_web::test]
async fn a_command_gives_its_output_exit_code_and_duration() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;

        let pending = site.run("uname -s; uname -x");
        let id = agent.expect_execute().await.command_id;
        agent.send_output(id, Stream::Stdout, "Linux\n").await;
        agent.send_output(id, Stream::Stderr, "bad option\n").await;
        agent.send_result(id, CommandStatus::Failed, Some(3)).await;
        let answer = answered(pending).await;

        assert_eq!(answer.status, 200, "{answer}");
        let result = answer.json();
        assert_eq!(uuid_of(&result["command_id"]), id);
        assert_eq!(id.get_version_num(), 7);
        assert_eq!(result["command"], "uname -s; uname -x");
        assert_eq!(result["output"], "Linux\nbad option\n");
        assert_eq!((&result["exit_code"], &result["duration_ms"]), (&json!(3), &json!(12)));
        assert_eq!((&result["status"], &result["truncated"]), (&json!("failed"), &json!(false)));
        assert_eq!((&result["stdout"], &result["stderr"]), (&json!("Linux\n"), &json!("bad option\n")));
        assert_timestamp(&result["started_at"]);
        assert_timestamp(&result["finished_at"]);
        assert_eq!(site.command(id).await, result);
    }
}

#[actix_web::test]
async fn an_agent_learns_what_to_run_and_who_asks() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let body = json!({"command": "cat", "timeout_seconds": 7, "stdin": "line\nünïcode"});

        let _pending = site.run_body("", body);
        let mut told = agent.next_value().await;

        let by = told["data"]["by"].take();
        assert!(by.as_str().is_some_and(|by| by.contains("owner") && by.contains("127.0.0.1")), "{by}");
        let id = told["data"]["command_id"].take();
        let data = json!({"command_id": null, "command": "cat", "stdin": "line\nünïcode", "timeout_seconds": 7,
            "by": null, "asker": {"user": "owner"}});
        assert_eq!(told, json!({"type": "execute", "data": data}));
        if encoding == Encoding::Json {
            uuid_of(&id);
        }
    }
}

#[actix_web::test]
async fn a_command_has_no_input_and_60_seconds_by_default() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    for body in [json!({"command": "true"}), json!({"command": "true", "timeout_seconds": null, "stdin": null, "x": 1})]
    {
        let _pending = site.run_body("", body);
        let execute = agent.expect_execute().await;

        assert_eq!((execute.command.as_str(), execute.stdin, execute.timeout_seconds), ("true", None, 60));
    }
}

#[actix_web::test]
async fn the_messages_to_an_agent_are_as_documented() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "true").await;

    let cancelling = site.cancel(id);
    let cancel = agent.next_value().await;
    agent.send_result(id, CommandStatus::Cancelled, Some(143)).await;
    let acknowledged = agent.next_value().await;

    assert_eq!(cancel, json!({"type": "cancel", "data": {"command_id": id}}));
    assert_eq!(acknowledged, json!({"type": "result_ack", "data": {"command_id": id}}));
    answered(cancelling).await;
}

/// The outcome of a result with these fields.
async fn result_of(site: &Site, agent: &mut crate::support::agent::FakeAgent, fields: Value) -> Value {
    let pending = site.run("anything");
    let id = agent.expect_execute().await.command_id;
    let mut data = json!({ "command_id": id });
    data.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    agent.send_value(&json!({"type": "command_result", "data": data})).await;
    agent.expect_result_ack(id).await;
    let answer = answered(pending).await;
    assert_eq!(answer.status, 200, "{answer}");
    let result = answer.json();
    assert_eq!(site.command(id).await, result, "what is answered is what is stored");
    result
}

#[actix_web::test]
async fn every_status_and_exit_code_is_shown_as_the_agent_reports_it() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let ends = [
        ("succeeded", json!(0)),
        ("failed", json!(1)),
        ("failed", json!(127)),
        ("failed", json!(137)),
        ("failed", json!(-1)),
        ("timed_out", json!(124)),
        ("cancelled", json!(143)),
        ("lost", json!(null)),
    ];

    for (status, exit_code) in ends {
        let fields = json!({"status": status, "exit_code": exit_code, "duration_ms": 5, "truncated": false});
        let result = result_of(&site, &mut agent, fields).await;

        assert_eq!((&result["status"], &result["exit_code"]), (&json!(status), &exit_code));
    }
}

#[actix_web::test]
async fn strange_results_are_taken_without_harm() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let unknown = json!({"status": "exploded\0", "exit_code": 9, "duration_ms": 5, "truncated": false, "mood": "bad"});
    assert_eq!(result_of(&site, &mut agent, unknown).await["status"], "failed");

    let endless = json!({"status": "succeeded", "exit_code": i32::MAX, "duration_ms": u64::MAX, "truncated": true});
    let endless = result_of(&site, &mut agent, endless).await;
    assert_eq!((&endless["exit_code"], &endless["truncated"]), (&json!(i32::MAX), &json!(true)));
    assert!(endless["duration_ms"].is_u64());

    // The least that says something.
    assert_eq!(result_of(&site, &mut agent, json!({"status": "succeeded"})).await["status"], "succeeded");
    for never in ["running", "queued", "skipped"] {
        let result = result_of(&site, &mut agent, json!({ "status": never })).await;
        assert_eq!(result["status"], "failed", "{never} is no end");
    }
}

#[actix_web::test]
async fn commands_at_once_on_one_server_are_kept_apart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let first = site.running(&mut agent, "first").await;
    let second = site.running(&mut agent, "second").await;

    for number in 0..3 {
        agent.send_output(first, Stream::Stdout, &format!("a{number} ")).await;
        agent.send_output(second, Stream::Stderr, &format!("b{number} ")).await;
    }
    agent.finish(second).await;
    let running = site.command(first).await;
    agent.finish(first).await;

    assert_eq!((&running["status"], &running["output"]), (&json!("running"), &json!("a0 a1 a2 ")));
    assert_eq!(site.command(first).await["stdout"], "a0 a1 a2 ");
    let second = site.command(second).await;
    assert_eq!((&second["stdout"], &second["stderr"]), (&json!(""), &json!("b0 b1 b2 ")));
}

#[actix_web::test]
async fn commands_of_two_servers_are_kept_apart() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let mut other = crate::support::agent::FakeAgent::online(site.service.address, &other_key).await;

    let mine = site.running(&mut agent, "mine").await;
    let theirs = site.begin_on(other_id, "theirs").await;
    let executed = other.expect_execute().await;
    other.finish(theirs).await;

    assert_eq!((executed.command_id, executed.command.as_str()), (theirs, "theirs"));
    assert_eq!(site.command(mine).await["status"], "running");
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_result_has_the_documented_fields() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let id = site.running(&mut agent, "true").await;
    let running = site.command(id).await;
    agent.finish(id).await;
    let ended = site.command(id).await;

    let documented = [
        "command",
        "command_id",
        "duration_ms",
        "exit_code",
        "finished_at",
        "output",
        "started_at",
        "status",
        "stderr",
        "stdout",
        "truncated",
    ];
    for field in documented {
        assert!(keys_of(&running).contains(&field), "{field} in {running}");
        assert!(keys_of(&ended).contains(&field), "{field} in {ended}");
    }
    assert_eq!((&running["exit_code"], &running["finished_at"]), (&Value::Null, &Value::Null));
    assert_eq!(uuid_of(&ended["command_id"]), id);
    assert_ne!(id, Uuid::nil());
}
