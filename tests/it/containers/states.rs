//! The states of all containers, as the real agent reports them.

use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::container::{ContainerState, ContainerStates};

use super::follow::OwnEngine;
use crate::support::command_line::Launched;
use crate::support::engine::{Container, Engine};
use crate::support::hostile::{Captive, Hostile};
use crate::support::machine::Machine;

/// A service that only listens, and the agent of a machine with an engine.
struct Scene {
    service: Hostile,
    _machine: Machine,
    _agent: Launched,
}

impl Scene {
    fn start(service: Hostile, engine: &Engine, docker: &str) -> Self {
        let machine = Machine::new();
        let flags = ["--docker", docker, "--docker-host", &engine.address()];
        let agent = machine.agent(service.address(), "any-key", &flags);
        Self { service, _machine: machine, _agent: agent }
    }

    async fn connected(engine: &Engine) -> (Self, Captive) {
        let scene = Self::start(Hostile::start().await, engine, "read");
        let captive = scene.next_connection().await;
        (scene, captive)
    }

    async fn next_connection(&self) -> Captive {
        self.service.accept().await.0
    }
}

async fn next_states(captive: &mut Captive) -> ContainerStates {
    serde_json::from_value(captive.event("containers").await.fields.into()).unwrap()
}

/// The report about a container as soon as it has the expected state.
async fn until(
    captive: &mut Captive,
    container: &Container,
    is_wanted: impl Fn(&ContainerState) -> bool,
) -> ContainerState {
    loop {
        let states = next_states(captive).await;
        let state = states.containers.into_iter().find(|it| it.id == container.id);
        if let Some(state) = state.filter(&is_wanted) {
            assert_eq!(state.name, container.name);
            return state;
        }
    }
}

async fn until_state(captive: &mut Captive, container: &Container, state: &str) -> ContainerState {
    until(captive, container, |it| it.state == state).await
}

#[actix_web::test]
async fn all_containers_and_their_changes_are_reported() {
    for engine in [Engine::docker(), Engine::podman()] {
        let (new, failed, web) = (engine.create("true", json!({})), engine.run("exit 3"), engine.run("sleep 1000"));
        let (_scene, mut captive) = Scene::connected(&engine).await;

        let first = loop {
            let states = next_states(&mut captive).await;
            if states.containers.iter().any(|it| it.id == failed.id && it.exit_code == Some(3)) {
                break states;
            }
        };
        let of = |container: &Container| first.containers.iter().find(|it| it.id == container.id).unwrap();
        assert_eq!((of(&new).state.as_str(), of(&failed).state.as_str()), ("created", "exited"));
        assert_eq!((of(&web).state.as_str(), of(&web).health.as_ref(), of(&web).exit_code), ("running", None, None));
        assert!(!first.truncated);

        web.act("pause");
        until_state(&mut captive, &web, "paused").await;
        web.act("unpause");
        until_state(&mut captive, &web, "running").await;
        web.act("kill");
        assert_eq!(until_state(&mut captive, &web, "exited").await.exit_code, Some(137));
        web.act("start");
        until_state(&mut captive, &web, "running").await;
        web.remove();
        while next_states(&mut captive).await.containers.iter().any(|it| it.id == web.id) {}
    }
}

#[actix_web::test]
async fn each_connection_gets_all_states_though_nothing_changed() {
    for engine in [Engine::docker(), Engine::podman()] {
        let container = engine.run("exit 3");
        let (scene, mut captive) = Scene::connected(&engine).await;
        let before = until_state(&mut captive, &container, "exited").await;

        drop(captive);
        let mut captive = scene.next_connection().await;

        assert_eq!(until_state(&mut captive, &container, "exited").await, before);
    }
}

#[actix_web::test]
async fn health_is_reported() {
    for engine in [Engine::docker(), Engine::podman()] {
        let (_scene, mut captive) = Scene::connected(&engine).await;
        let check = json!({"Test": ["CMD", "test", "-e", "/well"], "Interval": 1_000_000_000_u64, "Retries": 1});
        let script = "trap 'touch /well' USR1; while true; do sleep 0.1; done";
        let container = engine.run_with(script, json!({"Healthcheck": check}));

        until_health(&engine, &mut captive, &container, "unhealthy", || {}).await;
        until_health(&engine, &mut captive, &container, "healthy", || container.act("kill?signal=USR1")).await;
    }
}

/// Podman relies on systemd for health checks, which need not exist, so the test runs them.
async fn until_health(
    engine: &Engine,
    captive: &mut Captive,
    container: &Container,
    health: &str,
    bring_about: impl Fn(),
) {
    let check = async {
        loop {
            bring_about();
            engine.call("GET", &format!("/v4.0.0/libpod/containers/{}/healthcheck", container.id), &Value::Null);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        _ = until(captive, container, |it| it.health.as_deref() == Some(health)) => {}
        () = check => {}
    }
}

#[actix_web::test]
async fn states_are_reported_through_a_restart_of_the_engine() {
    let own = OwnEngine::start();
    let container = own.engine.run("sleep 1000");
    let (_scene, mut captive) = Scene::connected(&own.engine).await;
    until_state(&mut captive, &container, "running").await;

    own.script("stop");
    own.script("start");

    until_state(&mut captive, &container, "exited").await;
    container.act("start");
    until_state(&mut captive, &container, "running").await;
}

#[actix_web::test]
async fn without_permission_no_state_is_reported() {
    let engine = Engine::docker();
    let _container = engine.run("sleep 1000");
    let scene = Scene::start(Hostile::start().await, &engine, "off");

    let mut captive = scene.next_connection().await;

    // With permission they would be reported as soon as the engine has answered.
    for _ in 0..3 {
        captive.sample_and_no_event().await;
    }
}
