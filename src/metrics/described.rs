//! The open series that an agent described on one connection, by the ids that the agent chose.
//!
//! A name and a target identify a series, whatever its ids. If two descriptions differ in unit or kind, the later one
//! counts, and samples stored under the earlier one stay a separate column. A series with the name of a field of samples
//! is dropped.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use signalbox_history::metric::{self, Series};
use signalbox_history::open::Open;
use signalbox_protocol::sample::OutOfRange;
use signalbox_protocol::series::{MAX_SERIES, MAX_VALUES, SeriesDescription};

/// The most bytes of names and targets: they are written before every sample, and a sample may have 256 KiB.
const MAX_BYTES: usize = 160 * 1024;

/// The encoded bytes of a series in addition to its texts.
const BESIDE: usize = 8;

/// Why a message is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undescribed {
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    #[error("too many series in one message")]
    TooMany,
    #[error("the series with the id {0} was not described")]
    Unknown(u16),
}

/// The series described on one connection.
#[derive(Debug, Default)]
pub struct Described {
    /// The slot of each id; `None` for a dropped series.
    ids: HashMap<u16, Option<usize>>,
    slots: Vec<Slot>,
    places: HashMap<Named, usize>,
    /// Slots without an id.
    free: Vec<usize>,
    bytes: usize,
    dropped: u32,
}

#[derive(Debug)]
struct Slot {
    series: Arc<Series>,
    /// How many ids it has.
    ids: usize,
}

/// A series, compared by name and target only.
#[derive(Debug)]
struct Named(Arc<Series>);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key().hash(state);
    }
}

impl Described {
    /// Takes in the descriptions of a message: all of them, or none if one is not valid. Returns the help texts of the
    /// accepted series, by name.
    pub fn describe(
        &mut self,
        mut series: Vec<SeriesDescription>,
        known: &KnownSeries,
    ) -> Result<BTreeMap<String, String>, Undescribed> {
        if series.len() > MAX_VALUES {
            return Err(Undescribed::TooMany);
        }
        series.iter().try_for_each(SeriesDescription::validate)?;
        for description in &mut series {
            description.clean();
        }
        let (dropped, mut helps) = (self.dropped, BTreeMap::new());
        for SeriesDescription { id, name, unit, kind, target, help } in series {
            let series = known.share(Series { name, unit: unit.as_str().to_owned(), kind: kind.into(), target });
            if self.add(id, series.clone()) && !help.is_empty() {
                helps.entry(series.name.clone()).or_insert(help);
            }
        }
        let more = self.dropped.saturating_sub(dropped);
        if more > 0 {
            metrics::counter!("signalbox_history_series_dropped_total").increment(more.into());
        }
        Ok(helps)
    }

    /// Returns how many series were dropped.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Returns the values of a sample in the order in which their series were described, so that samples share their shape. If
    /// a series occurs twice, its first value counts.
    pub fn open(&self, values: &[(u16, f64)]) -> Result<Open, Undescribed> {
        let mut placed = Vec::with_capacity(values.len());
        for (id, value) in values {
            if !value.is_finite() {
                return Err(OutOfRange { field: "values" }.into());
            }
            // A dropped series has no slot. Adding zero turns -0 into 0.
            let place = self.ids.get(id).ok_or(Undescribed::Unknown(*id))?;
            placed.extend(place.map(|place| (place, *value + 0.0)));
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.dedup_by_key(|(place, _)| *place);
        let known =
            placed.into_iter().filter_map(|(place, value)| Some((self.slots.get(place)?.series.clone(), value)));
        Ok(Open::new(known.collect()))
    }

    /// Adds a series. Returns whether there was room for it.
    fn add(&mut self, id: u16, series: Arc<Series>) -> bool {
        self.forget(id);
        let named = Named(series);
        let place = match self.places.get(&named) {
            Some(place) => Some(*place),
            None => self.take_place(&named.0),
        };
        match place.and_then(|place| self.slots.get_mut(place)) {
            Some(slot) => {
                slot.ids += 1;
                slot.series = named.0;
            }
            None => self.dropped += 1,
        }
        self.ids.insert(id, place);
        place.is_some()
    }

    /// Takes a slot for a new series; `None` if there is no room.
    fn take_place(&mut self, series: &Arc<Series>) -> Option<usize> {
        let bytes = self.bytes + bytes(series);
        if self.places.len() >= MAX_SERIES || bytes > MAX_BYTES || is_typed(&series.name) {
            return None;
        }
        self.bytes = bytes;
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { series: series.clone(), ids: 0 });
            self.slots.len() - 1
        });
        self.places.insert(Named(series.clone()), place);
        Some(place)
    }

    /// Releases an id, before it gets another series.
    fn forget(&mut self, id: u16) {
        match self.ids.remove(&id) {
            None => {}
            Some(None) => self.dropped = self.dropped.saturating_sub(1),
            Some(Some(place)) => {
                let Some(slot) = self.slots.get_mut(place) else { return };
                slot.ids -= 1;
                if slot.ids == 0 {
                    self.bytes = self.bytes.saturating_sub(bytes(&slot.series));
                    self.places.remove(&Named(slot.series.clone()));
                    self.free.push(place);
                }
            }
        }
    }
}

/// Returns whether a field of samples has this name in the API, so that the two would be mixed up.
fn is_typed(name: &str) -> bool {
    metric::all().any(|metric| metric.series == Some(name) || metric.column == name)
}

/// Returns the bytes of a series that count towards [`MAX_BYTES`].
fn bytes(series: &Series) -> usize {
    series.name.len() + series.target.as_ref().map_or(0, String::len) + BESIDE
}

/// The series that agents describe at present, each stored once: most agents of a fleet describe the same.
#[derive(Debug, Default)]
pub struct KnownSeries(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    series: HashSet<Arc<Series>>,
    /// How many were in use when unused ones were last removed.
    alive: usize,
}

/// Up to this many series, removing unused ones is not worthwhile.
const FEW: usize = 4_096;

impl KnownSeries {
    fn share(&self, series: Series) -> Arc<Series> {
        let mut shared = self.0.lock();
        if let Some(known) = shared.series.get(&series) {
            return known.clone();
        }
        if shared.series.len() >= FEW.max(2 * shared.alive) {
            shared.series.retain(|series| Arc::strong_count(series) > 1);
            shared.alive = shared.series.len();
        }
        let series = Arc::new(series);
        shared.series.insert(series.clone());
        series
    }
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::series::{SeriesKind, Unit};

    use super::*;

    fn description(id: u16, name: &str, unit: Unit) -> SeriesDescription {
        SeriesDescription {
            id,
            name: name.to_owned(),
            unit,
            kind: SeriesKind::Gauge,
            target: None,
            help: String::new(),
        }
    }

    fn described(series: Vec<SeriesDescription>) -> Described {
        let mut described = Described::default();
        described.describe(series, &KnownSeries::default()).unwrap();
        described
    }

    fn told(open: &Open) -> Vec<(String, f64)> {
        open.iter().map(|(series, value)| (format!("{series} {}", series.unit), value)).collect()
    }

    #[test]
    fn values_are_in_the_order_of_their_descriptions_and_each_series_occurs_once() {
        let series = [(7, "fan", Unit::Rpm), (3, "left", Unit::Days), (9, "fan", Unit::Rpm)];
        let described = described(series.map(|(id, name, unit)| description(id, name, unit)).into());

        let open = described.open(&[(3, 1.5), (9, 2.0), (7, -0.0)]).unwrap();

        assert_eq!(told(&open), [("fan rpm".to_owned(), 2.0), ("left days".to_owned(), 1.5)]);
        assert_eq!(described.open(&[(3, 1.0), (4, 1.0)]), Err(Undescribed::Unknown(4)));
        assert_eq!(described.open(&[(3, f64::NAN)]), Err(OutOfRange { field: "values" }.into()));
    }

    #[test]
    fn the_later_of_two_units_counts_for_every_id() {
        let described = described(vec![description(1, "left", Unit::Seconds), description(2, "left", Unit::Days)]);

        assert_eq!(told(&described.open(&[(1, 5.0)]).unwrap()), [("left days".to_owned(), 5.0)]);
    }

    #[test]
    fn series_beyond_the_limit_are_dropped_until_an_id_is_reused() {
        let many = (0..=MAX_SERIES as u16).map(|id| description(id, &format!("s{id}"), Unit::Count)).collect();
        let mut described = described(many);
        let last = MAX_SERIES as u16;

        assert_eq!(described.dropped(), 1);
        assert!(described.open(&[(last, 1.0)]).unwrap().is_empty(), "dropped, not malformed");
        described.describe(vec![description(0, "s1", Unit::Count)], &KnownSeries::default()).unwrap();
        described.describe(vec![description(last, "late", Unit::Count)], &KnownSeries::default()).unwrap();

        assert_eq!(described.dropped(), 0);
        assert_eq!(told(&described.open(&[(last, 1.0)]).unwrap()), [("late count".to_owned(), 1.0)]);
    }

    #[test]
    fn long_targets_are_bounded_by_their_bytes() {
        let long = |id: u16| SeriesDescription {
            target: Some(format!("{id:0>255}")),
            ..description(id, "queue_length", Unit::Count)
        };

        let described = described((0..1_000).map(long).collect());

        let most = MAX_BYTES / (255 + "queue_length".len() + BESIDE);
        assert_eq!(described.dropped() as usize, 1_000 - most);
    }

    #[test]
    fn series_with_the_names_of_sample_fields_are_dropped() {
        let described =
            described(vec![description(1, "cpu_percent", Unit::Percent), description(2, "bytes_sent", Unit::Bytes)]);

        assert_eq!(described.dropped(), 2);
        assert!(described.open(&[(1, 5.0), (2, 5.0)]).unwrap().is_empty());
    }

    #[test]
    fn an_invalid_message_describes_nothing() {
        let mut described = Described::default();
        let series = vec![description(1, "good", Unit::Count), description(2, "Bad", Unit::Count)];

        let refused = described.describe(series, &KnownSeries::default());

        assert_eq!(refused, Err(OutOfRange { field: "series.name" }.into()));
        assert_eq!(described.open(&[(1, 1.0)]), Err(Undescribed::Unknown(1)));
    }
}
