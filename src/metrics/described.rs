//! The open series that an agent described on one connection, by the ids that the agent chose.
//!
//! A name and a target identify a series, whatever its ids. If two descriptions differ in unit or kind, the later one
//! counts, and samples stored under the earlier one stay a separate column. A series with the name of a field of samples
//! is dropped.
//!
//! When there is no room for a series, it gets the place of the one that samples have lacked for longest. If they have lacked
//! none for long, it waits, because its agent describes it only once: each sample with a value of it tries again. A series that
//! lost its place waits, too.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use signalbox_history::metric::{self, Series};
use signalbox_history::open::Open;
use signalbox_protocol::sample::OutOfRange;
use signalbox_protocol::series::{MAX_SERIES, MAX_VALUES, SeriesDescription};

use super::known_series::KnownSeries;

/// The most bytes of names and targets: they are written before every sample, and a sample may have 256 KiB.
const MAX_BYTES: usize = 160 * 1024;

/// The encoded bytes of a series in addition to its texts.
const BESIDE: usize = 8;

/// A series that has had no value for this long, while samples came, gives its place to another one.
const IDLE_AFTER: Duration = Duration::from_secs(300);

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
    ids: HashMap<u16, Place>,
    slots: Vec<Slot>,
    places: HashMap<Named, usize>,
    /// Slots without an id.
    free: Vec<usize>,
    bytes: usize,
    /// Series without a slot, by the time when they were described or last had a value, and by id. They are bounded like
    /// those with one.
    waiting: BTreeMap<(Instant, u16), Arc<Series>>,
    waiting_bytes: usize,
    /// How many series of a recent sample had no slot, or were described since then.
    dropped: u32,
    /// When a sample last set that number.
    counted_at: Option<Instant>,
    /// When the latest sample arrived, and what that was at the last search for idle series.
    sampled_at: Option<Instant>,
    searched_at: Option<Instant>,
    /// The ids of those that the search found, the longest idle last.
    idle: Vec<u16>,
}

/// What an id means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Slot(usize),
    /// A series for which there was no room, or that lost its slot. `waiting` has it under this time.
    Waiting(Instant),
    /// A series that never gets a slot: it has the name of a field, or too many others wait.
    Dropped,
}

#[derive(Debug)]
struct Slot {
    series: Arc<Series>,
    /// How many ids it has.
    ids: usize,
    /// When it was described or last had a value.
    seen_at: Instant,
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
    /// series that are kept or wait, by name.
    pub fn describe(
        &mut self,
        mut series: Vec<SeriesDescription>,
        known: &KnownSeries,
        now: Instant,
    ) -> Result<BTreeMap<String, String>, Undescribed> {
        if series.len() > MAX_VALUES {
            return Err(Undescribed::TooMany);
        }
        series.iter().try_for_each(SeriesDescription::validate)?;
        for description in &mut series {
            description.clean();
        }
        let (dropped, mut texts) = (self.dropped, Vec::new());
        for SeriesDescription { id, name, unit, kind, target, help } in series {
            let series = known.share(Series { name, unit: unit.as_str().to_owned(), kind: kind.into(), target });
            self.add(id, series.clone(), now);
            if !help.is_empty() {
                texts.push((id, series, help));
            }
        }
        count_dropped(self.dropped.saturating_sub(dropped));
        let mut helps = BTreeMap::new();
        for (id, series, help) in texts {
            if self.ids.get(&id) != Some(&Place::Dropped) {
                helps.entry(series.name.clone()).or_insert(help);
            }
        }
        Ok(helps)
    }

    /// Returns how many series were left out of a recent sample.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Returns the values of a sample in the order in which their series were described, so that samples share their shape. If
    /// a series occurs twice, its first value counts. `arrived` is `None` for a live sample, which may lack series.
    pub fn open(&mut self, values: &[(u16, f64)], arrived: Option<Instant>) -> Result<Open, Undescribed> {
        self.sampled_at = arrived.or(self.sampled_at);
        let (mut placed, mut left) = (Vec::with_capacity(values.len()), Vec::new());
        for (id, value) in values {
            if !value.is_finite() {
                return Err(OutOfRange { field: "values" }.into());
            }
            // Adding zero turns -0 into 0.
            let value = *value + 0.0;
            match self.ids.get(id).ok_or(Undescribed::Unknown(*id))? {
                Place::Slot(place) => {
                    if let Some((slot, now)) = self.slots.get_mut(*place).zip(arrived) {
                        slot.seen_at = now;
                    }
                    placed.push((*place, value));
                }
                Place::Waiting(_) | Place::Dropped => left.push((*id, value)),
            }
        }
        // After the others, whose series must not seem idle.
        if let Some(now) = arrived {
            self.place_left(&left, now, &mut placed);
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.dedup_by_key(|(place, _)| *place);
        let known =
            placed.into_iter().filter_map(|(place, value)| Some((self.slots.get(place)?.series.clone(), value)));
        Ok(Open::new(known.collect()))
    }

    /// Places the values of a sample whose series have no slot, as far as there is room now, and counts the others.
    fn place_left(&mut self, left: &[(u16, f64)], now: Instant, placed: &mut Vec<(usize, f64)>) {
        let (before, may_try) = (self.dropped, self.searched_at != self.sampled_at);
        let mut dropped = 0;
        for (id, value) in left {
            match may_try.then(|| self.place_again(*id, now)).flatten() {
                Some(place) => placed.push((place, *value)),
                None => dropped += 1,
            }
        }
        // A smaller number counts only after a while: some series may be described for a later sample.
        let counted_at = *self.counted_at.get_or_insert(now);
        if dropped >= self.dropped || now.saturating_duration_since(counted_at) >= IDLE_AFTER {
            (self.dropped, self.counted_at) = (dropped, Some(now));
        }
        count_dropped(self.dropped.saturating_sub(before));
    }

    /// Places a series that waits and has a value again.
    fn place_again(&mut self, id: u16, now: Instant) -> Option<usize> {
        let Some(Place::Waiting(since)) = self.ids.get(&id).copied() else { return None };
        let series = self.stop_waiting(id, since)?;
        let place = self.place(id, &series, now);
        match place {
            Some(_) => self.dropped = self.dropped.saturating_sub(1),
            None => self.wait(id, series, now),
        }
        place
    }

    /// Adds a series that was described.
    fn add(&mut self, id: u16, series: Arc<Series>, now: Instant) {
        self.forget(id);
        if is_typed(&series.name) {
            self.dropped += 1;
            self.ids.insert(id, Place::Dropped);
        } else if let Some(place) = self.place(id, &series, now) {
            if let Some(slot) = self.slots.get_mut(place) {
                slot.series = series;
            }
        } else {
            self.dropped += 1;
            self.wait(id, series, now);
        }
    }

    /// Returns an id the slot of its series; `None` if there is no room for one.
    fn place(&mut self, id: u16, series: &Arc<Series>, now: Instant) -> Option<usize> {
        let place = match self.places.get(&Named(series.clone())) {
            Some(place) => *place,
            None => self.take_slot(series, now)?,
        };
        let slot = self.slots.get_mut(place)?;
        slot.ids += 1;
        slot.seen_at = now;
        self.ids.insert(id, Place::Slot(place));
        Some(place)
    }

    /// Takes a slot for a series; `None` if there is no room.
    fn take_slot(&mut self, series: &Arc<Series>, now: Instant) -> Option<usize> {
        self.make_room_for(series);
        if !self.has_room_for(series) {
            return None;
        }
        self.bytes += bytes(series);
        let slot = Slot { series: series.clone(), ids: 0, seen_at: now };
        let place = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        self.places.insert(Named(series.clone()), place);
        Some(place)
    }

    /// Adds a series to those that wait. Beyond the limits, those are dropped that have been gone for longest.
    fn wait(&mut self, id: u16, series: Arc<Series>, since: Instant) {
        self.ids.insert(id, Place::Waiting(since));
        self.waiting_bytes += bytes(&series);
        self.waiting.insert((since, id), series);
        while (self.waiting.len() > MAX_SERIES || self.waiting_bytes > MAX_BYTES)
            && let Some((gone_since, gone)) = self.waiting.keys().next().copied()
        {
            self.stop_waiting(gone, gone_since);
            self.ids.insert(gone, Place::Dropped);
        }
    }

    fn stop_waiting(&mut self, id: u16, since: Instant) -> Option<Arc<Series>> {
        let series = self.waiting.remove(&(since, id))?;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes(&series));
        Some(series)
    }

    fn has_room_for(&self, series: &Series) -> bool {
        self.places.len() < MAX_SERIES && self.bytes + bytes(series) <= MAX_BYTES
    }

    /// Releases as many slots as are needed, those of the longest idle series first.
    fn make_room_for(&mut self, series: &Series) {
        // A search takes long, and would find nothing else before a newer sample.
        if !self.has_room_for(series) && self.searched_at != self.sampled_at {
            self.searched_at = self.sampled_at;
            self.search();
        }
        while !self.has_room_for(series)
            && let Some(id) = self.idle.pop()
        {
            self.evict(id);
        }
    }

    /// Finds the series that the samples have lacked for a while.
    fn search(&mut self) {
        let found = self.ids.iter().filter_map(|(id, place)| match *place {
            Place::Slot(index) => self.idle_slot(index).map(|slot| (slot.seen_at, index, *id)),
            Place::Waiting(_) | Place::Dropped => None,
        });
        // The ids of one slot stand together: it is free when all have lost it.
        let mut idle: Vec<_> = found.collect();
        idle.sort_unstable_by_key(|each| Reverse(*each));
        self.idle = idle.into_iter().map(|(.., id)| id).collect();
    }

    /// Returns a slot if the samples have lacked its series for a while. The time of the latest sample counts, and not the
    /// present one: some agents send a sample an hour.
    fn idle_slot(&self, place: usize) -> Option<&Slot> {
        let sampled_at = self.sampled_at?;
        self.slots.get(place).filter(|slot| sampled_at.saturating_duration_since(slot.seen_at) >= IDLE_AFTER)
    }

    /// Takes the slot from an id, unless its series was described again since the search.
    fn evict(&mut self, id: u16) {
        let Some(Place::Slot(place)) = self.ids.get(&id).copied() else { return };
        let Some(slot) = self.idle_slot(place) else { return };
        let (series, since) = (slot.series.clone(), slot.seen_at);
        self.release(place);
        self.wait(id, series, since);
    }

    /// Releases an id, before it gets another series.
    fn forget(&mut self, id: u16) {
        match self.ids.remove(&id) {
            None => return,
            Some(Place::Slot(place)) => return self.release(place),
            Some(Place::Waiting(since)) => drop(self.stop_waiting(id, since)),
            Some(Place::Dropped) => {}
        }
        self.dropped = self.dropped.saturating_sub(1);
    }

    /// Takes an id from a slot, which is free without one.
    fn release(&mut self, place: usize) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        slot.ids -= 1;
        if slot.ids == 0 {
            self.bytes = self.bytes.saturating_sub(bytes(&slot.series));
            self.places.remove(&Named(slot.series.clone()));
            self.free.push(place);
        }
    }
}

fn count_dropped(count: u32) {
    if count > 0 {
        metrics::counter!("signalbox_history_series_dropped_total").increment(count.into());
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

#[cfg(test)]
#[path = "described_tests.rs"]
mod tests;
