//! The expected answers of the history, calculated a second time in the simplest way: every sample in one sorted map, and the
//! means of each time range calculated again for every query.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use signalbox_protocol::Sample;
use uuid::Uuid;

/// How values are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
    /// A number of which only the last one is returned.
    Fact,
}

/// One number of a sample.
#[derive(Debug, Clone)]
pub struct ReferenceValue {
    /// The name of its series, where it has one.
    pub name: String,
    pub kind: Kind,
    pub value: f64,
    /// The exact value of a number of bytes.
    whole: u64,
}

fn gauge(name: String, value: f64) -> ReferenceValue {
    ReferenceValue { name, kind: Kind::Gauge, value, whole: 0 }
}

fn bytes(name: String, kind: Kind, whole: u64) -> ReferenceValue {
    ReferenceValue { name, kind, value: whole as f64, whole }
}

/// The names of one list, made unique where several are equal: `core`, `core#2`.
#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn next(&mut self, name: &str) -> String {
        let count = self.0.entry(name.to_owned()).or_default();
        *count += 1;
        if *count == 1 { name.to_owned() } else { format!("{name}#{count}") }
    }
}

/// Every number of a sample.
pub fn readings(sample: &Sample) -> Vec<ReferenceValue> {
    let [load_1, load_5, load_15] = sample.load_average;
    let mut all = vec![
        gauge("cpu_percent".to_owned(), sample.cpu_percent),
        gauge("memory_percent".to_owned(), sample.memory_percent),
        gauge("load_1".to_owned(), load_1),
        gauge("load_5".to_owned(), load_5),
        gauge("load_15".to_owned(), load_15),
        bytes("memory_used".to_owned(), Kind::Gauge, sample.memory_used),
        bytes("swap_used".to_owned(), Kind::Gauge, sample.swap_used),
        bytes("process_count".to_owned(), Kind::Gauge, sample.process_count),
        bytes("memory_total".to_owned(), Kind::Fact, sample.memory_total),
        bytes("swap_total".to_owned(), Kind::Fact, sample.swap_total),
        bytes("uptime_seconds".to_owned(), Kind::Fact, sample.uptime_seconds),
    ];
    all.extend(sample.cpu_per_core.iter().enumerate().map(|(core, value)| gauge(format!("cpu_core:{core}"), *value)));
    let mut names = Names::default();
    for disk in &sample.disk_usage {
        let name = names.next(&disk.path);
        all.push(gauge(format!("disk_percent:{name}"), disk.percent));
        all.push(bytes(format!("disk_used:{name}"), Kind::Gauge, disk.used));
        all.push(bytes(format!("disk_total:{name}"), Kind::Fact, disk.total));
        all.push(bytes(format!("disk_free:{name}"), Kind::Gauge, disk.free));
    }
    let mut names = Names::default();
    for device in &sample.disk_io {
        let name = names.next(&device.device);
        all.push(bytes(format!("disk_read:{name}"), Kind::Counter, device.read_bytes));
        all.push(bytes(format!("disk_write:{name}"), Kind::Counter, device.write_bytes));
    }
    let mut names = Names::default();
    for interface in &sample.network {
        let name = names.next(&interface.interface);
        all.push(bytes(format!("network_out:{name}"), Kind::Counter, interface.bytes_sent));
        all.push(bytes(format!("network_in:{name}"), Kind::Counter, interface.bytes_recv));
    }
    let mut names = Names::default();
    for sensor in &sample.temperatures {
        all.push(gauge(format!("temperature:{}", names.next(&sensor.label)), sensor.celsius));
    }
    for container in &sample.containers {
        let name = &container.name;
        all.push(gauge(format!("container_cpu:{name}"), container.cpu_percent));
        all.push(bytes(format!("container_memory:{name}"), Kind::Gauge, container.memory_bytes));
        all.push(bytes(format!("container_network_in:{name}"), Kind::Counter, container.network_rx_bytes));
        all.push(bytes(format!("container_network_out:{name}"), Kind::Counter, container.network_tx_bytes));
    }
    all
}

/// Whether a reading of this name has a series.
fn has_series(name: &str) -> bool {
    let base = name.split(':').next().unwrap_or_default();
    !["memory_total", "swap_total", "uptime_seconds", "disk_total", "disk_free"].contains(&base)
}

/// A series' points by their second: mean, least and greatest.
pub type Points = BTreeMap<i64, [f64; 3]>;

/// Everything that an agent has sent.
#[derive(Debug, Clone)]
pub struct Model {
    pub samples: BTreeMap<i64, Sample>,
    /// From how far apart on two samples have a gap between them: thrice their usual distance.
    gap_ms: i64,
    /// Whether the agent of the samples knew a series of this name: series that it did not know are not compared.
    pub knew: fn(&str) -> bool,
}

impl Model {
    pub fn of_interval(interval_ms: i64) -> Self {
        Self { samples: BTreeMap::new(), gap_ms: 3 * interval_ms, knew: |_| true }
    }

    /// Of samples that an earlier service took.
    pub fn of_earlier(interval_ms: i64, knew: fn(&str) -> bool) -> Self {
        Self { knew, ..Self::of_interval(interval_ms) }
    }

    /// Of two samples with one timestamp the first one stays.
    pub fn add(&mut self, sample: &Sample) {
        self.samples.entry(sample.timestamp.as_millis()).or_insert_with(|| sample.clone());
    }

    /// The raw history of `start..=end` as its JSON.
    pub fn raw(&self, server_id: Uuid, (start, end): (i64, i64)) -> Vec<Value> {
        let snapshot = |sample: &Sample| {
            let mut value = serde_json::to_value(Sample { processes: None, ..sample.clone() }).unwrap();
            value["server_id"] = server_id.to_string().into();
            value
        };
        self.samples.range(start..=end).map(|(_, sample)| snapshot(sample)).collect()
    }

    /// The mean of each span of `width_ms` in `start..=end`, which begins and ends with a span: by the beginnings, each
    /// number by its name.
    pub fn means(&self, width_ms: i64, (start, end): (i64, i64)) -> BTreeMap<i64, BTreeMap<String, f64>> {
        let mut spans: BTreeMap<i64, BTreeMap<String, (Kind, Vec<f64>)>> = BTreeMap::new();
        for (at, sample) in self.samples.range(start..=end) {
            let span = spans.entry(at.div_euclid(width_ms) * width_ms).or_default();
            for ReferenceValue { name, kind, value, .. } in readings(sample) {
                span.entry(name).or_insert((kind, Vec::new())).1.push(value);
            }
        }
        let mean = |(kind, values): (Kind, Vec<f64>)| match kind {
            Kind::Gauge => values.iter().sum::<f64>() / values.len() as f64,
            Kind::Counter | Kind::Fact => *values.last().unwrap(),
        };
        let means = |span: BTreeMap<String, _>| span.into_iter().map(|(name, of)| (name, mean(of))).collect();
        spans.into_iter().map(|(at, span)| (at, means(span))).collect()
    }

    /// The series of `start..=end`, by name: those that have a point. A width of none is one point a sample.
    pub fn series(&self, width_ms: Option<i64>, (start, end): (i64, i64)) -> BTreeMap<String, Points> {
        let mut values: BTreeMap<String, BTreeMap<i64, Vec<f64>>> = BTreeMap::new();
        let mut before: Option<(i64, HashMap<String, u64>)> = None;
        for (at, sample) in &self.samples {
            let readings = readings(sample);
            let point = width_ms.map_or(*at, |width_ms| at.div_euclid(width_ms) * width_ms).div_euclid(1000);
            for reading in readings.iter().filter(|reading| has_series(&reading.name) && (self.knew)(&reading.name)) {
                let value = match reading.kind {
                    Kind::Gauge | Kind::Fact => Some(reading.value),
                    Kind::Counter => before.as_ref().and_then(|(then, counters)| {
                        let risen = reading.whole.checked_sub(*counters.get(&reading.name)?)?;
                        let elapsed_ms = at - then;
                        (elapsed_ms <= self.gap_ms).then(|| risen as f64 * 1000.0 / elapsed_ms as f64)
                    }),
                };
                if let Some(value) = value.filter(|_| (start..=end).contains(at)) {
                    values.entry(reading.name.clone()).or_default().entry(point).or_default().push(value);
                }
            }
            let counters = readings.into_iter().filter(|reading| reading.kind == Kind::Counter);
            before = Some((*at, counters.map(|reading| (reading.name, reading.whole)).collect()));
        }
        let stats = |values: Vec<f64>| {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            [values.iter().sum::<f64>() / values.len() as f64, least, greatest]
        };
        let points = |points: BTreeMap<i64, Vec<f64>>| points.into_iter().map(|(at, of)| (at, stats(of))).collect();
        values.into_iter().map(|(name, of)| (name, points(of))).collect()
    }
}

/// Whether `shown` is `exact` except for rounding: once when a minute is made, and once more when several are combined.
fn is_close(name: &str, shown: f64, exact: f64) -> bool {
    let step = match name.split(':').next().unwrap_or_default() {
        "temperature" => 0.1,
        "memory_used" | "swap_used" | "process_count" | "disk_used" | "disk_free" | "container_memory" => 1.0,
        _ => 0.01,
    };
    (shown - exact).abs() <= step * 1.01 + exact.abs() * 1e-9
}

/// Asserts that a history of means is the expected one.
#[track_caller]
pub fn assert_means(what: &str, history: &[Value], expected: &BTreeMap<i64, BTreeMap<String, f64>>) {
    let shown: Vec<Sample> = history.iter().map(|value| serde_json::from_value(value.clone()).unwrap()).collect();
    let times: Vec<i64> = shown.iter().map(|sample| sample.timestamp.as_millis()).collect();
    assert_eq!(times, expected.keys().copied().collect::<Vec<_>>(), "{what}: times");
    for (sample, (at, expected)) in shown.iter().zip(expected) {
        let found: BTreeMap<String, f64> = readings(sample).into_iter().map(|it| (it.name, it.value)).collect();
        assert!(found.keys().eq(expected.keys()), "{what} at {at}: {:?}, not {:?}", found.keys(), expected.keys());
        for (name, exact) in expected {
            assert!(is_close(name, found[name], *exact), "{what} at {at}: {name} is {}, not {exact}", found[name]);
        }
    }
}

/// The points of an answer of `/series`, without those that are null, and without the series that have none.
#[track_caller]
pub fn points_of(body: &Value) -> BTreeMap<String, Points> {
    let times: Vec<i64> = body["timestamps"].as_array().unwrap().iter().map(|at| at.as_i64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let mut series = BTreeMap::new();
    for (name, column) in body["series"].as_object().unwrap() {
        let [mean, least, greatest] = ["avg", "min", "max"].map(|kind| column[kind].as_array().unwrap());
        assert!([mean, least, greatest].iter().all(|values| values.len() == times.len()), "{name}");
        let values = mean.iter().zip(least).zip(greatest);
        let shown = values.map(|((mean, least), greatest)| Some([mean.as_f64()?, least.as_f64()?, greatest.as_f64()?]));
        let points: Points = times.iter().zip(shown).filter_map(|(at, shown)| Some((*at, shown?))).collect();
        if !points.is_empty() {
            series.insert(name.clone(), points);
        }
    }
    series
}

/// Asserts that an answer of `/series` has the expected points and no others.
#[track_caller]
pub fn assert_series(what: &str, body: &Value, expected: &BTreeMap<String, Points>) {
    let shown = points_of(body);
    assert!(shown.keys().eq(expected.keys()), "{what}: {:?}, not {:?}", shown.keys(), expected.keys());
    for (name, expected) in expected {
        let shown = &shown[name];
        let (times, wanted): (Vec<_>, Vec<_>) = (shown.keys().collect(), expected.keys().collect());
        assert_eq!(times, wanted, "{what}: the times of {name}");
        for (at, exact) in expected {
            let found = shown[at];
            let is_same = found.iter().zip(exact).all(|(shown, exact)| is_close(name, *shown, *exact));
            assert!(is_same, "{what}: {name} at {at} is {found:?}, not {exact:?}");
        }
    }
}
