//! What is measured: the one table of the typed metrics, and what describes a series beside its values.
//!
//! A column of the history carries its own description ([`Field`], and [`Series`] where the agent chose the name), so
//! that a build which does not know a metric keeps it, makes means of it and passes it on. What this build does know
//! stands in two tables, of the [`machine`] and of its [`entries`], and everything that names a typed metric follows from its
//! row: the history, names, units, CSV, the API's document, the Prometheus exposition, thresholds and the interface.

mod entries;
mod machine;
mod row;

use std::fmt::{self, Display};
use std::sync::LazyLock;

use signalbox_protocol::series::{SeriesKind, Unit};

pub use entries::{CONTAINERS, DISK_IO, DISKS, NETWORK, TEMPERATURES};
pub use machine::{CORES, MACHINE, has_load};

/// What becomes of values when many are made one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Mean, least and greatest.
    Gauge,
    /// The last value, and the rate's mean, least and greatest.
    Counter,
    /// The last value alone.
    Last,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Gauge, Self::Counter, Self::Last];

    /// Its number in stored formats.
    pub fn number(self) -> u64 {
        match self {
            Self::Gauge => 0,
            Self::Counter => 1,
            Self::Last => 2,
        }
    }

    pub fn of(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its name on the wire.
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

/// How a kept integer stands for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scale {
    /// It has the bits of an `f64`.
    Float,
    /// It has the bits of a `u64`, which is the value.
    Whole,
    /// So many of it make one of the unit.
    Parts(u32),
}

impl Scale {
    /// Its number in stored formats.
    pub fn number(self) -> u64 {
        match self {
            Self::Float => 0,
            Self::Whole => 1,
            Self::Parts(parts) => parts.into(),
        }
    }

    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Float),
            1 => Some(Self::Whole),
            parts => u32::try_from(parts).ok().map(Self::Parts),
        }
    }
}

/// One thing that a machine, a core or an entry of a list has a value of. The number tells typed metrics apart and never
/// changes its meaning; kind and scale are those with which values were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    pub number: u16,
    pub kind: Kind,
    pub scale: Scale,
}

/// The scale of percentages, loads and the like.
const HUNDREDTHS: Scale = Scale::Parts(100);

impl Field {
    /// The number of every open series: its [`Series`] says which one it is.
    const OPEN: u16 = u16::MAX;

    pub const fn new(number: u16, kind: Kind, scale: Scale) -> Self {
        Self { number, kind, scale }
    }

    /// Of an open series.
    pub const fn open(kind: Kind) -> Self {
        Self::new(Self::OPEN, kind, Scale::Float)
    }

    /// Whether it is counted in whole numbers.
    pub fn is_whole(self) -> bool {
        self.scale == Scale::Whole
    }

    /// The value in its unit.
    pub fn value(self, kept: i64) -> f64 {
        match self.scale {
            Scale::Float => f64::from_bits(kept.cast_unsigned()),
            Scale::Whole => kept.cast_unsigned() as f64,
            Scale::Parts(parts) => kept as f64 / f64::from(parts),
        }
    }

    /// A kept rate of a counter, in its unit a second.
    pub fn rate(self, kept: i64) -> f64 {
        match self.scale {
            Scale::Float => f64::from_bits(kept.cast_unsigned()),
            Scale::Whole | Scale::Parts(_) => kept as f64 / 100.0,
        }
    }

    /// The row of the tables that describes it; none of an open series, and of what this build does not know.
    pub fn metric(self) -> Option<&'static Metric> {
        BY_NUMBER.get(usize::from(self.number)).copied().flatten()
    }
}

/// An open series: named and described by the agent alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    pub name: String,
    /// One of the protocol's units; a text, so that one which is not known yet passes through.
    pub unit: String,
    pub kind: Kind,
    /// What it is measured of: a device, a sensor, a queue.
    pub target: Option<String>,
}

/// A typed metric.
#[derive(Debug)]
pub struct Metric {
    pub field: Field,
    /// What its series is called, before the colon and the name of a core or entry. None of one that has no series.
    pub series: Option<&'static str>,
    /// What its column in a table of snapshots is called. Like the series, but a counter is what it says itself.
    pub column: &'static str,
    /// The unit of its series.
    pub unit: Unit,
    /// What a line of it is called in a chart.
    pub label: &'static str,
    /// What its series is, a line for people. Empty of one that has no series.
    pub help: &'static str,
    /// None of what the Prometheus exposition does not have.
    pub exposed: Option<Exposed>,
    /// None of what no threshold reads.
    pub threshold: Option<Threshold>,
}

/// How the Prometheus exposition has a metric.
#[derive(Debug, Clone, Copy)]
pub struct Exposed {
    pub name: &'static str,
    pub help: &'static str,
}

/// How a metric is called where thresholds are set.
#[derive(Debug, Clone, Copy)]
pub struct Threshold {
    /// The API's word.
    pub word: &'static str,
    pub label: &'static str,
    pub unit: Unit,
    /// The unit as the label of a form's field says it.
    pub counts: &'static str,
    /// What is worth being told of, for a start: in percent, degrees, bytes a second.
    pub usual: f64,
}

/// Where a value lies in the JSON of a sample or of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    /// The place in the array that it has there; none where the value itself is there.
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

/// A typed metric and where its value lies in `T`, which is a sample or an entry of one of its lists.
pub struct MetricOf<T: 'static> {
    pub metric: Metric,
    pub key: Key,
    access: Access<T>,
    /// What the exposition tells where that is not the value.
    told: Option<fn(&T) -> Option<Told>>,
    /// What a threshold reads where that is not the value.
    watched: Option<fn(&T) -> Option<f64>>,
}

enum Access<T: 'static> {
    Whole(fn(&T) -> u64, fn(&mut T, u64)),
    Number(fn(&T) -> f64, fn(&mut T, f64)),
}

/// A number of the Prometheus exposition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told {
    Whole(u64),
    Number(f64),
}

impl Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
        }
    }
}

impl<T> MetricOf<T> {
    /// The value as the integer to keep.
    pub fn get(&self, from: &T) -> i64 {
        match (&self.access, self.metric.field.scale) {
            (Access::Whole(get, _), _) => get(from).cast_signed(),
            (Access::Number(get, _), Scale::Parts(parts)) => (get(from) * f64::from(parts)).round() as i64,
            (Access::Number(get, _), Scale::Whole) => (get(from).round() as u64).cast_signed(),
            (Access::Number(get, _), Scale::Float) => get(from).to_bits().cast_signed(),
        }
    }

    /// Puts a value that was kept with this scale in its place.
    pub fn set(&self, into: &mut T, field: Field, kept: i64) {
        match &self.access {
            Access::Whole(_, set) if field.is_whole() => set(into, kept.cast_unsigned()),
            Access::Whole(_, set) => set(into, field.value(kept) as u64),
            Access::Number(_, set) => set(into, field.value(kept)),
        }
    }

    /// What the exposition says of it: percentages as shares of 1. None where the sample does not know.
    pub fn told(&self, of: &T) -> Option<Told> {
        match (self.told, &self.access) {
            (Some(told), _) => told(of),
            (None, Access::Whole(get, _)) => Some(Told::Whole(get(of))),
            (None, Access::Number(get, _)) => Some(Told::Number(match self.metric.unit {
                // Kept to hundredths and so exact to the last digit: 12.34 gives 0.1234.
                Unit::Percent => (get(of) * 100.0).round() / 10_000.0,
                _ => get(of),
            })),
        }
    }

    /// What a threshold compares, in the unit that it counts; of a counter what it has counted. None where there is no such
    /// thing.
    pub fn watched(&self, of: &T) -> Option<f64> {
        match (self.watched, &self.access) {
            (Some(watched), _) => watched(of),
            (None, Access::Whole(get, _)) => Some(get(of) as f64),
            (None, Access::Number(get, _)) => Some(get(of)),
        }
    }

    /// What reads its whole number; none of one with a fraction.
    pub fn count(&self) -> Option<fn(&T) -> u64> {
        match self.access {
            Access::Whole(get, _) => Some(get),
            Access::Number(..) => None,
        }
    }
}

/// The rows by their numbers: every column of every block that is read is looked up.
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

/// The typed metric whose series have this name, before their colon.
pub fn find_series(name: &str) -> Option<&'static Metric> {
    all().find(|metric| metric.series == Some(name))
}

/// What thresholds with this word are about.
pub fn find_threshold(word: &str) -> Option<&'static Threshold> {
    all().filter_map(|metric| metric.threshold.as_ref()).find(|threshold| threshold.word == word)
}

/// The one of these that a field is.
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
    fn kinds_and_scales_are_told_by_their_numbers() {
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
