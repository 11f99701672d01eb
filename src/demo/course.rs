//! What a simulated server measures at a time: functions of the server, the time and nothing else, so that the written past
//! and the live values continue each other. Pure.

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

use super::cast::{Disk, Incident, Machine, Role};
use super::incidents::{
    backup_seconds, drive_celsius, filled_percent, flapping_runs, flapping_since, has_errors, is_backing_up,
    is_deploying, leaked_percent,
};
use super::noise::{mix, seed_of, smooth, unit};
use super::services::{FLAPPING, LEAKING, Service};

pub const HOUR_MS: f64 = 3_600_000.0;
const DAY_MS: i64 = 86_400_000;

/// Bytes a second that the nightly backup reads, sends and writes.
const BACKUP_RATE: f64 = 62e6;

/// How the load rises and falls: periods in seconds with their share of the swing. The shares stay below 1, so that no
/// counter ever falls.
const RHYTHM: [(f64, f64); 6] =
    [(86_400.0, 0.52), (604_800.0, 0.15), (43_200.0, 0.1), (5_431.0, 0.08), (1_181.0, 0.06), (263.0, 0.04)];

/// Thursday midnight is where weeks since 1970 begin; Wednesday noon is this many days later.
const BUSIEST_DAY: f64 = 6.5;

/// The time that every story refers to: when the demo began for the first time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    pub began_ms: i64,
}

/// What several values of one moment have in common.
struct Moment {
    seconds: f64,
    hours: f64,
    /// In percent of all cores.
    cpu: f64,
    /// In percent.
    memory: f64,
    /// Seconds since the boot, weighted by the load.
    carried: f64,
    /// Seconds of nightly backups since the boot.
    backups: f64,
}

impl Course {
    /// Hours since the demo began.
    pub fn hours(self, at_ms: i64) -> f64 {
        (at_ms - self.began_ms) as f64 / HOUR_MS
    }

    /// The time that is this many hours after the demo began.
    pub fn at(self, hours: f64) -> Timestamp {
        Timestamp::from_millis(self.began_ms + (hours * HOUR_MS) as i64)
    }

    /// When the machine that runs at this time was booted.
    pub fn booted_ms(self, machine: &Machine, at_ms: i64) -> i64 {
        let last = self.last_boot_ms(machine);
        if at_ms >= last { last } else { last - 61 * DAY_MS }
    }

    /// When the machine was booted last: some days before the demo began.
    pub fn last_boot_ms(self, machine: &Machine) -> i64 {
        let days_ago = 4.0 + unit(machine.seed, 11) * 22.0;
        self.began_ms - (days_ago * DAY_MS as f64) as i64
    }

    /// The sample of this time.
    pub fn sample(self, machine: &Machine, at_ms: i64) -> Sample {
        let moment = self.moment(machine, at_ms);
        let load = |ago: f64| f64::from(machine.cores) * slow_cpu(machine, moment.seconds - ago) / 100.0;
        let now = f64::from(machine.cores) * moment.cpu / 100.0;
        let memory_used = (machine.memory as f64 * moment.memory / 100.0) as u64;
        let traffic = machine.role.traffic();
        let (sent_by_backups, received_by_backups) = match (machine.incident, machine.role) {
            (Incident::NightBackup, _) => (BACKUP_RATE * moment.backups, 0.0),
            (_, Role::Backup) => (0.0, BACKUP_RATE * moment.backups),
            _ => (0.0, 0.0),
        };
        Sample {
            timestamp: Timestamp::from_millis(at_ms),
            cpu_percent: moment.cpu,
            cpu_per_core: (0..machine.cores).map(|core| core_percent(machine, core, &moment)).collect(),
            load_average: [now * 1.08 + 0.05, load(150.0) + 0.05, load(450.0) + 0.05],
            memory_percent: moment.memory,
            memory_total: machine.memory,
            memory_used,
            swap_total: machine.swap,
            swap_used: (machine.swap as f64 * (0.02 + ((moment.memory - 84.0) / 20.0).clamp(0.0, 0.7))) as u64,
            disk_usage: machine.disks.iter().map(|disk| disk_usage(machine, disk, &moment)).collect(),
            disk_io: machine.disks.iter().map(|disk| disk_io(machine, disk, &moment)).collect(),
            network: vec![NetworkUsage {
                interface: "eth0".to_owned(),
                bytes_sent: (traffic.1 * moment.carried + sent_by_backups) as u64,
                bytes_recv: (traffic.0 * moment.carried + received_by_backups) as u64,
                in_total: None,
            }],
            temperatures: temperatures(machine, &moment),
            uptime_seconds: ((at_ms - self.booted_ms(machine, at_ms)) / 1_000).unsigned_abs(),
            process_count: process_count(machine, &moment),
            containers: self.containers(machine, &moment, at_ms, memory_used),
            ..Sample::default()
        }
    }

    fn moment(self, machine: &Machine, at_ms: i64) -> Moment {
        let seconds = at_ms as f64 / 1_000.0;
        let booted = self.booted_ms(machine, at_ms) as f64 / 1_000.0;
        let hours = self.hours(at_ms);
        let load = wave(machine, seconds);
        let cpu = (slow_cpu(machine, seconds) + quick_cpu(machine, seconds) + trouble_cpu(machine, seconds, hours))
            .clamp(0.3, 99.4);
        Moment {
            seconds,
            hours,
            cpu,
            memory: memory_percent(machine, seconds, hours, load),
            carried: carried(machine, seconds) - carried(machine, booted),
            backups: backup_seconds(seconds) - backup_seconds(booted),
        }
    }

    fn containers(self, machine: &Machine, moment: &Moment, at_ms: i64, memory_used: u64) -> Vec<ContainerUsage> {
        let running = machine.services.iter().filter(|service| runs(machine, service, at_ms));
        let usage = |service: &Service| {
            let noise = 1.0 + 0.16 * smooth(machine.seed ^ seed_of(service.name), moment.seconds, 55.0);
            let cpu = moment.cpu * f64::from(machine.cores) * service.cpu_share / 100.0 * noise;
            let memory = memory_used as f64 * service.memory_share / 100.0;
            let is_leaking = machine.incident == Incident::Leak && service.name == LEAKING;
            let leaked = machine.memory as f64 * (moment.memory - 24.0).max(4.0) / 100.0;
            let carried = moment.carried * service.cpu_share / 100.0;
            let since_start =
                if is_flapping(machine, service) { (at_ms - flapping_since(at_ms)) as f64 / 1_000.0 } else { carried };
            ContainerUsage {
                id: container_id(machine, service.name),
                name: service.name.to_owned(),
                cpu_percent: cpu.max(0.05),
                memory_bytes: if is_leaking { leaked } else { memory } as u64,
                network_rx_bytes: (machine.role.traffic().0 * since_start) as u64,
                network_tx_bytes: (machine.role.traffic().1 * since_start) as u64,
            }
        };
        running.map(usage).collect()
    }

    /// What the open series follow: the load, from 0 to 1, and whether requests fail.
    pub fn demand(self, machine: &Machine, at_ms: i64) -> (f64, bool) {
        let seconds = at_ms as f64 / 1_000.0;
        let jitter = 0.05 * smooth(machine.seed ^ 71, seconds, 19.0);
        ((wave(machine, seconds) + jitter).clamp(0.01, 1.0), has_errors(machine, self.hours(at_ms)))
    }
}

/// Whether this is the container that dies every few minutes.
pub fn is_flapping(machine: &Machine, service: &Service) -> bool {
    machine.incident == Incident::Flapping && service.name == FLAPPING
}

/// Whether a container runs at this time.
pub fn runs(machine: &Machine, service: &Service, at_ms: i64) -> bool {
    !is_flapping(machine, service) || flapping_runs(at_ms)
}

/// The whole id of a container.
pub fn container_id(machine: &Machine, name: &str) -> String {
    let seed = seed_of(name) ^ machine.seed;
    (0..4).map(|part| format!("{:016x}", mix(seed, part))).collect()
}

/// The phase of each period of the rhythm.
fn phase(machine: &Machine, place: usize, period: f64) -> f64 {
    const TURN: f64 = std::f64::consts::TAU;
    match place {
        0 => TURN / 4.0 - TURN * machine.busiest_hour / 24.0,
        1 => TURN / 4.0 - TURN * BUSIEST_DAY / 7.0,
        2 => -TURN * 10.0 / 24.0,
        _ => unit(machine.seed, period as u64) * TURN,
    }
}

/// The load at this time, in seconds since 1970: from 0 to 1, and 0.5 on average.
fn wave(machine: &Machine, seconds: f64) -> f64 {
    let terms = RHYTHM.iter().enumerate().map(|(place, (period, share))| {
        share * (seconds / period * std::f64::consts::TAU + phase(machine, place, *period)).sin()
    });
    (1.0 + terms.sum::<f64>()) / 2.0
}

/// The sum of the load over time: what a counter has counted that counts one a second on average.
fn carried(machine: &Machine, seconds: f64) -> f64 {
    let terms = RHYTHM.iter().enumerate().map(|(place, (period, share))| {
        let turns = seconds / period * std::f64::consts::TAU + phase(machine, place, *period);
        share * period / std::f64::consts::TAU * turns.cos()
    });
    seconds - terms.sum::<f64>()
}

/// The part of the processors' load that follows the rhythm.
fn slow_cpu(machine: &Machine, seconds: f64) -> f64 {
    let (least, swing) = machine.role.cpu();
    let builds = if machine.role == Role::Ci { 30.0 * smooth(machine.seed ^ 4, seconds, 900.0).max(0.0) } else { 0.0 };
    least + swing * wave(machine, seconds) + builds
}

fn quick_cpu(machine: &Machine, seconds: f64) -> f64 {
    let seed = machine.seed;
    let noise = 2.4 * smooth(seed ^ 1, seconds, 240.0)
        + 1.7 * smooth(seed ^ 2, seconds, 37.0)
        + 1.1 * smooth(seed ^ 3, seconds, 9.0);
    noise * (0.35 + machine.role.cpu().1 / 40.0)
}

fn trouble_cpu(machine: &Machine, seconds: f64, hours: f64) -> f64 {
    let is_backed_up = machine.incident == Incident::NightBackup || machine.role == Role::Backup;
    let mut more = 0.0;
    if is_backed_up && is_backing_up(seconds) {
        more += if machine.role == Role::Backup { 26.0 } else { 21.0 };
    }
    if is_deploying(machine, hours) {
        more += 19.0;
    }
    if has_errors(machine, hours) {
        more += 14.0;
    }
    // The kernel looks for memory that it could free.
    if machine.incident == Incident::Leak && leaked_percent(hours) > 90.0 {
        more += 17.0;
    }
    more
}

fn memory_percent(machine: &Machine, seconds: f64, hours: f64, load: f64) -> f64 {
    if machine.incident == Incident::Leak {
        return (leaked_percent(hours) + 0.3 * smooth(machine.seed ^ 5, seconds, 120.0)).clamp(1.0, 98.5);
    }
    let slow = 2.5 * smooth(machine.seed ^ 5, seconds, 5_400.0) + 0.4 * smooth(machine.seed ^ 6, seconds, 50.0);
    (machine.role.memory() + slow + 5.0 * (load - 0.5)).clamp(1.0, 96.0)
}

fn core_percent(machine: &Machine, core: u32, moment: &Moment) -> f64 {
    let seed = machine.seed ^ (100 + u64::from(core));
    let uneven = 1.0 + 0.28 * smooth(seed, moment.seconds, 14.0) + 0.1 * smooth(seed ^ 7, moment.seconds, 300.0);
    (moment.cpu * uneven).clamp(0.0, 100.0)
}

fn disk_usage(machine: &Machine, disk: &Disk, moment: &Moment) -> DiskUsage {
    let is_filling = machine.incident == Incident::FullDisk && disk.path != "/";
    let percent = if is_filling {
        filled_percent(moment.hours) + 0.03 * smooth(machine.seed ^ 8, moment.seconds, 900.0)
    } else {
        disk.used + 1.4 * smooth(machine.seed ^ 9, moment.seconds, 180_000.0) + moment.hours / 720.0
    };
    let percent = percent.clamp(0.1, 99.9);
    let used = (disk.total as f64 * percent / 100.0) as u64;
    let free = disk.total.saturating_sub(used);
    DiskUsage { path: disk.path.to_owned(), total: disk.total, used, free, percent }
}

fn disk_io(machine: &Machine, disk: &Disk, moment: &Moment) -> DiskIo {
    let is_data = disk.path != "/" || machine.disks.len() == 1;
    let (received, sent) = machine.role.traffic();
    let share = if is_data { 0.7 } else { 0.04 };
    let backups = if is_data { BACKUP_RATE * moment.backups } else { 0.0 };
    let read = if machine.incident == Incident::NightBackup { backups } else { 0.0 };
    let written = if machine.role == Role::Backup { backups } else { 0.0 };
    DiskIo {
        device: disk.device.to_owned(),
        read_bytes: (sent * share * moment.carried + read) as u64,
        write_bytes: (received * share * moment.carried + written) as u64,
    }
}

fn temperatures(machine: &Machine, moment: &Moment) -> Vec<Temperature> {
    // Virtual machines have no sensors.
    let is_real = matches!(machine.role, Role::Storage | Role::Backup | Role::Monitor | Role::Database);
    if !is_real {
        return Vec::new();
    }
    let noise = smooth(machine.seed ^ 10, moment.seconds, 420.0);
    let mut sensors =
        vec![Temperature { label: "Package id 0".to_owned(), celsius: 36.0 + 0.27 * moment.cpu + 1.2 * noise }];
    if machine.disks.iter().any(|disk| disk.device == "sda") {
        let is_hot = machine.incident == Incident::HotDrive;
        let celsius = if is_hot { drive_celsius(moment.hours) } else { 37.0 };
        sensors.push(Temperature { label: "sda".to_owned(), celsius: celsius + 0.5 * noise });
    }
    sensors
}

fn process_count(machine: &Machine, moment: &Moment) -> u64 {
    let usual = 88 + 16 * machine.services.len() as u64 + 4 * u64::from(machine.cores);
    usual + (8.0 + 8.0 * smooth(machine.seed ^ 12, moment.seconds, 700.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    const COURSE: Course = Course { began_ms: 1_800_000_000_000 };
    const MONTH_MS: i64 = 30 * DAY_MS;

    #[test]
    fn every_sample_of_the_past_is_valid() {
        for machine in fleet(40) {
            for step in 0..60 {
                let sample = COURSE.sample(&machine, COURSE.began_ms - step * MONTH_MS / 60);

                assert_eq!(sample.validate(), Ok(()), "{}", machine.name);
                assert!(sample.memory_used < sample.memory_total && sample.uptime_seconds > 0);
            }
        }
    }

    #[test]
    fn counters_never_fall_between_boots() {
        for machine in fleet(24) {
            let boot = COURSE.last_boot_ms(&machine);
            let counted: Vec<(u64, u64)> = (1..2_000)
                .map(|step| COURSE.sample(&machine, boot + step * 97_000))
                .map(|sample| (sample.network[0].bytes_recv, sample.disk_io[0].write_bytes))
                .collect();

            assert!(counted.iter().zip(counted.iter().skip(1)).all(|(one, next)| one.0 <= next.0 && one.1 <= next.1));
        }
    }

    #[test]
    fn the_present_continues_the_past_without_a_jump() {
        for machine in fleet(24) {
            let around = [-5_000, 0, 5_000].map(|ms| COURSE.sample(&machine, COURSE.began_ms + ms));

            assert!((around[0].cpu_percent - around[2].cpu_percent).abs() < 12.0, "{}", machine.name);
            assert!((around[0].memory_percent - around[2].memory_percent).abs() < 1.0, "{}", machine.name);
        }
    }

    #[test]
    fn days_are_busier_than_nights() {
        let fleet = fleet(1);
        let day = COURSE.began_ms.div_euclid(DAY_MS) * DAY_MS;
        let mean = |from_hour: i64| {
            let hour = (0..60).map(|minute| COURSE.sample(&fleet[0], day + from_hour * 3_600_000 + minute * 60_000));
            hour.map(|sample| sample.cpu_percent).sum::<f64>() / 60.0
        };

        assert!(mean(13) > mean(2) + 15.0);
    }

    #[test]
    fn two_servers_differ_and_each_is_always_the_same() {
        let fleet = fleet(2);
        let at = COURSE.began_ms - 1_234_567;

        assert_eq!(COURSE.sample(&fleet[0], at), COURSE.sample(&fleet[0], at));
        assert_ne!(COURSE.sample(&fleet[0], at).cpu_percent, COURSE.sample(&fleet[1], at).cpu_percent);
    }
}
