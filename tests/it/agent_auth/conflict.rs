//! Two machines with one key: shown, reported, and never taken for one.

use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, ServiceMessage};
use signalbox_protocol::close::REPLACED;

use crate::support::agent::{FakeAgent, agent_info, auth, sample_aged};
use crate::support::assert_timestamp;
use crate::support::site::Site;

/// An authenticated agent on this machine.
async fn agent_on(site: &Site, hostname: &str, machine_id: &str, boot_id: &str) -> FakeAgent {
    let about = AgentInfo {
        hostname: hostname.to_owned(),
        machine_id: machine_id.to_owned(),
        boot_id: boot_id.to_owned(),
        ..agent_info()
    };
    let mut agent = FakeAgent::connect(site.service.address, Encoding::Json).await;
    let AgentMessage::Auth(first) = auth(&site.key) else { unreachable!() };
    agent.send(&AgentMessage::Auth(Auth { agent: about, ..first })).await;
    let answer = agent.next().await;
    assert!(matches!(&answer, ServiceMessage::AuthResponse(answer) if answer.success), "{answer:?}");
    agent
}

#[actix_web::test]
async fn a_clone_is_shown_and_told_once() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    let mut original = agent_on(&site, "web-1", "a", "1").await;
    assert!(site.server().await["agent"]["conflict"].is_null());

    let mut clone = agent_on(&site, "web-1-copy", "b", "2").await;

    original.expect_close(REPLACED).await;
    let told = dashboard.until("event").await;
    assert_eq!((&told["kind"], &told["hostname"]), (&"conflict".into(), &"web-1".into()), "{told}");
    let agent = site.server().await["agent"].clone();
    let first = agent["conflict"].clone();
    assert_eq!((&agent["hostname"], &first["hostname"]), (&"web-1-copy".into(), &"web-1".into()), "{agent}");
    assert_eq!((&first["address"], &first["since"]), (&"127.0.0.1".into(), &told["at"]));
    assert_timestamp(&first["last_at"]);

    let mut original = agent_on(&site, "web-1", "a", "1").await;

    clone.expect_close(REPLACED).await;
    let again = site.server().await["agent"]["conflict"].clone();
    assert_eq!((&again["hostname"], &again["since"]), (&"web-1-copy".into(), &first["since"]), "{again}");
    original.store(1, vec![sample_aged(1)]).await;
    loop {
        let message = dashboard.next().await;
        assert_ne!(message["type"], "event", "the event comes when it begins, and not each time");
        if message["type"] == "metrics" {
            break;
        }
    }
}

#[actix_web::test]
async fn a_machine_that_lost_its_connection_is_no_clone() {
    let site = Site::start().await;
    let mut first = agent_on(&site, "web-1", "a", "1").await;

    let mut second = agent_on(&site, "web-1", "a", "2").await;

    first.expect_close(REPLACED).await;
    second.store(1, vec![sample_aged(1)]).await;
    assert!(site.server().await["agent"]["conflict"].is_null());
}
