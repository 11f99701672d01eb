//! A service, agents and the program itself, each a process of its own.

use std::fmt::Display;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far longer than anything takes here, so that only a hang reaches it, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The least that a debug build of the service accepts.
const ITERATIONS: &str = "1000";
pub const PASSWORD: &str = "correct horse battery";

/// Where the other programs are: beside this one, or where the variable says.
fn program(name: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_signalboxctl")).parent().unwrap().to_owned();
    let path = std::env::var_os("SIGNALBOX_PROGRAMS").map_or_else(beside, PathBuf::from).join(name);
    assert!(path.exists(), "{} is missing: build with `cargo build --workspace` first", path.display());
    path
}

/// Runs a program without rights, as agents run: as the test's user, or as nobody when that is root.
fn unprivileged(program: &Path) -> Command {
    by_user(65_534, program)
}

/// Runs a program as this user, which only root can do; otherwise as the test's.
fn by_user(id: u32, program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/setpriv");
    command.arg(format!("--reuid={id}")).arg(format!("--regid={id}")).arg("--clear-groups").arg(program);
    command
}

/// The agent's user is another one than the test's.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Asks again until there is an answer. `what` is written when there is none in time.
pub async fn eventually<T>(what: impl Display, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = attempt().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A process that ends with the test.
pub struct Running {
    pub child: Child,
    room: TempDir,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        let room = TempDir::new().unwrap();
        let file = |name: &str| File::create(room.path().join(name)).unwrap();
        command.stdout(file("stdout")).stderr(file("stderr"));
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, room }
    }

    pub fn stdout(&self) -> String {
        fs::read_to_string(self.room.path().join("stdout")).unwrap()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.room.path().join("stderr")).unwrap()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "no signal sent");
    }

    /// Waits until its output has this.
    pub async fn until(&self, text: &str) {
        let found =
            eventually(text, async || (self.stdout().contains(text) || self.stderr().contains(text)).then_some(()));
        found.await;
    }

    /// Waits until it ends.
    pub async fn outcome(mut self) -> Outcome {
        let child = &mut self.child;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        Outcome { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    #[track_caller]
    pub fn done(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        &self.stdout
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.done()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that it ended with this code and said this on standard error.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.contains(words), "{self:?} does not say {words:?}");
    }
}

/// A service on a free port of the loopback, with an account, and a user who signed in there.
pub struct Site {
    service: Running,
    pub url: String,
    /// The access token of the account, for what the program does not do.
    pub token: String,
    client: Client,
    /// The user's home.
    pub home: TempDir,
    data: TempDir,
}

impl Site {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With more flags of the service.
    pub async fn start_with(flags: &[&str]) -> Self {
        let data = TempDir::new().unwrap();
        let (service, url) = serve("127.0.0.1:0", data.path(), flags).await;
        let client = signalboxctl::api::http::client(&url.parse().unwrap(), None).unwrap();
        let account = json!({"email": "ada@example.com", "username": "ada", "password": PASSWORD,
            "password_confirm": PASSWORD, "full_name": "Ada", "setup_code": setup_code(&service.stderr())});
        let answer = client.post(format!("{url}/api/v1/auth/register")).json(&account).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        let token = answer["access_token"].as_str().unwrap().to_owned();
        Self { service, url, token, client, home: TempDir::new().unwrap(), data }
    }

    /// The program in this user's home, by the token in the environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.plain_command(arguments);
        command.env("SIGNALBOX_URL", &self.url).env("SIGNALBOX_TOKEN", &self.token);
        command
    }

    /// The same, by the contexts.
    pub fn plain_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_signalboxctl"));
        command.env_clear().env("HOME", self.home.path()).env("TZ", "UTC").args(arguments).stdin(Stdio::null());
        command.env("XDG_CONFIG_HOME", self.home.path());
        command
    }

    /// The same as [`Site::command`], by a user without a home directory that the system knows.
    pub fn homeless_command(&self, arguments: &[&str]) -> Command {
        let mut command = by_user(54_321, Path::new(env!("CARGO_BIN_EXE_signalboxctl")));
        command.env_clear().env("SIGNALBOX_URL", &self.url).env("SIGNALBOX_TOKEN", &self.token);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Outcome {
        Running::start(self.command(arguments)).outcome().await
    }

    pub async fn run_plain(&self, arguments: &[&str]) -> Outcome {
        Running::start(self.plain_command(arguments)).outcome().await
    }

    /// A call of the API. Asserts that it succeeds.
    pub async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token).json(body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let answer: Value = response.json().await.unwrap();
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    /// A call that may fail.
    pub async fn try_post(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    pub async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}/api/v1{path}", self.url)).bearer_auth(&self.token);
        request.send().await.unwrap().json().await.unwrap()
    }

    /// A file that only this user can read.
    pub fn secret_file(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A server without an agent.
    pub async fn add_server(&self, name: &str, tags: &[&str]) -> String {
        let body = json!({"name": name, "host": "192.0.2.10", "tags": tags});
        self.post("/servers", &body).await["id"].as_str().unwrap().to_owned()
    }

    /// A server with the real agent, connected.
    pub async fn agent(&self, name: &str, tags: &[&str], flags: &[&str]) -> Agent {
        let server_id = self.add_server(name, tags).await;
        let key = self.post("/api-keys", &json!({"server_id": server_id, "name": name})).await;
        // In memory: on a disk under load a call may take the agent as long as on one that hangs.
        let state = TempDir::new_in("/dev/shm").unwrap();
        open_to_all(state.path());
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let key = key["key"].as_str().unwrap().to_owned();
        let agent = Agent { server_id, key, flags, state, running: Mutex::new(None) };
        agent.begin(self);
        agent.until(self, "online").await;
        agent
    }

    /// Ends the service and its connections as a crash does.
    pub fn crash(&mut self) {
        let _ = self.service.child.kill();
        let _ = self.service.child.wait();
    }

    /// Starts it again at the same address, after [`Site::crash`].
    pub async fn begin_again(&mut self) {
        let (service, _) = serve(self.url.trim_start_matches("http://"), self.data.path(), &[]).await;
        self.service = service;
    }

    /// The same access token, but one that expires then.
    pub fn expiring(&self, token: &str, in_seconds: i64) -> String {
        let part = |index: usize| token.split('.').nth(index).unwrap();
        let mut claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part(1)).unwrap()).unwrap();
        claims["exp"] = json!(signalbox_protocol::Timestamp::now().as_seconds() + in_seconds);
        let signed = format!("{}.{}", part(0), BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
        let secret = fs::read_to_string(self.data.path().join("jwt-secret")).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.trim().as_bytes());
        let signature = hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }
}

async fn serve(listen: &str, data: &Path, flags: &[&str]) -> (Running, String) {
    let mut command = Command::new(program("signalbox"));
    command.env_clear().env("SIGNALBOX_PASSWORD_ITERATIONS", ITERATIONS);
    command.args(["serve", "--listen", listen, "--data-dir"]).arg(data).args(flags).stdin(Stdio::null());
    let service = Running::start(command);
    let url = eventually("the service listens", async || {
        let text = service.stdout();
        Some(text.split_once('\n')?.0.strip_prefix("listening on ")?.to_owned())
    });
    let url = url.await;
    (service, url)
}

/// What a service that others can reach asks of the first account.
fn setup_code(log: &str) -> Option<&str> {
    log.split_once("the setup code ")?.1.split_whitespace().next()
}

/// A server with an agent on this machine.
pub struct Agent {
    pub server_id: String,
    key: String,
    flags: Vec<String>,
    /// Its working directory.
    pub state: TempDir,
    running: Mutex<Option<Running>>,
}

impl Agent {
    fn begin(&self, site: &Site) {
        let mut command = unprivileged(&program("signalbox-agent"));
        command.env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).current_dir(&self.state);
        command.args(["--url", &site.url, "--key", &self.key, "--interval", "0.5"]);
        command.arg("--state-dir").arg(self.state.path().join("state")).args(&self.flags);
        *self.running.lock() = Some(Running::start(command));
    }

    async fn until(&self, site: &Site, status: &str) {
        let path = format!("/servers/{}", self.server_id);
        let what = format!("the agent is {status}");
        eventually(&what, async || (site.get(&path).await["status"] == status).then_some(())).await;
    }

    /// Ends it, waits until the service has noticed, and starts it again.
    pub async fn restart(&self, site: &Site) {
        let before = self.running.lock().take();
        drop(before);
        self.until(site, "offline").await;
        self.begin(site);
        self.until(site, "online").await;
    }
}
