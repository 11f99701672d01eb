//! What the overview tells.

use serde_json::{Value, json};
use signalbox_protocol::agent::AgentInfo;

use super::{NEW, OLD, PROGRAM, Scene, connect, failed, updatable};

#[actix_web::test]
async fn the_overview_has_the_release_and_the_agents_of_ones_own_servers() {
    let scene = Scene::start().await;
    let off = AgentInfo { capabilities: vec!["metrics".to_owned()], ..updatable() };
    let current = scene.machine("db-1", &[]).await;
    let fallen = scene.machine("db-2", &[]).await;
    let _agents = (
        connect(&scene.service, &scene.canary, off).await,
        connect(&scene.service, &current, AgentInfo { version: NEW.to_owned(), ..updatable() }).await,
    );
    drop(connect(&scene.service, &fallen, failed("it did not connect")).await);
    scene.until_offline(&fallen).await;

    let overview = scene.read("/updates").await;

    let programs = json!([{ "name": PROGRAM, "bytes": 7 }]);
    let release = json!({ "version": NEW, "programs": programs, "is_complete": true, "missing": [] });
    let server = |machine: &super::Machine, name: &str, version: Value, status: &str, updates: &str| {
        let arch = if version.is_null() { Value::Null } else { json!("x86_64") };
        json!({
            "server_id": machine.id, "name": name, "version": version, "arch": arch, "status": status,
            "updates": updates, "failed_update": null, "is_current": version == NEW,
        })
    };
    let mut of_fallen = server(&fallen, "db-2", json!(OLD), "offline", "signed");
    of_fallen["failed_update"] = json!({ "version": NEW, "reason": "it did not connect" });
    let servers = json!([
        server(&scene.canary, "canary-1", json!(OLD), "online", "off"),
        server(&current, "db-1", json!(NEW), "online", "signed"),
        of_fallen,
        server(&scene.web, "web-1", Value::Null, "pending", "off"),
    ]);
    assert_eq!(overview, json!({ "release": release, "servers": servers, "rollout": null }));
}
