//! The programs of the simulated shell.

use std::fmt::Write;

use signalbox_protocol::Sample;

use super::super::cast::{Machine, Role};
use super::super::containers;
use super::super::course::runs;
use super::super::journal::{Log, newest};
use super::super::processes::processes;
use super::{Answer, Host};

/// Units of systemd that every server has.
const UNITS: [&str; 7] = ["ssh", "sshd", "cron", "docker", "chrony", "systemd-journald", "signalbox-agent"];

/// The longest that `sleep` takes.
const MAX_SLEEP_MS: f64 = 3_600_000.0;

/// Runs a program with its arguments, and with the output of the program before it in a pipeline.
pub fn run(host: Host<'_>, words: &[&str], input: Option<&str>) -> Answer {
    let Some((program, arguments)) = words.split_first() else { return Answer::default() };
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "true" | ":" | "sync" => Answer::default(),
        "false" => Answer::failed(1, ""),
        "exit" => {
            Answer { exit_code: arguments.first().and_then(|code| code.parse().ok()).unwrap_or(0), ..Answer::default() }
        }
        "echo" => echo(arguments),
        "hostname" => Answer::text(format!("{}\n", host.machine.name)),
        "whoami" => Answer::text("signalbox\n"),
        "id" => Answer::text("uid=997(signalbox) gid=997(signalbox) groups=997(signalbox),999(docker)\n"),
        "pwd" => Answer::text("/\n"),
        "nproc" => Answer::text(format!("{}\n", host.machine.cores)),
        "date" => Answer::text(format!("{}\n", time(host).format("%a %b %e %H:%M:%S UTC %Y"))),
        "sleep" => sleep(arguments),
        "uptime" => Answer::text(uptime(host)),
        "uname" => Answer::text(uname(host.machine, arguments)),
        "df" => Answer::text(df(host)),
        "free" => Answer::text(free(host, arguments)),
        "ps" => Answer::text(ps(host)),
        "ls" => ls(arguments),
        "cat" => cat(host, arguments, input),
        "head" | "tail" => cut(name, arguments, input),
        "grep" => grep(arguments, input),
        "wc" => wc(arguments, input),
        "sort" => sort(input),
        "systemctl" => systemctl(host, arguments),
        "journalctl" => journalctl(host, arguments),
        "docker" => docker(host, arguments),
        "deploy.sh" if matches!(host.machine.role, Role::Web | Role::App) => deploy(arguments),
        "sudo" => run(host, arguments, input),
        _ => Answer::failed(127, format!("sh: 1: {program}: not found\n")),
    }
}

fn sample(host: Host<'_>) -> Sample {
    host.course.sample(host.machine, host.at_ms)
}

fn time(host: Host<'_>) -> chrono::DateTime<chrono::Utc> {
    signalbox_protocol::Timestamp::from_millis(host.at_ms).to_datetime()
}

fn echo(arguments: &[&str]) -> Answer {
    match arguments.split_first() {
        Some((&"-n", rest)) => Answer::text(rest.join(" ")),
        _ => Answer::text(format!("{}\n", arguments.join(" "))),
    }
}

fn sleep(arguments: &[&str]) -> Answer {
    let seconds = arguments.first().and_then(|text| text.trim_end_matches('s').parse::<f64>().ok());
    match seconds.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => Answer { takes_ms: (seconds * 1_000.0).min(MAX_SLEEP_MS) as u64, ..Answer::default() },
        None => Answer::failed(1, "sleep: invalid time interval\n"),
    }
}

fn deploy(arguments: &[&str]) -> Answer {
    let version = arguments.first().copied().unwrap_or("2026.11.4");
    let text = format!("shop {version}: image pulled\nshop {version}: 2 of 2 healthy\nshop {version}: released\n");
    Answer { takes_ms: 1_800, ..Answer::text(text) }
}

fn uptime(host: Host<'_>) -> String {
    let sample = sample(host);
    let [one, five, fifteen] = sample.load_average;
    let (days, rest) = (sample.uptime_seconds / 86_400, sample.uptime_seconds % 86_400);
    let (hours, minutes) = (rest / 3_600, rest % 3_600 / 60);
    let now = time(host).format("%H:%M:%S");
    format!(
        " {now} up {days} days, {hours:2}:{minutes:02},  1 user,  load average: {one:.2}, {five:.2}, {fifteen:.2}\n"
    )
}

fn uname(machine: &Machine, arguments: &[&str]) -> String {
    match arguments.first() {
        Some(&"-r") => format!("{}\n", machine.os.kernel),
        Some(&"-m") => format!("{}\n", machine.os.arch),
        Some(&"-a") => format!("Linux {} {} #1 SMP {} GNU/Linux\n", machine.name, machine.os.kernel, machine.os.arch),
        _ => "Linux\n".to_owned(),
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["K", "M", "G", "T"];
    let (mut scaled, mut unit) = (bytes as f64 / 1024.0, "K");
    for larger in UNITS.into_iter().skip(1) {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    if scaled < 10.0 { format!("{scaled:.1}{unit}") } else { format!("{scaled:.0}{unit}") }
}

fn df(host: Host<'_>) -> String {
    let sample = sample(host);
    let mut text = "Filesystem      Size  Used Avail Use% Mounted on\n".to_owned();
    for (usage, disk) in sample.disk_usage.iter().zip(&host.machine.disks) {
        let device = format!("/dev/{}", disk.device);
        let [total, used, free] = [usage.total, usage.used, usage.free].map(size);
        _ = writeln!(text, "{device:<15} {total:>4}  {used:>4}  {free:>4}  {:>2.0}% {}", usage.percent, usage.path);
    }
    text
}

fn free(host: Host<'_>, arguments: &[&str]) -> String {
    let sample = sample(host);
    let is_human = arguments.contains(&"-h");
    let unit = if arguments.contains(&"-g") {
        1 << 30
    } else if arguments.contains(&"-m") {
        1 << 20
    } else {
        1 << 10
    };
    let shown = |bytes: u64| if is_human { format!("{}i", size(bytes)) } else { (bytes / unit).to_string() };
    let (total, used) = (sample.memory_total, sample.memory_used);
    let (cache, available) = ((total - used) / 3, total - used);
    let memory = [total, used, available - cache, 1 << 20, cache, available].map(shown);
    let swap = [sample.swap_total, sample.swap_used, sample.swap_total - sample.swap_used].map(shown);
    let mut text = "               total        used        free      shared  buff/cache   available\n".to_owned();
    let line = |values: &[String]| values.iter().map(|value| format!("{value:>12}")).collect::<String>();
    _ = writeln!(text, "Mem:    {}", line(&memory));
    _ = writeln!(text, "Swap:   {}", line(&swap));
    text
}

fn ps(host: Host<'_>) -> String {
    let sample = sample(host);
    let mut text = "USER         PID %CPU %MEM    RSS COMMAND\n".to_owned();
    for process in processes(host.machine, &sample) {
        let share = process.memory_bytes as f64 / sample.memory_total as f64 * 100.0;
        let (user, pid, cpu, rss) = (&process.user, process.pid, process.cpu_percent, process.memory_bytes / 1024);
        _ = writeln!(text, "{user:<10} {pid:>5} {cpu:>4.1} {share:>4.1} {rss:>6} {}", process.name);
    }
    text
}

fn ls(arguments: &[&str]) -> Answer {
    let path = arguments.iter().find(|word| !word.starts_with('-')).copied().unwrap_or("/");
    let names: &[&str] = match path.trim_end_matches('/') {
        "" | "." => &["bin", "boot", "dev", "etc", "home", "opt", "proc", "root", "run", "srv", "tmp", "usr", "var"],
        "/etc" => &["hostname", "hosts", "os-release", "passwd", "ssh", "systemd"],
        "/srv" => &["deploy.sh", "shop"],
        "/var" => &["backups", "cache", "lib", "log", "spool", "tmp"],
        "/var/log" => &["apt", "journal", "syslog"],
        "/home" | "/opt" | "/tmp" => &[],
        _ => return Answer::failed(2, format!("ls: cannot access '{path}': No such file or directory\n")),
    };
    Answer::text(names.iter().map(|name| format!("{name}\n")).collect::<String>())
}

fn cat(host: Host<'_>, arguments: &[&str], input: Option<&str>) -> Answer {
    let Some(path) = arguments.first() else { return Answer::text(input.unwrap_or_default()) };
    let os = host.machine.os;
    match *path {
        "/etc/os-release" => {
            Answer::text(format!("PRETTY_NAME=\"{}\"\nID={}\nVERSION_ID=\"{}\"\n", os.name, os.id, os.version))
        }
        "/etc/hostname" => Answer::text(format!("{}\n", host.machine.name)),
        "/proc/loadavg" => {
            let [one, five, fifteen] = sample(host).load_average;
            Answer::text(format!("{one:.2} {five:.2} {fifteen:.2} 2/214 48211\n"))
        }
        "/proc/uptime" => Answer::text(format!("{}.00 0.00\n", sample(host).uptime_seconds)),
        path => Answer::failed(1, format!("cat: {path}: No such file or directory\n")),
    }
}

/// The count after `-n`, or as `-5`.
fn count(arguments: &[&str], default: usize) -> usize {
    let after = arguments.iter().position(|word| matches!(*word, "-n" | "--lines" | "-l"));
    let named = after.and_then(|place| arguments.get(place + 1)).copied();
    let short = arguments.iter().find_map(|word| word.strip_prefix("-n").or_else(|| word.strip_prefix('-')));
    let attached = short.and_then(|text| text.parse().ok());
    named.and_then(|text| text.trim_start_matches('-').parse().ok()).or(attached).unwrap_or(default)
}

fn cut(program: &str, arguments: &[&str], input: Option<&str>) -> Answer {
    let lines: Vec<&str> = input.unwrap_or_default().lines().collect();
    let most = count(arguments, 10);
    let skipped = if program == "tail" { lines.len().saturating_sub(most) } else { 0 };
    Answer::text(lines.iter().skip(skipped).take(most).map(|line| format!("{line}\n")).collect::<String>())
}

fn grep(arguments: &[&str], input: Option<&str>) -> Answer {
    let is_folded = arguments.iter().any(|word| word.starts_with('-') && word.contains('i'));
    let is_inverted = arguments.iter().any(|word| word.starts_with('-') && word.contains('v'));
    let Some(pattern) = arguments.iter().find(|word| !word.starts_with('-')) else {
        return Answer::failed(2, "usage: grep [-iv] PATTERN\n");
    };
    let folded = |text: &str| if is_folded { text.to_lowercase() } else { text.to_owned() };
    let wanted = folded(pattern);
    let lines = input.unwrap_or_default().lines().filter(|line| folded(line).contains(&wanted) != is_inverted);
    let found: String = lines.map(|line| format!("{line}\n")).collect();
    if found.is_empty() { Answer::failed(1, "") } else { Answer::text(found) }
}

fn wc(arguments: &[&str], input: Option<&str>) -> Answer {
    let text = input.unwrap_or_default();
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    if arguments.contains(&"-l") {
        return Answer::text(format!("{lines}\n"));
    }
    Answer::text(format!("{lines:>7} {words:>7} {:>7}\n", text.len()))
}

fn sort(input: Option<&str>) -> Answer {
    let mut lines: Vec<&str> = input.unwrap_or_default().lines().collect();
    lines.sort_unstable();
    Answer::text(lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}

fn systemctl(host: Host<'_>, arguments: &[&str]) -> Answer {
    let mut named = arguments.iter().filter(|word| !word.starts_with('-')).copied();
    let (action, unit) = (named.next().unwrap_or("list-units"), named.next());
    let Some(unit) = unit.map(|unit| unit.trim_end_matches(".service")) else {
        let text: String = UNITS.iter().map(|unit| format!("{unit}.service loaded active running\n")).collect();
        return Answer::text(text);
    };
    let is_known = UNITS.contains(&unit) || host.machine.services.iter().any(|service| service.name == unit);
    let missing = || format!("Unit {unit}.service could not be found.\n");
    match action {
        "is-active" if is_known => Answer::text("active\n"),
        "is-active" => Answer { stdout: "inactive\n".to_owned(), exit_code: 3, ..Answer::default() },
        _ if !is_known => Answer::failed(if action == "status" { 4 } else { 5 }, missing()),
        "status" => {
            let since = signalbox_protocol::Timestamp::from_millis(host.course.booted_ms(host.machine, host.at_ms));
            let since = since.to_datetime().format("%a %Y-%m-%d %H:%M:%S UTC");
            Answer::text(format!(
                "● {unit}.service\n     Loaded: loaded (/usr/lib/systemd/system/{unit}.service; enabled)\n     \
                 Active: active (running) since {since}\n"
            ))
        }
        "start" | "stop" | "restart" | "reload" => Answer { takes_ms: 400, ..Answer::default() },
        _ => Answer::failed(1, format!("Unknown command verb '{action}'.\n")),
    }
}

fn journalctl(host: Host<'_>, arguments: &[&str]) -> Answer {
    let most = count(arguments, 20).min(500);
    let lines = newest(host.course, host.machine, Log::System, (None, host.at_ms), most, |_| true);
    let line = |line: signalbox_protocol::agent::LogLine| {
        let at = line.timestamp.unwrap_or_default().to_datetime().format("%b %d %H:%M:%S").to_string();
        format!("{at} {} {}: {}\n", host.machine.name, line.stream.unwrap_or_default(), line.message)
    };
    Answer::text(lines.into_iter().map(line).collect::<String>())
}

fn docker(host: Host<'_>, arguments: &[&str]) -> Answer {
    let is_all = arguments.contains(&"-a");
    match arguments.first() {
        Some(&"ps") => {
            let mut text = format!("{:<14} {:<40} {:<22} NAMES\n", "CONTAINER ID", "IMAGE", "STATUS");
            for service in host.machine.services {
                if is_all || runs(host.machine, service, host.at_ms) {
                    let listed = containers::listed(host.course, host.machine, service, host.at_ms);
                    let id: String = listed.id.chars().take(12).collect();
                    _ = writeln!(text, "{id:<14} {:<40} {:<22} {}", listed.image, listed.status, listed.name);
                }
            }
            Answer::text(text)
        }
        Some(&"--version") => Answer::text("Docker version 28.5.1, build e180ab8\n"),
        _ => Answer::failed(1, "usage: docker ps [-a]\n"),
    }
}
