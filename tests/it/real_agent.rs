//! The real agent against the real service, both as programs of their own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use crate::support::command_line::Launched;
use crate::support::dashboard::Dashboard;
use crate::support::port::Port;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::{eventually, text_of};

/// The user and group without any files, `nobody` on every Linux.
const NOBODY: &str = "65534";

/// How often the agent takes a sample.
const INTERVAL: Duration = Duration::from_secs(1);

/// The exit code of an agent when the service says that its key is wrong or revoked.
const KEY_REFUSED: i32 = 3;

/// A service, a server on it, and the directory for its agent's undelivered samples.
struct Host {
    service: ServiceProcess,
    prepared: Prepared,
    port: Port,
    data_dir: TempDir,
    state_dir: TempDir,
}

impl Host {
    async fn start() -> Self {
        // The agent's is in memory: on a disk under load a call may take it as long as on one that hangs.
        let (data_dir, state_dir) = (TempDir::new().unwrap(), TempDir::new_in("/dev/shm").unwrap());
        // The agent's user is another one than the test's.
        fs::set_permissions(&state_dir, fs::Permissions::from_mode(0o777)).unwrap();
        let port = Port::reserve();
        let service = ServiceProcess::start_at(data_dir.path(), &port.address.to_string()).await;
        let prepared = service.prepare().await;
        Self { service, prepared, port, data_dir, state_dir }
    }

    /// The real agent, as an unprivileged user.
    fn agent(&self) -> Launched {
        self.agent_sampling_every(INTERVAL)
    }

    fn agent_sampling_every(&self, interval: Duration) -> Launched {
        let mut command = unprivileged(&agent_program());
        command.env_clear().args(["--url", &format!("http://{}", self.service.address), "--key", &self.prepared.key]);
        command
            .arg("--state-dir")
            .arg(self.state_dir.path().join("state"))
            .args(["--interval", &interval.as_secs().to_string()]);
        Launched::start(command)
    }

    async fn server(&self) -> Value {
        self.service.read(&self.prepared, &format!("/servers/{}", self.prepared.server_id)).await
    }

    async fn until_status(&self, status: &str) -> Value {
        eventually(status, async || Some(self.server().await).filter(|server| server["status"] == status)).await
    }

    async fn latest(&self) -> Option<Value> {
        let path = format!("/metrics/{}", self.prepared.server_id);
        let answer = self.service.client.get(path).bearer(&self.prepared.token).send().await;
        (answer.status == 200).then(|| answer.json())
    }

    /// The moments of all samples, oldest first.
    async fn sample_times(&self) -> Vec<Timestamp> {
        let path = format!("/metrics/{}/history?resolution=raw", self.prepared.server_id);
        let history = self.service.read(&self.prepared, &path).await;
        let time_of = |sample: &Value| Timestamp::parse(&text_of(&sample["timestamp"])).unwrap();
        history.as_array().unwrap().iter().map(time_of).collect()
    }

    async fn until_samples(&self, count: usize) {
        eventually("samples arrive", async || (self.sample_times().await.len() >= count).then_some(())).await;
    }

    /// Stops the service for twenty samples' time, and starts it again on the same port.
    async fn interrupt(self) -> Self {
        let outcome = self.service.terminate().await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        // Time has to pass for the agent to take samples that it cannot deliver.
        tokio::time::sleep(INTERVAL * 20).await;
        let service = ServiceProcess::start_at(self.data_dir.path(), &self.port.address.to_string()).await;
        Self { service, ..self }
    }

    async fn revoke_key(&self) {
        let path = format!("/api-keys/{}", self.prepared.key_id);
        self.service.client.delete(path).bearer(&self.prepared.token).expect(200).await;
    }
}

/// The agent's program, which a workspace build puts beside the service's.
pub fn agent_program() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_signalbox")).with_file_name("signalbox-agent");
    assert!(path.exists(), "{} is missing: build with `cargo build --workspace` first", path.display());
    path
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a program without rights: as the test's user, or as nobody when that is root.
pub fn unprivileged(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]).arg(program);
    command
}

#[actix_web::test]
async fn its_log_names_server_and_session_plainly() {
    let host = Host::start().await;

    let agent = host.agent();
    let line = eventually("the line of the connection", async || {
        agent.stderr().lines().find(|line| line.contains("connected to ")).map(str::to_owned)
    })
    .await;

    assert!(line.contains(&format!("server.id={} session.id=", host.prepared.server_id)), "{line}");
    assert!(!line.contains("Some("), "{line}");
}

#[actix_web::test]
async fn while_somebody_watches_it_sends_more_samples_and_keeps_those_of_its_interval() {
    let host = Host::start().await;
    let _agent = host.agent_sampling_every(Duration::from_secs(3600));
    let (address, prepared) = (host.service.address, &host.prepared);
    let mut dashboard = Dashboard::watch(address, prepared.server_id, &prepared.token).await;

    let mut shown = Vec::new();
    for _ in 0..4 {
        shown.push(dashboard.until("metrics").await);
    }

    let times: Vec<String> = shown.iter().map(|sample| text_of(&sample["timestamp"])).collect();
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    assert!(shown.iter().all(|sample| sample["disk_usage"] == shown[0]["disk_usage"]), "{shown:?}");
    assert!(shown.iter().all(|sample| sample["memory_percent"].as_f64().unwrap() > 0.0), "{shown:?}");
    // Live samples pass the one that is stored, which waits for its commit.
    host.until_samples(1).await;
    assert_eq!(host.sample_times().await.len(), 1);
}

#[actix_web::test]
async fn it_shows_this_machine() {
    let host = Host::start().await;

    let _agent = host.agent();
    // A reading that took a second, on a machine under load, is omitted from a sample.
    let is_whole = |latest: &Value| {
        ["disk_usage", "network", "cpu_per_core"].iter().all(|list| !latest[list].as_array().unwrap().is_empty())
    };
    let latest = eventually("a whole sample", async || host.latest().await.filter(is_whole)).await;
    let server = host.server().await;

    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(server["status"], "online");
    assert_eq!(server["agent"]["hostname"], hostname.trim());
    assert_eq!(server["agent"]["kernel"], kernel.trim());
    assert_eq!(server["agent"]["arch"], std::env::consts::ARCH);
    assert!(server["agent"]["capabilities"].as_array().unwrap().contains(&json!("metrics")), "{server}");
    let total = latest["memory_total"].as_u64().unwrap();
    assert!(total > 0 && total <= machine_memory(), "{total} of {}", machine_memory());
    if !has_memory_limit() {
        assert_eq!(total, machine_memory());
    }
    let age = Timestamp::now().millis_since(Timestamp::parse(&text_of(&latest["timestamp"])).unwrap());
    assert!((0..60_000).contains(&age), "{age} ms old");
}

/// The machine's memory, in bytes.
fn machine_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Whether a control group (of either version) gives this process less than the machine has.
fn has_memory_limit() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
    let limits = groups.lines().flat_map(|line| {
        let path = line.splitn(3, ':').nth(2).unwrap_or("/").to_owned();
        let files = ["/sys/fs/cgroup/memory{}/memory.limit_in_bytes", "/sys/fs/cgroup{}/memory.max"];
        files.map(|file| file.replace("{}", path.trim_end_matches('/')))
    });
    let in_root = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"].map(str::to_owned);
    let numbers = limits.chain(in_root).filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    numbers.min().is_some_and(|limit| limit < machine_memory())
}

#[actix_web::test]
async fn it_runs_as_an_unprivileged_user() {
    let host = Host::start().await;

    let agent = host.agent();
    host.until_samples(1).await;

    let status = fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    assert!(users.split_whitespace().all(|user| user != "0"), "{users}");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    assert_eq!(capabilities.trim(), "0000000000000000");
}

#[actix_web::test]
async fn after_an_outage_of_the_service_no_sample_is_missing() {
    let host = Host::start().await;
    let _agent = host.agent();
    host.until_samples(2).await;

    let gone = Timestamp::now();
    let host = host.interrupt().await;
    let back = Timestamp::now();
    eventually("a sample from after the outage", async || {
        host.sample_times().await.last().is_some_and(|last| *last > back).then_some(())
    })
    .await;

    let times = host.sample_times().await;
    let gaps = times.windows(2).map(|pair| pair[1].millis_since(pair[0]));
    let longest = gaps.max().unwrap();
    // A machine under load may keep the agent from some samples.
    assert!(longest <= back.millis_since(gone) / 2, "a gap of {longest} ms in {times:?}");
    host.until_status("online").await;
}

#[actix_web::test]
async fn after_its_own_restart_it_continues() {
    let host = Host::start().await;
    let agent = host.agent();
    host.until_samples(2).await;
    agent.signal("KILL");
    agent.outcome().await;
    host.until_status("offline").await;
    let before = host.sample_times().await.len();

    let _agent = host.agent();

    host.until_status("online").await;
    host.until_samples(before + 2).await;
}

#[actix_web::test]
async fn it_ends_when_its_key_is_revoked() {
    let host = Host::start().await;
    let agent = host.agent();
    host.until_samples(1).await;

    host.revoke_key().await;

    let outcome = agent.outcome().await;
    assert_eq!(outcome.code, Some(KEY_REFUSED), "{outcome:?}");
    assert!(!outcome.stderr.contains(&host.prepared.key), "the key is in its log");
}

#[actix_web::test]
async fn it_ends_when_its_key_is_wrong() {
    let mut host = Host::start().await;
    host.prepared.key = format!("{}x", &host.prepared.key[..host.prepared.key.len() - 1]);

    let outcome = host.agent().outcome().await;

    assert_eq!(outcome.code, Some(KEY_REFUSED), "{outcome:?}");
}

#[actix_web::test]
async fn it_ends_well_on_sigterm() {
    let host = Host::start().await;
    let agent = host.agent();
    host.until_samples(1).await;
    let began = Instant::now();

    agent.signal("TERM");
    let outcome = agent.outcome().await;

    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(50), "it took {:?}", began.elapsed());
    host.until_status("offline").await;
}

#[actix_web::test]
async fn its_open_series_are_listed_and_no_sample_of_an_outage_lacks_them() {
    let host = Host::start().await;
    let agent = host.agent();
    host.until_samples(2).await;

    let host = host.interrupt().await;
    host.until_samples(6).await;

    let server = &host.prepared.server_id;
    let path = format!("/metrics/{server}/names?q=cpu_mode");
    // The help texts are written independently of the samples.
    let listed = eventually("they are listed and explained", async || {
        let names = host.service.read(&host.prepared, &path).await;
        let listed = names["names"].as_array().unwrap().clone();
        let is_explained = |one: &Value| one["help"].as_str().is_some_and(|help| help.ends_with('.'));
        (listed.len() >= 7 && listed.iter().all(is_explained)).then_some(listed)
    })
    .await;
    assert_eq!(listed.len(), 7, "{listed:?}");
    for one in listed {
        assert_eq!((&one["unit"], &one["kind"]), (&json!("percent"), &json!("gauge")));
    }
    let history = host.service.read(&host.prepared, &format!("/metrics/{server}/history?resolution=raw")).await;
    // A reading that took a second, on a machine under load, is omitted from a sample, and the agent says so.
    let may_lack = agent.stderr().contains("a collector hangs");
    for sample in history.as_array().unwrap() {
        let of = |name: &str| sample["extra"][name].as_f64();
        assert!(of("cpu_mode:user").map_or(may_lack, |percent| (0.0..=100.0).contains(&percent)), "{sample}");
        assert!(of("memory_page_cache").map_or(may_lack, |bytes| bytes > 0.0), "{sample}");
    }
}
