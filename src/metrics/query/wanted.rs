//! The requested series, and the names of series.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signalbox_history::block::BlockError;
use signalbox_history::frame::{Column, Owner};
use signalbox_history::metric::{self, Kind};
use uuid::Uuid;

use crate::store::history::BlockKey;

/// A unit: one of this build's, or the text from an agent.
pub type Unit = std::borrow::Cow<'static, str>;

/// Returns the base name of a column's series: `network_in` for `network_in:eth0`; `None` for a column without a series.
pub fn base_name(column: &Column) -> Option<&str> {
    match &column.of {
        Owner::Series(series) => Some(&series.name),
        Owner::Machine | Owner::Core(_) | Owner::Entry(_) => column.field.metric()?.series,
    }
}

/// Returns the unit of a column's series.
pub fn unit(column: &Column) -> Unit {
    match &column.of {
        Owner::Series(series) => series.unit.clone().into(),
        Owner::Machine | Owner::Core(_) | Owner::Entry(_) => {
            column.field.metric().map(|metric| metric.unit.as_str()).unwrap_or_default().into()
        }
    }
}

/// Returns the name of a column's series; `None` for a column without a series.
pub fn name_of(column: &Column) -> Option<String> {
    Some(named(base_name(column)?, column))
}

fn named(base: &str, column: &Column) -> String {
    match &column.of {
        Owner::Machine => base.to_owned(),
        Owner::Core(core) => format!("{base}:{core}"),
        Owner::Entry(entry) if entry.nth == 0 => format!("{base}:{}", entry.name),
        Owner::Entry(entry) => format!("{base}:{}#{}", entry.name, entry.nth + 1),
        Owner::Series(series) => match &series.target {
            Some(target) => format!("{base}:{target}"),
            None => base.to_owned(),
        },
    }
}

/// Returns the name of a column in a table of samples: like its series, except that a counter has its own value and not a
/// rate. Returns `None` for a column that this build does not know.
pub fn column_name(column: &Column) -> Option<String> {
    let own = match &column.of {
        Owner::Series(series) => series.name.as_str(),
        Owner::Machine | Owner::Core(_) | Owner::Entry(_) => column.field.metric()?.column,
    };
    Some(named(own, column))
}

/// In place of a target, all targets: `container_cpu:*`.
pub const ANY_TARGET: &str = "*";

/// Which columns to read.
#[derive(Debug, Clone)]
pub struct Selection {
    which: Which,
    damaged: Arc<AtomicUsize>,
}

#[derive(Debug, Clone)]
enum Which {
    All,
    /// All columns that have a series.
    Series,
    /// Base names, with the part after the colon.
    Named(Arc<Vec<(String, Option<String>)>>),
    /// One base name, of any target.
    Based(Arc<str>),
}

impl Selection {
    fn new(which: Which) -> Self {
        Self { which, damaged: Arc::default() }
    }

    /// Every column.
    pub fn everything() -> Self {
        Self::new(Which::All)
    }

    /// Every column that has a series.
    pub fn series() -> Self {
        Self::new(Which::Series)
    }

    /// The series of these names; [`ANY_TARGET`] selects every target of a name.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        let split = |name: String| match name.split_once(':') {
            Some((base, rest)) => (base.to_owned(), Some(rest.to_owned())),
            None => (name, None),
        };
        Self::new(Which::Named(Arc::new(names.into_iter().map(split).collect())))
    }

    /// The series of this base name, of every target that has one.
    pub fn based(base: &str) -> Self {
        Self::new(Which::Based(base.into()))
    }

    /// Every column, with the same counter of damaged blocks.
    pub fn all(&self) -> Self {
        Self { which: Which::All, damaged: self.damaged.clone() }
    }

    pub fn is_all(&self) -> bool {
        matches!(self.which, Which::All)
    }

    /// Returns whether a counter may be among them, as far as the names show.
    pub fn has_counters(&self) -> bool {
        match &self.which {
            Which::All | Which::Series => true,
            Which::Named(names) => names.iter().any(|(name, _)| may_be_counter(name)),
            Which::Based(base) => may_be_counter(base),
        }
    }

    /// Returns how many series they are at most; `None` if only the data shows that.
    pub fn most_series(&self) -> Option<u64> {
        match &self.which {
            Which::Named(names) if names.iter().all(|(_, of)| of.as_deref() != Some(ANY_TARGET)) => {
                Some(names.len() as u64)
            }
            Which::All | Which::Series | Which::Named(_) | Which::Based(_) => None,
        }
    }

    pub fn has(&self, column: &Column) -> bool {
        match &self.which {
            Which::All => true,
            Which::Series => base_name(column).is_some(),
            Which::Named(names) => {
                let Some(base) = base_name(column) else { return false };
                names.iter().any(|(name, of)| name == base && is_of(column, of.as_deref()))
            }
            Which::Based(base) => base_name(column) == Some(&**base),
        }
    }

    /// Counts and logs a block that cannot be read.
    pub fn damaged(&self, server_id: Uuid, key: BlockKey, error: &BlockError) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("signalbox_history_damaged_total").increment(1);
        tracing::error!(%error, server.id = %server_id, ?key, "a block of the history cannot be read");
    }

    /// Returns how many blocks could not be read so far.
    pub fn damaged_blocks(&self) -> usize {
        self.damaged.load(Ordering::Relaxed)
    }
}

fn is_of(column: &Column, of: Option<&str>) -> bool {
    match (&column.of, of) {
        (Owner::Core(_) | Owner::Entry(_), Some(ANY_TARGET)) => true,
        (Owner::Series(series), Some(ANY_TARGET)) => series.target.is_some(),
        (Owner::Machine, None) => true,
        (Owner::Core(core), Some(of)) => of.parse() == Ok(*core),
        (Owner::Entry(entry), Some(of)) if entry.nth == 0 => entry.name == of,
        (Owner::Entry(entry), Some(of)) => {
            let number = of.strip_prefix(entry.name.as_str()).and_then(|rest| rest.strip_prefix('#'));
            number.and_then(|number| number.parse().ok()) == entry.nth.checked_add(1)
        }
        (Owner::Series(series), of) => series.target.as_deref() == of,
        (Owner::Machine, Some(_)) | (Owner::Core(_) | Owner::Entry(_), None) => false,
    }
}

/// Returns whether a series of this name may be a counter: for an open series only its data shows that.
fn may_be_counter(name: &str) -> bool {
    metric::find_series(name).is_none_or(|metric| metric.field.kind == Kind::Counter)
}

#[cfg(test)]
mod tests {
    use signalbox_history::metric::{Field, Series};
    use signalbox_history::shape::{Entry, List};

    use super::*;

    fn sensor(name: &str, nth: u32) -> Column {
        let entry = Entry { list: List::TEMPERATURES, name: name.to_owned(), id: String::new(), nth };
        Column { field: Field::CELSIUS, of: Owner::Entry(Arc::new(entry)) }
    }

    fn open(target: Option<&str>) -> Column {
        let target = target.map(str::to_owned);
        let series = Series { name: "fan_speed".to_owned(), unit: "rpm".to_owned(), kind: Kind::Gauge, target };
        Column { field: Field::open(Kind::Gauge), of: Owner::Series(Arc::new(series)) }
    }

    #[test]
    fn every_name_selects_its_own_column() {
        let core = Column { field: Field::CORE, of: Owner::Core(3) };
        let cpu = Column { field: Field::CPU, of: Owner::Machine };
        let columns =
            [core, cpu, sensor("core", 0), sensor("core", 1), sensor("a:b#2", 0), open(None), open(Some("a:b"))];

        for column in &columns {
            let name = name_of(column).unwrap();
            let wanted = Selection::named([name.clone()]);
            let chosen: Vec<&Column> = columns.iter().filter(|column| wanted.has(column)).collect();
            assert_eq!(chosen, [column], "{name}");
        }
    }

    #[test]
    fn a_star_selects_every_target_of_a_name() {
        let columns = [sensor("core", 0), sensor("core", 1), open(None), open(Some("a")), open(Some("b"))];

        for (name, expected) in [("temperature:*", [0_usize, 1]), ("fan_speed:*", [3, 4])] {
            let wanted = Selection::named([name.to_owned()]);
            let chosen: Vec<usize> = (0..columns.len()).filter(|place| wanted.has(&columns[*place])).collect();
            assert_eq!(chosen, expected, "{name}");
        }
    }

    #[test]
    fn a_base_name_selects_every_target_and_nothing_else() {
        let cpu = Column { field: Field::CPU, of: Owner::Machine };
        let columns = [cpu, sensor("core", 0), sensor("core", 1), open(None), open(Some("a:b"))];
        let chosen = |base: &str| {
            let wanted = Selection::based(base);
            columns.iter().filter(|column| wanted.has(column)).filter_map(name_of).collect::<Vec<_>>()
        };

        assert_eq!(chosen("temperature"), ["temperature:core", "temperature:core#2"]);
        assert_eq!(chosen("fan_speed"), ["fan_speed", "fan_speed:a:b"]);
        assert_eq!(chosen("cpu_percent"), ["cpu_percent"]);
        assert!(chosen("cpu").is_empty());
    }
}
