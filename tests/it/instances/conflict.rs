//! A machine and its clone, with one key, at two instances: shown and reported everywhere, and never taken for one.

use serde_json::json;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, ServiceMessage};
use signalbox_protocol::close::REPLACED;

use super::{A, B, C, Scene};
use crate::support::agent::{FakeAgent, agent_info, auth, sample_aged};
use crate::support::{in_time, text_of};

impl Scene {
    /// An authenticated agent on this machine, at an instance.
    async fn agent_on(&self, instance: usize, hostname: &str, machine_id: &str) -> FakeAgent {
        let about = AgentInfo {
            hostname: hostname.to_owned(),
            machine_id: machine_id.to_owned(),
            boot_id: format!("boot of {machine_id}"),
            ..agent_info()
        };
        let mut agent = FakeAgent::connect(self.cluster.address(instance), Encoding::Json).await;
        let AgentMessage::Auth(first) = auth(&self.prepared.key) else { unreachable!() };
        agent.send(&AgentMessage::Auth(Auth { agent: about, ..first })).await;
        let answer = agent.next().await;
        assert!(matches!(&answer, ServiceMessage::AuthResponse(answer) if answer.success), "{answer:?}");
        agent
    }

    async fn kinds(&self, instance: usize) -> Vec<String> {
        let events = self.read(instance, &format!("/servers/{}/events", self.server_id())).await;
        events.as_array().unwrap().iter().map(|event| text_of(&event["kind"])).collect()
    }
}

#[actix_web::test]
async fn a_clone_at_another_instance_is_shown_and_told_everywhere() {
    let scene = Scene::start().await;
    let path = format!("/servers/{}", scene.server_id());
    let mut original = scene.agent_on(A, "web-1", "original").await;
    original.store(1, vec![sample_aged(2)]).await;
    let mut watching = scene.watch(C).await;
    watching.until("status").await;

    let mut clone = scene.agent_on(B, "web-1-copy", "clone").await;

    original.expect_close(REPLACED).await;
    // The arrival of the original may be reported after the dashboard's first messages.
    let told = in_time("the conflict is reported", async {
        loop {
            let told = watching.until("event").await;
            if told["kind"] != "online" {
                break told;
            }
        }
    })
    .await;
    assert_eq!((&told["kind"], &told["hostname"]), (&json!("conflict"), &json!("web-1")), "{told}");
    for instance in [A, B, C] {
        let agent = scene.read(instance, &path).await["agent"].clone();
        let hostnames = (&agent["hostname"], &agent["conflict"]["hostname"]);
        assert_eq!(hostnames, (&json!("web-1-copy"), &json!("web-1")), "{instance}: {agent}");
        assert_eq!(scene.kinds(instance).await, ["conflict", "online"], "{instance}");
    }
    let since = scene.read(C, &path).await["agent"]["conflict"]["since"].clone();

    // Each returns at another instance than before: the same conflict, no reboot, and no second event.
    let mut original = scene.agent_on(C, "web-1", "original").await;
    clone.expect_close(REPLACED).await;
    let mut clone = scene.agent_on(A, "web-1-copy", "clone").await;
    original.expect_close(REPLACED).await;
    clone.store(1, vec![sample_aged(1)]).await;

    for instance in [A, B, C] {
        let conflict = scene.read(instance, &path).await["agent"]["conflict"].clone();
        assert_eq!((&conflict["hostname"], &conflict["since"]), (&json!("web-1"), &since), "{instance}: {conflict}");
        assert_eq!(scene.kinds(instance).await, ["conflict", "online"], "{instance}");
    }
}
