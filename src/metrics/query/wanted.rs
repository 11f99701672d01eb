//! Which series are wanted, and what they are called.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use uuid::Uuid;

use crate::metrics::block::BlockError;
use crate::metrics::frame::{Column, Owner};
use crate::metrics::shape::Field;
use crate::store::history::BlockKey;

const COUNTERS: [Field; 6] = [
    Field::DiskRead,
    Field::DiskWritten,
    Field::NetworkSent,
    Field::NetworkReceived,
    Field::ContainerReceived,
    Field::ContainerSent,
];

/// What a series measures, by its field; `network_in:eth0` has `network_in`. None of a field that has no series.
pub fn base_name(field: Field) -> Option<&'static str> {
    Some(match field {
        Field::Cpu => "cpu_percent",
        Field::MemoryPercent => "memory_percent",
        Field::MemoryUsed => "memory_used",
        Field::SwapUsed => "swap_used",
        Field::Load1 => "load_1",
        Field::Load5 => "load_5",
        Field::Load15 => "load_15",
        Field::ProcessCount => "process_count",
        Field::Core => "cpu_core",
        Field::DiskUsed => "disk_used",
        Field::DiskPercent => "disk_percent",
        Field::DiskRead => "disk_read",
        Field::DiskWritten => "disk_write",
        Field::NetworkSent => "network_out",
        Field::NetworkReceived => "network_in",
        Field::Celsius => "temperature",
        Field::ContainerCpu => "container_cpu",
        Field::ContainerMemory => "container_memory",
        Field::ContainerReceived => "container_network_in",
        Field::ContainerSent => "container_network_out",
        Field::MemoryTotal | Field::SwapTotal | Field::Uptime | Field::DiskTotal | Field::DiskFree => return None,
    })
}

/// The unit of a field's series.
pub fn unit(field: Field) -> &'static str {
    match field {
        Field::Cpu | Field::MemoryPercent | Field::Core | Field::DiskPercent | Field::ContainerCpu => "percent",
        Field::Load1 | Field::Load5 | Field::Load15 | Field::ProcessCount => "count",
        Field::Celsius => "celsius",
        Field::Uptime => "seconds",
        Field::MemoryTotal
        | Field::MemoryUsed
        | Field::SwapTotal
        | Field::SwapUsed
        | Field::DiskTotal
        | Field::DiskUsed
        | Field::DiskFree
        | Field::ContainerMemory => "bytes",
        Field::DiskRead
        | Field::DiskWritten
        | Field::NetworkSent
        | Field::NetworkReceived
        | Field::ContainerReceived
        | Field::ContainerSent => "bytes_per_second",
    }
}

/// The name of a column's series; none of one that has no series.
pub fn name_of(column: &Column) -> Option<String> {
    Some(named(base_name(column.field)?, column))
}

fn named(base: &str, column: &Column) -> String {
    match &column.of {
        Owner::Machine => base.to_owned(),
        Owner::Core(core) => format!("{base}:{core}"),
        Owner::Entry(entry) if entry.nth == 0 => format!("{base}:{}", entry.name),
        Owner::Entry(entry) => format!("{base}:{}#{}", entry.name, entry.nth + 1),
    }
}

/// What a column of a table of snapshots is called: like its series, but a counter is what it says itself.
pub fn column_name(column: &Column) -> String {
    let own = match column.field {
        Field::DiskRead => "disk_read_bytes",
        Field::DiskWritten => "disk_write_bytes",
        Field::NetworkSent => "bytes_sent",
        Field::NetworkReceived => "bytes_recv",
        Field::ContainerReceived => "container_network_rx_bytes",
        Field::ContainerSent => "container_network_tx_bytes",
        Field::MemoryTotal => "memory_total",
        Field::SwapTotal => "swap_total",
        Field::Uptime => "uptime_seconds",
        Field::DiskTotal => "disk_total",
        Field::DiskFree => "disk_free",
        field => base_name(field).unwrap_or_default(),
    };
    named(own, column)
}

/// Which columns to read.
#[derive(Debug, Clone)]
pub struct Wanted {
    which: Which,
    damaged: Arc<AtomicUsize>,
}

#[derive(Debug, Clone)]
enum Which {
    All,
    /// What a chart of everything needs.
    Series,
    /// Base names, and what stands behind their colon.
    Named(Arc<Vec<(String, Option<String>)>>),
}

impl Wanted {
    fn new(which: Which) -> Self {
        Self { which, damaged: Arc::default() }
    }

    /// Every column there is.
    pub fn everything() -> Self {
        Self::new(Which::All)
    }

    /// Every column that has a series.
    pub fn series() -> Self {
        Self::new(Which::Series)
    }

    /// The series of these names.
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        let split = |name: String| match name.split_once(':') {
            Some((base, rest)) => (base.to_owned(), Some(rest.to_owned())),
            None => (name, None),
        };
        Self::new(Which::Named(Arc::new(names.into_iter().map(split).collect())))
    }

    /// The same with every column.
    pub fn all(&self) -> Self {
        Self { which: Which::All, damaged: self.damaged.clone() }
    }

    pub fn is_all(&self) -> bool {
        matches!(self.which, Which::All)
    }

    /// Whether a counter is among them, as far as the names tell.
    pub fn has_counters(&self) -> bool {
        match &self.which {
            Which::All | Which::Series => true,
            Which::Named(names) => {
                names.iter().any(|(name, _)| COUNTERS.iter().any(|field| base_name(*field) == Some(name)))
            }
        }
    }

    pub fn has(&self, column: &Column) -> bool {
        match &self.which {
            Which::All => true,
            Which::Series => base_name(column.field).is_some(),
            Which::Named(names) => {
                let Some(base) = base_name(column.field) else { return false };
                names.iter().any(|(name, of)| name == base && is_of(column, of.as_deref()))
            }
        }
    }

    /// Tells of a block that cannot be read.
    pub fn damaged(&self, server_id: Uuid, key: BlockKey, error: &BlockError) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("signalbox_history_damaged_total").increment(1);
        tracing::error!(%error, server.id = %server_id, ?key, "a block of the history cannot be read");
    }

    /// How many blocks could not be read so far.
    pub fn damaged_blocks(&self) -> usize {
        self.damaged.load(Ordering::Relaxed)
    }
}

fn is_of(column: &Column, of: Option<&str>) -> bool {
    match (&column.of, of) {
        (Owner::Machine, None) => true,
        (Owner::Core(core), Some(of)) => of.parse() == Ok(*core),
        (Owner::Entry(entry), Some(of)) if entry.nth == 0 => entry.name == of,
        (Owner::Entry(entry), Some(of)) => {
            let number = of.strip_prefix(entry.name.as_str()).and_then(|rest| rest.strip_prefix('#'));
            number.and_then(|number| number.parse().ok()) == entry.nth.checked_add(1)
        }
        (Owner::Machine, Some(_)) | (Owner::Core(_) | Owner::Entry(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::shape::{Entry, List};

    fn sensor(name: &str, nth: u32) -> Column {
        let entry = Entry { list: List::Temperatures, name: name.to_owned(), id: String::new(), nth };
        Column { field: Field::Celsius, of: Owner::Entry(Arc::new(entry)) }
    }

    #[test]
    fn every_name_chooses_the_column_that_it_is_the_name_of() {
        let core = Column { field: Field::Core, of: Owner::Core(3) };
        let cpu = Column { field: Field::Cpu, of: Owner::Machine };
        let columns = [core, cpu, sensor("core", 0), sensor("core", 1), sensor("a:b#2", 0)];

        for column in &columns {
            let name = name_of(column).unwrap();
            let wanted = Wanted::named([name.clone()]);
            let chosen: Vec<&Column> = columns.iter().filter(|column| wanted.has(column)).collect();
            assert_eq!(chosen, [column], "{name}");
        }
    }
}
