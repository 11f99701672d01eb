//! `WS /ws/fleet`: all servers of a user on one socket.

mod access;
mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::sample::{ContainerUsage, DiskUsage, NetworkUsage};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_aged};
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::{Account, keys_of, uuid_of};

const PATHS: [&str; 2] = ["/ws/fleet", "/api/v1/ws/fleet"];

/// A dashboard of all servers, and what it has received about each.
struct Wall {
    dashboard: Dashboard,
    servers: BTreeMap<Uuid, Value>,
    /// How many messages had servers.
    messages: usize,
}

impl Wall {
    async fn open(site: &Site, account: &Account) -> Self {
        let dashboard = Dashboard::open(site.service.address, PATHS[1], Pass::Header(&account.token), &[]).await;
        Self { dashboard: dashboard.expect("a dashboard"), servers: BTreeMap::new(), messages: 0 }
    }

    /// Opens it and waits for all servers.
    async fn of(site: &Site, account: &Account) -> Self {
        let mut wall = Self::open(site, account).await;
        let first = wall.dashboard.expect("fleet").await;
        wall.take(&first);
        wall
    }

    fn take(&mut self, data: &Value) -> Vec<Uuid> {
        assert_eq!(keys_of(data), ["servers"]);
        self.messages += 1;
        let servers = data["servers"].as_array().unwrap();
        let ids: Vec<Uuid> = servers.iter().map(|server| uuid_of(&server["server_id"])).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "told twice: {data}");
        self.servers.extend(ids.iter().copied().zip(servers.iter().cloned()));
        ids
    }

    /// The servers in the next message, which must contain some.
    async fn next(&mut self) -> Vec<Uuid> {
        let data = self.dashboard.expect("fleet").await;
        self.take(&data)
    }

    /// Reads until a server has the expected state.
    async fn until(&mut self, server_id: Uuid, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(server) = self.servers.get(&server_id).filter(|server| is_it(server)) {
                return server.clone();
            }
            let data = self.dashboard.until("fleet").await;
            self.take(&data);
        }
    }

    async fn until_status(&mut self, server_id: Uuid, status: &str) -> Value {
        self.until(server_id, |server| server["status"] == status).await
    }

    async fn until_sample(&mut self, server_id: Uuid, sample: &Sample) -> Value {
        let at = json!(sample.timestamp);
        self.until(server_id, |server| server["timestamp"] == at).await
    }
}

fn network(counters: &[(&str, u64, u64)]) -> Vec<NetworkUsage> {
    let one = |(interface, bytes_recv, bytes_sent): &(&str, u64, u64)| NetworkUsage {
        interface: (*interface).to_owned(),
        bytes_recv: *bytes_recv,
        bytes_sent: *bytes_sent,
        in_total: None,
    };
    counters.iter().map(one).collect()
}

#[actix_web::test]
async fn every_server_is_sent_at_once() {
    let site = Site::start().await;
    let (silent_id, _) = site.other_server().await;
    let mut agent = site.agent().await;
    let disk = |path: &str, percent| DiskUsage { path: path.into(), total: 10, percent, ..DiskUsage::default() };
    let sample = Sample {
        load_average: [1.5, 1.0, 0.5],
        uptime_seconds: 86_400,
        disk_usage: vec![disk("/", 40.0), disk("/srv", 80.5)],
        containers: vec![ContainerUsage::default()],
        ..sample_aged(1)
    };
    agent.store(1, vec![sample.clone()]).await;

    let mut wall = Wall::open(&site, &site.owner).await;
    let first = wall.dashboard.next().await;

    let record = site.server().await;
    let expected = json!([
        {
            "server_id": site.server_id,
            "status": "online",
            "last_seen_at": record["last_seen_at"],
            "timestamp": sample.timestamp,
            "cpu_percent": 12.5,
            "memory_percent": 50.0,
            "disk_percent": 80.5,
            "load_1": 1.5,
            "network_in": null,
            "network_out": null,
            "uptime_seconds": 86_400,
            "containers": 1,
        },
        {
            "server_id": silent_id,
            "status": "pending",
            "last_seen_at": null,
            "timestamp": null,
            "cpu_percent": null,
            "memory_percent": null,
            "disk_percent": null,
            "load_1": null,
            "network_in": null,
            "network_out": null,
            "uptime_seconds": null,
            "containers": null,
        },
    ]);
    assert_eq!(first, json!({"type": "fleet", "data": {"servers": expected}}));
}

#[actix_web::test]
async fn a_user_without_servers_gets_an_empty_list() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;

    let mut wall = Wall::open(&site, &stranger).await;

    assert_eq!(wall.dashboard.next().await, json!({"type": "fleet", "data": {"servers": []}}));
}

#[actix_web::test]
async fn connecting_and_disconnecting_agents_are_announced() {
    let site = Site::start().await;
    let mut wall = Wall::of(&site, &site.owner).await;
    assert_eq!(wall.servers[&site.server_id]["status"], "pending");

    for _ in 0..2 {
        let agent = site.agent().await;
        let online = wall.until_status(site.server_id, "online").await;
        assert_eq!(online["timestamp"], json!(null));
        agent.socket.abort();
        let offline = wall.until_status(site.server_id, "offline").await;
        assert_eq!(offline["last_seen_at"], site.server().await["last_seen_at"]);
    }
}

#[actix_web::test]
async fn only_changed_servers_are_sent_again() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let (mut agent, mut other) = (site.agent().await, FakeAgent::online(site.service.address, &other_key).await);
    let mut wall = Wall::of(&site, &site.owner).await;
    assert_eq!(wall.servers.keys().copied().collect::<Vec<_>>(), [site.server_id, other_id]);

    for seq in 1..=2 {
        for (id, agent) in [(site.server_id, &mut agent), (other_id, &mut other)] {
            let sample = sample_aged(10 - seq as i64);
            agent.store(seq, vec![sample.clone()]).await;
            // A look may find the sample before the time at which the server was seen: then there are two messages.
            let seen_at = site.read(&format!("/servers/{id}")).await["last_seen_at"].take();
            let shown = [json!(sample.timestamp), seen_at];
            while ["timestamp", "last_seen_at"].map(|field| wall.servers[&id][field].clone()) != shown {
                assert_eq!(wall.next().await, [id]);
            }
        }
    }
}

#[actix_web::test]
async fn many_samples_are_few_messages() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut wall = Wall::of(&site, &site.owner).await;
    let (samples, mut last) = (60, Sample::default());
    let start = Timestamp::now().plus_millis(-60_000);

    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    for seq in 1..=samples {
        ticks.tick().await;
        last = Sample { timestamp: start.plus_millis(50 * seq as i64), ..sample_aged(0) };
        agent.send_metrics(seq, vec![last.clone()]).await;
    }
    agent.expect_ack(samples).await;
    wall.until_sample(site.server_id, &last).await;

    assert!(wall.messages < samples as usize / 2, "{} messages for {samples} samples", wall.messages);
}

#[actix_web::test]
async fn traffic_is_that_between_the_last_two_samples() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let mut wall = Wall::of(&site, &site.owner).await;
    let start = Timestamp::now().plus_millis(-50_000);
    // The counters of each sample, and the expected message. In the third, one interface was reset.
    let steps = [
        ([("lo", 0, 0), ("eth0", 1_000, 100), ("eth1", 0, 0)], (json!(null), json!(null))),
        ([("lo", 9_999, 9_999), ("eth0", 2_000, 200), ("eth1", 500, 50)], (json!(150.0), json!(15.0))),
        ([("lo", 9_999, 9_999), ("eth0", 10, 10), ("eth1", 1_500, 60)], (json!(100.0), json!(1.0))),
        ([("lo", 9_999, 9_999), ("eth0", 5, 5), ("eth1", 3, 3)], (json!(null), json!(null))),
    ];

    for (seq, (counters, (received, sent))) in (1..).zip(steps) {
        let timestamp = start.plus_millis(10_000 * seq);
        let sample = Sample { timestamp, network: network(&counters), ..sample_aged(0) };
        agent.store(seq as u64, vec![sample.clone()]).await;

        let told = wall.until_sample(site.server_id, &sample).await;

        assert_eq!((&told["network_in"], &told["network_out"]), (&received, &sent), "sample {seq}");
    }
}

#[actix_web::test]
async fn the_last_sample_is_sent_after_a_restart() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let sample = sample_aged(2);
    agent.store(1, vec![sample.clone()]).await;
    drop(agent);
    site.until_status("offline").await;
    let site = site.restart().await;

    let mut wall = Wall::of(&site, &site.owner).await;
    let told = wall.until_sample(site.server_id, &sample).await;

    assert_eq!((&told["status"], &told["cpu_percent"]), (&json!("offline"), &json!(12.5)));
    assert_eq!(told["last_seen_at"], site.server().await["last_seen_at"]);
}

#[actix_web::test]
async fn users_receive_only_their_own() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let (their_id, their_key) = site.service.server_with_key(&stranger, "web-1").await;
    let mut own = Wall::of(&site, &site.owner).await;
    let mut theirs = Wall::of(&site, &stranger).await;

    let mut agent = site.agent().await;
    let mut their_agent = FakeAgent::online(site.service.address, &their_key).await;
    let last = sample_aged(1);
    for (seq, sample) in [(1, sample_aged(5)), (2, last.clone())] {
        agent.store(seq, vec![sample.clone()]).await;
        their_agent.store(seq, vec![sample]).await;
    }
    own.until_sample(site.server_id, &last).await;
    theirs.until_sample(their_id, &last).await;
    drop((agent, their_agent));
    own.until_status(site.server_id, "offline").await;
    theirs.until_status(their_id, "offline").await;

    assert_eq!(own.servers.keys().collect::<Vec<_>>(), [&site.server_id]);
    assert_eq!(theirs.servers.keys().collect::<Vec<_>>(), [&their_id]);
}
