//! What runs in the containers of each role, and the numbers that follow from it. Pure.

use super::cast::Role;

/// How a container writes its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    /// One line for each request, as web servers write it.
    Access,
    /// One JSON object for each line.
    Json,
    /// `key=value` pairs.
    Logfmt,
    /// A time, a level and a sentence.
    Plain,
}

/// A container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    pub name: &'static str,
    pub image: &'static str,
    /// In the container, and of the host.
    pub port: Option<(u16, u16)>,
    /// Its part of what the server's processors do, in percent.
    pub cpu_share: f64,
    /// Its part of the used memory, in percent.
    pub memory_share: f64,
    pub style: LogStyle,
}

impl Service {
    const fn new(name: &'static str, image: &'static str, shares: (f64, f64), style: LogStyle) -> Self {
        let (cpu_share, memory_share) = shares;
        Self { name, image, port: None, cpu_share, memory_share, style }
    }

    const fn at(self, inside: u16, outside: u16) -> Self {
        Self { port: Some((inside, outside)), ..self }
    }
}

/// The container that dies every few minutes.
pub const FLAPPING: &str = "mail-worker";

/// The container whose process leaks memory.
pub const LEAKING: &str = "invoices";

use LogStyle::{Access, Json, Logfmt, Plain};

const WEB: [Service; 3] = [
    Service::new("nginx", "nginx:1.29-alpine", (34.0, 9.0), Access).at(80, 80),
    Service::new("shop", "registry.example.com/shop:2026.11.4", (48.0, 62.0), Json).at(8080, 8080),
    Service::new("metrics-proxy", "registry.example.com/metrics-proxy:1.8", (4.0, 4.0), Logfmt),
];
const APP: [Service; 4] = [
    Service::new("shop-api", "registry.example.com/shop-api:2026.11.4", (44.0, 34.0), Json).at(8000, 8000),
    Service::new(LEAKING, "registry.example.com/invoices:3.2.1", (22.0, 40.0), Logfmt),
    Service::new("scheduler", "registry.example.com/scheduler:1.14", (9.0, 9.0), Logfmt),
    Service::new("pgbouncer", "edoburu/pgbouncer:1.24", (6.0, 3.0), Plain).at(5432, 6432),
];
const DATABASE: [Service; 2] = [
    Service::new("postgres", "postgres:17.6", (86.0, 90.0), Plain).at(5432, 5432),
    Service::new("wal-archiver", "registry.example.com/wal-archiver:0.9", (4.0, 2.0), Logfmt),
];
const CACHE: [Service; 1] = [Service::new("redis", "redis:8.2-alpine", (88.0, 92.0), Plain).at(6379, 6379)];
const QUEUE: [Service; 3] = [
    Service::new("nats", "nats:2.12-alpine", (38.0, 34.0), Plain).at(4222, 4222),
    Service::new(FLAPPING, "registry.example.com/mail-worker:0.12.3", (14.0, 18.0), Logfmt),
    Service::new("image-worker", "registry.example.com/image-worker:1.5.0", (36.0, 32.0), Json),
];
const LOGS: [Service; 2] = [
    Service::new("victorialogs", "victoriametrics/victoria-logs:v1.36.1", (70.0, 68.0), Json).at(9428, 9428),
    Service::new("syslog", "balabit/syslog-ng:4.8", (16.0, 12.0), Plain).at(514, 514),
];
const STORAGE: [Service; 2] = [
    Service::new("minio", "minio/minio:2026-10", (56.0, 44.0), Json).at(9000, 9000),
    Service::new("samba", "registry.example.com/samba:4.22", (20.0, 16.0), Plain).at(445, 445),
];
const CI: [Service; 2] = [
    Service::new("runner", "gitea/act_runner:0.2.13", (18.0, 10.0), Logfmt),
    Service::new("build-cache", "buildpack/cache:2.1", (8.0, 22.0), Json).at(8081, 8081),
];
const MAIL: [Service; 2] = [
    Service::new("postfix", "registry.example.com/postfix:3.10", (40.0, 22.0), Plain).at(25, 25),
    Service::new("rspamd", "rspamd/rspamd:3.13", (42.0, 48.0), Plain),
];
const PROXY: [Service; 1] = [Service::new("haproxy", "haproxy:3.2-alpine", (78.0, 52.0), Access).at(443, 443)];
const SEARCH: [Service; 1] =
    [Service::new("opensearch", "opensearchproject/opensearch:3.3.1", (90.0, 92.0), Json).at(9200, 9200)];
const MONITOR: [Service; 2] = [
    Service::new("blackbox", "prom/blackbox-exporter:v0.27.0", (30.0, 10.0), Logfmt).at(9115, 9115),
    Service::new("grafana", "grafana/grafana:12.2.0", (24.0, 34.0), Logfmt).at(3000, 3000),
];

/// The containers of a role.
pub fn services(role: Role) -> &'static [Service] {
    match role {
        Role::Web => &WEB,
        Role::App => &APP,
        Role::Database => &DATABASE,
        Role::Cache => &CACHE,
        Role::Queue => &QUEUE,
        Role::Logs => &LOGS,
        Role::Storage => &STORAGE,
        Role::Ci => &CI,
        Role::Mail => &MAIL,
        Role::Proxy => &PROXY,
        Role::Search => &SEARCH,
        Role::Monitor => &MONITOR,
        Role::Backup | Role::Edge => &[],
    }
}
