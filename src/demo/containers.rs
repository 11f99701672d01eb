//! What the container engine of a simulated server answers. Pure.

use std::collections::BTreeMap;

use signalbox_protocol::Timestamp;
use signalbox_protocol::container::{
    Container, ContainerDetail, ContainerState, ContainerStates, ContainerStats, Network, Port,
};
use signalbox_protocol::sample::ContainerUsage;

use super::cast::Machine;
use super::course::{Course, container_id, is_flapping, runs};
use super::incidents::{FLAP_MS, FLAP_UP_MS, flapping_since};
use super::noise::between;
use super::services::Service;

/// The container that this names: its name, its id, or the beginning of it.
pub fn find(machine: &Machine, wanted: &str) -> Option<&'static Service> {
    let is_it = |service: &&Service| {
        let id = container_id(machine, service.name);
        service.name == wanted || (wanted.len() >= 4 && id.starts_with(wanted))
    };
    machine.services.iter().find(is_it)
}

/// When the container was started last, if it runs on its own.
fn started(course: Course, machine: &Machine, service: &Service, at_ms: i64) -> Timestamp {
    let ms = if is_flapping(machine, service) {
        flapping_since(at_ms)
    } else {
        course.booted_ms(machine, at_ms).saturating_add(21_000)
    };
    Timestamp::from_millis(ms)
}

fn ports(service: &Service) -> Vec<Port> {
    let port = |(private_port, public_port)| Port {
        private_port,
        public_port: Some(public_port),
        protocol: "tcp".to_owned(),
        host_ip: Some("0.0.0.0".to_owned()),
    };
    service.port.map(port).into_iter().collect()
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    [label("com.docker.compose.project", "shop"), label("com.docker.compose.service", service.name)].into()
}

fn created(course: Course, machine: &Machine) -> Timestamp {
    course.at(-31.0 * 24.0).plus_millis(between(machine.seed, 77, 0, 3_600_000).cast_signed())
}

/// The container as a list has it.
pub fn listed(course: Course, machine: &Machine, service: &Service, at_ms: i64) -> Container {
    let is_running = runs(machine, service, at_ms);
    let started = started(course, machine, service, at_ms).as_millis();
    let status = if is_running {
        format!("Up {}", ago(at_ms - started))
    } else {
        format!("Exited (1) {} ago", ago(at_ms - started - FLAP_UP_MS))
    };
    Container {
        id: container_id(machine, service.name),
        name: service.name.to_owned(),
        image: service.image.to_owned(),
        state: if is_running { "running" } else { "exited" }.to_owned(),
        status,
        created_at: created(course, machine),
        ports: if is_running { ports(service) } else { Vec::new() },
        labels: labels(service),
    }
}

/// The same after somebody stopped the container.
pub fn stopped(listed: Container) -> Container {
    let (state, status) = ("exited".to_owned(), "Exited (0)".to_owned());
    Container { state, status, ports: Vec::new(), ..listed }
}

/// All details of a container that a list has in this state.
pub fn detail(course: Course, machine: &Machine, service: &Service, at_ms: i64, listed: Container) -> ContainerDetail {
    let is_running = listed.state == "running";
    let started = started(course, machine, service, at_ms);
    let is_dying = is_flapping(machine, service);
    let lives = (at_ms - course.at(-6.0).as_millis()).max(0) / FLAP_MS;
    ContainerDetail {
        image_id: format!("sha256:{}", container_id(machine, service.image)),
        health: None,
        started_at: Some(started),
        finished_at: (!is_running).then(|| started.plus_millis(FLAP_UP_MS)),
        exit_code: (!is_running).then_some(i64::from(is_dying)),
        oom_killed: false,
        error: None,
        restart_count: if is_dying { lives.unsigned_abs() } else { 0 },
        restart_policy: "unless-stopped".to_owned(),
        pid: is_running.then(|| between(machine.seed, 78, 900, 60_000) as u32),
        command: vec![format!("/usr/bin/{}", service.name)],
        environment: ["PATH", "TZ", "DATABASE_URL"].map(str::to_owned).to_vec(),
        mounts: Vec::new(),
        network_mode: "shop_default".to_owned(),
        networks: vec![Network { name: "shop_default".to_owned(), ip_address: Some("172.18.0.4".to_owned()) }],
        tty: false,
        privileged: false,
        log_driver: "json-file".to_owned(),
        memory_limit_bytes: None,
        id: listed.id,
        name: listed.name,
        image: listed.image,
        state: listed.state,
        created_at: listed.created_at,
        labels: listed.labels,
        ports: listed.ports,
    }
}

/// What a container uses.
pub fn stats(machine: &Machine, usage: &ContainerUsage, at_ms: i64) -> ContainerStats {
    ContainerStats {
        container_id: usage.id.clone(),
        timestamp: Timestamp::from_millis(at_ms),
        cpu_percent: usage.cpu_percent,
        memory_bytes: usage.memory_bytes,
        memory_limit_bytes: Some(machine.memory),
        network_rx_bytes: usage.network_rx_bytes,
        network_tx_bytes: usage.network_tx_bytes,
        block_read_bytes: usage.network_tx_bytes / 6,
        block_write_bytes: usage.network_rx_bytes / 4,
        process_count: Some(between(machine.seed, 79, 2, 14)),
    }
}

/// The states of all containers, as an agent reports them.
pub fn states(containers: &[Container], at_ms: i64) -> ContainerStates {
    let state = |container: &Container| ContainerState {
        id: container.id.clone(),
        name: container.name.clone(),
        state: container.state.clone(),
        health: None,
        exit_code: (container.state == "exited").then(|| i64::from(container.status.starts_with("Exited (1)"))),
    };
    let mut states: Vec<ContainerState> = containers.iter().map(state).collect();
    states.sort_by(|one, other| one.name.cmp(&other.name));
    ContainerStates { timestamp: Timestamp::from_millis(at_ms), containers: states, truncated: false }
}

/// A time span in the engine's words.
fn ago(ms: i64) -> String {
    match ms.max(0) / 1_000 {
        seconds @ ..120 => format!("{seconds} seconds"),
        seconds @ ..7_200 => format!("{} minutes", seconds / 60),
        seconds @ ..172_800 => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    const COURSE: Course = Course { began_ms: 1_800_000_000_000 };

    #[test]
    fn a_container_is_found_by_its_name_and_the_beginning_of_its_id() {
        let fleet = fleet(1);
        let id = container_id(&fleet[0], "nginx");

        assert_eq!(find(&fleet[0], "nginx").map(|service| service.name), Some("nginx"));
        assert_eq!(find(&fleet[0], &id[..12]).map(|service| service.name), Some("nginx"));
        assert_eq!(find(&fleet[0], "ngi"), None);
        assert_eq!(id.len(), 64);
    }

    #[test]
    fn the_flapping_container_runs_and_dies() {
        let queue = fleet(6).pop().unwrap();
        let service = find(&queue, "mail-worker").unwrap();
        let life = flapping_since(COURSE.began_ms);
        let state = |ms: i64| listed(COURSE, &queue, service, life + ms).state;

        assert_eq!((state(1_000), state(FLAP_UP_MS + 1_000)), ("running".to_owned(), "exited".to_owned()));
    }
}
