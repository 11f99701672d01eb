//! Selects the names of a range's series, up to a limit. Pure.
//!
//! A build machine has hundreds of thousands of containers in three months, each with its own names. So a catalog never
//! holds more names than it returns, and columns are added one by one as they are read.

use std::collections::BTreeMap;

use signalbox_history::frame::{Column, Owner};
use signalbox_history::metric::Kind;
use signalbox_history::shape::List;

use super::wanted::{Unit, name_of, unit};

/// The most names of one answer.
pub const MAX_NAMES: usize = 5_000;

/// A series that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesName {
    pub name: String,
    pub unit: Unit,
    pub kind: Kind,
    /// Whether it is an open series, which only its agent can explain.
    pub is_open: bool,
}

/// Names; some may have been left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// Sorted.
    pub names: Vec<SeriesName>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Ranks of columns: the machine itself, its cores, each list, lists of other builds, and open series.
const RANKS: usize = 4 + List::ALL.len();

/// Selects names. If there are too many, those of the machine come first, then those of its cores, disks, devices,
/// interfaces, sensors and containers, and last the open series; within one rank those that were added first.
pub struct Catalog {
    /// The part that a name must contain, in lower case.
    part: Option<String>,
    limit: usize,
    chosen: [Chosen; RANKS],
    truncated: bool,
}

/// The names of one rank.
#[derive(Default)]
struct Chosen {
    series: BTreeMap<String, (Unit, Kind)>,
    /// The names in the order in which they were added.
    added: Vec<String>,
}

impl Chosen {
    fn add(&mut self, name: String, unit: Unit, kind: Kind) {
        self.added.push(name.clone());
        self.series.insert(name, (unit, kind));
    }

    /// Removes the name that was added last.
    fn give_way(&mut self) {
        if let Some(name) = self.added.pop() {
            self.series.remove(&name);
        }
    }
}

impl Catalog {
    /// A catalog of at most `limit` names that contain `part`, in upper or lower case.
    pub fn new(part: Option<&str>, limit: usize) -> Self {
        Self { part: part.map(str::to_lowercase), limit, chosen: Default::default(), truncated: false }
    }

    pub fn add(&mut self, column: &Column) {
        let rank = rank(&column.of);
        let is_full = self.chosen.iter().map(|chosen| chosen.series.len()).sum::<usize>() >= self.limit;
        // Nothing would change. Of very many columns, most return here, before their name is built.
        if is_full && self.truncated && self.lowest() <= rank {
            return;
        }
        let Some(name) = name_of(column) else { return };
        if self.part.as_ref().is_some_and(|part| !name.to_lowercase().contains(part)) {
            return;
        }
        if self.chosen.get(rank).is_none_or(|chosen| chosen.series.contains_key(&name)) {
            return;
        }
        if is_full {
            self.truncated = true;
            let lowest = self.lowest();
            if lowest <= rank {
                return;
            }
            self.chosen.get_mut(lowest).into_iter().for_each(Chosen::give_way);
        }
        if let Some(chosen) = self.chosen.get_mut(rank) {
            chosen.add(name, unit(column), column.field.kind);
        }
    }

    /// Returns the rank from which a name would be removed.
    fn lowest(&self) -> usize {
        self.chosen.iter().rposition(|chosen| !chosen.series.is_empty()).unwrap_or_default()
    }

    pub fn finish(self) -> Names {
        let mut all = BTreeMap::new();
        // Typed series are added last, so that an open series cannot replace one of the same name.
        for (rank, chosen) in self.chosen.into_iter().enumerate().rev() {
            let is_open = rank == RANKS - 1;
            all.extend(chosen.series.into_iter().map(|(name, (unit, kind))| (name, (unit, kind, is_open))));
        }
        let named = |(name, (unit, kind, is_open))| SeriesName { name, unit, kind, is_open };
        Names { names: all.into_iter().map(named).collect(), truncated: self.truncated }
    }
}

fn rank(owner: &Owner) -> usize {
    match owner {
        Owner::Machine => 0,
        Owner::Core(_) => 1,
        Owner::Entry(entry) => 2 + List::ALL.iter().position(|list| *list == entry.list).unwrap_or(List::ALL.len()),
        Owner::Series(_) => RANKS - 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signalbox_history::metric::Field;
    use signalbox_history::shape::Entry;

    use super::*;

    fn container(name: &str) -> Column {
        let entry = Entry { list: List::CONTAINERS, name: name.to_owned(), id: String::new(), nth: 0 };
        Column { field: Field::CONTAINER_CPU, of: Owner::Entry(Arc::new(entry)) }
    }

    fn disk(path: &str) -> Column {
        let entry = Entry { list: List::DISKS, name: path.to_owned(), id: String::new(), nth: 0 };
        Column { field: Field::DISK_USED, of: Owner::Entry(Arc::new(entry)) }
    }

    fn cpu() -> Column {
        Column { field: Field::CPU, of: Owner::Machine }
    }

    fn chosen(part: Option<&str>, limit: usize, columns: &[Column]) -> (Vec<String>, bool) {
        let mut catalog = Catalog::new(part, limit);
        columns.iter().for_each(|column| catalog.add(column));
        let Names { names, truncated } = catalog.finish();
        (names.into_iter().map(|series| series.name).collect(), truncated)
    }

    #[test]
    fn the_machine_comes_before_its_containers_and_the_first_before_the_rest() {
        let columns = [container("b"), container("c"), container("a"), disk("/"), cpu(), container("b")];

        assert_eq!(chosen(None, 3, &columns), (strings(&["container_cpu:b", "cpu_percent", "disk_used:/"]), true));
        assert_eq!(chosen(None, 1, &columns), (strings(&["cpu_percent"]), true));
        assert!(!chosen(None, 5, &columns).1, "all are there");
    }

    #[test]
    fn names_are_selected_by_a_part() {
        let columns = [container("Web-1"), container("web-2"), container("db"), cpu()];

        assert_eq!(chosen(Some("WEB"), 2, &columns), (strings(&["container_cpu:Web-1", "container_cpu:web-2"]), false));
        assert_eq!(chosen(Some("web"), 1, &columns), (strings(&["container_cpu:Web-1"]), true));
    }

    #[test]
    fn the_same_name_again_truncates_nothing() {
        let columns = [container("a"), container("b"), container("a"), container("b")];

        assert_eq!(chosen(None, 2, &columns), (strings(&["container_cpu:a", "container_cpu:b"]), false));
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}
