//! The simulated servers: their names, roles, machines and troubles. Pure.

use super::noise::{choose, mix, seed_of};
use super::services::{Service, services};

pub const GIB: u64 = 1024 * 1024 * 1024;

/// The tag of every server of the demo, so that nobody mistakes a simulated one for a real one.
pub const TAG: &str = "demo";

/// What a server is for. It decides what runs on it, and how busy it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Web,
    App,
    Database,
    Cache,
    Queue,
    Logs,
    Storage,
    Backup,
    Ci,
    Mail,
    Proxy,
    Search,
    Monitor,
    Edge,
}

/// What goes wrong on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Incident {
    #[default]
    None,
    /// Memory grows for days, until the kernel ends the process.
    Leak,
    /// A file system has filled up.
    FullDisk,
    /// A container dies every few minutes.
    Flapping,
    /// A dump of the database every night.
    NightBackup,
    /// A release that answered with errors for some minutes.
    Deploy,
    /// A drive has become too warm.
    HotDrive,
    /// The agent has not been heard since yesterday.
    Offline,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    pub path: &'static str,
    pub device: &'static str,
    pub total: u64,
    /// In percent.
    pub used: f64,
}

/// A simulated server.
#[derive(Debug, Clone)]
pub struct Machine {
    pub name: String,
    pub role: Role,
    pub incident: Incident,
    pub tags: Vec<String>,
    /// Of a private network, so that it is nobody else's.
    pub address: String,
    pub description: String,
    pub seed: u64,
    pub os: Os,
    pub cores: u32,
    pub memory: u64,
    pub swap: u64,
    pub disks: Vec<Disk>,
    pub services: &'static [Service],
    /// The hour of the day, in UTC, at which people use it the most.
    pub busiest_hour: f64,
}

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Os {
    pub name: &'static str,
    pub id: &'static str,
    pub version: &'static str,
    pub kernel: &'static str,
    pub arch: &'static str,
}

const DEBIAN: Os = Os {
    name: "Debian GNU/Linux 13 (trixie)",
    id: "debian",
    version: "13",
    kernel: "6.12.48+deb13-amd64",
    arch: "x86_64",
};
const UBUNTU: Os =
    Os { name: "Ubuntu 24.04.3 LTS", id: "ubuntu", version: "24.04", kernel: "6.8.0-87-generic", arch: "x86_64" };
const ROCKY: Os = Os {
    name: "Rocky Linux 9.6 (Blue Onyx)",
    id: "rocky",
    version: "9.6",
    kernel: "5.14.0-570.el9.x86_64",
    arch: "x86_64",
};
const ALPINE: Os =
    Os { name: "Alpine Linux v3.22", id: "alpine", version: "3.22.2", kernel: "6.12.56-0-virt", arch: "x86_64" };
const DEBIAN_ARM: Os = Os { kernel: "6.12.48+deb13-arm64", arch: "aarch64", ..DEBIAN };

/// Name, role, region, system, cores, GiB of memory, trouble.
type Part = (&'static str, Role, &'static str, Os, u32, u64, Incident);

/// The servers that have a part in the stories come early, so that a small fleet shows them, too.
const CAST: [Part; 24] = [
    ("web-eu-1", Role::Web, "eu", DEBIAN, 4, 8, Incident::Deploy),
    ("web-eu-2", Role::Web, "eu", DEBIAN, 4, 8, Incident::Deploy),
    ("db-primary", Role::Database, "eu", DEBIAN, 8, 64, Incident::NightBackup),
    ("app-eu-2", Role::App, "eu", UBUNTU, 4, 16, Incident::Leak),
    ("logs-1", Role::Logs, "eu", DEBIAN, 4, 16, Incident::FullDisk),
    ("queue-1", Role::Queue, "eu", DEBIAN, 2, 4, Incident::Flapping),
    ("nas", Role::Storage, "office", DEBIAN, 4, 16, Incident::HotDrive),
    ("app-eu-1", Role::App, "eu", UBUNTU, 4, 16, Incident::None),
    ("web-us-1", Role::Web, "us", DEBIAN, 4, 8, Incident::None),
    ("cache-1", Role::Cache, "eu", ALPINE, 2, 16, Incident::None),
    ("db-replica", Role::Database, "us", DEBIAN, 8, 64, Incident::None),
    ("backup", Role::Backup, "office", ROCKY, 4, 8, Incident::None),
    ("ci-runner-1", Role::Ci, "eu", UBUNTU, 8, 32, Incident::None),
    ("ci-runner-2", Role::Ci, "eu", UBUNTU, 8, 32, Incident::None),
    ("mail", Role::Mail, "eu", DEBIAN, 2, 4, Incident::None),
    ("proxy-eu", Role::Proxy, "eu", ALPINE, 2, 2, Incident::None),
    ("proxy-us", Role::Proxy, "us", ALPINE, 2, 2, Incident::None),
    ("search-1", Role::Search, "eu", ROCKY, 8, 32, Incident::None),
    ("registry", Role::Storage, "eu", UBUNTU, 2, 8, Incident::None),
    ("monitor", Role::Monitor, "office", DEBIAN_ARM, 4, 8, Incident::None),
    ("dns-1", Role::Edge, "eu", ALPINE, 1, 1, Incident::None),
    ("vpn", Role::Edge, "office", DEBIAN_ARM, 4, 4, Incident::None),
    ("edge-sao-1", Role::Edge, "sa", DEBIAN_ARM, 4, 4, Incident::Offline),
    ("staging", Role::App, "eu", UBUNTU, 2, 8, Incident::None),
];

/// More servers, of which a large fleet has many.
const EXTRA: [(&str, Role); 8] = [
    ("web", Role::Web),
    ("app", Role::App),
    ("worker", Role::Queue),
    ("cache", Role::Cache),
    ("ci-runner", Role::Ci),
    ("edge", Role::Edge),
    ("search", Role::Search),
    ("proxy", Role::Proxy),
];
const REGIONS: [&str; 6] = ["eu", "us", "ap", "sa", "ca", "za"];

/// The first number of further servers, which no name of the cast has.
const FIRST_EXTRA: usize = 3;

/// This many servers, always the same ones.
pub fn fleet(count: u16) -> Vec<Machine> {
    (0..usize::from(count)).map(machine).collect()
}

fn machine(index: usize) -> Machine {
    match CAST.get(index) {
        Some((name, role, region, os, cores, memory, incident)) => {
            build(index, (*name).to_owned(), *role, region, *os, (*cores, *memory), *incident)
        }
        None => extra(index, index - CAST.len()),
    }
}

fn extra(index: usize, place: usize) -> Machine {
    let region = REGIONS.get(place % REGIONS.len()).copied().unwrap_or_default();
    let kind = place / REGIONS.len();
    let (word, role) = EXTRA.get(kind % EXTRA.len()).copied().unwrap_or(("web", Role::Web));
    let name = format!("{word}-{region}-{}", kind / EXTRA.len() + FIRST_EXTRA);
    let seed = seed_of(&name);
    let os = choose(seed, 1, &[DEBIAN, UBUNTU, ROCKY, ALPINE]);
    let size = (choose(seed, 2, &[2, 4, 4, 8]), choose(seed, 3, &[4, 8, 16, 32]));
    build(index, name, role, region, os, size, Incident::None)
}

fn build(
    index: usize,
    name: String,
    role: Role,
    region: &str,
    os: Os,
    (cores, memory): (u32, u64),
    incident: Incident,
) -> Machine {
    let seed = seed_of(&name);
    let tags = [TAG, role.word(), region].into_iter().map(str::to_owned).collect();
    let busiest_hour = match region {
        "us" | "ca" => 20.0,
        "sa" => 17.5,
        "ap" => 6.0,
        _ => 13.5,
    };
    Machine {
        role,
        incident,
        tags,
        address: format!("10.20.{}.{}", index / 250, 1 + index % 250),
        description: format!("Simulated: {}", role.description()),
        seed,
        os,
        cores,
        memory: memory * GIB,
        swap: if os.id == "alpine" { 0 } else { 2 * GIB },
        disks: disks(role, incident, seed),
        services: services(role),
        busiest_hour,
        name,
    }
}

fn disks(role: Role, incident: Incident, seed: u64) -> Vec<Disk> {
    let used = |salt: u64, least: u64| (least + mix(seed, salt) % 22) as f64;
    let root = Disk { path: "/", device: "nvme0n1", total: 40 * GIB, used: used(1, 24) };
    let second = match role {
        Role::Database => Disk { path: "/var/lib/postgresql", device: "nvme1n1", total: 800 * GIB, used: used(2, 44) },
        Role::Logs => Disk { path: "/var/log", device: "sda", total: 500 * GIB, used: 58.0 },
        Role::Storage => Disk { path: "/srv", device: "sda", total: 8_000 * GIB, used: used(3, 50) },
        Role::Backup => Disk { path: "/backup", device: "sda", total: 12_000 * GIB, used: used(4, 56) },
        Role::Ci => Disk { path: "/var/lib/docker", device: "nvme1n1", total: 400 * GIB, used: used(5, 38) },
        Role::Search => Disk { path: "/var/lib/search", device: "nvme1n1", total: 600 * GIB, used: used(6, 40) },
        Role::Web | Role::App | Role::Cache | Role::Queue | Role::Mail | Role::Proxy | Role::Monitor | Role::Edge => {
            return vec![root];
        }
    };
    // The root file system of a server with trouble is not what people should look at.
    let root = if incident == Incident::FullDisk { Disk { used: 31.0, ..root } } else { root };
    vec![root, second]
}

impl Role {
    /// The tag of its servers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::App => "app",
            Self::Database => "db",
            Self::Cache => "cache",
            Self::Queue => "queue",
            Self::Logs => "logs",
            Self::Storage => "storage",
            Self::Backup => "backup",
            Self::Ci => "ci",
            Self::Mail => "mail",
            Self::Proxy => "proxy",
            Self::Search => "search",
            Self::Monitor => "monitor",
            Self::Edge => "edge",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Web => "web server of the shop",
            Self::App => "the shop's application and its workers",
            Self::Database => "PostgreSQL",
            Self::Cache => "Redis",
            Self::Queue => "message queue and its workers",
            Self::Logs => "collects the logs of all servers",
            Self::Storage => "files and images",
            Self::Backup => "keeps the backups of 90 days",
            Self::Ci => "builds and tests every change",
            Self::Mail => "sends the shop's mail",
            Self::Proxy => "load balancer",
            Self::Search => "the shop's search",
            Self::Monitor => "checks from outside",
            Self::Edge => "network services",
        }
    }

    /// How busy the processors are: in percent at the quietest time, and by how much more at the busiest.
    pub fn cpu(self) -> (f64, f64) {
        match self {
            Self::Web => (9.0, 44.0),
            Self::App => (14.0, 48.0),
            Self::Database => (12.0, 34.0),
            Self::Cache => (5.0, 18.0),
            Self::Queue => (8.0, 30.0),
            Self::Logs => (10.0, 22.0),
            Self::Storage => (4.0, 12.0),
            Self::Backup => (2.0, 6.0),
            Self::Ci => (6.0, 62.0),
            Self::Mail => (3.0, 12.0),
            Self::Proxy => (6.0, 26.0),
            Self::Search => (10.0, 36.0),
            Self::Monitor => (7.0, 5.0),
            Self::Edge => (2.0, 7.0),
        }
    }

    /// How much of the memory is used, in percent.
    pub fn memory(self) -> f64 {
        match self {
            Self::Database | Self::Cache => 71.0,
            Self::Search => 66.0,
            Self::App | Self::Ci => 52.0,
            Self::Web | Self::Queue | Self::Logs => 43.0,
            Self::Storage | Self::Mail | Self::Proxy | Self::Monitor => 34.0,
            Self::Backup | Self::Edge => 22.0,
        }
    }

    /// Bytes a second that it receives and sends on average.
    pub fn traffic(self) -> (f64, f64) {
        match self {
            Self::Web => (1.4e6, 9.5e6),
            Self::App => (2.6e6, 3.1e6),
            Self::Database => (1.1e6, 4.2e6),
            Self::Cache => (3.4e6, 6.8e6),
            Self::Queue => (0.9e6, 0.8e6),
            Self::Logs => (2.2e6, 0.1e6),
            Self::Storage => (1.8e6, 5.2e6),
            Self::Backup => (0.3e6, 0.05e6),
            Self::Ci => (3.8e6, 0.6e6),
            Self::Mail => (0.12e6, 0.3e6),
            Self::Proxy => (11.0e6, 11.4e6),
            Self::Search => (0.7e6, 1.9e6),
            Self::Monitor => (0.2e6, 0.15e6),
            Self::Edge => (0.4e6, 0.5e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_server_has_a_name_of_its_own_and_says_that_it_is_simulated() {
        let fleet = fleet(1_000);

        assert_eq!(fleet.iter().map(|machine| &machine.name).collect::<HashSet<_>>().len(), 1_000);
        assert_eq!(fleet.iter().map(|machine| &machine.address).collect::<HashSet<_>>().len(), 1_000);
        assert!(fleet.iter().all(|machine| machine.tags.iter().any(|tag| tag == TAG)));
        assert!(fleet.iter().all(|machine| machine.description.starts_with("Simulated")));
    }

    #[test]
    fn the_same_servers_come_back() {
        let twice = [fleet(40), fleet(40)].map(|fleet| format!("{fleet:?}"));

        assert_eq!(twice[0], twice[1]);
    }
}
