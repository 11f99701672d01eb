//! Describes an alert in one line, for people. Pure.

use signalbox_history::metric;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};

use super::measurement::Unit;
use crate::alert_words::{Comparison, MetricType, Trouble};

/// The longest line, in characters: it has to fit into subjects and chat messages.
const MAX_CHARS: usize = 500;
/// The longest name of a server or target in a line, in characters.
const MAX_NAME_CHARS: usize = 120;
const MAX_PROCESS_CHARS: usize = 32;
/// How many processes a line names.
const MAX_PROCESSES: usize = 3;

/// The subject of an alert.
#[derive(Debug, Clone, Copy)]
pub struct AlertSubject<'a> {
    pub metric: MetricType,
    /// The name of an open series.
    pub series: Option<&'a str>,
    /// The threshold's target or the worst of all; for a container threshold the container.
    pub target: Option<&'a str>,
    pub server: &'a str,
}

/// The measurement that fired.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    pub value: f64,
    /// The unit of an open series.
    pub unit: Option<Unit<'a>>,
    pub comparison: Comparison,
    pub limit: f64,
    /// How long the value has crossed.
    pub lasted_ms: i64,
    /// The top processes at that time.
    pub processes: Option<&'a TopProcesses>,
    /// The trouble of a container.
    pub trouble: Option<Trouble>,
    pub exit_code: Option<i64>,
}

/// Returns the line for an alert that fires.
pub fn fired(what: &AlertSubject<'_>, measured: &Measured<'_>) -> String {
    let line = match what.metric {
        MetricType::Offline => {
            let lasted = span((measured.value * 1000.0) as i64);
            format!("{} has been offline for {lasted}", name(what.server))
        }
        MetricType::ContainerState => format!("{} {}", subject(what), trouble(measured)),
        MetricType::Reboot => format!("{} has rebooted", name(what.server)),
        metric => crossing(metric, what, measured),
    };
    cut(&line, MAX_CHARS)
}

/// Returns the line for an alert that has recovered after `lasted_ms`.
pub fn recovered(what: &AlertSubject<'_>, lasted_ms: i64) -> String {
    cut(&format!("{} has recovered after {}", subject(what), span(lasted_ms)), MAX_CHARS)
}

/// Returns the line for a schedule that has failed; `what` says how.
pub fn of_schedule(schedule: &str, server: &str, what: &str) -> String {
    cut(&format!("schedule {} on {} {what}", name(schedule), name(server)), MAX_CHARS)
}

fn crossing(metric: MetricType, what: &AlertSubject<'_>, measured: &Measured<'_>) -> String {
    let with_unit = |value: f64| match measured.unit {
        Some(unit) => of_unit(unit, value),
        None => quantity(metric, value),
    };
    let [value, limit] = [measured.value, measured.limit].map(with_unit);
    let full = if metric == MetricType::Disk { " full" } else { "" };
    let side = match measured.comparison {
        Comparison::Gt => "over",
        Comparison::Gte => "at least",
        Comparison::Lt => "under",
        Comparison::Lte => "at most",
    };
    let mut line = format!("{} is {value}{full} on {}, {side} {limit}", thing(what), name(what.server));
    if measured.lasted_ms > 0 {
        line.push_str(" for ");
        line.push_str(&span(measured.lasted_ms));
    }
    let top = top(metric, measured.processes);
    if !top.is_empty() {
        line.push_str(" (top: ");
        line.push_str(&top.join(", "));
        line.push(')');
    }
    line
}

/// Returns what the alert is about, with the server.
fn subject(what: &AlertSubject<'_>) -> String {
    let server = name(what.server);
    if matches!(what.metric, MetricType::Offline | MetricType::Reboot) {
        server
    } else {
        format!("{} on {server}", thing(what))
    }
}

/// Returns what the alert is about, without the server.
fn thing(what: &AlertSubject<'_>) -> String {
    let (word, behind) = match what.metric {
        MetricType::Cpu => ("CPU", ""),
        MetricType::Disk => ("disk", ""),
        MetricType::Temperature => ("temperature", "of "),
        MetricType::NetworkIn => ("network input", "of "),
        MetricType::NetworkOut => ("network output", "of "),
        MetricType::ContainerState => ("container", ""),
        MetricType::Series => (what.series.unwrap_or("series"), "of "),
        metric => (metric.word(), ""),
    };
    match what.target {
        Some(target) => format!("{word} {behind}{}", name(target)),
        None => word.to_owned(),
    }
}

fn trouble(measured: &Measured<'_>) -> String {
    let exit = measured.exit_code.map(|code| format!("exit code {code}"));
    match measured.trouble {
        Some(Trouble::Unhealthy) => "is unhealthy".to_owned(),
        Some(Trouble::RestartLoop) => {
            let times = number(measured.value);
            let exit = exit.map(|exit| format!(", {exit}")).unwrap_or_default();
            format!("keeps restarting ({times} times in 5 min{exit})")
        }
        Some(Trouble::Stopped) | None => {
            format!("has stopped{}", exit.map(|exit| format!(" ({exit})")).unwrap_or_default())
        }
    }
}

/// Returns the top processes, for metrics that processes cause.
fn top(metric: MetricType, processes: Option<&TopProcesses>) -> Vec<String> {
    let Some(processes) = processes else { return Vec::new() };
    let cpu = |process: &ProcessUsage| format!("{} {:.0} %", program(process), process.cpu_percent);
    let memory = |process: &ProcessUsage| format!("{} {}", program(process), bytes(process.memory_bytes as f64));
    match metric {
        MetricType::Cpu => processes.by_cpu.iter().take(MAX_PROCESSES).map(cpu).collect(),
        MetricType::Memory => processes.by_memory.iter().take(MAX_PROCESSES).map(memory).collect(),
        _ => Vec::new(),
    }
}

fn program(process: &ProcessUsage) -> String {
    cut(&plain(&process.name), MAX_PROCESS_CHARS)
}

/// Formats a value of a typed metric with its unit.
fn quantity(metric: MetricType, value: f64) -> String {
    match metric::find_threshold(metric.word()) {
        Some(threshold) => of_unit(Unit { name: threshold.unit.as_str(), is_rate: false }, value),
        None => number(value),
    }
}

/// Formats a value with its unit. A unit that this build does not know is written unchanged.
fn of_unit(unit: Unit<'_>, value: f64) -> String {
    let text = match unit.name {
        "bytes" => bytes(value),
        "bytes_per_second" => format!("{}/s", bytes(value)),
        "percent" => format!("{} %", number(value)),
        "celsius" => format!("{} °C", number(value)),
        "seconds" => format!("{} s", number(value)),
        "milliseconds" => format!("{} ms", number(value)),
        "per_second" => format!("{}/s", number(value)),
        "volts" => format!("{} V", number(value)),
        "watts" => format!("{} W", number(value)),
        "days" => format!("{} d", number(value)),
        "count" | "ratio" | "bool" => number(value),
        other => format!("{} {other}", number(value)),
    };
    if unit.is_rate { format!("{text}/s") } else { text }
}

/// Formats a number with at most two decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats bytes in the largest unit that gives at least 1, with at most one decimal.
fn bytes(count: f64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let (mut scaled, mut unit) = (count, "B");
    for larger in UNITS {
        // A value that would be rounded to 1000 is 1 of the next unit.
        if scaled.abs() < 999.95 {
            break;
        }
        (scaled, unit) = (scaled / 1000.0, larger);
    }
    let text = format!("{scaled:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats a duration in its two largest units.
fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let [days, hours, minutes] = [seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60];
    let two = |large: i64, unit: &str, small: i64, other: &str| {
        if small == 0 { format!("{large} {unit}") } else { format!("{large} {unit} {small} {other}") }
    };
    match (days, hours, minutes) {
        (1.., _, _) => two(days, "d", hours, "h"),
        (_, 1.., _) => two(hours, "h", minutes, "min"),
        (_, _, 1..) => two(minutes, "min", seconds % 60, "s"),
        _ => format!("{seconds} s"),
    }
}

/// Returns an untrusted name, safe to show and cut to its limit.
fn name(text: &str) -> String {
    cut(&plain(text), MAX_NAME_CHARS)
}

/// Returns the text as one line, with control characters and those that change the direction of a text replaced.
fn plain(text: &str) -> String {
    let is_odd = |char: char| {
        let turns = matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        char.is_control() || turns || matches!(char, '\u{2028}' | '\u{2029}')
    };
    text.chars().map(|char| if is_odd(char) { char::REPLACEMENT_CHARACTER } else { char }).collect()
}

fn cut(text: &str, most_chars: usize) -> String {
    if text.chars().nth(most_chars).is_none() {
        return text.to_owned();
    }
    text.chars().take(most_chars - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "web-1";

    fn what(metric: MetricType, target: Option<&'static str>) -> AlertSubject<'static> {
        AlertSubject { metric, series: None, target, server: SERVER }
    }

    fn measured(value: f64, limit: f64, lasted_ms: i64) -> Measured<'static> {
        Measured {
            value,
            unit: None,
            comparison: Comparison::Gt,
            limit,
            lasted_ms,
            processes: None,
            trouble: None,
            exit_code: None,
        }
    }

    fn process(name: &str, cpu_percent: f64, memory_bytes: u64) -> ProcessUsage {
        ProcessUsage { name: name.into(), cpu_percent, memory_bytes, ..ProcessUsage::default() }
    }

    #[test]
    fn every_metric_is_written_in_its_unit() {
        for (metric, target, value, limit, expected) in [
            (MetricType::Cpu, None, 97.3, 90.0, "CPU is 97.3 % on web-1, over 90 % for 5 min"),
            (MetricType::Memory, None, 91.0, 90.5, "memory is 91 % on web-1, over 90.5 % for 5 min"),
            (MetricType::Swap, None, 50.25, 50.0, "swap is 50.25 % on web-1, over 50 % for 5 min"),
            (MetricType::Load, None, 12.5, 8.0, "load is 12.5 on web-1, over 8 for 5 min"),
            (MetricType::Disk, Some("/"), 93.1, 90.0, "disk / is 93.1 % full on web-1, over 90 % for 5 min"),
            (
                MetricType::Temperature,
                Some("core 0"),
                91.5,
                90.0,
                "temperature of core 0 is 91.5 °C on web-1, over 90 °C for 5 min",
            ),
            (MetricType::Temperature, None, -5.0, -10.0, "temperature is -5 °C on web-1, over -10 °C for 5 min"),
            (
                MetricType::NetworkIn,
                Some("eth0"),
                123_456_789.0,
                1e8,
                "network input of eth0 is 123.5 MB/s on web-1, over 100 MB/s for 5 min",
            ),
            (
                MetricType::NetworkOut,
                None,
                999_960.0,
                999.0,
                "network output is 1 MB/s on web-1, over 999 B/s for 5 min",
            ),
        ] {
            assert_eq!(fired(&what(metric, target), &measured(value, limit, 300_000)), expected);
        }
    }

    #[test]
    fn open_series_are_written_in_their_own_units() {
        let told = |name, is_rate, value| {
            let what = AlertSubject { series: Some("queue_size"), ..what(MetricType::Series, Some("mail")) };
            fired(&what, &Measured { unit: Some(Unit { name, is_rate }), ..measured(value, 1_500.0, 300_000) })
        };

        assert_eq!(told("rpm", false, 900.5), "queue_size of mail is 900.5 rpm on web-1, over 1500 rpm for 5 min");
        assert_eq!(told("bytes", true, 2e6), "queue_size of mail is 2 MB/s on web-1, over 1.5 kB/s for 5 min");
        assert_eq!(told("count", false, 2e3), "queue_size of mail is 2000 on web-1, over 1500 for 5 min");
    }

    #[test]
    fn comparisons_have_their_words_and_a_zero_duration_is_left_out() {
        for (comparison, side) in Comparison::ALL.iter().zip(["over", "at least", "under", "at most"]) {
            let measured = Measured { comparison: *comparison, ..measured(5.0, 5.0, 0) };

            assert_eq!(fired(&what(MetricType::Load, None), &measured), format!("load is 5 on web-1, {side} 5"));
        }
    }

    #[test]
    fn the_top_three_processes_are_named() {
        let by_cpu = ["ffmpeg", "postgres", "node", "sshd"].iter().zip([180.4, 35.0, 12.0, 1.0]);
        let by_cpu = by_cpu.map(|(name, percent)| process(name, percent, 0)).collect();
        let by_memory = vec![process("postgres", 0.0, 3_200_000_000), process("node", 0.0, 512_000)];
        let processes = TopProcesses { by_cpu, by_memory };
        let measured = Measured { processes: Some(&processes), ..measured(97.3, 90.0, 300_000) };

        let [cpu, memory, load] =
            [MetricType::Cpu, MetricType::Memory, MetricType::Load].map(|metric| fired(&what(metric, None), &measured));

        assert_eq!(cpu, "CPU is 97.3 % on web-1, over 90 % for 5 min (top: ffmpeg 180 %, postgres 35 %, node 12 %)");
        assert_eq!(memory, "memory is 97.3 % on web-1, over 90 % for 5 min (top: postgres 3.2 GB, node 512 kB)");
        assert_eq!(load, "load is 97.3 on web-1, over 90 for 5 min");
    }

    #[test]
    fn offline_reboot_and_container_alerts_have_their_own_sentences() {
        let offline = fired(&what(MetricType::Offline, None), &measured(125.0, 120.0, 0));
        let container = |trouble, value, exit_code| {
            let measured = Measured { trouble: Some(trouble), exit_code, ..measured(value, 3.0, 0) };
            fired(&what(MetricType::ContainerState, Some("db")), &measured)
        };

        assert_eq!(offline, "web-1 has been offline for 2 min 5 s");
        assert_eq!(fired(&what(MetricType::Reboot, None), &measured(1.0, 300.0, 0)), "web-1 has rebooted");
        assert_eq!(container(Trouble::Stopped, 1.0, Some(137)), "container db on web-1 has stopped (exit code 137)");
        assert_eq!(container(Trouble::Stopped, 1.0, None), "container db on web-1 has stopped");
        assert_eq!(container(Trouble::Unhealthy, 1.0, None), "container db on web-1 is unhealthy");
        assert_eq!(
            container(Trouble::RestartLoop, 4.0, Some(1)),
            "container db on web-1 keeps restarting (4 times in 5 min, exit code 1)"
        );
    }

    #[test]
    fn a_recovery_says_how_long_it_took() {
        for (metric, target, lasted_ms, expected) in [
            (MetricType::Cpu, None, 720_000, "CPU on web-1 has recovered after 12 min"),
            (MetricType::Disk, Some("/var"), 7_500_000, "disk /var on web-1 has recovered after 2 h 5 min"),
            (MetricType::Offline, None, 45_999, "web-1 has recovered after 45 s"),
            (MetricType::ContainerState, Some("db"), 266_400_000, "container db on web-1 has recovered after 3 d 2 h"),
            (MetricType::NetworkIn, None, -1, "network input on web-1 has recovered after 0 s"),
        ] {
            assert_eq!(recovered(&what(metric, target), lasted_ms), expected);
        }
    }

    #[test]
    fn any_names_make_one_short_line() {
        let long = "\u{1b}[31m\n".repeat(1000);
        let what = AlertSubject { metric: MetricType::Cpu, series: None, target: Some(&long), server: &long };
        let processes = TopProcesses { by_cpu: vec![process(&long, 1e7, 0); 8], by_memory: Vec::new() };
        let measured = Measured { processes: Some(&processes), ..measured(1e300, -1e300, i64::MAX) };

        for line in [fired(&what, &measured), recovered(&what, i64::MAX)] {
            assert!(line.chars().count() <= MAX_CHARS, "{line}");
            assert!(!line.chars().any(char::is_control), "{line}");
        }
    }

    #[test]
    fn names_cannot_change_the_direction_of_the_text() {
        let what = AlertSubject { metric: MetricType::Offline, series: None, target: None, server: "a\u{202e}b" };

        assert_eq!(recovered(&what, 0), "a\u{fffd}b has recovered after 0 s");
    }
}
