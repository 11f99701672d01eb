//! The composition of a sample: which columns, in which order, and how an integer represents each.
//!
//! Two samples of one machine nearly always have the same shape, so they share it, and a sample becomes a time and a row of
//! integers. When disks, interfaces, sensors and containers come and go, the shape changes and the format does not.

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

/// The most cores of a stored shape; a sample has at most 1,024.
pub const MAX_CORES: usize = 1 << 16;

/// One disk, device, interface, sensor or container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The list that it is in.
    pub list: List,
    /// Its name: a mount path, device, interface, label or container's name.
    pub name: String,
    /// The id of a container; empty otherwise.
    pub id: String,
    /// Counts the entries of one list with the same name, from 0: sensors of two processors may share a name.
    pub nth: u32,
}

/// The columns of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The fields of the machine, its cores and the entries of each list.
    pub schema: Arc<Schema>,
    /// How many cores there are.
    pub cores: u32,
    /// In the order of the sample, list by list.
    pub entries: Vec<Arc<Entry>>,
    /// The open series, in the order of the sample.
    pub series: Vec<Arc<Series>>,
    described: Described,
}

/// The bytes that precede every sample of this shape. They follow from the other fields.
#[derive(Debug, Default)]
struct Described(OnceLock<Box<[u8]>>);

impl Clone for Described {
    /// A clone may be changed, so it does not share the bytes.
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
pub struct ColumnRef<'a> {
    /// What is measured.
    pub field: Field,
    /// What it is measured of.
    pub of: ColumnOwner<'a>,
}

/// What a column belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnOwner<'a> {
    /// The machine as a whole.
    Machine,
    /// The core of this number, from 0.
    Core(u32),
    /// An entry of a list.
    Entry(&'a Arc<Entry>),
    /// An open series.
    Series(&'a Arc<Series>),
}

impl Shape {
    /// The shape of this build's samples, without open series.
    pub fn new(cores: u32, entries: Vec<Arc<Entry>>) -> Self {
        Self::with(Schema::current(), cores, entries, Vec::new())
    }

    /// The shape of rows that any build wrote.
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

    /// Whether the sample has this shape. It allocates nothing, because it runs for every sample.
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
    pub fn slots(&self) -> impl Iterator<Item = ColumnRef<'_>> {
        let machine = self.schema.machine.iter().map(|field| ColumnRef { field: *field, of: ColumnOwner::Machine });
        let cores = (0..self.cores).flat_map(|core| {
            let fields = self.schema.core.iter();
            fields.map(move |field| ColumnRef { field: *field, of: ColumnOwner::Core(core) })
        });
        let entries = self.entries.iter().flat_map(|entry| {
            let fields = self.schema.of_list(entry.list).iter();
            fields.map(move |field| ColumnRef { field: *field, of: ColumnOwner::Entry(entry) })
        });
        let series = self
            .series
            .iter()
            .map(|series| ColumnRef { field: Field::open(series.kind), of: ColumnOwner::Series(series) });
        machine.chain(cores).chain(entries).chain(series)
    }

    /// The memory that the shape takes, in bytes.
    pub fn bytes(&self) -> usize {
        // Texts count twice, because the description has them, too.
        let of_entry = |entry: &Arc<Entry>| size_of::<Entry>() + 36 + 2 * (entry.name.len() + entry.id.len());
        let of_series = |series: &Arc<Series>| {
            let target = series.target.as_ref().map_or(0, String::len);
            size_of::<Series>() + 36 + 2 * (series.name.len() + series.unit.len() + target)
        };
        let entries: usize = self.entries.iter().map(of_entry).sum();
        size_of::<Self>() + entries + self.series.iter().map(of_series).sum::<usize>()
    }

    /// How many columns the shape has.
    pub fn width(&self) -> usize {
        let listed: usize = self.entries.iter().map(|entry| self.schema.of_list(entry.list).len()).sum();
        let cores = self.cores as usize * self.schema.core.len();
        self.schema.machine.len() + cores + listed + self.series.len()
    }

    /// This shape, and the other's columns that it lacks.
    pub fn union(&self, other: &Self) -> Self {
        let mut entries = self.entries.clone();
        let known: HashSet<&Arc<Entry>> = self.entries.iter().collect();
        for entry in &other.entries {
            if !known.contains(entry) {
                // Lists stay together, because a sample is assembled list by list.
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

    /// The bytes that precede every sample of this shape.
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

    /// Reads the bytes of [`Shape::described`].
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

/// List, name and id of each entry of a sample, in order.
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
