//! The metrics of the machine as a whole, and of each core.

use signalbox_protocol::Sample;
use signalbox_protocol::series::Unit;

use super::row::{at, fact, row, series, told, watching};
use super::{Access, ExpositionValue, Field, HUNDREDTHS, Key, Kind, MetricOf, Scale, Threshold};

/// The numbers are stored, so a number never changes its meaning. A new metric takes the lowest that no file here uses.
impl Field {
    /// The busy share of all cores.
    pub const CPU: Self = Self::new(0, Kind::Gauge, HUNDREDTHS);
    /// The used share of memory.
    pub const MEMORY_PERCENT: Self = Self::new(1, Kind::Gauge, HUNDREDTHS);
    /// The size of memory.
    pub const MEMORY_TOTAL: Self = Self::new(2, Kind::Last, Scale::Whole);
    /// Used memory.
    pub const MEMORY_USED: Self = Self::new(3, Kind::Gauge, Scale::Whole);
    /// The size of swap.
    pub const SWAP_TOTAL: Self = Self::new(4, Kind::Last, Scale::Whole);
    /// Used swap.
    pub const SWAP_USED: Self = Self::new(5, Kind::Gauge, Scale::Whole);
    /// The load average over 1 minute.
    pub const LOAD_1: Self = Self::new(6, Kind::Gauge, HUNDREDTHS);
    /// The load average over 5 minutes.
    pub const LOAD_5: Self = Self::new(7, Kind::Gauge, HUNDREDTHS);
    /// The load average over 15 minutes.
    pub const LOAD_15: Self = Self::new(8, Kind::Gauge, HUNDREDTHS);
    /// Seconds since boot.
    pub const UPTIME: Self = Self::new(9, Kind::Last, Scale::Whole);
    /// The number of processes.
    pub const PROCESS_COUNT: Self = Self::new(10, Kind::Gauge, Scale::Whole);
    /// The busy share of one core.
    pub const CORE: Self = Self::new(11, Kind::Gauge, HUNDREDTHS);
}

/// The metrics of the machine as a whole.
pub static MACHINE: [MetricOf<Sample>; 11] = [
    row(
        series(Field::CPU, "cpu_percent", Unit::Percent, "all cores", "Share of the time that all cores were busy.")
            .exposed(
                "signalbox_cpu_usage_ratio",
                "Share of all cores that were busy between the latest two samples, 0 to 1. A gauge: there are no \
                 node_cpu_seconds_total counters here.",
            )
            .watched(Threshold { word: "cpu", label: "CPU", unit: Unit::Percent, counts: "percent", usual: 90.0 }),
        at!(Number cpu_percent),
    ),
    row(
        series(
            Field::MEMORY_PERCENT,
            "memory_percent",
            Unit::Percent,
            "used",
            "Share of the memory that is used and cannot be reclaimed at once.",
        )
        .watched(Threshold {
            word: "memory",
            label: "Memory",
            unit: Unit::Percent,
            counts: "percent",
            usual: 90.0,
        }),
        at!(Number memory_percent),
    ),
    told(
        |it| has_memory(it).then_some(ExpositionValue::Whole(it.memory_total)),
        row(
            fact(Field::MEMORY_TOTAL, "memory_total", Unit::Bytes)
                .exposed("node_memory_MemTotal_bytes", "Memory that the server, or its cgroup, may use."),
            at!(Whole memory_total),
        ),
    ),
    told(
        |it| has_memory(it).then(|| ExpositionValue::Whole(it.memory_total.saturating_sub(it.memory_used))),
        row(
            series(
                Field::MEMORY_USED,
                "memory_used",
                Unit::Bytes,
                "used",
                "Memory that is used and cannot be reclaimed at once.",
            )
            .exposed("node_memory_MemAvailable_bytes", "Memory that is free or can be reclaimed at once."),
            at!(Whole memory_used),
        ),
    ),
    told(
        |it| has_memory(it).then_some(ExpositionValue::Whole(it.swap_total)),
        row(
            fact(Field::SWAP_TOTAL, "swap_total", Unit::Bytes)
                .exposed("node_memory_SwapTotal_bytes", "Swap that the server may use."),
            at!(Whole swap_total),
        ),
    ),
    watching(
        swap_percent,
        told(
            |it| has_memory(it).then(|| ExpositionValue::Whole(it.swap_total.saturating_sub(it.swap_used))),
            row(
                series(Field::SWAP_USED, "swap_used", Unit::Bytes, "swap", "Swap that is used.")
                    .exposed("node_memory_SwapFree_bytes", "Swap that is not used.")
                    .watched(Threshold {
                        word: "swap",
                        label: "Swap",
                        unit: Unit::Percent,
                        counts: "percent",
                        usual: 50.0,
                    }),
                at!(Whole swap_used),
            ),
        ),
    ),
    told(
        |it| has_load(it).then_some(ExpositionValue::Number(it.load_average[0])),
        row(
            series(
                Field::LOAD_1,
                "load_1",
                Unit::Count,
                "1 min",
                "Processes that run or wait, on average over 1 minute.",
            )
            .exposed("node_load1", "1m load average.")
            .watched(Threshold {
                word: "load",
                label: "Load",
                unit: Unit::Count,
                counts: "over one minute",
                usual: 8.0,
            }),
            at!(Number load_average[0]),
        ),
    ),
    told(
        |it| has_load(it).then_some(ExpositionValue::Number(it.load_average[1])),
        row(
            series(
                Field::LOAD_5,
                "load_5",
                Unit::Count,
                "5 min",
                "Processes that run or wait, on average over 5 minutes.",
            )
            .exposed("node_load5", "5m load average."),
            at!(Number load_average[1]),
        ),
    ),
    told(
        |it| has_load(it).then_some(ExpositionValue::Number(it.load_average[2])),
        row(
            series(
                Field::LOAD_15,
                "load_15",
                Unit::Count,
                "15 min",
                "Processes that run or wait, on average over 15 minutes.",
            )
            .exposed("node_load15", "15m load average."),
            at!(Number load_average[2]),
        ),
    ),
    row(fact(Field::UPTIME, "uptime_seconds", Unit::Seconds), at!(Whole uptime_seconds)),
    told(
        |it| (it.process_count > 0).then_some(ExpositionValue::Whole(it.process_count)),
        row(
            series(Field::PROCESS_COUNT, "process_count", Unit::Count, "running", "Processes on the machine.")
                .exposed("node_processes_pids", "Number of PIDs"),
            at!(Whole process_count),
        ),
    ),
];

/// The metrics of each core.
pub static CORES: [MetricOf<f64>; 1] = [row(
    series(Field::CORE, "cpu_core", Unit::Percent, "core", "Share of the time that a core was busy.").exposed(
        "signalbox_cpu_core_usage_ratio",
        "Share of one core that was busy between the latest two samples, 0 to 1.",
    ),
    (Key::of("cpu_per_core"), Access::Number(|it| *it, |it, value| *it = value)),
)];

/// Whether the sample has loads. The agent reads them together with the uptime, and a running machine has been up for at least
/// a second: with an uptime of 0 the loads of 0 mean nothing.
pub fn has_load(sample: &Sample) -> bool {
    sample.uptime_seconds > 0
}

/// Whether the sample says how much memory the machine has.
fn has_memory(sample: &Sample) -> bool {
    sample.memory_total > 0
}

/// The used share of swap, to hundredths of a percent.
fn swap_percent(sample: &Sample) -> Option<f64> {
    let share = sample.swap_used as f64 / sample.swap_total as f64;
    (sample.swap_total > 0).then(|| (share * 10_000.0).round() / 100.0)
}
