//! Events of containers on dashboards.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use super::Host;
use crate::support::dashboard::Dashboard;
use crate::support::engine::{Container, Engine};
use crate::support::{PATIENCE, assert_timestamp, eventually, keys_of};

/// The next event of this container and action.
async fn until(dashboard: &mut Dashboard, container: &Container, action: &str) -> Value {
    until_any(dashboard, container, &[action]).await
}

/// The next event of this container and any of these actions.
async fn until_any(dashboard: &mut Dashboard, container: &Container, actions: &[&str]) -> Value {
    let mut seen = Vec::new();
    let next = async {
        loop {
            let event = dashboard.until("event").await;
            seen.push(format!("{} {}", event["action"], event["name"]));
            let is_wanted = actions.iter().any(|action| event["action"] == *action);
            if is_wanted && event["container_id"] == container.id.as_str() {
                return event;
            }
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, next).await;
    outcome.unwrap_or_else(|_| panic!("{actions:?} of {} among {seen:#?}", container.name))
}

/// A dashboard that sees all events from now on: the agent watches its engine.
async fn watching(host: &Host) -> Dashboard {
    let mut dashboard = host.site.dashboard().await;
    // Only its events show that the agent has begun to watch.
    let probe = host.engine.create("true", json!({}));
    let seen = async {
        loop {
            let event = dashboard.until("event").await;
            if event["container_id"] == probe.id.as_str() {
                return;
            }
        }
    };
    let knock = async {
        loop {
            // It may still be ending from the time before, which an engine may complain of.
            host.engine.call("POST", &format!("/v1.41/containers/{}/start", probe.id), &json!({}));
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    };
    tokio::select! {
        () = seen => {}
        () = knock => {}
    }
    dashboard
}

#[actix_web::test]
async fn a_container_that_dies_is_reported_at_once() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let mut dashboard = watching(&host).await;

        let mut tries = 0;
        let (container, start, die) = loop {
            let container = engine.run("exit 3");
            let start = until(&mut dashboard, &container, "start").await;
            let die = until(&mut dashboard, &container, "die").await;
            tries += 1;
            // An engine that is too slow to say it is not waited for.
            if !die["restart_count"].is_null() || tries == 5 {
                break (container, start, die);
            }
        };
        container.remove();
        let gone = until(&mut dashboard, &container, "destroy").await;

        let fields = ["action", "container_id", "image", "kind", "name", "timestamp"];
        assert_eq!(keys_of(&start), fields);
        assert_eq!(
            (&die["kind"], &die["exit_code"], &die["restart_count"]),
            (&json!("container"), &json!(3), &json!(0))
        );
        // Podman does not say whether somebody stopped it.
        let requested = if engine.address() == Engine::docker().address() { json!(false) } else { Value::Null };
        assert_eq!(die["requested"], requested);
        assert_eq!((&die["name"], &die["image"]), (&json!(container.name), &json!("docker.io/library/busybox:test")));
        assert_timestamp(&die["timestamp"]);
        assert_eq!(gone["name"], container.name.as_str());
    }
}

#[actix_web::test]
async fn a_requested_end_is_distinguished_from_a_crash() {
    for engine in [Engine::docker(), Engine::podman()] {
        let host = Host::with_policy(engine.clone(), "read").await;
        let mut dashboard = watching(&host).await;
        let container = engine.run("trap 'exit 0' TERM; while true; do sleep 0.1; done");
        until(&mut dashboard, &container, "start").await;

        // Podman writes the end down in a process of its own, which may be later than the new start: then the agent cannot
        // know that it was requested.
        let mut tries = 0;
        let restarted = loop {
            container.act("restart?t=5");
            let first = until_any(&mut dashboard, &container, &["die", "start"]).await;
            let is_in_order = first["action"] == "die";
            let second = until(&mut dashboard, &container, if is_in_order { "start" } else { "die" }).await;
            tries += 1;
            if is_in_order || tries == 5 {
                break if is_in_order { first } else { second };
            }
        };
        container.act("kill");
        let killed = until(&mut dashboard, &container, "die").await;

        assert_eq!((&restarted["requested"], &killed["requested"]), (&json!(true), &json!(true)));
    }
}

#[actix_web::test]
async fn a_container_that_takes_too_much_memory_is_reported() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let mut dashboard = watching(&host).await;

    let limits = json!({"HostConfig": {"Memory": 16 << 20, "MemorySwap": 16 << 20}});
    // The container outlives the process that takes it: of one that ends at once the engine may not learn why.
    let mut is_reported = false;
    // Where the engine misses it, another container has to show it.
    for _ in 0..5 {
        let hog = engine.run_with("sh -c 'x=a; while true; do x=$x$x; done'; sleep 1; exit 3", limits.clone());
        is_reported = until_any(&mut dashboard, &hog, &["oom", "die"]).await["action"] == "oom";
        if is_reported {
            let die = until(&mut dashboard, &hog, "die").await;
            assert_eq!(die["exit_code"], 3);
            break;
        }
    }
    assert!(is_reported);
}

#[actix_web::test]
async fn restarts_are_counted_and_health_is_reported() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "read").await;
    let mut dashboard = watching(&host).await;

    let policy = json!({"HostConfig": {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 2}}});
    let mut last = None;
    // Where the engine is too slow to say it, another container has to show it.
    for _ in 0..5 {
        let looping = engine.run_with("sleep 0.1; exit 1", policy.clone());
        for _ in 0..3 {
            last = until(&mut dashboard, &looping, "die").await["restart_count"].as_u64();
        }
        if last.is_some() {
            break;
        }
    }
    assert_eq!(last, Some(2));
    let check = json!({"Healthcheck": {"Test": ["CMD", "false"], "Interval": 1_000_000_000_u64, "Retries": 1}});
    let sick = engine.run_with("sleep 1000", check);

    let health = until(&mut dashboard, &sick, "health_status").await;
    assert_eq!(health["health"], "unhealthy");
}

#[actix_web::test]
async fn without_permission_nothing_is_reported() {
    let engine = Engine::docker();
    let host = Host::with_policy(engine.clone(), "off").await;
    let mut dashboard = host.site.dashboard().await;

    let container = engine.run("exit 3");
    eventually("it ends", async || (container.state() == "exited").then_some(())).await;
    let ended = Timestamp::now();

    // Samples come once a second: an event would have arrived before the third that was taken after the end.
    let mut samples = 0;
    while samples < 3 {
        let message = dashboard.next().await;
        assert_ne!(message["type"], "event", "{message}");
        let taken = message["data"]["timestamp"].as_str().and_then(Timestamp::parse);
        samples += usize::from(message["type"] == "metrics" && taken > Some(ended));
    }
}
