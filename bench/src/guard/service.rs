//! The real service on a free port of the loopback, in a thread and actix system of its own, with one account.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use actix::{Actor, Context, Handler, Recipient};
use actix_web::rt::System;
use serde_json::{Value, json};
use signalbox::config::{Config, MIN_PASSWORD_ITERATIONS};
use signalbox::metrics::recorder::{Batch, NewSample, Recorded};
use signalbox::startup::Application;
use signalbox::state::State;
use signalbox_protocol::agent::{AgentInfo, AgentMessage, Auth};
use signalbox_protocol::{Encoding, PROTOCOL_VERSION, Timestamp};
use tempfile::TempDir;
use uuid::Uuid;

use crate::client::{Http, Socket, request, says};

/// Longer than any run: periodic work does not happen.
pub const LONG: Duration = Duration::from_secs(6 * 3_600);

/// More than are handed over at a time.
const HEARD_AT_ONCE: usize = 4_096;

const PASSWORD: &str = "correct horse battery";

pub struct Service {
    pub address: SocketAddr,
    pub state: State,
    pub owner_id: Uuid,
    pub token: String,
    done: Recipient<Recorded>,
    _directory: TempDir,
}

impl Service {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let (ready, started) = sync_channel(1);
        // It ends with the process.
        thread::spawn(move || System::new().block_on(serve(config, ready)));
        let (address, state, done) = started.recv().unwrap();
        let account = json!({
            "email": "ada@example.com", "username": "ada", "full_name": "Ada",
            "password": PASSWORD, "password_confirm": PASSWORD,
        });
        let registered = post(address, "/auth/register", None, &account);
        Self {
            address,
            state,
            owner_id: text_of(&registered["user"]["id"]).parse().unwrap(),
            token: text_of(&registered["access_token"]),
            done,
            _directory: directory,
        }
    }

    /// A request on a connection of its own.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        post(self.address, path, Some(&self.token), body)
    }

    /// A new server, and the key of its agent.
    pub fn server(&self, name: &str) -> (Uuid, String) {
        let server = self.post("/servers", &json!({ "name": name, "host": "192.0.2.10", "port": 22 }));
        let key = self.post("/api-keys", &json!({ "server_id": server["id"], "name": "agent" }));
        (text_of(&server["id"]).parse().unwrap(), text_of(&key["key"]))
    }

    /// An authenticated agent.
    pub fn agent(&self, key: &str, buffer: &mut Vec<u8>) -> Socket {
        let auth = AgentMessage::Auth(Auth {
            api_key: key.to_owned(),
            protocol: PROTOCOL_VERSION,
            agent: AgentInfo {
                version: "1.2.3".to_owned(),
                hostname: "web-1.example".to_owned(),
                os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
                kernel: "6.1.0-30-amd64".to_owned(),
                arch: "x86_64".to_owned(),
                cpu_count: 4,
                boot_id: "5e0f3c7a-93a2-4d11-8f0b-0f5f5f5c6c6d".to_owned(),
                capabilities: vec!["metrics".to_owned(), "commands".to_owned()],
                ..AgentInfo::default()
            },
            sent_at: Some(Timestamp::now()),
            sample_interval_seconds: None,
            live_interval_seconds: None,
            commands: None,
        });
        let mut socket = Socket::open(self.address, "/agents/ws", None);
        socket.say(&Encoding::Json.encode(&auth).unwrap());
        socket.until(buffer, says("\"success\":true"));
        socket
    }

    /// A dashboard that watches a server, after its first messages.
    pub fn dashboard(&self, server_id: Uuid, buffer: &mut Vec<u8>) -> Socket {
        let mut socket = Socket::open(self.address, &format!("/ws/metrics/{server_id}"), Some(&self.token));
        socket.until(buffer, says("\"status\""));
        socket
    }

    /// Hands samples to the recorder, as one message.
    pub fn record(&self, samples: Vec<NewSample>) {
        let batch = Batch { seq: 1, session_id: Uuid::nil(), samples, done: self.done.clone() };
        assert!(self.state.metrics.recorder.record(batch).is_ok(), "the recorder takes nothing");
    }

    /// Returns when all samples are durable and their sessions know it. Without the latter, that work of one round would
    /// sometimes be counted with the next, and be missing from the last.
    pub async fn settle(&self) {
        self.state.metrics.recorder.flush().await.unwrap();
        self.done.send(Recorded { seq: 1, lost: None, bytes: 0 }).await.unwrap();
    }
}

async fn serve(config: Config, ready: SyncSender<(SocketAddr, State, Recipient<Recorded>)>) {
    let application = Application::build(config).await.unwrap();
    ready.send((application.address(), application.state(), Session.start().recipient())).unwrap();
    application.run_until_stopped(std::future::pending()).await.unwrap();
}

/// One worker, no periodic work, and samples that are committed when a client waits for them.
fn config(directory: &Path) -> Config {
    let mut config = Config::new(directory);
    config.listen.set_port(0);
    config.workers = Some(1);
    config.password_iterations = MIN_PASSWORD_ITERATIONS;
    config.min_free_bytes = 0;
    config.memory_budget = Some(u64::MAX);
    let timing = &mut config.timing;
    let schedule = &mut timing.archive;
    for period in [
        &mut timing.auth_deadline,
        &mut timing.ping_interval,
        &mut timing.silence_limit,
        &mut timing.server_list,
        &mut timing.offline_patience,
        &mut timing.commit_interval,
        &mut timing.disk_look,
        &mut timing.memory_look,
        &mut timing.updates.look,
        &mut schedule.every,
        &mut schedule.move_every,
        &mut schedule.compact_every,
    ] {
        *period = LONG;
    }
    config
}

/// Takes the place of the sessions whose samples are recorded.
struct Session;

impl Actor for Session {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(HEARD_AT_ONCE);
    }
}

impl Handler<Recorded> for Session {
    type Result = ();

    fn handle(&mut self, _: Recorded, _: &mut Self::Context) {}
}

fn post(address: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Value {
    let answer = Http::connect(address).ask(&request("POST", path, token, &body.to_string()));
    serde_json::from_slice(&answer.body).unwrap()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
