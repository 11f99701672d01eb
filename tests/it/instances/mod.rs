//! Three instances of the service on one PostgreSQL and one NATS: together they do everything that a single one can, and a
//! failure between them breaks no promise. `scripts/with-postgres` provides the database.

mod accounts;
mod alerts;
mod approvals;
mod batches;
mod bus_away;
mod calls;
mod clocks;
mod commands;
mod conflict;
mod crash;
mod database_away;
mod enrolments;
mod factors;
mod feeds;
mod import;
mod load;
mod lone;
mod open_series;
mod program_tokens;
mod real;
mod rolling;
mod schedules;
mod secured;
mod seized_bus;
mod servers;
mod sessions;
mod sharing;
mod single_sign_on;
mod streams;
mod updates;
mod versions;

use std::time::Duration;

use actix_web::rt::{self, task::JoinHandle};
use serde_json::{Value, json};
use signalbox_protocol::agent::RequestError;
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::alerts::{Alarms, Probe};
use crate::support::cluster::Cluster;
use crate::support::dashboard::{Dashboard, Pass, metrics_path};
use crate::support::process::Prepared;
use crate::support::{Answer, Call, Client, eventually, in_time, text_of, uuid_of};

/// The instance that users talk to, in most tests.
const A: usize = 0;
/// Where the agent is.
const B: usize = 1;
/// Where people watch.
const C: usize = 2;

/// What a machine under load may take on top of what is promised, at most.
const UNDER_LOAD: Duration = Duration::from_secs(20);

/// What may be added to a promise on a machine that took so long for something comparable.
fn slowness(usual: Duration) -> Duration {
    (usual * 3).min(UNDER_LOAD)
}

/// Three instances, and an account with one server.
struct Scene {
    cluster: Cluster,
    prepared: Prepared,
}

impl Scene {
    async fn start() -> Self {
        Self::on(Cluster::start(3).await).await
    }

    /// With lines that can be cut.
    async fn with_lines() -> Self {
        Self::on(Cluster::with_lines(3).await).await
    }

    async fn on(cluster: Cluster) -> Self {
        let prepared = cluster.at(A).prepare().await;
        Self { cluster, prepared }
    }

    fn server_id(&self) -> Uuid {
        self.prepared.server_id
    }

    fn client(&self, instance: usize) -> &Client {
        &self.cluster.at(instance).client
    }

    fn get(&self, instance: usize, path: impl AsRef<str>) -> Call {
        self.client(instance).get(path).bearer(&self.prepared.token)
    }

    fn post(&self, instance: usize, path: impl AsRef<str>) -> Call {
        self.client(instance).post(path).bearer(&self.prepared.token)
    }

    async fn read(&self, instance: usize, path: &str) -> Value {
        self.get(instance, path).expect(200).await
    }

    /// The server's agent, at an instance.
    async fn agent(&self, instance: usize) -> FakeAgent {
        FakeAgent::online(self.cluster.address(instance), &self.prepared.key).await
    }

    async fn probe(&self, instance: usize) -> Probe {
        Probe::new(self.agent(instance).await)
    }

    fn alarms(&self, instance: usize) -> Alarms {
        Alarms::in_process(self.cluster.at(instance), &self.prepared)
    }

    async fn open(&self, instance: usize, path: &str) -> Dashboard {
        let opened =
            Dashboard::open(self.cluster.address(instance), path, Pass::Header(&self.prepared.token), &[]).await;
        opened.unwrap_or_else(|status| panic!("the dashboard was refused: {status}"))
    }

    /// Watches the server's metrics at an instance.
    async fn watch(&self, instance: usize) -> Dashboard {
        self.open(instance, &metrics_path(self.server_id())).await
    }

    /// Waits until an instance knows that this many topics are watched at others: from then on it publishes their events.
    async fn until_heard_elsewhere(&self, instance: usize, topics: usize) {
        eventually(&format!("{instance} knows of {topics} topics"), async || {
            let known = clocks::counted(self.cluster.at(instance), "signalbox_topics_watched_elsewhere").await;
            (known >= topics as f64).then_some(())
        })
        .await;
    }

    /// Another server of the account, and the key of its agent.
    async fn another(&self, name: &str) -> (Uuid, String) {
        let server = self.post(A, "/servers").json(json!({"name": name, "host": "192.0.2.10"})).expect(201).await;
        let id = uuid_of(&server["id"]);
        let key = self.post(A, "/api-keys").json(json!({"server_id": id, "name": "agent"})).expect(201).await;
        (id, text_of(&key["key"]))
    }

    async fn until_status(&self, instance: usize, status: &str) -> Value {
        let path = format!("/servers/{}", self.server_id());
        eventually(status, async || Some(self.read(instance, &path).await).filter(|server| server["status"] == status))
            .await
    }

    /// Waits until a request at an instance reaches the agent. The database knows of its session a moment before the bus does.
    async fn until_reached(&self, instance: usize) {
        self.until_status(instance, "online").await;
        let path = format!("/docker/{}/containers", self.server_id());
        eventually("a request reaches the agent", async || {
            (self.get(instance, &path).send().await.json()["code"] != "agent_offline").then_some(())
        })
        .await;
    }

    /// The times of the last hour's samples, as an instance returns them.
    async fn moments(&self, instance: usize, server_id: Uuid) -> Vec<String> {
        let path = format!("/metrics/{server_id}/history?resolution=raw&max_points=20000");
        let history = self.read(instance, &path).await;
        history.as_array().unwrap().iter().map(|sample| text_of(&sample["timestamp"])).collect()
    }
}

/// The next alert with this status that a dashboard receives. One that is raised while the dashboard begins to watch is sent
/// twice.
async fn told_of(dashboard: &mut Dashboard, status: &str) -> Value {
    loop {
        let alert = dashboard.until("alert").await;
        if alert["status"] == status {
            return alert;
        }
    }
}

/// The agent's request that a call causes, and the result of its answer.
async fn exchange(agent: &mut FakeAgent, call: Call, outcome: Result<Value, RequestError>) -> (Value, Answer) {
    let waiting: JoinHandle<Answer> = rt::spawn(call.send());
    let request = agent.expect_request().await;
    agent.answer(&request, outcome).await;
    let answer = in_time("the answer", waiting).await.unwrap();
    (json!({"method": request.method, "params": request.params}), answer)
}
