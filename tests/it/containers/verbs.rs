//! Every verb, on both engines.

use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::Host;
use crate::support::engine::Engine;
use crate::support::{Call, assert_timestamp, eventually};

const SLEEP: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

#[actix_web::test]
async fn docker_obeys_every_verb() {
    every_verb(Engine::docker()).await;
}

#[actix_web::test]
async fn podman_obeys_every_verb() {
    every_verb(Engine::podman()).await;
}

async fn every_verb(engine: Engine) {
    let host = Host::start(engine.clone()).await;
    let container = engine.create(SLEEP, json!({}));

    // Each twice: a state that is already reached is a success.
    for (verb, state) in [("start", "running"), ("pause", "paused"), ("unpause", "running"), ("stop", "exited")] {
        assert_eq!(host.act(&container, verb).await, state, "{verb}");
        assert_eq!(host.act(&container, verb).await, state, "{verb} again");
        assert_eq!(container.state(), state);
    }
    assert_eq!(host.act(&container, "restart").await, "running");
    let pid = container.inspect()["State"]["Pid"].clone();
    assert_eq!(host.act(&container, "restart?timeout_seconds=1").await, "running");
    assert_ne!(container.inspect()["State"]["Pid"], pid);

    let log = host.agent.stderr();
    for verb in ["start", "pause", "unpause", "stop", "restart"] {
        assert!(log.contains(&format!("container: {verb}")), "{verb} is not in the agent's log: {log}");
    }
    assert!(log.contains("owner from 127.0.0.1"), "{log}");
}

#[actix_web::test]
async fn containers_are_listed_and_shown_without_their_secrets() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let more = json!({"Env": ["TOKEN=hunter2"], "Labels": {"team": "core"}});
        let running = engine.run_with(SLEEP, more);
        let created = engine.create(SLEEP, json!({}));

        let entry = host.listed(&running, "").await.unwrap();
        assert_eq!((&entry["name"], &entry["state"]), (&json!(running.name), &json!("running")));
        assert_eq!(entry["image"], "docker.io/library/busybox:test");
        assert_eq!((&entry["ports"], &entry["labels"]["team"]), (&json!([]), &json!("core")));
        assert!(entry["status"].as_str().unwrap().starts_with("Up "), "{entry}");
        assert_timestamp(&entry["created_at"]);
        assert!(host.listed(&created, "?all=true").await.is_some());
        assert!(host.listed(&created, "?all=false").await.is_none());

        let detail = host.read(&format!("/{}", running.name)).await;
        assert_eq!((&detail["id"], &detail["state"]), (&json!(running.id), &json!("running")));
        assert_eq!(detail["command"], json!([]), "arguments may be secrets");
        assert!(detail["environment"].as_array().unwrap().contains(&json!("TOKEN")), "{detail}");
        assert!(!detail.to_string().contains("hunter2"), "{detail}");
        assert_eq!((&detail["exit_code"], &detail["finished_at"]), (&json!(null), &json!(null)));
    }
}

#[actix_web::test]
async fn a_user_who_may_control_containers_sees_their_commands() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "control").await;
        let container = engine.create(SLEEP, json!({}));

        let detail = host.read(&format!("/{}", container.name)).await;

        assert_eq!(detail["command"], json!(["sh", "-c", SLEEP]));
    }
}

#[actix_web::test]
async fn what_a_container_uses_is_measured() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let busy = engine.run("while true; do :; done");

        // On a busy machine it may not run between two readings, and those may be further apart than the times that they carry.
        let stats = eventually("it is busy", async || {
            let stats = host.read(&format!("/{}/stats", busy.id)).await;
            let cpu = stats["cpu_percent"].as_f64().unwrap();
            (cpu > 2.0 && cpu <= 110.0).then_some(stats)
        })
        .await;

        assert_eq!(stats["container_id"], busy.id.as_str());
        let memory = stats["memory_bytes"].as_u64().unwrap();
        assert!((1..64 << 20).contains(&memory), "{stats}");
        assert_timestamp(&stats["timestamp"]);
    }
}

#[actix_web::test]
async fn a_container_that_ignores_its_signal_is_killed_in_time() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::start(engine.clone()).await;
        let stubborn = engine.run("trap '' TERM; while true; do sleep 0.1; done");
        let began = Instant::now();

        let answer = host.post(&format!("/{}/stop?timeout_seconds=1", stubborn.id)).expect(200).await;

        assert_eq!(answer["state"], "exited");
        assert_eq!(stubborn.inspect()["State"]["ExitCode"], 137);
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    }
}

async fn expect_unknown(host: &Host, call: impl Fn() -> Call) {
    let answer = host.answer(call).await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("container_not_found")), "{answer}");
}

#[actix_web::test]
async fn an_unknown_container_is_not_found_by_any_verb() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::start(engine.clone()).await;

        for verb in ["start", "stop", "restart", "pause", "unpause"] {
            expect_unknown(&host, || host.post(&format!("/nobody/{verb}"))).await;
        }
        for path in ["/nobody", "/nobody/logs", "/nobody/stats"] {
            expect_unknown(&host, || host.get(path)).await;
        }
    }
}

#[actix_web::test]
async fn an_agent_that_only_reads_changes_nothing() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let container = engine.run(SLEEP);

    for verb in ["start", "stop", "restart", "pause", "unpause"] {
        host.post(&format!("/{}/{verb}", container.id)).expect_error(400, "agent_refused").await;
    }

    assert_eq!(container.state(), "running");
    let capabilities = host.site.server().await["agent"]["capabilities"].clone();
    assert_eq!(capabilities, json!(["metrics", "processes", "docker"]));
}

#[actix_web::test]
async fn an_agent_whose_owner_switched_containers_off_shows_none() {
    let host = Host::with_policy(Engine::docker(), "off").await;

    host.get("").expect_error(400, "agent_refused").await;
    host.get("/any").expect_error(400, "agent_refused").await;
    host.post("/any/stop").expect_error(400, "agent_refused").await;
    let capabilities = host.site.server().await["agent"]["capabilities"].clone();
    assert_eq!(capabilities, json!(["metrics", "processes"]));
}

#[actix_web::test]
async fn an_engine_that_comes_later_is_found() {
    let dir = TempDir::new().unwrap();
    let host = Host::start(Engine::at(&dir.path().join("engine.sock"))).await;
    std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();

    host.get("").expect_error(400, "docker_unavailable").await;
    std::os::unix::fs::symlink(Engine::docker().socket, &host.engine.socket).unwrap();

    host.read("").await;
    std::fs::remove_file(&host.engine.socket).unwrap();
    host.get("").expect_error(400, "docker_unavailable").await;
    std::os::unix::fs::symlink(Engine::podman().socket, &host.engine.socket).unwrap();
    eventually("the other engine is found", async || (host.get("").send().await.status == 200).then_some(())).await;
}
