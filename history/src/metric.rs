//! The metrics: one table of the typed ones, and the description of each stored series.
//!
//! A column of the history carries its own description ([`Field`], and [`Series`] where the agent chose the name), so that a
//! build that does not know a metric stores it, averages it and passes it on. The metrics that this build knows are in two
//! tables, of the [`machine`] and of its [`entries`]. Everything that names a typed metric follows from its row: the history,
//! names, units, CSV, the API's document, the Prometheus exposition, thresholds and the interface.

mod entries;
mod machine;
mod row;

use std::fmt::{self, Display};
use std::sync::LazyLock;

use signalbox_protocol::series::{SeriesKind, Unit};

pub use entries::{CONTAINERS, DISK_IO, DISKS, NETWORK, TEMPERATURES};
pub use machine::{CORES, MACHINE, has_load};

/// How values are combined when several become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Mean, minimum and maximum.
    Gauge,
    /// The last value, and mean, minimum and maximum of the rate.
    Counter,
    /// Only the last value.
    Last,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Gauge, Self::Counter, Self::Last];

    /// The kind's number in stored formats.
    pub fn number(self) -> u64 {
        match self {
            Self::Gauge => 0,
            Self::Counter => 1,
            Self::Last => 2,
        }
    }

    /// The kind of this number; none for an unknown number.
    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The kind's name on the wire.
    pub fn word(self) -> &'static str {
        let kind = match self {
            Self::Gauge => SeriesKind::Gauge,
            Self::Counter => SeriesKind::Counter,
            Self::Last => SeriesKind::Last,
        };
        kind.as_str()
    }
}

impl From<SeriesKind> for Kind {
    fn from(kind: SeriesKind) -> Self {
        match kind {
            SeriesKind::Gauge => Self::Gauge,
            SeriesKind::Counter => Self::Counter,
            SeriesKind::Last => Self::Last,
        }
    }
}

/// How a stored integer represents a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    /// The bits of an `f64`.
    Float,
    /// The bits of a `u64`, which is the value.
    Whole,
    /// Fixed point: this many make one of the unit.
    Parts(u32),
}

impl Scale {
    /// The scale's number in stored formats.
    pub fn number(self) -> u64 {
        match self {
            Self::Float => 0,
            Self::Whole => 1,
            Self::Parts(parts) => parts.into(),
        }
    }

    /// The scale of this number; none for an unknown number.
    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Float),
            1 => Some(Self::Whole),
            parts => u32::try_from(parts).ok().map(Self::Parts),
        }
    }
}

/// One measurement of a machine, a core or an entry of a list. The number identifies a typed metric and never changes its
/// meaning; kind and scale say how the values were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    /// Identifies the metric in stored formats.
    pub number: u16,
    /// How values are combined.
    pub kind: Kind,
    /// How a stored integer represents a value.
    pub scale: Scale,
}

/// The scale of percentages and loads.
const HUNDREDTHS: Scale = Scale::Parts(100);

impl Field {
    /// The number of every open series; its [`Series`] identifies it.
    const OPEN: u16 = u16::MAX;

    /// A field with this number, kind and scale.
    pub const fn new(number: u16, kind: Kind, scale: Scale) -> Self {
        Self { number, kind, scale }
    }

    /// The field of an open series.
    pub const fn open(kind: Kind) -> Self {
        Self::new(Self::OPEN, kind, Scale::Float)
    }

    /// Whether its values are whole numbers.
    pub fn is_whole(self) -> bool {
        self.scale == Scale::Whole
    }

    /// The value of a stored integer, in the field's unit.
    pub fn value(self, kept: i64) -> f64 {
        match self.scale {
            Scale::Float => f64::from_bits(kept.cast_unsigned()),
            Scale::Whole => kept.cast_unsigned() as f64,
            Scale::Parts(parts) => kept as f64 / f64::from(parts),
        }
    }

    /// The value of a stored rate, in the counter's unit per second.
    pub fn rate(self, kept: i64) -> f64 {
        match self.scale {
            Scale::Float => f64::from_bits(kept.cast_unsigned()),
            Scale::Whole | Scale::Parts(_) => kept as f64 / 100.0,
        }
    }

    /// The row of the tables that describes the field; none for open series and unknown fields.
    pub fn metric(self) -> Option<&'static Metric> {
        BY_NUMBER.get(usize::from(self.number)).copied().flatten()
    }
}

/// An open series. Only the agent names and describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    /// The name that the agent chose, without the unit.
    pub name: String,
    /// One of the protocol's units, as text, so that a unit of a later build is preserved.
    pub unit: String,
    /// How its values are combined.
    pub kind: Kind,
    /// What is measured: a device, a sensor, a queue.
    pub target: Option<String>,
}

/// A typed metric.
#[derive(Debug)]
pub struct Metric {
    /// Identifies it in stored formats.
    pub field: Field,
    /// The name of its series, before the colon and the name of a core or entry. None without a series.
    pub series: Option<&'static str>,
    /// The name of its column in a table of snapshots. It equals the name of the series, except for a counter, whose column
    /// holds the reading.
    pub column: &'static str,
    /// The unit of its series.
    pub unit: Unit,
    /// The name of its line in a chart.
    pub label: &'static str,
    /// One line for people about its series. Empty without a series.
    pub help: &'static str,
    /// Its form in the Prometheus exposition; none where it is not exposed.
    pub exposed: Option<Exposed>,
    /// Its form in thresholds; none where no threshold can watch it.
    pub threshold: Option<Threshold>,
}

/// A metric in the Prometheus exposition.
#[derive(Debug, Clone, Copy)]
pub struct Exposed {
    /// The name in the exposition.
    pub name: &'static str,
    /// The help text in the exposition.
    pub help: &'static str,
}

/// A metric in thresholds.
#[derive(Debug, Clone, Copy)]
pub struct Threshold {
    /// The API's name of it.
    pub word: &'static str,
    /// The interface's name of it.
    pub label: &'static str,
    /// The unit of the compared values.
    pub unit: Unit,
    /// The unit in the label of a form's field.
    pub counts: &'static str,
    /// A reasonable first threshold, in `unit`.
    pub usual: f64,
}

/// The position of a value in the JSON of a sample or of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The field's name.
    pub name: &'static str,
    /// The index in the field's array; none where the field is the value.
    pub place: Option<usize>,
}

impl Key {
    const fn of(name: &'static str) -> Self {
        Self { name, place: None }
    }

    const fn within(name: &'static str, place: usize) -> Self {
        Self { name, place: Some(place) }
    }
}

/// A typed metric and the position of its value in `T`, which is a sample or an entry of one of its lists.
pub struct MetricOf<T: 'static> {
    /// The metric.
    pub metric: Metric,
    /// The position of its value in JSON.
    pub key: Key,
    access: Access<T>,
    /// What the exposition shows where that is not the value.
    told: Option<fn(&T) -> Option<ExpositionValue>>,
    /// What a threshold compares where that is not the value.
    watched: Option<fn(&T) -> Option<f64>>,
}

enum Access<T: 'static> {
    Whole(fn(&T) -> u64, fn(&mut T, u64)),
    Number(fn(&T) -> f64, fn(&mut T, f64)),
}

/// A number of the Prometheus exposition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExpositionValue {
    /// A whole number.
    Whole(u64),
    /// A number with a fraction.
    Number(f64),
}

impl Display for ExpositionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
        }
    }
}

impl<T> MetricOf<T> {
    /// The value as the integer to store.
    pub fn get(&self, from: &T) -> i64 {
        match (&self.access, self.metric.field.scale) {
            (Access::Whole(get, _), _) => get(from).cast_signed(),
            (Access::Number(get, _), Scale::Parts(parts)) => (get(from) * f64::from(parts)).round() as i64,
            (Access::Number(get, _), Scale::Whole) => (get(from).round() as u64).cast_signed(),
            (Access::Number(get, _), Scale::Float) => get(from).to_bits().cast_signed(),
        }
    }

    /// Writes the value of a stored integer, with the scale that it was stored with, into its place.
    pub fn set(&self, into: &mut T, field: Field, kept: i64) {
        match &self.access {
            Access::Whole(_, set) if field.is_whole() => set(into, kept.cast_unsigned()),
            Access::Whole(_, set) => set(into, field.value(kept) as u64),
            Access::Number(_, set) => set(into, field.value(kept)),
        }
    }

    /// What the exposition shows: percentages as fractions of 1. None where the sample does not say.
    pub fn told(&self, of: &T) -> Option<ExpositionValue> {
        match (self.told, &self.access) {
            (Some(told), _) => told(of),
            (None, Access::Whole(get, _)) => Some(ExpositionValue::Whole(get(of))),
            (None, Access::Number(get, _)) => Some(ExpositionValue::Number(match self.metric.unit {
                // Stored to hundredths, so the result is exact to the last digit: 12.34 becomes 0.1234.
                Unit::Percent => (get(of) * 100.0).round() / 10_000.0,
                _ => get(of),
            })),
        }
    }

    /// What a threshold compares, in the threshold's unit; for a counter its reading. None where the sample has no value.
    pub fn watched(&self, of: &T) -> Option<f64> {
        match (self.watched, &self.access) {
            (Some(watched), _) => watched(of),
            (None, Access::Whole(get, _)) => Some(get(of) as f64),
            (None, Access::Number(get, _)) => Some(get(of)),
        }
    }

    /// The function that reads its whole number; none for a metric with a fraction.
    pub fn count(&self) -> Option<fn(&T) -> u64> {
        match self.access {
            Access::Whole(get, _) => Some(get),
            Access::Number(..) => None,
        }
    }
}

/// The rows by their numbers, because every column of every block that is read is looked up.
static BY_NUMBER: LazyLock<Vec<Option<&'static Metric>>> = LazyLock::new(|| {
    let rows = all().map(|metric| usize::from(metric.field.number)).max().map_or(0, |most| most + 1);
    let mut by_number = vec![None; rows];
    for metric in all() {
        by_number.get_mut(usize::from(metric.field.number)).into_iter().for_each(|row| *row = Some(metric));
    }
    by_number
});

/// Every row of the tables.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    fn rows<T>(table: &'static [MetricOf<T>]) -> impl Iterator<Item = &'static Metric> {
        table.iter().map(|row| &row.metric)
    }
    let machine = rows(&MACHINE).chain(rows(&CORES));
    let lists = rows(&DISKS).chain(rows(&DISK_IO)).chain(rows(&NETWORK)).chain(rows(&TEMPERATURES));
    machine.chain(lists).chain(rows(&CONTAINERS))
}

/// The typed metric whose series have this name before the colon.
pub fn find_series(name: &str) -> Option<&'static Metric> {
    all().find(|metric| metric.series == Some(name))
}

/// The threshold of this name in the API.
pub fn find_threshold(word: &str) -> Option<&'static Threshold> {
    all().filter_map(|metric| metric.threshold.as_ref()).find(|threshold| threshold.word == word)
}

/// The row for a field in this table.
pub fn find<T>(metrics: &'static [MetricOf<T>], field: Field) -> Option<&'static MetricOf<T>> {
    metrics.iter().find(|it| it.metric.field.number == field.number)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use signalbox_protocol::Sample;

    use super::*;

    #[test]
    fn every_metric_has_a_number_and_names_of_its_own() {
        let metrics: Vec<&Metric> = all().collect();

        let numbers: HashSet<u16> = metrics.iter().map(|metric| metric.field.number).collect();
        let columns: HashSet<&str> = metrics.iter().map(|metric| metric.column).collect();
        let named: Vec<&str> = metrics.iter().filter_map(|metric| metric.series).collect();
        assert_eq!((numbers.len(), columns.len()), (metrics.len(), metrics.len()));
        assert_eq!(named.iter().collect::<HashSet<_>>().len(), named.len());
        let words: Vec<&str> = metrics.iter().filter_map(|metric| metric.threshold.map(|it| it.word)).collect();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
        let exposed: Vec<&str> = metrics.iter().filter_map(|metric| metric.exposed.map(|it| it.name)).collect();
        assert_eq!(exposed.iter().collect::<HashSet<_>>().len(), exposed.len());
    }

    #[test]
    fn every_series_has_a_label_and_says_what_it_is() {
        for metric in all() {
            assert_eq!(metric.series.is_some(), !metric.label.is_empty(), "{}", metric.column);
            assert_eq!(metric.series.is_some(), metric.help.ends_with('.'), "{}", metric.column);
        }
    }

    #[test]
    fn kinds_and_scales_have_numbers_of_their_own() {
        for metric in all() {
            let Field { kind, scale, .. } = metric.field;
            assert_eq!((Kind::of(kind.number()), Scale::of(scale.number())), (Some(kind), Some(scale)));
        }
        assert_eq!((Kind::of(3), Scale::of(u64::MAX)), (None, None));
        assert_eq!(Scale::of(Scale::Float.number()), Some(Scale::Float));
    }

    #[test]
    fn a_value_that_was_kept_with_another_scale_is_the_same_value() {
        let (mut sample, thousandths) = (Sample::default(), Scale::Parts(1_000));
        let load = Field { scale: thousandths, ..Field::LOAD_1 };
        let used = Field { scale: Scale::Float, ..Field::MEMORY_USED };

        find(&MACHINE, load).unwrap().set(&mut sample, load, 1_250);
        find(&MACHINE, used).unwrap().set(&mut sample, used, 4096_f64.to_bits().cast_signed());

        assert_eq!((sample.load_average[0], sample.memory_used), (1.25, 4_096));
    }
}
