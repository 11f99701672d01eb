//! Texts that strangers choose hold nothing that moves a terminal's cursor or turns text around.

use actix_web::rt;
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth, RequestError};
use signalbox_protocol::container::{Container, ContainerDetail, Mount, Network, Port};
use signalbox_protocol::sample::{ContainerUsage, DiskUsage};
use signalbox_protocol::text::is_plain;
use signalbox_protocol::{Encoding, Sample, Timestamp};

use crate::support::Answer;
use crate::support::agent::{FakeAgent, agent_info, auth, sample_at};
use crate::support::site::Site;

const HOSTILE: &str = "\u{1b}[31mred\r\n\u{9b}a\u{202e}b\u{2066}c";
const CLEAN: &str = "[31mredabc";

#[actix_web::test]
async fn the_error_says_what_a_name_may_not_hold() {
    let site = Site::start().await;
    let server = format!("/servers/{}", site.server_id);
    let put = |body: Value| site.service.client.put(&server).bearer(&site.owner.token).json(body);

    for (text, kind) in [
        ("a\u{1b}[31mb", "value_error.str.control"),
        ("a\u{85}b", "value_error.str.control"),
        ("a\u{202e}b", "value_error.str.bidi"),
        ("a\u{2069}b", "value_error.str.bidi"),
    ] {
        put(json!({"name": text})).expect_faults(422, &[("body", "name", kind)]).await;
        put(json!({"tags": ["web", text]})).expect_faults(422, &[("body", "tags.1", kind)]).await;
        put(json!({"description": text})).expect_faults(422, &[("body", "description", kind)]).await;
        let key = json!({"server_id": site.server_id, "name": text});
        let key = site.service.client.post("/api-keys").bearer(&site.owner.token).json(key);
        key.expect_faults(422, &[("body", "name", kind)]).await;
    }
    let fine = json!({"name": "שלום web-1", "description": "one\r\n\ttwo\nthree"});
    assert_eq!(put(fine.clone()).expect(200).await["description"], fine["description"]);
}

#[actix_web::test]
async fn what_an_agent_says_of_its_machine_is_cleaned() {
    let site = Site::start().await;
    let AgentMessage::Auth(ordinary) = auth(&site.key) else { panic!("no auth") };
    let text = || HOSTILE.to_owned();
    let agent = AgentInfo { hostname: text(), os: text(), kernel: text(), arch: text(), ..agent_info() };
    let mut hostile = FakeAgent::connect(site.service.address, Encoding::Json).await;

    hostile.send(&AgentMessage::Auth(Auth { agent, ..ordinary })).await;
    hostile.next().await;

    let told = site.until_status("online").await["agent"].clone();
    for field in ["hostname", "os", "kernel", "arch"] {
        assert_eq!(told[field], CLEAN, "{field}");
    }
}

#[actix_web::test]
async fn names_in_samples_and_events_are_cleaned() {
    let site = Site::start().await;
    let mut dashboard = site.dashboard().await;
    let mut agent = site.agent().await;
    let disk = DiskUsage { path: format!("/{HOSTILE}"), total: 10, ..DiskUsage::default() };
    let container = ContainerUsage { id: "c1".to_owned(), name: HOSTILE.to_owned(), ..ContainerUsage::default() };
    let sample = Sample { disk_usage: vec![disk], containers: vec![container], ..sample_at(Timestamp::now()) };

    agent.store(1, vec![sample]).await;
    let event = json!({"kind": "container", "name": HOSTILE, "labels": {HOSTILE: [HOSTILE, 7]}});
    agent.send_value(&json!({"type": "event", "data": event})).await;

    let latest = site.latest().await;
    assert_eq!(latest["disk_usage"][0]["path"], format!("/{CLEAN}"));
    assert_eq!(latest["containers"][0]["name"], CLEAN);
    let told = dashboard.until("event").await;
    assert_eq!((&told["name"], &told["labels"]), (&json!(CLEAN), &json!({CLEAN: [CLEAN, 7]})));
}

/// The response to an agent's answer about its containers.
async fn asked(site: &Site, agent: &mut FakeAgent, path: &str, answer: Result<Value, RequestError>) -> Answer {
    let call = site.service.client.get(format!("/docker/{}/containers{path}", site.server_id));
    let call = call.bearer(&site.owner.token);
    let waiting = rt::spawn(async move { call.send().await });
    let request = agent.expect_request().await;
    agent.answer(&request, answer).await;
    waiting.await.unwrap()
}

/// Every text in it, the names of fields included.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| texts(value).into_iter().chain([name.as_str()])).collect()
        }
        _ => Vec::new(),
    }
}

#[track_caller]
fn assert_plain(told: &Value) {
    for text in texts(told) {
        assert!(text.chars().all(is_plain), "{text:?} in {told}");
    }
}

#[actix_web::test]
async fn what_an_agent_says_of_its_containers_is_cleaned() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let (text, labels) = (|| HOSTILE.to_owned(), || [(HOSTILE.to_owned(), HOSTILE.to_owned())].into());
    let port = || Port { protocol: text(), host_ip: Some(text()), ..Port::default() };
    let listed = Container {
        id: text(),
        name: text(),
        image: text(),
        state: text(),
        status: text(),
        ports: vec![port()],
        labels: labels(),
        ..Container::default()
    };
    let detail = ContainerDetail {
        id: text(),
        name: text(),
        image: text(),
        image_id: text(),
        state: text(),
        health: Some(text()),
        error: Some(text()),
        restart_policy: text(),
        command: vec![text()],
        environment: vec![text()],
        labels: labels(),
        ports: vec![port()],
        mounts: vec![Mount { kind: text(), source: text(), destination: text(), read_only: true }],
        network_mode: text(),
        networks: vec![Network { name: text(), ip_address: Some(text()) }],
        log_driver: text(),
        ..ContainerDetail::default()
    };

    let list = asked(&site, &mut agent, "", Ok(json!([listed]))).await.json();
    let one = asked(&site, &mut agent, "/web", Ok(json!(detail))).await.json();
    let refused = asked(&site, &mut agent, "/web", Err(RequestError::new("docker_error", HOSTILE))).await.json();

    assert_plain(&list);
    assert_plain(&one);
    assert_eq!((&list[0]["name"], &list[0]["ports"][0]["host_ip"]), (&json!(CLEAN), &json!(CLEAN)));
    assert_eq!((&one["command"], &one["environment"]), (&json!([CLEAN]), &json!([CLEAN])));
    assert_eq!((&one["labels"], &one["error"]), (&json!({CLEAN: CLEAN}), &json!(CLEAN)));
    assert_eq!(one["mounts"][0]["source"], CLEAN);
    assert_eq!(refused["detail"], "[31mred abc");
}
