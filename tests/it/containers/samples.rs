//! Containers in the samples.

use serde_json::{Value, json};

use super::Host;
use crate::support::engine::{Container, Engine};
use crate::support::eventually;

/// The container in the latest sample.
async fn sampled(host: &Host, container: &Container) -> Option<Value> {
    let path = format!("/metrics/{}", host.site.server_id);
    let answer = host.site.service.client.get(path).bearer(&host.site.owner.token).send().await;
    if answer.status != 200 {
        return None;
    }
    let latest = answer.json();
    latest["containers"].as_array().unwrap().iter().find(|it| it["id"] == container.id.as_str()).cloned()
}

#[actix_web::test]
async fn docker_containers_are_in_the_samples() {
    plausible(Engine::docker()).await;
}

#[actix_web::test]
async fn podman_containers_are_in_the_samples() {
    plausible(Engine::podman()).await;
}

async fn plausible(engine: Engine) {
    let earlier = engine.run("while true; do :; done");
    let host = Host::with_policy(engine.clone(), "read").await;
    let hold = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); while true; do sleep 1; done";
    let later = engine.run_with(hold, json!({}));

    let busy = eventually("a busy container is sampled", async || {
        // A busy machine leaves it little.
        let is_plausible = |it: &Value| it["cpu_percent"].as_f64().is_some_and(|cpu| cpu > 2.0 && cpu <= 110.0);
        sampled(&host, &earlier).await.filter(is_plausible)
    })
    .await;
    let large = eventually("a large container is sampled", async || {
        sampled(&host, &later).await.filter(|it| it["memory_bytes"].as_u64().unwrap() > 15 << 20)
    })
    .await;

    assert_eq!(busy["name"], earlier.name.as_str());
    assert!(large["memory_bytes"].as_u64().unwrap() < 200 << 20, "{large}");
    assert_eq!((&large["network_rx_bytes"], &large["network_tx_bytes"]), (&json!(0), &json!(0)));

    later.act("stop?t=0");
    eventually("a stopped container is in no sample", async || sampled(&host, &later).await.is_none().then_some(()))
        .await;
    later.act("start");
    eventually("it is back", async || sampled(&host, &later).await).await;
}

#[actix_web::test]
async fn without_leave_there_are_no_containers_in_the_samples() {
    let engine = Engine::docker();
    let container = engine.run("sleep 1000");
    let host = Host::with_policy(engine.clone(), "off").await;
    let history = format!("/metrics/{}/history?resolution=raw", host.site.server_id);

    let samples = eventually("samples arrive", async || {
        let samples = host.site.read(&history).await;
        (samples.as_array().unwrap().len() >= 4).then_some(samples)
    })
    .await;

    assert!(!samples.to_string().contains(&container.id), "{samples}");
}
