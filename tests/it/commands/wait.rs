//! How long a request waits for its command, and its answer when the command takes longer.

use std::time::{Duration, Instant};

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_protocol::agent::{CommandStatus, Stream};

use crate::support::commands::answered;
use crate::support::site::Site;
use crate::support::{eventually, uuid_of};

#[actix_web::test]
async fn without_waiting_the_answer_comes_at_once_and_the_result_is_found_later() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    let begun = site.post(site.commands_path() + "?wait=0").json(json!({"command": "true"})).expect(200).await;
    let id = agent.expect_execute().await.command_id;
    agent.finish(id).await;

    assert_eq!(uuid_of(&begun["command_id"]), id);
    assert_eq!((&begun["status"], &begun["exit_code"]), (&json!("running"), &Value::Null));
    assert_eq!((&begun["output"], &begun["finished_at"]), (&json!(""), &Value::Null));
    let ended = site.command(id).await;
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("succeeded"), &json!(0)));
}

#[actix_web::test]
async fn a_caller_that_waits_too_short_gets_the_output_so_far() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let began = Instant::now();

    // In that time its beginning and its output are stored.
    let pending = site.run_body("?wait=30", json!({"command": "make"}));
    let id = agent.expect_execute().await.command_id;
    agent.send_output(id, Stream::Stdout, "so far\n").await;
    let answer = answered(pending).await;

    assert!(began.elapsed() >= Duration::from_secs(30));
    let so_far = answer.json();
    assert_eq!((answer.status, &so_far["status"]), (200, &json!("running")), "{answer}");
    assert_eq!((&so_far["output"], &so_far["exit_code"]), (&json!("so far\n"), &Value::Null));
    assert!(so_far["duration_ms"].as_u64().is_some_and(|millis| millis >= 900), "{so_far}");
    agent.finish(id).await;
    assert_eq!(site.command(id).await["output"], "so far\n");
}

#[actix_web::test]
async fn a_request_that_is_cut_off_loses_nothing() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let pending = site.run("make");
    let id = agent.expect_execute().await.command_id;

    pending.abort();
    assert!(pending.await.is_err(), "the request was cut off");
    agent.send_output(id, Stream::Stdout, "made").await;
    agent.finish(id).await;

    let command = site.command(id).await;
    assert_eq!((&command["status"], &command["output"]), (&json!("succeeded"), &json!("made")));
    agent.expect_silence(1).await;
}

#[actix_web::test]
async fn a_graceful_stop_answers_who_waits() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let pending = site.run("make");
    agent.expect_execute().await;
    let began = Instant::now();

    site.stop().await;
    let answer = answered(pending).await;

    assert!(began.elapsed() < Duration::from_secs(25), "a stop ends within 10 s, or 25 s under load");
    assert!([200, 400, 503].contains(&answer.status), "{answer}");
    if answer.status == 200 {
        assert_eq!(answer.json()["status"], "running");
    }
}

#[actix_web::test]
async fn a_graceful_stop_waits_for_a_command_that_ends_soon() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let pending = site.run("make");
    let id = agent.expect_execute().await.command_id;

    let state = site.service.state.clone();
    let (began, stopping) = (Instant::now(), rt::spawn(site.stop()));
    eventually("the service stops", async || state.cluster.is_draining().then_some(())).await;
    // The service waits for 4 s, and a machine can be slower.
    let is_slow = began.elapsed() > Duration::from_secs(2);
    if !is_slow {
        agent.send_result(id, CommandStatus::Succeeded, Some(0)).await;
    }
    let answer = answered(pending).await;

    let is_late = is_slow || began.elapsed() > Duration::from_secs(3);
    let expected = if is_late { ["succeeded", "running"].as_slice() } else { &["succeeded"] };
    assert!(answer.json()["status"].as_str().is_some_and(|status| expected.contains(&status)), "{answer}");
    drop(state);
    stopping.await.unwrap();
}

#[actix_web::test]
async fn an_agent_that_says_nothing_keeps_nobody_longer_than_the_commands_time_and_ten_seconds() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let began = Instant::now();

    let pending = site.run_body("", json!({"command": "make", "timeout_seconds": 1}));
    let id = agent.expect_execute().await.command_id;
    let answer = answered(pending).await;

    let waited = began.elapsed();
    assert!((Duration::from_secs(11)..Duration::from_secs(50)).contains(&waited), "{waited:?}");
    let so_far = answer.json();
    assert_eq!((answer.status, &so_far["status"]), (200, &json!("running")), "{answer}");
    assert_eq!(so_far["exit_code"], Value::Null);
    agent.finish(id).await;
    assert_eq!(site.command(id).await["status"], "succeeded");
}
