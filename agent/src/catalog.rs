//! The open series that this run knows, and the ids by which samples name them.
//!
//! An id is an index in a list that only grows, so it means the same series in every sample and on every connection of a run.
//! The samples that earlier runs left on the disk have the ids of those runs. The buffer's files describe them, and their
//! series get ids of this run when they are read.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use parking_lot::Mutex;
use signalbox_protocol::series::{MAX_SERIES, SeriesDescription, SeriesKind, Unit};

/// What is measured; together with a target it identifies a series.
#[derive(Debug, Clone, Copy)]
pub struct Metric<'a> {
    pub name: &'a str,
    pub unit: Unit,
    pub kind: SeriesKind,
    pub help: &'a str,
}

impl<'a> Metric<'a> {
    pub const fn gauge(name: &'a str, unit: Unit, help: &'a str) -> Self {
        Self { name, unit, kind: SeriesKind::Gauge, help }
    }

    /// The metric of a described series.
    pub fn of(series: &'a SeriesDescription) -> Self {
        Self { name: &series.name, unit: series.unit, kind: series.kind, help: &series.help }
    }
}

/// Shared by everything that writes or reads samples.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Keyed by a text of name, unit, kind and target, which identify a series.
    ids: HashMap<Box<str>, u16>,
    series: Vec<SeriesDescription>,
    /// Reused, because there is a call for each value of each sample.
    key: String,
    /// Whether the log has reported that there are too many series.
    is_crowd_told: bool,
}

impl Catalog {
    /// The id of a series, a new one for a new series. None for a series that breaks the protocol's rules (for example with a
    /// target that is too long), and when there are no ids left.
    pub fn id_of(&self, metric: Metric<'_>, target: Option<&str>) -> Option<u16> {
        let mut known = self.known.lock();
        let Known { ids, series, key, .. } = &mut *known;
        key.clear();
        let (unit, kind) = (metric.unit.as_str(), metric.kind.as_str());
        // No name contains a space. Writing to a text cannot fail.
        let _ = write!(key, "{} {unit} {kind}", metric.name);
        if let Some(target) = target {
            let _ = write!(key, " {target}");
        }
        if let Some(id) = ids.get(key.as_str()) {
            return Some(*id);
        }
        let id = u16::try_from(series.len()).ok()?;
        let Metric { name, unit, kind, help } = metric;
        let (name, help) = (name.to_owned(), help.to_owned());
        let mut description = SeriesDescription { id, name, unit, kind, target: target.map(str::to_owned), help };
        description.clean();
        description.validate().ok()?;
        series.push(description);
        ids.insert(key.as_str().into(), id);
        Some(id)
    }

    /// Describes these ids.
    pub fn describe(&self, ids: &[u16]) -> Vec<SeriesDescription> {
        let known = self.known.lock();
        ids.iter().filter_map(|id| known.series.get(usize::from(*id)).cloned()).collect()
    }

    fn tell_crowd(&self, dropped: usize) {
        if !std::mem::replace(&mut self.known.lock().is_crowd_told, true) {
            tracing::warn!(dropped, "this machine has more than {MAX_SERIES} series: the rest is not sent");
        }
    }
}

/// How many series a sample lacks.
const DROPPED: Metric<'_> = Metric::gauge(
    "agent_series_dropped",
    Unit::Count,
    "Series that the agent did not send because the machine has more than 2,000.",
);

/// The values of one sample, while collectors add theirs.
#[derive(Debug)]
pub struct Values<'a> {
    catalog: &'a Catalog,
    values: Vec<(u16, f64)>,
    dropped: usize,
}

impl<'a> Values<'a> {
    pub fn new(catalog: &'a Catalog) -> Self {
        Self { catalog, values: Vec::new(), dropped: 0 }
    }

    /// Adds the value of a series. It ignores a value that is not finite.
    pub fn push(&mut self, metric: Metric<'static>, target: Option<&str>, value: f64) {
        if !value.is_finite() {
            return;
        }
        // One place is reserved for the number of omitted series.
        let id = (self.values.len() + 1 < MAX_SERIES).then(|| self.catalog.id_of(metric, target)).flatten();
        match id {
            Some(id) => self.values.push((id, rounded(metric.unit, value))),
            None => self.dropped += 1,
        }
    }

    /// How many values there are so far.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The ids of the values after the first `count`.
    pub fn ids_behind(&self, count: usize) -> Vec<u16> {
        self.values.iter().skip(count).map(|(id, _)| *id).collect()
    }

    /// The pairs to send.
    pub fn finish(mut self) -> Vec<(u16, f64)> {
        if self.dropped > 0 {
            self.catalog.tell_crowd(self.dropped);
            let id = self.catalog.id_of(DROPPED, None);
            self.values.extend(id.map(|id| (id, self.dropped as f64)));
        }
        self.values
    }
}

/// Rounds to hundredths, like the fields of a sample, where more digits would be noise.
fn rounded(unit: Unit, value: f64) -> f64 {
    match unit {
        Unit::Percent | Unit::Milliseconds | Unit::PerSecond | Unit::Count | Unit::Rpm => {
            (value * 100.0).round() / 100.0
        }
        Unit::Bytes
        | Unit::BytesPerSecond
        | Unit::Seconds
        | Unit::Celsius
        | Unit::Ratio
        | Unit::Volts
        | Unit::Watts
        | Unit::Bool
        | Unit::Days => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Metric<'_> = Metric::gauge("disk_busy", Unit::Percent, "Share of time.");

    #[test]
    fn a_series_keeps_its_id_and_unit_kind_and_target_identify_it() {
        let catalog = Catalog::default();
        let counter = Metric { kind: SeriesKind::Counter, ..BUSY };
        let ratio = Metric { unit: Unit::Ratio, ..BUSY };

        let ids = [
            catalog.id_of(BUSY, Some("sda")),
            catalog.id_of(BUSY, Some("sdb")),
            catalog.id_of(BUSY, None),
            catalog.id_of(counter, None),
            catalog.id_of(ratio, None),
            catalog.id_of(Metric { help: "Other words.", ..BUSY }, Some("sda")),
        ];

        assert_eq!(ids, [Some(0), Some(1), Some(2), Some(3), Some(4), Some(0)]);
        let described = catalog.describe(&[1]);
        assert_eq!(described.iter().map(|one| (one.id, one.target.as_deref())).collect::<Vec<_>>(), [(1, Some("sdb"))]);
    }

    #[test]
    fn series_that_the_service_would_refuse_get_no_id() {
        let catalog = Catalog::default();

        assert_eq!(catalog.id_of(Metric { name: "Disk", ..BUSY }, None), None);
        assert_eq!(catalog.id_of(BUSY, Some(&"x".repeat(256))), None);
        assert_eq!(catalog.id_of(BUSY, None), Some(0));
    }

    #[test]
    fn there_are_as_many_series_as_ids() {
        let catalog = Catalog::default();
        let given = (0..=u16::MAX).filter(|number| catalog.id_of(BUSY, Some(&number.to_string())) == Some(*number));

        assert_eq!(given.count(), 1 << 16);
        assert_eq!(catalog.id_of(BUSY, Some("one more")), None);
    }

    #[test]
    fn a_sample_has_at_most_2000_values_and_says_how_many_it_lacks() {
        let catalog = Catalog::default();
        let mut values = Values::new(&catalog);

        (0..2_010).for_each(|number| values.push(BUSY, Some(&number.to_string()), 1.0));
        let values = values.finish();

        assert_eq!(values.len(), MAX_SERIES);
        let (last, dropped) = values[MAX_SERIES - 1];
        assert_eq!((catalog.describe(&[last])[0].name.as_str(), dropped), ("agent_series_dropped", 11.0));
    }

    #[test]
    fn values_are_rounded_and_non_numbers_omitted() {
        let catalog = Catalog::default();
        let mut values = Values::new(&catalog);

        values.push(BUSY, None, 12.345_678);
        values.push(BUSY, Some("sda"), f64::NAN);
        values.push(BUSY, Some("sdb"), f64::INFINITY);

        assert_eq!(values.finish(), [(0, 12.35)]);
    }
}
