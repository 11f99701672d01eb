//! The rows of the report.

use std::time::{Duration, Instant};

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::MAX_SAMPLES;

use super::{Measured, Set};
use crate::data::{Batches, Dataset};
use crate::figures::Row;
use crate::question::{Kind, Mode};
use crate::report::{Aim, Report, megabytes, rounded};
use crate::store::Note;

/// What generating and encoding one sample costs this program, measured separately.
pub fn cost_of_making(seed: u64) -> anyhow::Result<String> {
    const MESSAGES: u64 = 20;

    let data = Dataset::ending_at(Timestamp::now(), seed, 1, 7.0, 5000);
    let mut batches = Batches::new(data.machine(0));
    let start = Instant::now();
    let mut bytes = 0;
    for seq in 0..MESSAGES {
        bytes += batches.message(seq, MAX_SAMPLES)?.len();
    }
    let samples = (MESSAGES * MAX_SAMPLES as u64) as f64;
    let micros = start.elapsed().as_secs_f64() * 1e6 / samples;
    Ok(format!("{micros:.1} µs and {:.0} bytes a sample", bytes as f64 / samples))
}

/// The table of a set: the stored bytes, and then the queries. The best of the others is the aim.
pub fn make(set: &Set, making: &str, peers: &[Measured], ours: Option<&Measured>, left_out: Vec<Note>) -> Report {
    let mut report = Report::new(set.title.clone());
    let data = &set.data;
    let values = data.values_a_sample();
    report.note("data", format!("{} samples of {values} values: {}", data.all_samples(), data.all_values()));
    report.note("making and encoding a sample", making);
    for (what, why) in left_out {
        report.note(what, why);
    }
    for measured in peers.iter().chain(ours) {
        feeding(&mut report, measured, set);
    }
    for measured in peers.iter().chain(ours) {
        report.note(format!("{}: bytes a value", measured.name), sizes(measured, values));
    }
    if let Some(ours) = ours {
        compare_sizes(&mut report, set, peers, ours);
    }
    for mode in set.modes {
        for kind in set.kinds {
            answers(&mut report, *kind, *mode, peers, ours);
        }
    }
    let was_cold = peers.iter().chain(ours).flat_map(|measured| &measured.asked).any(|asked| asked.mode == Mode::Cold);
    if set.modes.contains(&Mode::Cold) && !was_cold {
        report.note("cold", "left out: this user may not empty the page cache");
    }
    for measured in peers.iter().chain(ours) {
        let Measured { name, checked, .. } = measured;
        report.note(format!("{name}: points compared with what was made"), checked.compared);
        report.must_be_zero(format!("{name}: points missing or different"), checked.wrong);
        if let Some(example) = &checked.example {
            report.note(format!("{name}: the first of them"), example);
        }
    }
    if let Some(ours) = ours {
        report.must_be_zero("samples not acknowledged", data.all_samples().abs_diff(ours.fed.samples));
    }
    report
}

fn compare_sizes(report: &mut Report, set: &Set, peers: &[Measured], ours: &Measured) {
    let all = |measured: &Measured| Some(measured.stored.bytes as f64 / values_of(measured, set));
    let raw = |measured: &Measured| Some(measured.stored.raw_bytes? as f64 / values_of(measured, set));
    // A year of one server has other priorities.
    let is_week = set.kinds.contains(&Kind::OneSeries);
    if let Some(value) = raw(ours) {
        if is_week {
            report.record(Row::HistoryRaw, value);
        }
        aimed(report, "raw samples, bytes a value", value, peers.iter().filter_map(raw).min_by(f64::total_cmp));
    }
    if let Some(value) = all(ours) {
        if is_week {
            report.record(Row::HistoryBytes, value);
        }
        aimed(report, "everything, bytes a value", value, peers.iter().filter_map(all).min_by(f64::total_cmp));
    }
}

/// Numbers that a store was given.
fn values_of(measured: &Measured, set: &Set) -> f64 {
    (measured.fed.samples * set.data.values_a_sample()) as f64
}

fn feeding(report: &mut Report, measured: &Measured, set: &Set) {
    let Measured { name, fed, settled, stored, checked, load, .. } = measured;
    let seconds = fed.elapsed.as_secs_f64();
    let values = values_of(measured, set);
    let part = fed.samples as f64 / set.data.all_samples() as f64 * 100.0;
    if fed.samples < set.data.all_samples() {
        report.note(format!("{name}: only the last part of the data"), format!("{part:.1} %"));
    }
    let rate = |count: f64| rounded(count / seconds.max(f64::EPSILON));
    report.note(
        format!("{name}: fed"),
        format!("{seconds:.1} s, {} samples/s, {} values/s", rate(fed.samples as f64), rate(values)),
    );
    if let Some(cpu) = fed.cpu {
        let cpu = cpu.total().as_secs_f64();
        report.note(
            format!("{name}: CPU s per million values"),
            format!("{:.3}; {} values/s and core", cpu / values * 1e6, rounded(values / cpu.max(f64::EPSILON))),
        );
    }
    report
        .note(format!("{name}: generator CPU in that time, s"), format!("{:.1}", fed.generator.total().as_secs_f64()));
    if let Some(peak) = fed.peak_rss {
        report.note(format!("{name}: highest RSS, MB"), format!("{:.0}", megabytes(peak)));
    }
    for (what, how) in settled.iter().chain(&stored.notes).chain(&checked.notes) {
        report.note(format!("{name}: {what}"), how);
    }
    if let Some(load) = load {
        report.note(format!("{name}: came in while questions were asked"), load);
    }
}

fn sizes(measured: &Measured, values_a_sample: u64) -> String {
    let values = (measured.fed.samples * values_a_sample) as f64;
    let a_value = |bytes: u64| format!("{:.3}", bytes as f64 / values);
    let all = format!("{} in all ({:.1} MB)", a_value(measured.stored.bytes), megabytes(measured.stored.bytes));
    match measured.stored.raw_bytes {
        Some(raw) => format!("{} for raw samples ({:.1} MB), {all}", a_value(raw), megabytes(raw)),
        None => all,
    }
}

/// A figure that should not be more than the best of the others, if there is one.
fn aimed(report: &mut Report, figure: &str, value: f64, best: Option<f64>) {
    match best {
        // A table is easier to read in thousandths than with all the digits of a quotient.
        Some(best) => report.figure(figure, value, Aim::AtMost((best * 1000.0).round() / 1000.0)),
        None => report.note(figure, rounded(value)),
    }
}

fn answers(report: &mut Report, kind: Kind, mode: Mode, peers: &[Measured], ours: Option<&Measured>) {
    let of = |measured: &Measured| {
        let asked = measured.asked.iter().find(|asked| asked.kind == kind && asked.mode == mode)?;
        Some((measured.name, asked.clone()))
    };
    let mut best: Option<(Duration, Duration)> = None;
    for (name, asked) in peers.iter().filter_map(of) {
        let kilobytes = asked.bytes as f64 / 1000.0;
        report.note(format!("{name}: {kind}, {mode}"), format!("{}; {kilobytes:.1} kB", asked.latency));
        let (p50, p99) = best.unwrap_or((Duration::MAX, Duration::MAX));
        best = Some((p50.min(asked.latency.p50), p99.min(asked.latency.p99)));
    }
    let Some((name, asked)) = ours.and_then(of) else { return };
    let kilobytes = asked.bytes as f64 / 1000.0;
    report.note(format!("{name}: {kind}, {mode}"), format!("{}; {kilobytes:.1} kB", asked.latency));
    let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
    match (kind, mode) {
        (Kind::OneSeries, Mode::Warm) => report.record(Row::HistorySeriesDay, millis(asked.latency.p50)),
        (Kind::OneSeries, Mode::Fed) => report.record(Row::HistorySeriesDayFed, millis(asked.latency.p50)),
        (Kind::EverySeries, Mode::Warm) => report.record(Row::HistoryAllDay, millis(asked.latency.p99)),
        (Kind::OneSeriesOverAll, Mode::Warm) => report.record(Row::HistorySeriesYear, millis(asked.latency.p99)),
        (Kind::EverySeriesOverAll, Mode::Warm) => report.record(Row::HistoryAllYear, millis(asked.latency.p99)),
        _ => {}
    }
    aimed(report, &format!("{kind}, {mode}: p50, ms"), millis(asked.latency.p50), best.map(|(p50, _)| millis(p50)));
    aimed(report, &format!("{kind}, {mode}: p99, ms"), millis(asked.latency.p99), best.map(|(_, p99)| millis(p99)));
}
