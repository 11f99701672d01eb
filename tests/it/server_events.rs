//! `/servers/{id}/events`, `/events` and `/servers/{id}/availability`: the stored events of a server and of all servers, and
//! how much of the time a server was connected.

mod annotations;
mod availability;
mod clock;
mod fleet;
mod kept;
mod reboots;

use serde_json::{Value, json};
use signalbox_protocol::Encoding;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Event, ServiceMessage};

use crate::support::agent::{FakeAgent, auth};
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;
use crate::support::{eventually, text_of};

/// Another boot of the same machine.
const NEXT_BOOT: &str = "11111111-93a2-4d11-8f0b-0f5f5f5c6c6d";
const THIRD_BOOT: &str = "22222222-93a2-4d11-8f0b-0f5f5f5c6c6d";

impl Site {
    /// The events of its server, newest first.
    async fn events(&self, query: &str) -> Vec<Value> {
        let events = self.read(&format!("/servers/{}/events?{query}", self.server_id)).await;
        events.as_array().unwrap_or_else(|| panic!("not a list: {events}")).clone()
    }

    async fn kinds(&self) -> Vec<String> {
        self.events("").await.iter().map(|event| text_of(&event["kind"])).collect()
    }

    async fn until_kinds(&self, wanted: &[&str]) {
        eventually(&format!("{wanted:?} is what happened"), async || (self.kinds().await == wanted).then_some(()))
            .await;
    }

    /// Its agent, which says something else of itself than usual.
    async fn agent_that(&self, change: impl Fn(&mut AgentInfo)) -> FakeAgent {
        eventually("the agent is let in", async || {
            let mut agent = FakeAgent::connect(self.service.address, Encoding::Json).await;
            let AgentMessage::Auth(mut auth) = auth(&self.key) else { panic!("an agent begins with auth") };
            change(&mut auth.agent);
            agent.send(&AgentMessage::Auth(auth)).await;
            let ServiceMessage::AuthResponse(answer) = agent.next().await else { panic!("auth is answered") };
            FakeAgent::is_let_in(&answer).then_some(agent)
        })
        .await
    }

    /// The machine is started again.
    async fn rebooted(&self, boot_id: &str) -> FakeAgent {
        self.agent_that(|agent| boot_id.clone_into(&mut agent.boot_id)).await
    }
}

#[actix_web::test]
async fn an_agent_that_comes_and_goes_has_events_newest_first() {
    let site = Site::start().await;
    assert!(site.kinds().await.is_empty());

    let agent = site.agent().await;
    site.until_kinds(&["online"]).await;
    drop(agent);
    site.until_kinds(&["offline", "online"]).await;

    let path = format!("/servers/{}/events?limit=1", site.server_id);
    let answer = site.service.client.get(&path).bearer(&site.owner.token).expect_answer(200).await;
    assert_eq!(answer.header("x-total-count"), "2");
    let newest: Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(newest[0]["kind"], "offline");
    assert_eq!(newest[0]["server_id"], site.server_id.to_string());
    assert_eq!(newest[0]["detail"], json!({ "reason": "disconnected" }));
    assert_eq!(site.events("kind=online").await.len(), 1);
    assert!(site.events("start=2100-01-01T00:00:00Z").await.is_empty());
    assert!(site.events("end=2020-01-01T00:00:00Z").await.is_empty());
}

#[actix_web::test]
async fn the_events_of_all_own_servers_are_one_list() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (_, key) = site.service.server_with_key(&stranger, "web-1").await;
    let _theirs = FakeAgent::online(site.service.address, &key).await;
    let (other_id, key) = site.other_server().await;
    let _first = site.agent().await;
    site.until_kinds(&["online"]).await;
    let _second = FakeAgent::online(site.service.address, &key).await;

    let listed = eventually("both are connected", async || {
        let events = site.read("/events").await;
        (events.as_array().unwrap().len() == 2).then_some(events)
    })
    .await;

    let newest_first: Vec<_> = listed.as_array().unwrap().iter().map(|event| text_of(&event["server_id"])).collect();
    assert_eq!(newest_first, [other_id.to_string(), site.server_id.to_string()]);
    let page = site.service.client.get("/events?limit=1&kind=online").bearer(&site.owner.token);
    let page = page.expect_answer(200).await;
    assert_eq!(page.json(), json!([listed[0]]));
    assert_eq!(page.header("X-Total-Count"), "2");
    assert_eq!(site.read("/events?start=2100-01-01T00:00:00Z").await, json!([]));
    assert_eq!(site.read("/events?end=2020-01-01T00:00:00Z").await, json!([]));
}

#[actix_web::test]
async fn strangers_and_faults_are_refused_as_ever() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;

    for part in ["events", "availability"] {
        let path = format!("/servers/{}/{part}", site.server_id);
        site.service.client.get(&path).bearer(&stranger.token).expect_error(404, "not_found").await;
        site.service.client.get(&path).expect_answer(401).await;
        let backwards = format!("{path}?start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z");
        let fault = site.service.client.get(&backwards).bearer(&site.owner.token).expect(422).await;
        assert_eq!(fault["detail"][0]["loc"], json!(["query", "end"]));
    }
}

#[actix_web::test]
async fn another_boot_and_other_versions_are_events() {
    let site = Site::start().await;
    drop(site.agent().await);

    let _agent = site
        .agent_that(|agent| {
            NEXT_BOOT.clone_into(&mut agent.boot_id);
            "2.0.0".clone_into(&mut agent.version);
            "6.12.0".clone_into(&mut agent.kernel);
        })
        .await;

    eventually("all three are recorded", async || {
        let kinds = site.kinds().await;
        let is_told = |kind: &str| kinds.iter().any(|told| told == kind);
        ["reboot", "agent_version", "kernel"].into_iter().all(is_told).then_some(())
    })
    .await;
    assert_eq!(site.events("kind=agent_version").await[0]["detail"], json!({ "from": "1.2.3", "to": "2.0.0" }));
    let reboot = &site.events("kind=reboot").await[0]["detail"]["boot_id"];
    assert_eq!(reboot["to"], NEXT_BOOT);
}

#[actix_web::test]
async fn another_policy_of_the_agent_is_an_event() {
    let site = Site::start().await;
    let permitting = |capabilities: [&'static str; 2]| {
        move |agent: &mut AgentInfo| agent.capabilities = capabilities.map(str::to_owned).to_vec()
    };
    drop(site.agent_that(permitting(["metrics", "logs"])).await);

    let _agent = site.agent_that(permitting(["metrics", "commands"])).await;

    let told = eventually("the change is recorded", async || site.events("kind=policy").await.into_iter().next()).await;
    assert_eq!(told["detail"], json!({ "gained": ["commands"], "lost": ["logs"] }));
}

#[actix_web::test]
async fn what_happens_to_containers_is_kept_and_nothing_that_an_agent_makes_up() {
    let site = Site::start().await;
    let mut agent = site.agent().await;

    for kind in ["online", "offline", "reboot", "anything"] {
        agent.send_value(&json!({"type": "event", "data": {"kind": kind, "reason": "made up"}})).await;
    }
    let died = json!({"kind": "container", "action": "die", "timestamp": Timestamp::now().to_string(),
                      "container_id": "ab".repeat(32), "name": "db", "exit_code": 137});
    agent.send_value(&json!({"type": "event", "data": died})).await;

    site.until_kinds(&["container", "online"]).await;
    let told = &site.events("kind=container").await[0]["detail"];
    assert_eq!((&told["name"], &told["action"], &told["exit_code"]), (&json!("db"), &json!("die"), &json!(137)));
}

#[actix_web::test]
async fn what_happens_just_before_a_stop_is_kept() {
    let site = Site::start().await;
    let died: Event = serde_json::from_value(json!({"kind": "container", "action": "die", "name": "db"})).unwrap();

    // It waits for others, with which it is written.
    site.service.state.events.told(site.server_id, &died);
    let site = site.restart().await;

    let told = site.events("kind=container").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["detail"], json!({"action": "die", "name": "db"}));
}

#[actix_web::test]
async fn what_happened_goes_with_its_server() {
    let site = Site::start().await;
    let agent = site.agent().await;
    site.until_kinds(&["online"]).await;

    site.delete_server().await;
    drop(agent);

    let (start, end) = (Timestamp::from_millis(0), Timestamp::now().plus_millis(60_000));
    let left = site.service.state.store.presence_events(site.server_id, start, end).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[actix_web::test]
async fn a_reboot_raises_one_alert_that_ends_with_a_sample_after_its_time() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("reboot", "gte", 3_600.0)).await;
    let mut probe = Probe::at(&site).await;
    probe.cpu(10.0).await;
    alarms.expect_none(threshold).await;

    let mut probe = Probe::new(site.rebooted(NEXT_BOOT).await);
    let alert = alarms.until_only(threshold, "active").await;
    probe.cpu(10.0).await;
    let mut probe = Probe::new(site.rebooted(THIRD_BOOT).await);
    probe.cpu(10.0).await;

    assert_eq!((&alert["metric_type"], &alert["message"]), (&json!("reboot"), &json!("web-1 has rebooted")));
    let again = eventually("the alert has risen", async || {
        Some(alarms.only(threshold).await).filter(|alert| alert["peak_value"] == 2.0)
    })
    .await;
    assert_eq!(again["status"], "active");
    alarms.resolve(&again).await;
    probe.cpu(10.0).await;
    assert_eq!(alarms.of_threshold(threshold).await.len(), 1);
}

#[actix_web::test]
async fn an_alert_of_a_reboot_recovers_when_its_time_is_over_and_fires_again() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("reboot", "gte", 0.0)).await;
    drop(site.agent().await);

    let mut probe = Probe::new(site.rebooted(NEXT_BOOT).await);
    alarms.until(threshold, "active").await;
    probe.cpu(10.0).await;
    let alert = alarms.until_only(threshold, "resolved").await;
    drop(probe);
    let _agent = site.rebooted(THIRD_BOOT).await;

    assert_eq!(alert["resolved_by"], "recovery");
    alarms.until(threshold, "active").await;
    assert_eq!(alarms.of_threshold(threshold).await.len(), 2);
}

#[actix_web::test]
async fn a_threshold_on_reboots_needs_no_more_than_a_server() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let body = json!({"server_id": site.server_id, "metric_type": "reboot"});

    let made = alarms.post("/alerts/thresholds", body.clone()).await;

    assert_eq!((&made["threshold_value"], &made["comparison"]), (&json!(300.0), &json!("gte")));
    for (field, value) in [("duration_seconds", json!(60)), ("clear_value", json!(1)), ("comparison", json!("lt"))] {
        let mut wrong = body.clone();
        wrong[field] = value;
        let answer = site.service.client.post("/alerts/thresholds").bearer(&site.owner.token).json(wrong);
        let fault = answer.expect(422).await;
        assert_eq!(fault["detail"][0]["loc"], json!(["body", field]), "{fault}");
    }
}
