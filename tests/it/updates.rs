//! Releases of the agent, rolled out to servers.

mod api;
mod outcomes;
mod real;
mod refused;
mod restart;
mod waves;

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use signalbox::config::{Config, UpdatePace};
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{
    AgentInfo, AgentMessage, Auth, FailedUpdate, Request, RequestError, ServiceMessage, UpdateOffer,
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::agent::{FakeAgent, agent_info, auth};
use crate::support::{Account, Call, Storage, TestService, eventually, text_of, uuid_of};

/// The version of the release.
pub(crate) const NEW: &str = "9.0.0";

/// The version of the agents before.
pub(crate) const OLD: &str = "1.2.3";

/// The program of the release.
pub(crate) const PROGRAM: &str = "signalbox-agent-linux-riscv64";

/// Nobody here checks it.
const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n";

/// The waves of most tests.
fn canary_first() -> Value {
    json!([{ "tags": ["canary"] }, { "tags": [] }])
}

/// A server, and the key of its agent.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub id: Uuid,
    pub key: String,
}

/// A service with a release and two servers.
struct Scene {
    service: TestService,
    owner: Account,
    programs: TempDir,
    /// Has the tag `canary`.
    canary: Machine,
    /// Has no tag.
    web: Machine,
}

/// Quick, and an agent counts as updated at once.
fn quick(config: &mut Config) {
    let look = Duration::from_millis(50);
    config.timing.updates = UpdatePace { look, settled: Duration::ZERO, ..UpdatePace::default() };
}

/// A directory with a release.
pub(crate) fn release() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join(PROGRAM), "a build").unwrap();
    write_release(&directory, NEW);
    fs::write(directory.path().join("agent-release.json.sig"), SIGNATURE).unwrap();
    directory
}

/// Writes the release with this version. Returns its text.
fn write_release(directory: &TempDir, version: &str) -> String {
    let sha256: String = Sha256::digest(b"a build").iter().map(|byte| format!("{byte:02x}")).collect();
    let text = json!({ "v": 1, "version": version, "programs": { PROGRAM: { "bytes": 7, "sha256": sha256 } } });
    let text = text.to_string();
    fs::write(directory.path().join("new"), &text).unwrap();
    fs::rename(directory.path().join("new"), directory.path().join("agent-release.json")).unwrap();
    text
}

impl Scene {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::on(Storage::fresh().await, adjust).await
    }

    async fn on(storage: Storage, adjust: impl FnOnce(&mut Config)) -> Self {
        let programs = release();
        let directory = programs.path().to_owned();
        let service = TestService::start_on(storage, |config| {
            config.install_dir = Some(directory);
            quick(config);
            adjust(config);
        });
        let service = service.await;
        let owner = service.register("owner").await;
        let mut scene = Self {
            canary: Machine { id: Uuid::nil(), key: String::new() },
            web: Machine { id: Uuid::nil(), key: String::new() },
            service,
            owner,
            programs,
        };
        scene.canary = scene.machine("canary-1", &["canary"]).await;
        scene.web = scene.machine("web-1", &[]).await;
        scene
    }

    /// The same after a restart of the service.
    async fn restart(self) -> Self {
        let directory = self.programs.path().to_owned();
        let storage = self.service.stop().await;
        let service = TestService::start_on(storage, |config| {
            config.install_dir = Some(directory);
            quick(config);
        });
        Self { service: service.await, ..self }
    }

    /// The same with `--step-up`.
    async fn restart_with_step_up(self) -> Self {
        let directory = self.programs.path().to_owned();
        let storage = self.service.stop().await;
        let service = TestService::start_on(storage, |config| {
            config.install_dir = Some(directory);
            config.step_up = Some(Duration::from_secs(300));
            quick(config);
        });
        Self { service: service.await, ..self }
    }

    /// Another server of the owner.
    async fn machine(&self, name: &str, tags: &[&str]) -> Machine {
        let (id, key) = self.service.server_with_key(&self.owner, name).await;
        self.call("PUT", format!("/servers/{id}")).json(json!({ "tags": tags })).expect(200).await;
        Machine { id, key }
    }

    /// Another server of the owner, whose agent was there and left.
    async fn machine_that_left(&self, name: &str, tags: &[&str]) -> Machine {
        let machine = self.machine(name, tags).await;
        drop(self.agent(&machine, OLD).await);
        self.until_offline(&machine).await;
        machine
    }

    /// Waits for a step of the rollout that begins now: in it this server of the present wave, which has left, gets its offer.
    async fn stepped(&self, machine: &Machine) -> FakeAgent {
        let mut agent = self.agent(machine, OLD).await;
        take(&mut agent).await;
        agent
    }

    fn call(&self, method: &str, path: impl AsRef<str>) -> Call {
        self.service.client.call(method.parse().unwrap(), path.as_ref()).bearer(&self.owner.token)
    }

    async fn read(&self, path: &str) -> Value {
        self.call("GET", path).expect(200).await
    }

    /// The agent of a server, which takes updates.
    async fn agent(&self, machine: &Machine, version: &str) -> FakeAgent {
        connect(&self.service, machine, AgentInfo { version: version.to_owned(), ..updatable() }).await
    }

    /// The agent of a server that has tried the release without success.
    async fn failed_agent(&self, machine: &Machine, reason: &str) -> FakeAgent {
        connect(&self.service, machine, failed(reason)).await
    }

    async fn roll_out(&self, body: Value) -> Value {
        self.call("POST", "/updates/rollouts").json(body).expect(201).await
    }

    /// The canary first, and all others at once when it is updated.
    async fn roll_out_without_pause(&self) -> Value {
        self.roll_out(json!({ "waves": canary_first(), "pause_minutes": 0 })).await
    }

    async fn step(&self, rollout: &Value, step: &str) -> Value {
        self.call("POST", format!("{}/{step}", path(rollout))).expect(200).await
    }

    /// The rollout, once it has this status.
    async fn until_status(&self, rollout: &Value, status: &str) -> Value {
        eventually(status, async || Some(self.read(&path(rollout)).await).filter(|now| now["status"] == status)).await
    }

    /// The server in the rollout, once it is in this state.
    async fn until_state(&self, rollout: &Value, machine: &Machine, state: &str) -> Value {
        eventually(state, async || {
            let now = self.read(&path(rollout)).await;
            member(&now, machine).filter(|member| member["state"] == state)
        })
        .await
    }

    /// The rollout, once this wave is the present one.
    async fn until_wave(&self, rollout: &Value, wave: i64) -> Value {
        eventually("the wave", async || Some(self.read(&path(rollout)).await).filter(|now| now["wave"] == wave)).await
    }

    /// Waits until the agent of a server is connected.
    async fn until_online(&self, machine: &Machine) {
        eventually("the server is online", async || {
            let server = self.read(&format!("/servers/{}", machine.id)).await;
            (server["status"] == "online").then_some(())
        })
        .await;
    }

    /// Waits until the database knows that a server is offline.
    async fn until_offline(&self, machine: &Machine) {
        eventually("the server is offline", async || {
            let found = self.service.state.store.session_rows(&[machine.id]).await.unwrap();
            found[&machine.id].session_id.is_none().then_some(())
        })
        .await;
    }

    /// As if the owner's account had been deleted, and this server had gone to another one.
    async fn give_away(&self, machine: &Machine, to: &Account) {
        let store = &self.service.state.store;
        let server = store.find_server(self.owner.id, machine.id).await.unwrap().unwrap();
        let statement = format!(
            "UPDATE servers SET owner_id = (SELECT id FROM users WHERE username = '{}') WHERE name = '{}'",
            to.username, server.record.name
        );
        self.execute(&statement).await;
    }

    /// The actions of the audit log with this beginning, oldest first, with their outcomes.
    async fn audited(&self, beginning: &str) -> Vec<(String, String)> {
        let log = self.read(&format!("/audit?limit=500&action={beginning}")).await;
        let entries = log.as_array().unwrap().iter().rev();
        entries.map(|entry| (text_of(&entry["action"]), text_of(&entry["outcome"]))).collect()
    }

    /// Changes the database.
    async fn execute(&self, statement: &str) {
        self.service.storage().execute(&[statement]).await;
    }
}

pub(crate) fn path(rollout: &Value) -> String {
    format!("/updates/rollouts/{}", text_of(&rollout["id"]))
}

/// A server in a rollout, if it is part of it.
fn member(rollout: &Value, machine: &Machine) -> Option<Value> {
    let members = rollout["servers"].as_array().unwrap();
    members.iter().find(|member| uuid_of(&member["server_id"]) == machine.id).cloned()
}

/// An agent that takes updates.
pub(crate) fn updatable() -> AgentInfo {
    let capabilities = ["metrics", "updates"].map(str::to_owned).to_vec();
    AgentInfo { version: OLD.to_owned(), capabilities, ..agent_info() }
}

/// The same after it has tried the release without success.
pub(crate) fn failed(reason: &str) -> AgentInfo {
    let failed = FailedUpdate { version: NEW.to_owned(), reason: reason.to_owned() };
    AgentInfo { failed_update: Some(Box::new(failed)), ..updatable() }
}

async fn connect(service: &TestService, machine: &Machine, about: AgentInfo) -> FakeAgent {
    let agent = connect_at(service.address, &machine.key, about).await;
    eventually("the server is online", async || {
        let found = service.state.store.session_rows(&[machine.id]).await.unwrap();
        found[&machine.id].session_id.is_some().then_some(())
    })
    .await;
    agent
}

/// An agent that describes itself so.
pub(crate) async fn connect_at(address: std::net::SocketAddr, key: &str, about: AgentInfo) -> FakeAgent {
    eventually("the agent is let in", async || {
        let mut agent = FakeAgent::connect(address, Encoding::Json).await;
        let AgentMessage::Auth(first) = auth(key) else { unreachable!() };
        agent.send(&AgentMessage::Auth(Auth { agent: about.clone(), ..first })).await;
        let ServiceMessage::AuthResponse(answer) = agent.next().await else { panic!("expected an auth_response") };
        FakeAgent::is_let_in(&answer).then_some(agent)
    })
    .await
}

/// The next message, which must be an offer of the release.
pub(crate) async fn expect_offer(agent: &mut FakeAgent) -> Request {
    let request = agent.expect_request().await;
    assert_eq!(request.method, "agent.update");
    let offer: UpdateOffer = serde_json::from_value(request.params.clone()).unwrap();
    assert_eq!(offer.signature, SIGNATURE);
    request
}

/// Takes an offer.
pub(crate) async fn take(agent: &mut FakeAgent) -> Request {
    let request = expect_offer(agent).await;
    agent.answer(&request, Ok(json!({ "version": NEW }))).await;
    request
}

/// Refuses an offer.
pub(crate) async fn refuse(agent: &mut FakeAgent, reason: &str) {
    let request = expect_offer(agent).await;
    let error = RequestError::new("agent_refused", "the agent does not take it");
    agent.answer(&request, Err(RequestError { reason: Some(reason.to_owned()), ..error })).await;
}
