//! Thresholds and the alerts that they raise, as their owner sees them, and an agent whose samples cross them.

use std::net::SocketAddr;

use serde_json::{Value, json};
use signalbox::alerts::Alerts;
use signalbox_protocol::{Sample, Timestamp};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::agent::{FakeAgent, sample_at};
use super::dashboard::{Dashboard, Pass};
use super::process::{Prepared, ServiceProcess};
use super::site::Site;
use super::{Account, Client, TestService, eventually, in_time, text_of, uuid_of};

/// The socket on which an account receives all its alerts.
pub const ALERTS_PATH: &str = "/api/v1/ws/alerts";

/// A threshold that is being written: unless it says more, it fires at once, for its server.
#[derive(Debug, Clone)]
pub struct Threshold(Value);

impl Threshold {
    pub fn on(metric: &str, comparison: &str, value: f64) -> Self {
        Self(json!({"metric_type": metric, "comparison": comparison, "threshold_value": value, "enabled": true}))
    }

    /// On the processor, above this many percent.
    pub fn cpu(percent: f64) -> Self {
        Self::on("cpu", "gt", percent)
    }

    /// Without the agent for longer than this many seconds.
    pub fn offline(seconds: f64) -> Self {
        Self::on("offline", "gt", seconds)
    }

    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.0[field] = value.into();
        self
    }

    /// Fires only after this many seconds.
    pub fn lasting(self, seconds: i64) -> Self {
        self.with("duration_seconds", seconds)
    }

    pub fn target(self, target: &str) -> Self {
        self.with("target", target)
    }

    pub fn clear(self, value: f64) -> Self {
        self.with("clear_value", value)
    }

    pub fn severity(self, severity: &str) -> Self {
        self.with("severity", severity)
    }

    /// For one server in place of the usual one.
    pub fn of_server(self, server_id: Uuid) -> Self {
        self.with("server_id", server_id.to_string())
    }

    /// For all servers with this tag.
    pub fn tagged(self, tag: &str) -> Self {
        self.with("tag", tag)
    }

    /// For all servers.
    pub fn everywhere(self) -> Self {
        self.with("all", true)
    }

    fn body(self, server_id: Uuid) -> Value {
        let is_scoped = ["server_id", "tag", "all"].iter().any(|field| self.0.get(field).is_some());
        if is_scoped { self.0 } else { self.of_server(server_id).0 }
    }
}

/// The alerts of one account, and its thresholds.
#[derive(Clone)]
pub struct Alarms {
    client: Client,
    address: SocketAddr,
    /// Of a service in the test's own process.
    evaluators: Option<Alerts>,
    pub token: String,
    /// The server that thresholds are for unless they say more.
    pub server_id: Uuid,
}

impl Alarms {
    pub fn of(service: &TestService, account: &Account, server_id: Uuid) -> Self {
        let reached = Self::reached(&service.client, service.address, &account.token, server_id);
        Self { evaluators: Some(service.state.alerts.clone()), ..reached }
    }

    pub fn at(site: &Site) -> Self {
        Self::of(&site.service, &site.owner, site.server_id)
    }

    pub fn in_process(service: &ServiceProcess, prepared: &Prepared) -> Self {
        Self::reached(&service.client, service.address, &prepared.token, prepared.server_id)
    }

    /// By way of a service that the test knows the address of.
    pub fn reached(client: &Client, address: SocketAddr, token: &str, server_id: Uuid) -> Self {
        Self { client: client.clone(), address, evaluators: None, token: token.to_owned(), server_id }
    }

    pub async fn add(&self, threshold: Threshold) -> Uuid {
        uuid_of(&self.post("/alerts/thresholds", threshold.body(self.server_id)).await["id"])
    }

    /// Changes the fields of a threshold that `body` names.
    pub async fn change(&self, threshold_id: Uuid, body: Value) -> Value {
        let path = format!("/alerts/thresholds/{threshold_id}");
        self.client.put(path).bearer(&self.token).json(body).expect(200).await
    }

    pub async fn remove(&self, threshold_id: Uuid) {
        let path = format!("/alerts/thresholds/{threshold_id}");
        self.client.delete(path).bearer(&self.token).expect(200).await;
    }

    /// The answer of a path below `/api/v1`.
    pub async fn read(&self, path: &str) -> Value {
        self.client.get(path).bearer(&self.token).expect(200).await
    }

    /// Makes something.
    pub async fn post(&self, path: &str, body: Value) -> Value {
        self.client.post(path).bearer(&self.token).json(body).expect(201).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Value {
        self.client.put(path).bearer(&self.token).json(body).expect(200).await
    }

    pub async fn delete(&self, path: &str) {
        self.client.delete(path).bearer(&self.token).expect(200).await;
    }

    /// The alerts of a query such as `status=active`, newest first.
    pub async fn list(&self, query: &str) -> Vec<Value> {
        let alerts = self.read(&format!("/alerts?limit=500&{query}")).await;
        alerts.as_array().unwrap_or_else(|| panic!("not a list: {alerts}")).clone()
    }

    pub async fn all(&self) -> Vec<Value> {
        self.list("").await
    }

    /// The alerts of a threshold, newest first.
    pub async fn of_threshold(&self, threshold_id: Uuid) -> Vec<Value> {
        let is_its = |alert: &Value| alert["threshold_id"] == threshold_id.to_string();
        self.all().await.into_iter().filter(is_its).collect()
    }

    /// The only alert that a threshold has ever raised.
    pub async fn only(&self, threshold_id: Uuid) -> Value {
        let mut alerts = self.of_threshold(threshold_id).await;
        assert_eq!(alerts.len(), 1, "one alert, and no other: {alerts:?}");
        alerts.remove(0)
    }

    /// Asserts that a threshold has never raised anything.
    pub async fn expect_none(&self, threshold_id: Uuid) {
        let alerts = self.of_threshold(threshold_id).await;
        assert!(alerts.is_empty(), "no alert: {alerts:?}");
    }

    /// The newest alert of a threshold, as soon as its status is this.
    pub async fn until(&self, threshold_id: Uuid, status: &str) -> Value {
        eventually(&format!("an alert is {status}"), async || {
            let newest = self.of_threshold(threshold_id).await.into_iter().next();
            newest.filter(|alert| alert["status"] == status)
        })
        .await
    }

    /// The same, and it is the only one that the threshold has ever raised.
    pub async fn until_only(&self, threshold_id: Uuid, status: &str) -> Value {
        self.until(threshold_id, status).await;
        self.only(threshold_id).await
    }

    /// One alert, with its timeline.
    pub async fn alert(&self, alert: &Value) -> Value {
        self.read(&format!("/alerts/{}", text_of(&alert["id"]))).await
    }

    /// The timeline of an alert, in order.
    pub async fn timeline(&self, alert: &Value) -> Vec<String> {
        let alert = self.alert(alert).await;
        let events = alert["timeline"].as_array().unwrap_or_else(|| panic!("no timeline: {alert}"));
        events.iter().map(|event| text_of(&event["kind"])).collect()
    }

    pub async fn acknowledge(&self, alert: &Value) -> Value {
        self.act(alert, "acknowledge").await
    }

    pub async fn resolve(&self, alert: &Value) -> Value {
        self.act(alert, "resolve").await
    }

    async fn act(&self, alert: &Value, verb: &str) -> Value {
        let path = format!("/alerts/{}/{verb}", text_of(&alert["id"]));
        self.client.post(path).bearer(&self.token).expect(200).await
    }

    /// Watches all alerts of the account.
    pub async fn watch(&self) -> Dashboard {
        let opened = Dashboard::open(self.address, ALERTS_PATH, Pass::Header(&self.token), &[]).await;
        opened.unwrap_or_else(|status| panic!("the dashboard was refused: {status}"))
    }

    /// Another server of the account, and the key of its agent.
    pub async fn server(&self, name: &str, tags: &[&str]) -> (Uuid, String) {
        let server = self.post("/servers", json!({"name": name, "host": "192.0.2.10", "tags": tags})).await;
        let id = uuid_of(&server["id"]);
        let key = self.post("/api-keys", json!({"server_id": id, "name": "agent"})).await;
        (id, text_of(&key["key"]))
    }

    /// An agent whose samples the test sets.
    pub async fn probe(&self, key: &str) -> Probe {
        let agent = FakeAgent::online(self.address, key).await;
        Probe { evaluators: self.evaluators.clone(), ..Probe::new(agent) }
    }
}

/// An agent whose samples are evaluated one after the other before it continues. A service in a process of its own reads on
/// after five seconds, should its database be that slow: there the test has to wait for the effects of samples.
pub struct Probe {
    pub agent: FakeAgent,
    evaluators: Option<Alerts>,
    seq: u64,
    last: Timestamp,
}

impl Probe {
    pub fn new(agent: FakeAgent) -> Self {
        // An agent that returns continues its numbers, and its clock does the same.
        let now = Timestamp::now();
        Self { agent, evaluators: None, seq: now.as_millis().unsigned_abs(), last: now.plus_millis(-1) }
    }

    pub async fn at(site: &Site) -> Self {
        Self { evaluators: Some(site.service.state.alerts.clone()), ..Self::new(site.agent().await) }
    }

    /// Stores samples and waits until they were evaluated: the service reads no further before.
    pub async fn tell(&mut self, samples: Vec<Sample>) {
        self.store(samples).await;
        self.store(Vec::new()).await;
        let idle = self.evaluators.as_ref().zip(self.agent.server_id).and_then(|(alerts, id)| alerts.idle(id));
        if let Some(idle) = idle {
            in_time("samples are evaluated, and the results written", idle).await;
        }
    }

    /// Stores samples, whether or not they were evaluated.
    pub async fn store(&mut self, samples: Vec<Sample>) {
        self.seq += 1;
        self.last = samples.iter().map(|sample| sample.timestamp).fold(self.last, Timestamp::max);
        self.agent.store(self.seq, samples).await;
    }

    /// A moment later than that of every sample before.
    pub fn moment(&mut self) -> Timestamp {
        self.last = Timestamp::now().max(self.last.plus_millis(1));
        self.last
    }

    /// An ordinary sample of now, changed.
    pub async fn now(&mut self, change: impl FnOnce(&mut Sample)) {
        let mut sample = sample_at(self.moment());
        change(&mut sample);
        self.tell(vec![sample]).await;
    }

    /// A sample of now with that much to do.
    pub async fn cpu(&mut self, percent: f64) {
        self.now(|sample| sample.cpu_percent = percent).await;
    }

    /// Sends such samples until the newest alert of the threshold has this status: what somebody does at another instance, for example,
    /// is known here a moment later.
    pub async fn cpu_until(&mut self, percent: f64, alarms: &Alarms, threshold: Uuid, status: &str) -> Value {
        let probe = Mutex::new(self);
        eventually(&format!("an alert is {status}"), async || {
            probe.lock().await.cpu(percent).await;
            let newest = alarms.of_threshold(threshold).await.into_iter().next();
            newest.filter(|alert| alert["status"] == status)
        })
        .await
    }
}

/// An ordinary sample with that much to do.
pub fn busy(at: Timestamp, percent: f64) -> Sample {
    Sample { cpu_percent: percent, ..sample_at(at) }
}

/// Samples five seconds apart, from this many seconds before `end` up to it.
pub fn busy_for(end: Timestamp, seconds: i64, percent: f64) -> Vec<Sample> {
    let ages = (0..=seconds / 5).rev().map(|step| step * 5);
    ages.map(|age| busy(end.plus_millis(-1000 * age), percent)).collect()
}
