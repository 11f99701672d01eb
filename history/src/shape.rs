//! What a sample consists of: which columns, in which order, and how each is kept as an integer.
//!
//! Two samples of one machine nearly always have the same shape, so it is shared, and a sample becomes a time and a row
//! of integers. Disks, interfaces, sensors and containers come and go: then the shape changes, not the format.

mod convert;
mod schema;

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use signalbox_protocol::Sample;

pub use self::convert::{flatten, unflatten};
pub use self::schema::{List, Schema};
use super::metric::{Field, Series};
use super::open::Open;
use super::wire::{Malformed, Reader, Writer, all_different};

/// The most cores that a stored shape may have: a sample has at most 1,024.
pub const MAX_CORES: usize = 1 << 16;

/// One disk, device, interface, sensor or container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    pub list: List,
    pub name: String,
    /// Of a container; empty otherwise.
    pub id: String,
    /// Which of those with the same name: sensors of two processors may share theirs.
    pub nth: u32,
}

/// Which columns a sample has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The fields of the machine, its cores and the entries of each list.
    pub schema: Arc<Schema>,
    pub cores: u32,
    /// In the order of the sample, list after list.
    pub entries: Vec<Arc<Entry>>,
    /// Open series.
    pub series: Vec<Arc<Series>>,
    described: Described,
}

/// A shape as it is written in front of every sample that has it. Follows from the rest.
#[derive(Debug, Default)]
struct Described(OnceLock<Box<[u8]>>);

impl Clone for Described {
    /// What is made of a clone may differ.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Described {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Described {}

impl Hash for Described {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// One column of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    pub field: Field,
    pub of: Of<'a>,
}

/// What a column belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of<'a> {
    Machine,
    Core(u32),
    Entry(&'a Arc<Entry>),
    Series(&'a Arc<Series>),
}

impl Shape {
    /// Of samples as this build takes them, without open series.
    pub fn new(cores: u32, entries: Vec<Arc<Entry>>) -> Self {
        Self::with(Schema::current(), cores, entries, Vec::new())
    }

    /// Of rows that any build wrote.
    pub fn with(schema: Arc<Schema>, cores: u32, entries: Vec<Arc<Entry>>, series: Vec<Arc<Series>>) -> Self {
        Self { schema, cores, entries, series, described: Described::default() }
    }

    /// The shape of a sample without open series.
    pub fn of(sample: &Sample) -> Self {
        Self::with_open(sample, &Open::default())
    }

    /// The shape of a sample.
    pub fn with_open(sample: &Sample, open: &Open) -> Self {
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        let mut counts: HashMap<(List, &str), u32> = HashMap::new();
        for (list, name, id) in names(sample) {
            let count = counts.entry((list, name)).or_default();
            entries.push(Arc::new(Entry { list, name: name.to_owned(), id: id.to_owned(), nth: *count }));
            *count += 1;
        }
        Self::with(Schema::current(), sample.cpu_per_core.len() as u32, entries, open.series())
    }

    /// Whether the sample has this shape. Allocates nothing: it is asked at every sample.
    pub fn fits(&self, sample: &Sample, open: &Open) -> bool {
        let mut own = self.entries.iter();
        let same = |(list, name, id): (List, &str, &str)| {
            own.next().is_some_and(|entry| entry.list == list && entry.name == name && entry.id == id)
        };
        let has_same =
            |(own, (series, _)): (&Arc<Series>, (&Arc<Series>, f64))| Arc::ptr_eq(own, series) || own == series;
        Schema::is_current(&self.schema)
            && self.series.len() == open.len()
            && self.series.iter().zip(open.iter()).all(has_same)
            && self.cores as usize == sample.cpu_per_core.len()
            && names(sample).all(same)
            && own.next().is_none()
    }

    /// The columns, in the order of a row's values.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let machine = self.schema.machine.iter().map(|field| Slot { field: *field, of: Of::Machine });
        let cores = (0..self.cores).flat_map(|core| {
            let fields = self.schema.core.iter();
            fields.map(move |field| Slot { field: *field, of: Of::Core(core) })
        });
        let entries = self.entries.iter().flat_map(|entry| {
            let fields = self.schema.of_list(entry.list).iter();
            fields.map(move |field| Slot { field: *field, of: Of::Entry(entry) })
        });
        let series = self.series.iter().map(|series| Slot { field: Field::open(series.kind), of: Of::Series(series) });
        machine.chain(cores).chain(entries).chain(series)
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        // Texts count twice: they are in the description, too.
        let of_entry = |entry: &Arc<Entry>| size_of::<Entry>() + 36 + 2 * (entry.name.len() + entry.id.len());
        let of_series = |series: &Arc<Series>| {
            let target = series.target.as_ref().map_or(0, String::len);
            size_of::<Series>() + 36 + 2 * (series.name.len() + series.unit.len() + target)
        };
        let entries: usize = self.entries.iter().map(of_entry).sum();
        size_of::<Self>() + entries + self.series.iter().map(of_series).sum::<usize>()
    }

    /// How many columns it has.
    pub fn width(&self) -> usize {
        let listed: usize = self.entries.iter().map(|entry| self.schema.of_list(entry.list).len()).sum();
        let cores = self.cores as usize * self.schema.core.len();
        self.schema.machine.len() + cores + listed + self.series.len()
    }

    /// This shape and what the other has beside it.
    pub fn union(&self, other: &Self) -> Self {
        let mut entries = self.entries.clone();
        let known: HashSet<&Arc<Entry>> = self.entries.iter().collect();
        for entry in &other.entries {
            if !known.contains(entry) {
                // Lists stay together: a sample is put together list by list.
                let place = entries.iter().position(|known| known.list > entry.list).unwrap_or(entries.len());
                entries.insert(place, entry.clone());
            }
        }
        let mut series = self.series.clone();
        let known: HashSet<&Arc<Series>> = self.series.iter().collect();
        series.extend(other.series.iter().filter(|one| !known.contains(one)).cloned());
        let schema = Schema::union(&self.schema, &other.schema);
        Self::with(schema, self.cores.max(other.cores), entries, series)
    }

    /// As it is written in front of every sample that has it.
    pub fn described(&self) -> &[u8] {
        self.described.0.get_or_init(|| {
            let mut out = Writer::default();
            out.schema(&self.schema);
            out.number(self.cores.into());
            out.number(self.entries.len() as u64);
            self.entries.iter().for_each(|entry| out.entry(entry));
            out.number(self.series.len() as u64);
            self.series.iter().for_each(|series| out.series(series));
            out.0.into()
        })
    }

    /// Reads what [`Shape::described`] gave.
    pub fn read(described: &[u8]) -> Result<Self, Malformed> {
        let mut input = Reader(described);
        let schema = input.schema()?;
        let cores = input.count(MAX_CORES)? as u32;
        let count = input.count(input.0.len())?;
        let entries: Vec<_> = (0..count).map(|_| input.entry().map(Arc::new)).collect::<Result<_, _>>()?;
        let count = input.count(input.0.len())?;
        let series: Vec<_> = (0..count).map(|_| input.series().map(Arc::new)).collect::<Result<_, _>>()?;
        all_different(&entries)?;
        all_different(&series)?;
        Ok(Self::with(schema, cores, entries, series))
    }
}

/// The names in a sample's lists, in order.
pub fn names(sample: &Sample) -> impl Iterator<Item = (List, &str, &str)> {
    let disks = sample.disk_usage.iter().map(|disk| (List::DISKS, disk.path.as_str(), ""));
    let io = sample.disk_io.iter().map(|io| (List::DISK_IO, io.device.as_str(), ""));
    let network = sample.network.iter().map(|net| (List::NETWORK, net.interface.as_str(), ""));
    let sensors = sample.temperatures.iter().map(|sensor| (List::TEMPERATURES, sensor.label.as_str(), ""));
    let containers = sample.containers.iter().map(|it| (List::CONTAINERS, it.name.as_str(), it.id.as_str()));
    disks.chain(io).chain(network).chain(sensors).chain(containers)
}

#[cfg(test)]
pub(super) mod tests;
