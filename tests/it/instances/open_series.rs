//! Open series of an agent at one instance, as the others return them.

use serde_json::json;

use super::{A, B, C, Scene};
use crate::open_series::{describe, sample, seconds_ago, three};

#[actix_web::test]
async fn every_instance_tells_what_an_agent_describes_at_one() {
    let scene = Scene::start().await;
    let mut agent = scene.agent(B).await;
    let mut dashboard = scene.watch(C).await;
    dashboard.expect("status").await;
    describe(&mut agent, three(0)).await;

    agent.store(1, vec![sample(seconds_ago(1), &[(0, 1.5), (1, 900.0)])]).await;

    let extra = json!({"cpu_iowait": 1.5, "fan_speed:cpu: 1": 900.0});
    assert_eq!(dashboard.until("metrics").await["extra"], extra);
    for instance in [A, B, C] {
        let server_id = scene.server_id();
        assert_eq!(scene.read(instance, &format!("/metrics/{server_id}")).await["extra"], extra);
        let history = scene.read(instance, &format!("/metrics/{server_id}/history?resolution=raw")).await;
        assert_eq!(history[0]["extra"], extra);
        let names = scene.read(instance, &format!("/metrics/{server_id}/names?q=fan")).await;
        assert_eq!(names["names"][0]["help"], "What fan_speed is.");
    }
}
