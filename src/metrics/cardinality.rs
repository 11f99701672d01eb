//! Limits how many different disks, devices, interfaces, sensors and containers of one server are stored.
//!
//! A build machine creates containers by the thousand, each with its own name, and a faulty agent may invent a name for
//! every sample. Live, all of them are shown, but a stored name takes memory and disk space for as long as the history is
//! kept. So each hour stores the names that arrive first, up to a limit. Open series are counted separately: an agent may
//! describe a bounded number of them, but different ones on each connection.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use signalbox_history::open::Open;
use signalbox_history::shape::{List, Schema, Shape, names};
use signalbox_protocol::Sample;
use signalbox_protocol::series::MAX_SERIES;
use uuid::Uuid;

use super::archive::hour_of;

/// Disks, devices, interfaces, sensors and containers of one server in one hour: those of one sample, and a few thousand
/// that appear and disappear. A sealed hour keeps the 3,072 with the most samples.
const MAX_ENTRIES: usize = 6 * 1_024;

/// Open series of one server in one hour: those of two connections.
const MAX_COUNTED_SERIES: usize = 2 * MAX_SERIES;

/// Hours of a server that are counted: the present one, and one with which an agent catches up.
const WINDOWS: usize = 2;

/// The names of each server so far; cheap to clone.
#[derive(Clone, Default)]
pub struct Cardinality {
    servers: Arc<DashMap<Uuid, Windows>>,
    hasher: RandomState,
}

/// The part of a sample that is stored.
pub struct Limited {
    pub sample: Sample,
    pub open: Open,
    /// How many series were left out.
    pub dropped: u32,
}

/// The counted hours, most recently used last.
#[derive(Default)]
struct Windows(Vec<Window>);

/// The names of one hour so far.
struct Window {
    hour: i64,
    /// Hashes of names. If two names have the same hash, the second is stored too, which does no harm.
    entries: HashSet<u64>,
    /// Hashes of open series.
    series: HashSet<u64>,
    /// The last shape that was stored completely. In most cases the next sample has the same one, and needs no lookup.
    taken: Weak<Shape>,
}

impl Windows {
    fn at(&mut self, hour: i64) -> Option<&mut Window> {
        match self.0.iter().position(|window| window.hour == hour) {
            Some(place) => {
                let window = self.0.remove(place);
                self.0.push(window);
            }
            None => {
                if self.0.len() >= WINDOWS {
                    self.0.remove(0);
                }
                // Most servers need one window, except at the turn of an hour. Without this the vector would reserve four.
                self.0.reserve_exact(1);
                self.0.push(Window { hour, entries: HashSet::new(), series: HashSet::new(), taken: Weak::new() });
            }
        }
        self.0.last_mut()
    }
}

impl Cardinality {
    /// Returns a sample without the series that are not stored; `None` if all are. `shape` is the sample's.
    pub fn limited(&self, server_id: Uuid, shape: &Arc<Shape>, sample: &Sample, open: &Open) -> Option<Limited> {
        self.limited_to(server_id, shape, sample, open, (MAX_ENTRIES, MAX_COUNTED_SERIES))
    }

    fn limited_to(
        &self,
        server_id: Uuid,
        shape: &Arc<Shape>,
        sample: &Sample,
        open: &Open,
        (most, most_series): (usize, usize),
    ) -> Option<Limited> {
        let mut windows = self.servers.entry(server_id).or_default();
        let Window { entries, series, taken, .. } = windows.at(hour_of(sample.timestamp.as_millis()))?;
        if std::ptr::eq(taken.as_ptr(), Arc::as_ptr(shape)) {
            return None;
        }
        let mut dropped = 0;
        for (list, name, id) in names(sample) {
            let hash = self.hasher.hash_one((list, name, id));
            let is_taken = entries.contains(&hash) || (entries.len() < most && entries.insert(hash));
            dropped += if is_taken { 0 } else { series_of(list) };
        }
        for (one, _) in open.iter() {
            let hash = self.hasher.hash_one(one);
            let is_taken = series.contains(&hash) || (series.len() < most_series && series.insert(hash));
            dropped += u32::from(!is_taken);
        }
        if dropped == 0 {
            *taken = Arc::downgrade(shape);
            return None;
        }
        metrics::counter!("signalbox_history_series_dropped_total").increment(dropped.into());
        let takes = |list: List, name: &str, id: &str| entries.contains(&self.hasher.hash_one((list, name, id)));
        let mut sample = sample.clone();
        sample.disk_usage.retain(|disk| takes(List::DISKS, &disk.path, ""));
        sample.disk_io.retain(|io| takes(List::DISK_IO, &io.device, ""));
        sample.network.retain(|network| takes(List::NETWORK, &network.interface, ""));
        sample.temperatures.retain(|sensor| takes(List::TEMPERATURES, &sensor.label, ""));
        sample.containers.retain(|container| takes(List::CONTAINERS, &container.name, &container.id));
        let mut open = open.clone();
        open.retain(|one| series.contains(&self.hasher.hash_one(one)));
        Some(Limited { sample, open, dropped })
    }

    /// Removes a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
    }

    /// Removes the hours of a server whose session has ended, except the newest, so that an agent does not get more room by
    /// reconnecting.
    pub fn ended(&self, server_id: Uuid) {
        if let Some(mut windows) = self.servers.get_mut(&server_id) {
            let newest = windows.0.iter().map(|window| window.hour).max();
            windows.0.retain(|window| Some(window.hour) == newest);
            for window in &mut windows.0 {
                window.entries.shrink_to_fit();
                window.series.shrink_to_fit();
            }
        }
    }
}

/// Returns how many series each entry of a list has.
fn series_of(list: List) -> u32 {
    Schema::current()
        .of_list(list)
        .iter()
        .filter(|field| field.metric().is_some_and(|metric| metric.series.is_some()))
        .count() as u32
}

#[cfg(test)]
mod tests {
    use signalbox_history::metric::Series;
    use signalbox_protocol::Timestamp;
    use signalbox_protocol::sample::{ContainerUsage, DiskUsage};

    use super::*;

    const SERVER: Uuid = Uuid::from_u128(7);
    const HOUR_MS: i64 = 3_600_000;

    fn sample(at: i64, containers: &[&str]) -> Sample {
        let container = |name: &&str| ContainerUsage { name: (*name).to_owned(), ..ContainerUsage::default() };
        Sample {
            timestamp: Timestamp::from_millis(at),
            disk_usage: vec![DiskUsage { path: "/".to_owned(), ..DiskUsage::default() }],
            containers: containers.iter().map(container).collect(),
            ..Sample::default()
        }
    }

    fn limited_to(cardinality: &Cardinality, sample: &Sample, open: &Open, most: (usize, usize)) -> Option<Limited> {
        let shape = Arc::new(Shape::with_open(sample, open));
        let limited = cardinality.limited_to(SERVER, &shape, sample, open, most);
        // A second sample of the same shape is treated like the first.
        let again = cardinality.limited_to(SERVER, &shape, sample, open, most);
        assert_eq!(again.map(|it| it.dropped), limited.as_ref().map(|it| it.dropped));
        limited
    }

    fn kept(sample: &Sample) -> Vec<&str> {
        sample.containers.iter().map(|container| container.name.as_str()).collect()
    }

    #[test]
    fn the_first_names_of_an_hour_are_stored() {
        let cardinality = Cardinality::default();
        let mut dropped = Vec::new();
        let mut taken = |at: i64, containers: &[&str]| {
            let whole = sample(at, containers);
            let limited = limited_to(&cardinality, &whole, &Open::default(), (3, 0));
            dropped.push(limited.as_ref().map_or(0, |limited| limited.dropped));
            let taken = limited.map_or(whole, |limited| limited.sample);
            assert_eq!(taken.disk_usage.len(), 1);
            kept(&taken).join(" ")
        };

        assert_eq!(taken(0, &["a", "b"]), "a b");
        assert_eq!(taken(1_000, &["c", "b", "d"]), "b");
        assert_eq!(taken(2_000, &["a", "b"]), "a b");
        assert_eq!(taken(HOUR_MS, &["c", "d", "e"]), "c d", "another hour has its own limit");
        assert_eq!(taken(3_000, &["c", "b"]), "b", "and the one before has not");
        assert_eq!(dropped, [0, 8, 0, 4, 4], "four series per container");
    }

    #[test]
    fn reconnecting_gives_no_more_room() {
        let cardinality = Cardinality::default();
        let limited =
            |at: i64, containers: &[&str]| limited_to(&cardinality, &sample(at, containers), &Open::default(), (3, 0));
        assert!(limited(0, &["a", "b"]).is_none());

        cardinality.ended(SERVER);
        let again = limited(1_000, &["c", "a"]).unwrap();

        assert_eq!(kept(&again.sample), ["a"]);
    }

    #[test]
    fn open_series_are_counted_separately() {
        let cardinality = Cardinality::default();
        let series = |name: &str| {
            let kind = signalbox_history::metric::Kind::Gauge;
            (Arc::new(Series { name: name.to_owned(), unit: "count".to_owned(), kind, target: None }), 1.0)
        };
        let limited = |names: &[&str]| {
            let open = Open::new(names.iter().map(|name| series(name)).collect());
            limited_to(&cardinality, &sample(0, &["a"]), &open, (2, 2))
        };

        assert!(limited(&["x", "y"]).is_none());
        let Limited { sample, open, dropped } = limited(&["z", "y"]).unwrap();

        assert_eq!((kept(&sample), dropped), (vec!["a"], 1));
        assert_eq!(open.iter().map(|(series, _)| series.to_string()).collect::<Vec<_>>(), ["y"]);
    }
}
