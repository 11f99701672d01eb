//! What a sample consists of: which columns, in which order, and how each is kept as an integer.
//!
//! Two samples of one machine nearly always have the same shape, so it is shared, and a sample becomes a time and a row
//! of integers. Disks, interfaces, sensors and containers come and go: then the shape changes, not the format.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

/// What is measured. The numbers are written into blocks and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    Cpu,
    MemoryPercent,
    MemoryTotal,
    MemoryUsed,
    SwapTotal,
    SwapUsed,
    Load1,
    Load5,
    Load15,
    Uptime,
    ProcessCount,
    Core,
    DiskTotal,
    DiskUsed,
    DiskFree,
    DiskPercent,
    DiskRead,
    DiskWritten,
    NetworkSent,
    NetworkReceived,
    Celsius,
    ContainerCpu,
    ContainerMemory,
    ContainerReceived,
    ContainerSent,
}

/// What becomes of a field's values when many are made one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Mean, least and greatest.
    Gauge,
    /// The last value, and the rate's mean, least and greatest.
    Counter,
    /// The last value alone.
    Fact,
}

/// The fields that every sample has once, in their order.
pub const SCALARS: [Field; 11] = [
    Field::Cpu,
    Field::MemoryPercent,
    Field::MemoryTotal,
    Field::MemoryUsed,
    Field::SwapTotal,
    Field::SwapUsed,
    Field::Load1,
    Field::Load5,
    Field::Load15,
    Field::Uptime,
    Field::ProcessCount,
];

impl Field {
    pub fn kind(self) -> Kind {
        match self {
            Self::MemoryTotal | Self::SwapTotal | Self::Uptime | Self::DiskTotal => Kind::Fact,
            Self::DiskRead
            | Self::DiskWritten
            | Self::NetworkSent
            | Self::NetworkReceived
            | Self::ContainerReceived
            | Self::ContainerSent => Kind::Counter,
            _ => Kind::Gauge,
        }
    }

    /// How many of the kept integers make one of the unit.
    pub fn scale(self) -> f64 {
        match self {
            Self::Cpu
            | Self::MemoryPercent
            | Self::Load1
            | Self::Load5
            | Self::Load15
            | Self::Core
            | Self::DiskPercent
            | Self::ContainerCpu => 100.0,
            Self::Celsius => 10.0,
            _ => 1.0,
        }
    }

    /// Whether it is counted in whole numbers: then the kept integer stands for a `u64` of the same bits.
    pub fn is_whole(self) -> bool {
        self.scale() == 1.0
    }

    /// The kept integer as a number to calculate with.
    pub fn widen(self, kept: i64) -> i128 {
        if self.is_whole() { i128::from(kept.cast_unsigned()) } else { i128::from(kept) }
    }

    /// The integer to keep for a calculated number, which lies between numbers that were kept.
    pub fn narrow(self, number: i128) -> i64 {
        if self.is_whole() { (number as u64).cast_signed() } else { number as i64 }
    }

    /// The value in its unit.
    pub fn value(self, kept: i64) -> f64 {
        if self.is_whole() { kept.cast_unsigned() as f64 } else { kept as f64 / self.scale() }
    }
}

/// The lists that a sample has, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum List {
    Disks,
    DiskIo,
    Network,
    Temperatures,
    Containers,
}

impl List {
    pub const ALL: [Self; 5] = [Self::Disks, Self::DiskIo, Self::Network, Self::Temperatures, Self::Containers];

    /// The fields of each entry, in their order.
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::Disks => &[Field::DiskTotal, Field::DiskUsed, Field::DiskFree, Field::DiskPercent],
            Self::DiskIo => &[Field::DiskRead, Field::DiskWritten],
            Self::Network => &[Field::NetworkSent, Field::NetworkReceived],
            Self::Temperatures => &[Field::Celsius],
            Self::Containers => {
                &[Field::ContainerCpu, Field::ContainerMemory, Field::ContainerReceived, Field::ContainerSent]
            }
        }
    }
}

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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape {
    pub cores: u32,
    /// In the order of the sample, list after list.
    pub entries: Vec<Arc<Entry>>,
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
}

impl Shape {
    /// The shape of a sample.
    pub fn of(sample: &Sample) -> Self {
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        let mut counts: HashMap<(List, &str), u32> = HashMap::new();
        for (list, name, id) in names(sample) {
            let count = counts.entry((list, name)).or_default();
            entries.push(Arc::new(Entry { list, name: name.to_owned(), id: id.to_owned(), nth: *count }));
            *count += 1;
        }
        Self { cores: sample.cpu_per_core.len() as u32, entries }
    }

    /// Whether the sample has this shape. Allocates nothing: it is asked at every sample.
    pub fn fits(&self, sample: &Sample) -> bool {
        let mut own = self.entries.iter();
        let same = |(list, name, id): (List, &str, &str)| {
            own.next().is_some_and(|entry| entry.list == list && entry.name == name && entry.id == id)
        };
        self.cores as usize == sample.cpu_per_core.len() && names(sample).all(same) && own.next().is_none()
    }

    /// The columns, in the order of a row's values.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let scalars = SCALARS.into_iter().map(|field| Slot { field, of: Of::Machine });
        let cores = (0..self.cores).map(|core| Slot { field: Field::Core, of: Of::Core(core) });
        let entries = self.entries.iter().flat_map(|entry| {
            entry.list.fields().iter().map(move |field| Slot { field: *field, of: Of::Entry(entry) })
        });
        scalars.chain(cores).chain(entries)
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        let of_entry = |entry: &Arc<Entry>| size_of::<Entry>() + 32 + entry.name.len() + entry.id.len();
        self.entries.iter().map(of_entry).sum()
    }

    /// How many columns it has.
    pub fn width(&self) -> usize {
        let listed: usize = self.entries.iter().map(|entry| entry.list.fields().len()).sum();
        SCALARS.len() + self.cores as usize + listed
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
        Self { cores: self.cores.max(other.cores), entries }
    }
}

/// The names in a sample's lists, in order.
fn names(sample: &Sample) -> impl Iterator<Item = (List, &str, &str)> {
    let disks = sample.disk_usage.iter().map(|disk| (List::Disks, disk.path.as_str(), ""));
    let io = sample.disk_io.iter().map(|io| (List::DiskIo, io.device.as_str(), ""));
    let network = sample.network.iter().map(|net| (List::Network, net.interface.as_str(), ""));
    let sensors = sample.temperatures.iter().map(|sensor| (List::Temperatures, sensor.label.as_str(), ""));
    let containers = sample.containers.iter().map(|it| (List::Containers, it.name.as_str(), it.id.as_str()));
    disks.chain(io).chain(network).chain(sensors).chain(containers)
}

/// A sample as integers: the values of its shape's columns, in their order.
pub fn flatten(sample: &Sample) -> Box<[i64]> {
    let scaled = |field: Field, value: f64| (value * field.scale()).round() as i64;
    let mut values = vec![
        scaled(Field::Cpu, sample.cpu_percent),
        scaled(Field::MemoryPercent, sample.memory_percent),
        sample.memory_total.cast_signed(),
        sample.memory_used.cast_signed(),
        sample.swap_total.cast_signed(),
        sample.swap_used.cast_signed(),
    ];
    values.extend(sample.load_average.map(|load| scaled(Field::Load1, load)));
    values.extend([sample.uptime_seconds.cast_signed(), sample.process_count.cast_signed()]);
    values.extend(sample.cpu_per_core.iter().map(|core| scaled(Field::Core, *core)));
    for disk in &sample.disk_usage {
        values.extend([disk.total, disk.used, disk.free].map(u64::cast_signed));
        values.push(scaled(Field::DiskPercent, disk.percent));
    }
    values.extend(sample.disk_io.iter().flat_map(|io| [io.read_bytes, io.write_bytes]).map(u64::cast_signed));
    values.extend(sample.network.iter().flat_map(|net| [net.bytes_sent, net.bytes_recv]).map(u64::cast_signed));
    values.extend(sample.temperatures.iter().map(|sensor| scaled(Field::Celsius, sensor.celsius)));
    for it in &sample.containers {
        values.push(scaled(Field::ContainerCpu, it.cpu_percent));
        values.extend([it.memory_bytes, it.network_rx_bytes, it.network_tx_bytes].map(u64::cast_signed));
    }
    values.into_boxed_slice()
}

/// The sample of a shape and its values, in order. A value that is missing is 0.
pub fn unflatten(at: Timestamp, shape: &Shape, values: impl IntoIterator<Item = i64>) -> Sample {
    let mut values = values.into_iter();
    let mut next = || values.next().unwrap_or_default();
    let mut sample = Sample {
        timestamp: at,
        cpu_percent: Field::Cpu.value(next()),
        memory_percent: Field::MemoryPercent.value(next()),
        memory_total: next().cast_unsigned(),
        memory_used: next().cast_unsigned(),
        swap_total: next().cast_unsigned(),
        swap_used: next().cast_unsigned(),
        load_average: [Field::Load1, Field::Load5, Field::Load15].map(|field| field.value(next())),
        uptime_seconds: next().cast_unsigned(),
        process_count: next().cast_unsigned(),
        ..Sample::default()
    };
    sample.cpu_per_core = (0..shape.cores).map(|_| Field::Core.value(next())).collect();
    for entry in &shape.entries {
        let name = entry.name.clone();
        match entry.list {
            List::Disks => sample.disk_usage.push(DiskUsage {
                path: name,
                total: next().cast_unsigned(),
                used: next().cast_unsigned(),
                free: next().cast_unsigned(),
                percent: Field::DiskPercent.value(next()),
            }),
            List::DiskIo => sample.disk_io.push(DiskIo {
                device: name,
                read_bytes: next().cast_unsigned(),
                write_bytes: next().cast_unsigned(),
            }),
            List::Network => sample.network.push(NetworkUsage {
                interface: name,
                bytes_sent: next().cast_unsigned(),
                bytes_recv: next().cast_unsigned(),
            }),
            List::Temperatures => {
                sample.temperatures.push(Temperature { label: name, celsius: Field::Celsius.value(next()) });
            }
            List::Containers => sample.containers.push(ContainerUsage {
                id: entry.id.clone(),
                name,
                cpu_percent: Field::ContainerCpu.value(next()),
                memory_bytes: next().cast_unsigned(),
                network_rx_bytes: next().cast_unsigned(),
                network_tx_bytes: next().cast_unsigned(),
            }),
        }
    }
    sample
}
