//! The real agent's program with several instances.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{A, B, C, Scene, slowness};
use crate::support::balancer::Balancer;
use crate::support::commands::answered;
use crate::support::eventually;
use crate::support::machine::Machine;

/// The promise for agents of an instance that was killed.
const ELSEWHERE_WITHIN: Duration = Duration::from_secs(10);

#[actix_web::test]
async fn it_is_read_run_on_and_typed_into_from_everywhere() {
    let scene = Scene::start().await;
    let machine = Machine::new();
    let flags = ["--commands", "on", "--terminal", "on"];
    let _agent = machine.agent(scene.cluster.address(B), &scene.prepared.key, &flags);
    scene.until_status(A, "online").await;

    for instance in [A, B, C] {
        let path = format!("/metrics/{}", scene.server_id());
        eventually("a sample is there", async || (scene.get(instance, &path).send().await.status == 200).then_some(()))
            .await;
        let answer = answered(scene.run(instance, "echo one; echo two >&2; exit 3")).await;
        let result = answer.json();
        assert_eq!((answer.status, &result["exit_code"]), (200, &json!(3)), "{instance}: {answer}");
        assert_eq!((&result["stdout"], &result["stderr"]), (&json!("one\n"), &json!("two\n")), "{instance}");
    }
    let answer = answered(scene.run(C, "head -c 700000 /dev/zero | tr '\\0' x")).await;
    assert_eq!(answer.json()["output"].as_str().map(str::len), Some(700_000));
    let path = format!("/api/v1/ws/terminal/{}?columns=100&rows=30", scene.server_id());
    let mut browser = scene.open(A, &path).await;
    browser.send(json!({"type": "input", "data": {"data": "stty size; exit 7\n"}})).await;
    let mut shown = String::new();
    let end = loop {
        let message = browser.next().await;
        match message["type"].as_str() {
            Some("output") => shown.push_str(message["data"]["data"].as_str().unwrap()),
            Some("exit") => break message["data"].clone(),
            _ => panic!("{message}"),
        }
    };
    assert!(shown.contains("30 100\r\n"), "{shown}");
    assert_eq!(end, json!({"exit_code": 7}));
}

#[actix_web::test]
async fn it_finds_another_instance_within_ten_seconds_and_loses_nothing() {
    let mut scene = Scene::start().await;
    let (machine, balancer) = (Machine::new(), Balancer::over(&scene.cluster.addresses()).await);
    let started = Instant::now();
    let _agent = machine.agent(balancer.address, &scene.prepared.key, &["--commands", "on"]);
    scene.until_status(A, "online").await;
    // The time where nothing is wrong.
    let usual = started.elapsed();
    scene.until_reached(C).await;
    let gate = machine.gate();
    let begun = machine.path("begun");
    let waiting = scene.run(C, &format!("echo begun > {}; {}; echo done", begun.display(), gate.wait()));
    machine.until_written("begun").await;
    let connected_at = scene.until_status(C, "online").await["agent"]["connected_at"].clone();
    // The balancer chooses which one has it.
    let home = home_of(&scene).await;
    let asked = if home == C { None } else { Some(waiting) };

    let (began, killed_at) = (Instant::now(), signalbox_protocol::Timestamp::now().as_millis());
    scene.cluster.kill(home).await;
    let reader = (home + 1) % 3;
    eventually("it is elsewhere", async || {
        let server = scene.until_status(reader, "online").await;
        (server["agent"]["connected_at"] != connected_at).then_some(())
    })
    .await;
    let (took, elsewhere_at) = (began.elapsed(), signalbox_protocol::Timestamp::now().as_millis());
    gate.open();

    let most = ELSEWHERE_WITHIN + usual + slowness(usual);
    assert!(took < most, "it was elsewhere after {took:?}, and had come in {usual:?}");
    if let Some(waiting) = asked {
        let answer = answered(waiting).await;
        assert_eq!((answer.status, &answer.json()["output"]), (200, &json!("done\n")), "{answer}");
    }
    // Samples of the time in between arrive, too: none is missing for more than six intervals of half a second or, where
    // that time was long, for half of it. The machine that runs all this may have skipped some.
    let longest_ms = ((elsewhere_at - killed_at) / 2).clamp(3_000, 15_000);
    let path = format!("/metrics/{}/history?resolution=raw&max_points=20000", scene.server_id());
    eventually("there is no gap", async || {
        let history = scene.read(reader, &path).await;
        let moments: Vec<i64> = history.as_array().unwrap().iter().map(millis_of).collect();
        let newest = *moments.last()?;
        let mut between = moments.windows(2).filter(|pair| pair[1] >= killed_at && pair[0] <= elsewhere_at);
        let is_whole = between.all(|pair| pair[1] - pair[0] < longest_ms);
        (is_whole && newest > elsewhere_at).then_some(())
    })
    .await;
}

fn millis_of(sample: &Value) -> i64 {
    signalbox_protocol::Timestamp::parse(sample["timestamp"].as_str().unwrap()).unwrap().as_millis()
}

/// The instance that counts an agent among its own.
async fn home_of(scene: &Scene) -> usize {
    eventually("one has the agent", async || {
        for instance in [A, B, C] {
            let client = crate::support::Client::new(format!("http://{}", scene.cluster.address(instance)));
            let told = client.get("/metrics").send().await.text;
            let connected = |line: &&str| line.starts_with("signalbox_agents_connected ") && !line.ends_with(" 0");
            if told.lines().any(|line| connected(&line)) {
                return Some(instance);
            }
        }
        None
    })
    .await
}
