//! The processes of a simulated server. Pure.

use signalbox_protocol::sample::{ProcessUsage, Sample, TopProcesses};

use super::cast::{Incident, Machine, Role};
use super::incidents::is_backing_up;
use super::noise::{between, mix, seed_of, unit};

/// As many as an agent sends of each order.
const MOST: usize = 10;

const MIB: f64 = 1_048_576.0;

/// A process that has nothing to do with containers: name, user, percent of a core, MiB.
const SYSTEM: [(&str, &str, f64, f64); 9] = [
    ("systemd", "root", 0.1, 14.0),
    ("systemd-journald", "root", 0.3, 38.0),
    ("sshd", "root", 0.05, 9.0),
    ("dockerd", "root", 0.9, 92.0),
    ("containerd", "root", 0.5, 58.0),
    ("signalbox-agent", "signalbox", 0.1, 7.0),
    ("cron", "root", 0.02, 3.0),
    ("chronyd", "_chrony", 0.02, 4.0),
    ("agetty", "root", 0.0, 2.0),
];

/// All known processes at the time of a sample, the busiest first.
pub fn processes(machine: &Machine, sample: &Sample) -> Vec<ProcessUsage> {
    let at_ms = sample.timestamp.as_millis();
    let (seconds, minute) = (at_ms as f64 / 1_000.0, (at_ms / 60_000).cast_unsigned());
    let mut all: Vec<ProcessUsage> = Vec::new();
    let mut add = |name: &str, user: &str, cpu_percent: f64, memory_bytes: f64| {
        let pid = between(machine.seed ^ seed_of(name), all.len() as u64, 400, 60_000) as u32;
        let memory_bytes = memory_bytes.max(0.0) as u64;
        all.push(ProcessUsage { pid, name: name.to_owned(), user: user.to_owned(), cpu_percent, memory_bytes });
    };
    for container in &sample.containers {
        let (name, user, count) = program(&container.name);
        for worker in 0..count {
            // The first one has more to do than the others.
            let share = if worker == 0 { 1.4 } else { 0.85 } / f64::from(count);
            let cpu = container.cpu_percent * share * (0.9 + 0.2 * unit(mix(machine.seed, minute), u64::from(worker)));
            add(name, user, cpu, container.memory_bytes as f64 * share);
        }
    }
    if machine.incident == Incident::NightBackup && is_backing_up(seconds) {
        add("pg_dump", "postgres", 88.0 + 9.0 * unit(machine.seed, minute), 210.0 * MIB);
        add("zstd", "postgres", 61.0 + 14.0 * unit(machine.seed, minute + 1), 128.0 * MIB);
    }
    if machine.role == Role::Backup {
        let is_busy = is_backing_up(seconds);
        add("restic", "backup", if is_busy { 74.0 } else { 0.4 }, if is_busy { 620.0 } else { 90.0 } * MIB);
    }
    if machine.role == Role::Ci {
        let busy = sample.cpu_percent * f64::from(machine.cores);
        add("rustc", "runner", busy * 0.44, 1_900.0 * MIB);
        add("node", "runner", busy * 0.18, 840.0 * MIB);
    }
    if machine.role == Role::Edge {
        add("unbound", "unbound", sample.cpu_percent * 0.5, 64.0 * MIB);
        add("nft-exporter", "nobody", 0.2, 18.0 * MIB);
    }
    for (name, user, cpu, mib) in SYSTEM {
        add(name, user, cpu * (0.8 + 0.4 * unit(seed_of(name), minute)), mib * MIB);
    }
    all.sort_by(|one, other| other.cpu_percent.total_cmp(&one.cpu_percent));
    all
}

/// The lists that an agent would send.
pub fn top(machine: &Machine, sample: &Sample) -> TopProcesses {
    let mut all = processes(machine, sample);
    let by_cpu = all.iter().take(MOST).cloned().collect();
    all.sort_by_key(|process| std::cmp::Reverse(process.memory_bytes));
    all.truncate(MOST);
    TopProcesses { by_cpu, by_memory: all }
}

/// The program of a container, its user, and how many processes of it run.
fn program(container: &str) -> (&str, &'static str, u32) {
    match container {
        "nginx" => ("nginx", "www-data", 3),
        "shop" | "shop-api" => ("shop", "shop", 4),
        "postgres" => ("postgres", "postgres", 5),
        "redis" => ("redis-server", "redis", 1),
        "nats" => ("nats-server", "nats", 1),
        "haproxy" => ("haproxy", "haproxy", 2),
        "opensearch" => ("java", "opensearch", 1),
        "postfix" => ("qmgr", "postfix", 2),
        "rspamd" => ("rspamd", "_rspamd", 3),
        "samba" => ("smbd", "root", 2),
        other => (other, "app", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::super::course::Course;
    use super::super::incidents::BACKUP_AT;
    use super::*;

    const COURSE: Course = Course { began_ms: 1_800_000_000_000 };

    #[test]
    fn the_nightly_backup_is_among_the_processes() {
        let fleet = fleet(3);
        let midnight = COURSE.began_ms.div_euclid(86_400_000) * 86_400_000;
        let names = |after_ms: i64| {
            let sample = COURSE.sample(&fleet[2], midnight + after_ms);
            top(&fleet[2], &sample).by_cpu.into_iter().map(|process| process.name).collect::<Vec<_>>()
        };

        assert!(names(BACKUP_AT as i64 * 1_000 + 60_000).contains(&"pg_dump".to_owned()));
        assert!(!names(0).contains(&"pg_dump".to_owned()));
    }

    #[test]
    fn lists_are_sorted_and_bounded() {
        for machine in fleet(24) {
            let sample = COURSE.sample(&machine, COURSE.began_ms);
            let top = top(&machine, &sample);

            assert!(top.by_cpu.len() <= MOST && !top.by_memory.is_empty());
            assert!(top.by_cpu.is_sorted_by(|one, next| one.cpu_percent >= next.cpu_percent));
            assert!(top.by_memory.is_sorted_by(|one, next| one.memory_bytes >= next.memory_bytes));
        }
    }
}
