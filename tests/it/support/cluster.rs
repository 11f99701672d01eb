//! Several instances of the service, each a process of its own, on one PostgreSQL and one NATS.

use std::net::SocketAddr;

use futures_util::future::join_all;
use signalbox::bus::nats::NatsConfig;
use signalbox::config::Config;
use tempfile::TempDir;

use super::clock::TestClock;
use super::command_line::{Outcome, signalbox};
use super::nats::{Nats, url_of};
use super::port::Port;
use super::process::ServiceProcess;
use super::proxy::Proxy;
use super::{Client, Storage, TestService, eventually, write_private};

/// How many lines of each instance's log a failed test prints.
const LAST_LINES: usize = 60;

pub struct Cluster {
    instances: Vec<Instance>,
    pub nats: Nats,
    secrets: TempDir,
    pub storage: Storage,
    /// Additional arguments of each instance.
    arguments: &'static [&'static str],
}

/// A place for an instance: it may be killed and begin again where it was.
struct Instance {
    data: TempDir,
    /// Where it is, or was and will be.
    port: Port,
    line: Option<Line>,
    clock: Option<TestClock>,
    service: Option<ServiceProcess>,
    /// The logs of instances that have ended.
    past: String,
}

/// The lines between an instance and the others.
pub struct Line {
    pub database: Proxy,
    pub nats: Proxy,
}

impl Cluster {
    /// This many instances.
    pub async fn start(count: usize) -> Self {
        Self::on(Nats::start().await, count).await
    }

    /// With this NATS.
    pub async fn on(nats: Nats, count: usize) -> Self {
        Self::without_instances(nats).await.with_instances(count).await
    }

    /// This many instances with these arguments, too.
    pub async fn told(count: usize, arguments: &'static [&'static str]) -> Self {
        let mut cluster = Self::without_instances(Nats::start().await).await;
        cluster.arguments = arguments;
        cluster.with_instances(count).await
    }

    async fn with_instances(mut self, count: usize) -> Self {
        self.instances.extend((0..count).map(|_| Instance::new(None)));
        self.begin_all().await;
        self
    }

    /// Instances whose ways to the database and to NATS can be cut.
    pub async fn with_lines(count: usize) -> Self {
        let mut cluster = Self::without_instances(Nats::start().await).await;
        let database = address_of(&cluster.storage.config().database_url());
        for _ in 0..count {
            let line = Line { database: Proxy::to(database).await, nats: Proxy::to(cluster.nats.address).await };
            cluster.instances.push(Instance::new(Some(line)));
        }
        cluster.begin_all().await;
        cluster
    }

    /// Instances on machines whose clocks are this many milliseconds ahead.
    pub async fn ahead_by(skews_ms: &[i64]) -> Self {
        let mut cluster = Self::without_instances(Nats::start().await).await;
        for ahead_ms in skews_ms {
            let clock = TestClock::new();
            clock.set_ms(*ahead_ms);
            cluster.instances.push(Instance { clock: Some(clock), ..Instance::new(None) });
        }
        cluster.begin_all().await;
        cluster
    }

    async fn without_instances(nats: Nats) -> Self {
        let storage = Storage::fresh().await;
        let url = storage.config().database_url();
        assert!(url.starts_with("postgres://"), "several instances need PostgreSQL: run this by scripts/with-postgres");
        let secrets = TempDir::new().unwrap();
        for name in SECRETS {
            let secret = format!("{name} that only tests know, long enough for a key");
            write_private(&secrets.path().join(name), &secret);
        }
        Self { instances: Vec::new(), nats, secrets, storage, arguments: &[] }
    }

    /// All at once, as an operator's tools do it.
    async fn begin_all(&mut self) {
        let services = join_all((0..self.instances.len()).map(|index| self.launch(index))).await;
        for (instance, service) in self.instances.iter_mut().zip(services) {
            instance.service = Some(service);
        }
    }

    async fn launch(&self, index: usize) -> ServiceProcess {
        let instance = &self.instances[index];
        let (mut database, mut nats) = (self.storage.config().database_url(), self.nats.url());
        if let Some(line) = &instance.line {
            database = database.replace(&address_of(&database).to_string(), &line.database.address.to_string());
            nats = url_of(line.nats.address);
        }
        let listen = instance.port.address.to_string();
        let mut command = signalbox(&["serve", "--listen", &listen, "--notification-networks", "127.0.0.0/8"]);
        self.storage.named_to(&mut command);
        command
            .arg("--data-dir")
            .arg(instance.data.path())
            .arg("--jwt-secret-file")
            .arg(self.secrets.path().join(SECRETS[0]))
            .arg("--encryption-key-file")
            .arg(self.secrets.path().join(SECRETS[1]))
            .args(self.arguments)
            .env("SIGNALBOX_DATABASE_URL", database)
            .env("SIGNALBOX_NATS_URL", nats);
        if let Some(clock) = &instance.clock {
            clock.rule(&mut command);
        }
        ServiceProcess::launched(command).await
    }

    /// A further instance in the test's own process, with settings that the command line does not have.
    pub async fn join(&self, adjust: impl FnOnce(&mut Config)) -> TestService {
        let nats = self.nats.url();
        TestService::start_on(self.storage.beside(), |config| {
            config.nats = Some(NatsConfig { url: nats.as_str().into(), credentials_file: None, ca_file: None });
            config.jwt_secret_file = Some(self.secrets.path().join(SECRETS[0]));
            config.encryption_key_file = Some(self.secrets.path().join(SECRETS[1]));
            adjust(config);
        })
        .await
    }

    pub fn count(&self) -> usize {
        self.instances.len()
    }

    /// An instance that runs.
    pub fn at(&self, index: usize) -> &ServiceProcess {
        self.instances[index].service.as_ref().expect("it runs")
    }

    /// Where an instance is, or was and will be.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.instances[index].port.address
    }

    /// Where all instances are.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.count()).map(|index| self.address(index)).collect()
    }

    /// The clock of an instance that has one of its own.
    pub fn clock(&self, index: usize) -> &TestClock {
        self.instances[index].clock.as_ref().expect("it has a clock of its own")
    }

    /// The lines of an instance that can be cut.
    pub fn line(&self, index: usize) -> &Line {
        self.instances[index].line.as_ref().expect("its lines can be cut")
    }

    /// Ends an instance as a crash does.
    pub async fn kill(&mut self, index: usize) {
        self.end(index, "KILL").await;
    }

    /// Ends an instance with SIGTERM.
    pub async fn terminate(&mut self, index: usize) -> Outcome {
        self.end(index, "TERM").await
    }

    async fn end(&mut self, index: usize, signal: &str) -> Outcome {
        let instance = &mut self.instances[index];
        let service = instance.service.take().expect("it runs");
        service.signal(signal);
        let outcome = service.outcome().await;
        instance.past.push_str(&outcome.stderr);
        outcome
    }

    /// Starts an instance again where it was.
    pub async fn begin(&mut self, index: usize) {
        let service = self.launch(index).await;
        self.instances[index].service = Some(service);
    }

    /// The part that an instance says is away, if it is not ready.
    pub async fn away(&self, index: usize) -> Option<String> {
        let answer = Client::new(format!("http://{}", self.address(index))).get("/readyz").send().await;
        (answer.status != 200).then(|| answer.json()["part"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until an instance says that this part is away.
    pub async fn until_away(&self, index: usize, part: &str) {
        eventually(&format!("{part} is away"), async || {
            (self.away(index).await.as_deref() == Some(part)).then_some(())
        })
        .await;
    }

    pub async fn until_ready(&self, index: usize) {
        eventually("it is ready", async || self.away(index).await.is_none().then_some(())).await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for (index, instance) in self.instances.iter().enumerate() {
            let log = instance.past.clone() + &instance.service.as_ref().map_or_else(String::new, ServiceProcess::log);
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("== instance {index} at {}\n{}", instance.port.address, last.join("\n"));
        }
    }
}

/// The files that all instances share.
const SECRETS: [&str; 2] = ["signing-key", "encryption-key"];

impl Instance {
    fn new(line: Option<Line>) -> Self {
        let (data, port) = (TempDir::new().unwrap(), Port::reserve());
        Self { data, port, line, clock: None, service: None, past: String::new() }
    }
}

/// Where a database is: its host must be an address.
fn address_of(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once("://").unwrap();
    let (place, _) = rest.split_once('/').unwrap();
    place.rsplit('@').next().unwrap().parse().unwrap()
}
