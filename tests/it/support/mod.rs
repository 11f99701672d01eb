//! What the tests share: a running service, accounts on it, and clients that state what they expect.

pub mod agent;
pub mod alerts;
pub mod attacks;
pub mod authenticator;
pub mod authority;
pub mod balancer;
pub mod clock;
pub mod cluster;
pub mod command_line;
pub mod commands;
pub mod dashboard;
pub mod engine;
pub mod exposition;
pub mod fixtures;
pub mod hostile;
#[path = "../../../signing/tests/support/mod.rs"]
pub mod keygen;
pub mod machine;
pub mod mail;
pub mod mount;
pub mod nats;
#[path = "../../../signing/tests/support/passkey.rs"]
pub mod passkey;
pub mod port;
pub mod process;
pub mod proxy;
pub mod push;
pub mod raw;
pub mod receiver;
pub mod rest;
pub mod rows;
pub mod signers;
pub mod site;
pub mod socket;
pub mod storage;
pub mod template;
pub mod terminal;
pub mod tokens;
pub mod version_1;
pub mod wire;

use std::fs;
use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use signalbox::config::Config;
use signalbox::startup::{self, Application};
use signalbox::state::State;
use tokio::sync::oneshot;
use uuid::Uuid;

pub use rest::{Answer, Call, Client};
pub use storage::Storage;

/// The password of every account that [`TestService::register`] creates.
pub const PASSWORD: &str = "correct horse battery";

/// Far longer than anything takes here, so that only a hang reaches it, even on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The real service on a free port of the loopback, in a thread and actix system of its own.
///
/// Dropping it stops it, even in a test that panics.
pub struct TestService {
    pub address: SocketAddr,
    pub state: State,
    /// Calls relative to `/api/v1`.
    pub client: Client,
    /// Calls relative to `/`.
    pub root: Client,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    stopped: mpsc::Receiver<Result<(), String>>,
    thread: JoinHandle<()>,
    storage: Storage,
}

impl TestService {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// On a fresh database, after `adjust` has changed the settings.
    pub async fn start_with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::start_on(Storage::fresh().await, adjust).await
    }

    /// With the data of an earlier service.
    pub async fn start_on(storage: Storage, adjust: impl FnOnce(&mut Config)) -> Self {
        let mut config = storage.config();
        // The tests' agents and dashboards answer pings only while somebody waits for their messages.
        config.timing.silence_limit = Duration::from_secs(600);
        // A test that repeats a refresh may pause before it.
        config.timing.refresh_grace = Duration::from_secs(600);
        adjust(&mut config);
        let (stop, until_stop) = oneshot::channel();
        let (ready, until_ready) = oneshot::channel();
        let (ended, stopped) = mpsc::channel();

        let thread = std::thread::spawn(move || {
            let outcome = startup::in_system(serve(config, ready, until_stop)).unwrap();
            // Nobody receives it when the test gave up waiting.
            let _ = ended.send(outcome);
        });
        let started = tokio::time::timeout(PATIENCE, until_ready).await.expect("the service did not start in time");
        let (address, state) = match started {
            Ok(started) => started,
            Err(_) => panic!("the service did not start: {:?}", stopped.recv()),
        };

        Self {
            address,
            state,
            client: Client::new(format!("http://{address}/api/v1")),
            root: Client::new(format!("http://{address}")),
            running: Some(Running { stop, stopped, thread, storage }),
        }
    }

    /// Its data, while it runs.
    pub fn storage(&self) -> &Storage {
        &self.running.as_ref().expect("the service runs").storage
    }

    /// Stops it gracefully. Returns its stored data.
    pub async fn stop(mut self) -> Storage {
        let running = self.running.take().expect("a service is stopped once");
        tokio::task::spawn_blocking(move || running.stop()).await.unwrap().expect("the service failed while it ran")
    }

    /// A new account; its e-mail is `{username}@example.com` and its password [`PASSWORD`].
    pub async fn register(&self, username: &str) -> Account {
        let answer = self.client.post("/auth/register").json(self.registration(username)).expect(201).await;

        Account {
            id: uuid_of(&answer["user"]["id"]),
            username: username.to_owned(),
            email: format!("{username}@example.com"),
            token: text_of(&answer["access_token"]),
            refresh_token: text_of(&answer["refresh_token"]),
        }
    }

    /// A body that registers `username`, with the code that the first account may need.
    pub fn registration(&self, username: &str) -> Value {
        let mut body = registration(username);
        body["setup_code"] = self.state.accounts.setup.code().expose_secret().into();
        body
    }

    /// The same account in another session of its own.
    pub async fn sign_in(&self, account: &Account) -> Account {
        let form = [("username", account.username.as_str()), ("password", PASSWORD)];
        let tokens = self.client.post("/auth/login").form(&form).expect(200).await;

        Account {
            token: text_of(&tokens["access_token"]),
            refresh_token: text_of(&tokens["refresh_token"]),
            ..account.clone()
        }
    }

    /// A new server of the account; its host is `192.0.2.10`.
    pub async fn server(&self, account: &Account, name: &str) -> Uuid {
        let body = json!({"name": name, "host": "192.0.2.10", "port": 22});
        let server = self.client.post("/servers").bearer(&account.token).json(body).expect(201).await;
        uuid_of(&server["id"])
    }

    /// A new server of the account, and a key for its agent.
    pub async fn server_with_key(&self, account: &Account, name: &str) -> (Uuid, String) {
        let server_id = self.server(account, name).await;
        let body = json!({"server_id": server_id, "name": "agent"});
        let key = self.client.post("/api-keys").bearer(&account.token).json(body).expect(201).await;
        (server_id, text_of(&key["key"]))
    }
}

impl Drop for TestService {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else { return };
        let outcome = running.stop();
        if !std::thread::panicking() {
            outcome.expect("the service failed while it ran");
        }
    }
}

impl Running {
    fn stop(self) -> Result<Storage, String> {
        // The receiver is gone when the service failed on its own; its outcome says why.
        let _ = self.stop.send(());
        let outcome = self.stopped.recv_timeout(PATIENCE).map_err(|error| format!("it did not stop: {error}"))?;
        self.thread.join().map_err(|_| "its thread panicked".to_owned())?;
        outcome.map(|()| self.storage)
    }
}

async fn serve(
    config: Config,
    ready: oneshot::Sender<(SocketAddr, State)>,
    until_stop: oneshot::Receiver<()>,
) -> Result<(), String> {
    let application = Application::build(config).await.map_err(|error| error.to_string())?;
    let _ = ready.send((application.address(), application.state()));
    let stop = async {
        let _ = until_stop.await;
    };
    application.run_until_stopped(stop).await.map_err(|error| error.to_string())
}

/// Settings of a service whose proxy on this machine passes any requested host on.
pub fn behind_a_proxy(config: &mut Config) {
    config.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
}

/// Writes a file that no other user can read, as secrets must be.
pub fn write_private(path: &Path, text: &str) {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// One signed-in session of a user.
#[derive(Debug, Clone)]
pub struct Account {
    pub id: Uuid,
    pub username: String,
    pub email: String,
    pub token: String,
    pub refresh_token: String,
}

/// A body that registers `username`.
pub fn registration(username: &str) -> Value {
    json!({
        "email": format!("{username}@example.com"),
        "username": username,
        "password": PASSWORD,
        "password_confirm": PASSWORD,
        "full_name": "Test Person",
    })
}

#[track_caller]
pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

#[track_caller]
pub fn uuid_of(value: &Value) -> Uuid {
    text_of(value).parse().unwrap_or_else(|_| panic!("not a UUID: {value}"))
}

/// Whether `value` is a timestamp as the service writes it: `2026-11-20T09:30:00.123Z`.
#[track_caller]
pub fn assert_timestamp(value: &Value) {
    let text = text_of(value);
    let parsed = signalbox_protocol::Timestamp::parse(&text);
    assert_eq!(parsed.map(|time| time.to_string()), Some(text), "not a timestamp of the service: {value}");
}

/// The fields of an object, sorted.
#[track_caller]
pub fn keys_of(value: &Value) -> Vec<&str> {
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// The result of `attempt` as soon as there is one, for states that no event announces.
pub async fn eventually<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(Instant::now() < deadline, "this never came true: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// `future`'s output, or a panic that names `what` when it hangs.
pub async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("this took too long: {what}"))
}
