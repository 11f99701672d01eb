//! The logs of simulated servers: each line follows from the server, the log and the time. Pure.

use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::LogLine;

use super::cast::{Incident, Machine};
use super::course::Course;
use super::incidents::{FLAP_MS, FLAP_UP_MS, LAST_OOM, LEAK_HOURS, has_errors, is_backing_up, is_deploying};
use super::noise::{between, choose, mix, seed_of, unit};
use super::services::{LEAKING, LogStyle, Service};

/// How far back a log reaches.
const KEPT_MS: i64 = 30 * 86_400_000;

/// The most places that one question looks at.
const MAX_SLOTS: i64 = 200_000;

/// A log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Log<'a> {
    /// The journal of the system.
    System,
    /// The output of a container.
    Container(&'a Service),
}

impl Log<'_> {
    /// How far its lines are apart on average.
    fn spacing_ms(self) -> i64 {
        match self {
            Log::System => 17_000,
            Log::Container(service) => match service.style {
                LogStyle::Access => 900,
                LogStyle::Json => 1_700,
                LogStyle::Logfmt => 4_300,
                LogStyle::Plain => 7_900,
            },
        }
    }

    fn seed(self, machine: &Machine) -> u64 {
        match self {
            Log::System => machine.seed ^ 0x5157,
            Log::Container(service) => machine.seed ^ seed_of(service.name),
        }
    }
}

/// Everything that a line depends on.
struct Place<'a> {
    machine: &'a Machine,
    seed: u64,
    slot: u64,
    at: Timestamp,
    hours: f64,
}

impl Place<'_> {
    fn number(&self, salt: u64, low: u64, high: u64) -> u64 {
        between(mix(self.seed, self.slot), salt, low, high)
    }

    fn one_of(&self, salt: u64, words: &[&'static str]) -> &'static str {
        choose(mix(self.seed, self.slot), salt, words)
    }

    fn chance(&self) -> f64 {
        unit(mix(self.seed, self.slot), 99)
    }

    fn has_errors(&self) -> bool {
        has_errors(self.machine, self.hours)
    }
}

/// The lines from `from` until before `until`, oldest first: the first `most` of them.
pub fn lines(course: Course, machine: &Machine, log: Log<'_>, (from, until): (i64, i64), most: usize) -> Vec<LogLine> {
    let spacing = log.spacing_ms();
    let slots = from.div_euclid(spacing)..=until.div_euclid(spacing);
    let found = slots.filter_map(|slot| line(course, machine, log, slot));
    found.filter(|(at, _)| (from..until).contains(at)).map(|(_, line)| line).take(most).collect()
}

/// The newest lines before `until` and not before `since` that `wanted` accepts, oldest first.
pub fn newest(
    course: Course,
    machine: &Machine,
    log: Log<'_>,
    (since, until): (Option<i64>, i64),
    most: usize,
    wanted: impl Fn(&LogLine) -> bool,
) -> Vec<LogLine> {
    let (spacing, oldest) = (log.spacing_ms(), until - KEPT_MS);
    let from = since.map_or(oldest, |since| since.max(oldest));
    let last = until.div_euclid(spacing);
    let first = from.div_euclid(spacing).max(last - MAX_SLOTS);
    let found = (first..=last).rev().filter_map(|slot| line(course, machine, log, slot));
    let within = found.filter(|(at, line)| (from..until).contains(at) && wanted(line));
    let mut lines: Vec<LogLine> = within.map(|(_, line)| line).take(most).collect();
    lines.reverse();
    lines
}

fn line(course: Course, machine: &Machine, log: Log<'_>, slot: i64) -> Option<(i64, LogLine)> {
    let (spacing, seed) = (log.spacing_ms(), log.seed(machine));
    let late = between(seed, slot.cast_unsigned(), 0, (spacing - 1).unsigned_abs());
    let at_ms = slot * spacing + late.cast_signed();
    let at = Timestamp::from_millis(at_ms);
    let place = Place { machine, seed, slot: slot.cast_unsigned(), at, hours: course.hours(at_ms) };
    let (stream, message) = match log {
        Log::System => by_program(&system(&place, spacing)),
        Log::Container(service) => output(&place, service).map(|(stream, message)| (stream.to_owned(), message))?,
    };
    Some((at_ms, LogLine { timestamp: Some(at), stream: Some(stream), message }))
}

/// Divides `program[pid]: text`, because the journal has the program in a field of its own.
fn by_program(line: &str) -> (String, String) {
    let (program, message) = line.split_once(": ").unwrap_or(("kernel", line));
    let name = program.split('[').next().unwrap_or(program);
    (name.to_owned(), message.to_owned())
}

/// A line of a container; none while it does not run.
fn output(place: &Place<'_>, service: &Service) -> Option<(&'static str, String)> {
    if super::course::is_flapping(place.machine, service) {
        return flapping(place);
    }
    let is_error = place.has_errors() && place.chance() < 0.4;
    let level = match place.chance() {
        _ if is_error => "error",
        chance if chance < 0.012 => "error",
        chance if chance < 0.07 => "warn",
        chance if chance < 0.2 => "debug",
        _ => "info",
    };
    let stream = if level == "error" && service.style != LogStyle::Access { "stderr" } else { "stdout" };
    let message = match service.style {
        LogStyle::Access => access(place, is_error),
        LogStyle::Json => object(place, level),
        LogStyle::Logfmt => pairs(place, service, level),
        LogStyle::Plain => sentence(place, service, level),
    };
    Some((stream, message))
}

fn access(place: &Place<'_>, is_error: bool) -> String {
    let path = place.one_of(1, &["/", "/products/412", "/cart", "/search?q=lamp", "/api/stock", "/static/app.css"]);
    let status = match place.number(2, 0, 99) {
        _ if is_error => 502,
        0..=1 => 404,
        2..=5 => 304,
        6..=8 => 302,
        _ => 200,
    };
    let method = if path == "/cart" { "POST" } else { "GET" };
    let time = place.at.to_datetime().format("%d/%b/%Y:%H:%M:%S +0000");
    let (host, size) = (place.number(3, 2, 250), place.number(4, 180, 48_000));
    format!("203.0.113.{host} - - [{time}] \"{method} {path} HTTP/2.0\" {status} {size} \"-\" \"Mozilla/5.0\"")
}

fn object(place: &Place<'_>, level: &str) -> String {
    let (path, took) = (place.one_of(1, &["/cart", "/checkout", "/products", "/account"]), place.number(2, 6, 180));
    let request = format!("{:08x}", mix(place.seed, place.slot) >> 32);
    let line = match level {
        "error" => json!({ "time": place.at, "level": level, "msg": "upstream failed", "path": path, "status": 502,
                           "error": "dial tcp 10.20.0.8:8000: connect: connection refused", "request_id": request }),
        "warn" => json!({ "time": place.at, "level": level, "msg": "slow query", "query": "select_orders",
                          "duration_ms": took * 14, "request_id": request }),
        "debug" => json!({ "time": place.at, "level": level, "msg": "cache miss", "key": format!("product:{took}") }),
        _ => json!({ "time": place.at, "level": level, "msg": "request", "method": "GET", "path": path, "status": 200,
                     "duration_ms": took, "request_id": request }),
    };
    line.to_string()
}

fn pairs(place: &Place<'_>, service: &Service, level: &str) -> String {
    let (at, id, took) = (place.at, place.number(1, 10_000, 99_999), place.number(2, 40, 2_400));
    let said = match level {
        "error" => format!("msg=\"job failed\" job={id} error=\"timeout after 30s\" retry_in=60s"),
        "warn" if service.name == LEAKING => format!("msg=\"heap is large\" heap_mb={} job={id}", took + 3_000),
        "warn" => format!("msg=\"queue is long\" waiting={} limit=500", took / 3),
        "debug" => format!("msg=\"lease renewed\" lease={id}"),
        _ => format!("msg=\"job done\" job={id} took={took}ms"),
    };
    format!("time={at} level={level} service={} {said}", service.name)
}

fn sentence(place: &Place<'_>, service: &Service, level: &str) -> String {
    let time = place.at.to_datetime().format("%Y-%m-%d %H:%M:%S%.3f");
    let (pid, number) = (place.number(1, 30, 900), place.number(2, 12, 4_000));
    let is_dumped = service.name == "postgres" && is_backing_up(place.at.as_millis() as f64 / 1_000.0);
    match (service.name, level) {
        ("postgres", _) if is_dumped && place.chance() < 0.5 => {
            format!("{time} UTC [{pid}] LOG:  statement: COPY public.orders TO stdout; (pg_dump)")
        }
        ("postgres", "error") => format!("{time} UTC [{pid}] ERROR:  canceling statement due to statement timeout"),
        ("postgres", "warn") => {
            format!("{time} UTC [{pid}] WARNING:  autovacuum: table \"orders\" has {number} dead rows")
        }
        ("postgres", _) => format!("{time} UTC [{pid}] LOG:  checkpoint complete: wrote {number} buffers"),
        (_, "error") => format!("{time} ERROR connection 10.20.0.{} was reset by its peer", number % 250),
        (_, "warn") => format!("{time} WARN  {number} ms is slower than usual"),
        (_, "debug") => format!("{time} DEBUG {number} keys in memory"),
        _ => format!("{time} INFO  accepted connection from 10.20.0.{}:{}", number % 250, 40_000 + number),
    }
}

/// The container that dies every few minutes says why.
fn flapping(place: &Place<'_>) -> Option<(&'static str, String)> {
    let (at, since) = (place.at, place.at.as_millis().rem_euclid(FLAP_MS));
    let left = FLAP_UP_MS - since;
    match (since, left) {
        (_, ..0) => None,
        (_, 0..9_000) => {
            Some(("stderr", format!("time={at} level=fatal msg=\"giving up\" error=\"mail:25: connection refused\"")))
        }
        (_, 9_000..45_000) => Some((
            "stderr",
            format!(
                "time={at} level=error msg=\"cannot send\" attempt={} error=\"connection refused\"",
                5 - left / 9_000
            ),
        )),
        (0..9_000, _) => Some(("stdout", format!("time={at} level=info msg=\"mail-worker starts\" version=0.12.3"))),
        _ => Some(("stdout", format!("time={at} level=info msg=\"mail queued\" id={}", place.number(1, 1_000, 9_999)))),
    }
}

/// A line of the journal.
fn system(place: &Place<'_>, spacing: i64) -> String {
    let (pid, port) = (place.number(1, 300, 60_000), place.number(2, 40_000, 64_000));
    let hour = spacing as f64 / super::course::HOUR_MS;
    let since_oom = (place.hours - LAST_OOM).rem_euclid(LEAK_HOURS);
    if place.machine.incident == Incident::Leak && since_oom < 2.0 * hour {
        return format!(
            "kernel: Out of memory: Killed process {pid} ({LEAKING}) total-vm:14680064kB, anon-rss:12713984kB, oom_score_adj:0"
        );
    }
    if place.machine.incident == Incident::FullDisk && place.number(3, 0, 9) < 2 {
        return format!("rsyslogd[{pid}]: action 'archive' suspended: /var/log is nearly full");
    }
    if place.machine.incident == Incident::HotDrive && place.number(3, 0, 9) < 2 {
        return format!("smartd[{pid}]: Device: /dev/sda, Temperature_Celsius changed to {}", place.number(4, 51, 54));
    }
    if is_deploying(place.machine, place.hours) && place.number(3, 0, 9) < 4 {
        return format!("deploy[{pid}]: shop 2026.11.4: step {} of 6 done", place.number(4, 1, 6));
    }
    match place.number(5, 0, 11) {
        0 => format!("sshd[{pid}]: Accepted publickey for deploy from 10.20.0.9 port {port} ssh2: ED25519"),
        1 => format!("sshd[{pid}]: Connection closed by 203.0.113.{} port {port} [preauth]", place.number(6, 2, 250)),
        2 => "systemd[1]: Starting logrotate.service - Rotate log files...".to_owned(),
        3 => "systemd[1]: Finished logrotate.service - Rotate log files.".to_owned(),
        4 => format!("CRON[{pid}]: (root) CMD (test -x /usr/sbin/anacron || run-parts /etc/cron.hourly)"),
        5 => format!("chronyd[{pid}]: Selected source 192.0.2.{}", place.number(6, 1, 9)),
        6 => format!("dockerd[{pid}]: level=info msg=\"ignoring event\" module=libcontainerd"),
        7 => format!("kernel: [UFW BLOCK] IN=eth0 SRC=203.0.113.{} DPT=23 PROTO=TCP", place.number(6, 2, 250)),
        8 => "systemd[1]: apt-daily.service: Deactivated successfully.".to_owned(),
        9 => format!("signalbox-agent[{pid}]: INFO samples are acknowledged"),
        10 => {
            format!("sudo[{pid}]: deploy : TTY=pts/0 ; PWD=/srv ; USER=root ; COMMAND=/usr/bin/systemctl reload nginx")
        }
        _ => format!("systemd-logind[{pid}]: New session {} of user deploy.", place.number(6, 20, 900)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cast::fleet;
    use super::*;

    const COURSE: Course = Course { began_ms: 1_800_000_000_000 };

    fn times(lines: &[LogLine]) -> Vec<Timestamp> {
        lines.iter().filter_map(|line| line.timestamp).collect()
    }

    #[test]
    fn lines_are_in_order_and_the_same_each_time() {
        let fleet = fleet(12);
        let until = COURSE.began_ms;
        for machine in &fleet {
            let logs = machine.services.iter().map(Log::Container).chain([Log::System]);
            for log in logs {
                let newest = newest(COURSE, machine, log, (None, until), 50, |_| true);
                let first = newest[0].timestamp.unwrap().as_millis();

                assert_eq!(newest.len(), 50, "{} {log:?}", machine.name);
                assert!(times(&newest).is_sorted());
                assert_eq!(lines(COURSE, machine, log, (first, until), usize::MAX), newest);
            }
        }
    }

    #[test]
    fn a_search_finds_the_newest_lines_that_match() {
        let fleet = fleet(1);
        let log = Log::Container(&fleet[0].services[1]);

        let found = newest(COURSE, &fleet[0], log, (None, COURSE.began_ms), 5, |line| line.message.contains("error"));

        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|line| line.message.contains("error")));
    }

    #[test]
    fn the_end_of_the_leaking_process_is_in_the_journal() {
        let leaking = fleet(4).pop().unwrap();
        let oom = COURSE.at(LAST_OOM).as_millis();

        let lines = lines(COURSE, &leaking, Log::System, (oom, oom + 60_000), 10);

        assert!(lines.iter().any(|line| line.message.contains("Out of memory")), "{lines:?}");
    }
}
