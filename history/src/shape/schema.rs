//! The fields of the machine, its cores and the entries of each list. Rows of another build may have others.

use std::sync::{Arc, LazyLock};

use crate::metric::{self, Field, Kind, Metric, MetricOf, Scale};

/// A list of a sample, by its number in stored formats. Lists are ordered by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct List(pub u8);

impl List {
    /// Mounted file systems.
    pub const DISKS: Self = Self(0);
    /// Block devices.
    pub const DISK_IO: Self = Self(1);
    /// Network interfaces.
    pub const NETWORK: Self = Self(2);
    /// Temperature sensors.
    pub const TEMPERATURES: Self = Self(3);
    /// Containers.
    pub const CONTAINERS: Self = Self(4);

    /// The lists that this build knows.
    pub const ALL: [Self; 5] = [Self::DISKS, Self::DISK_IO, Self::NETWORK, Self::TEMPERATURES, Self::CONTAINERS];
}

/// The fields of a sample, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Schema {
    /// The fields of the machine as a whole.
    pub machine: Vec<Field>,
    /// The fields of each core.
    pub core: Vec<Field>,
    /// The fields of each entry of a list, by the lists' numbers.
    pub lists: Vec<(List, Vec<Field>)>,
}

static CURRENT: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    Arc::new(Schema {
        machine: fields(&metric::MACHINE),
        core: fields(&metric::CORES),
        lists: vec![
            (List::DISKS, fields(&metric::DISKS)),
            (List::DISK_IO, fields(&metric::DISK_IO)),
            (List::NETWORK, fields(&metric::NETWORK)),
            (List::TEMPERATURES, fields(&metric::TEMPERATURES)),
            (List::CONTAINERS, fields(&metric::CONTAINERS)),
        ],
    })
});

fn fields<T>(metrics: &[MetricOf<T>]) -> Vec<Field> {
    metrics.iter().map(|MetricOf { metric: Metric { field, .. }, .. }| *field).collect()
}

/// The schema that version 1 of the formats implies. Frozen, because stored data is read with it.
static VERSION_1: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let gauge = |number, scale| Field::new(number, Kind::Gauge, scale);
    let counter = |number| Field::new(number, Kind::Counter, Scale::Whole);
    let last = |number| Field::new(number, Kind::Last, Scale::Whole);
    let hundredths = |number| gauge(number, Scale::Parts(100));
    let whole = |number| gauge(number, Scale::Whole);
    Arc::new(Schema {
        machine: vec![
            hundredths(0),
            hundredths(1),
            last(2),
            whole(3),
            last(4),
            whole(5),
            hundredths(6),
            hundredths(7),
            hundredths(8),
            last(9),
            whole(10),
        ],
        core: vec![hundredths(11)],
        lists: vec![
            (List(0), vec![last(12), whole(13), whole(14), hundredths(15)]),
            (List(1), vec![counter(16), counter(17)]),
            (List(2), vec![counter(18), counter(19)]),
            (List(3), vec![gauge(20, Scale::Parts(10))]),
            (List(4), vec![hundredths(21), whole(22), counter(23), counter(24)]),
        ],
    })
});

impl Schema {
    /// The schema of this build's samples.
    pub fn current() -> Arc<Self> {
        CURRENT.clone()
    }

    /// The schema that version 1 of the stored formats implies.
    pub fn version_1() -> Arc<Self> {
        // Mostly they are still equal; then rows of both share their shapes.
        if **VERSION_1 == **CURRENT { CURRENT.clone() } else { VERSION_1.clone() }
    }

    /// The same schema, shared with everything that has this build's.
    pub fn shared(self) -> Arc<Self> {
        if self == **CURRENT { CURRENT.clone() } else { Arc::new(self) }
    }

    /// Whether it is the schema of this build's samples.
    pub fn is_current(schema: &Arc<Self>) -> bool {
        Arc::ptr_eq(schema, &CURRENT) || **schema == **CURRENT
    }

    /// The fields of a list's entries; none for an unknown list.
    pub fn of_list(&self, list: List) -> &[Field] {
        let found = self.lists.iter().find(|(known, _)| *known == list);
        found.map(|(_, fields)| fields.as_slice()).unwrap_or_default()
    }

    /// One schema, and the other's fields that it lacks.
    pub fn union(one: &Arc<Self>, other: &Arc<Self>) -> Arc<Self> {
        if Arc::ptr_eq(one, other) || one == other {
            return one.clone();
        }
        let mut union = Self::clone(one);
        add(&mut union.machine, &other.machine);
        add(&mut union.core, &other.core);
        for (list, fields) in &other.lists {
            match union.lists.iter_mut().find(|(known, _)| known == list) {
                Some((_, known)) => add(known, fields),
                None => union.lists.push((*list, fields.clone())),
            }
        }
        union.lists.sort_by_key(|(list, _)| *list);
        Arc::new(union)
    }
}

fn add(known: &mut Vec<Field>, more: &[Field]) {
    for field in more {
        if !known.contains(field) {
            known.push(*field);
        }
    }
}
