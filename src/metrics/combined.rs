//! Combines the series of many servers into the lines of one chart. Pure.
//!
//! All servers are read in the same buckets ([`Grid`]), and each value joins the line of its group. A bucket in which a server
//! has no value counts without this server. So that a sum does not jump between the samples of slow agents, a value holds until
//! the next sample of its server is overdue; after that it is a gap.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use signalbox_history::rollup::{bucket_start, gap_ms, spacing_ms};
use uuid::Uuid;

use super::query::TimeRange;
use super::query::wanted::ANY_TARGET;
use super::series::{Points, Series, Shown};

/// The buckets of all lines of one answer, at most 20 MB.
const MAX_CELLS: usize = 500_000;

/// How the values of a group become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Avg,
    Sum,
    Min,
    Max,
}

/// What a line stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// One server.
    Server,
    /// The servers with one tag. A server with several tags counts in each.
    Tag,
    /// One series of one server.
    Series,
    /// All servers.
    None,
}

/// By which of its values a line ranks among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    Max,
    Mean,
    Last,
}

impl Function {
    pub const ALL: [Self; 4] = [Self::Avg, Self::Sum, Self::Min, Self::Max];

    pub fn word(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl GroupBy {
    pub const ALL: [Self; 4] = [Self::Server, Self::Tag, Self::Series, Self::None];

    pub fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Tag => "tag",
            Self::Series => "series",
            Self::None => "none",
        }
    }
}

impl Rank {
    pub const ALL: [Self; 3] = [Self::Max, Self::Mean, Self::Last];

    pub fn word(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Last => "last",
        }
    }
}

/// The buckets of an answer, the same for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    start_ms: i64,
    end_ms: i64,
    width_ms: i64,
    count: usize,
}

impl Grid {
    /// The buckets of this width, in seconds, that contain a range; none if the range is empty.
    pub fn new(range: TimeRange, width_seconds: i64) -> Self {
        let width_ms = width_seconds.max(1).saturating_mul(1_000);
        let (start_ms, end_ms) = (bucket_start(range.start.as_millis(), width_ms), range.end.as_millis());
        let buckets = end_ms.saturating_sub(start_ms).div_euclid(width_ms).saturating_add(1);
        let count = if range.end < range.start { 0 } else { usize::try_from(buckets).unwrap_or_default() };
        Self { start_ms, end_ms, width_ms, count }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    pub fn resolution_seconds(&self) -> i64 {
        self.width_ms / 1_000
    }

    /// The starts of the buckets, in seconds since the epoch.
    pub fn timestamps(&self) -> Vec<i64> {
        (0..self.count).map(|place| self.start_of(place).div_euclid(1_000)).collect()
    }

    fn start_of(&self, place: usize) -> i64 {
        self.start_ms.saturating_add(self.width_ms.saturating_mul(i64::try_from(place).unwrap_or(i64::MAX)))
    }

    fn place(&self, seconds: i64) -> Option<usize> {
        let place = seconds.saturating_mul(1_000).saturating_sub(self.start_ms).div_euclid(self.width_ms);
        usize::try_from(place).ok().filter(|place| *place < self.count)
    }

    /// The values of a column by bucket, each held until the next sample is overdue. `spacing` is the usual distance of the
    /// server's samples in milliseconds.
    fn values(&self, timestamps: &[i64], points: &Points, spacing: i64) -> Vec<Option<Shown>> {
        let mut values = vec![None; self.count];
        let mut known = Vec::new();
        for (index, seconds) in timestamps.iter().enumerate() {
            let (Some(shown), Some(place)) = (points.get(index), self.place(*seconds)) else { continue };
            if let Some(value) = values.get_mut(place) {
                *value = Some(shown);
                known.push(self.start_of(place));
            }
        }
        // Downsampled rows do not show the distance of samples that are further apart than a bucket.
        let observed = if known.len() > 2 { spacing_ms(&known) } else { 0 };
        let overdue_ms = gap_ms(if observed > self.width_ms { observed } else { spacing });
        let mut last: Option<(usize, Shown)> = None;
        for (place, value) in values.iter_mut().enumerate() {
            match (*value, last) {
                (Some(shown), _) => last = Some((place, shown)),
                (None, Some((at, shown))) if self.holds(at, place, overdue_ms) => *value = Some(shown),
                (None, _) => {}
            }
        }
        values
    }

    /// Whether a value of one bucket still holds in a later one. The present bucket has only begun.
    fn holds(&self, at: usize, place: usize, overdue_ms: i64) -> bool {
        let elapsed_ms = self.start_of(place).saturating_sub(self.start_of(at));
        let has_begun = self.end_ms.saturating_sub(self.start_of(place));
        elapsed_ms <= overdue_ms || (place + 1 == self.count && place == at + 1 && has_begun < overdue_ms)
    }
}

/// What identifies a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// The requested name.
    pub name: String,
    pub server_id: Option<Uuid>,
    /// None for servers without a tag, or if it is not grouped by tags.
    pub tag: Option<String>,
    /// The name of the series, if each has its own line.
    pub series: Option<String>,
}

/// A line: its values by bucket, and how many servers each is of.
#[derive(Debug, PartialEq)]
pub struct Line {
    pub key: LineKey,
    pub values: Vec<Option<Shown>>,
    pub servers: Vec<u32>,
}

/// The lines that rank highest.
#[derive(Debug, PartialEq)]
pub struct Lines {
    /// By name, those of the highest rank first.
    pub lines: Vec<Line>,
    /// How many lines ranked lower.
    pub left_out: usize,
}

/// A server whose series are added.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pub server_id: Uuid,
    pub tags: &'a [String],
    /// The usual distance of its samples in milliseconds.
    pub spacing_ms: i64,
}

/// More values and series than one answer may hold.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyLines;

/// One bucket of a line.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    avg: f64,
    min: f64,
    max: f64,
    values: u32,
    servers: u32,
    /// The number of the server that was added last.
    last: u32,
}

impl Cell {
    fn add(&mut self, function: Function, shown: Shown, server: u32) {
        let Shown { avg, min, max } = shown;
        (self.avg, self.min, self.max) = match function {
            _ if self.values == 0 => (avg, min, max),
            Function::Avg => (self.avg + avg, self.min.min(min), self.max.max(max)),
            Function::Sum => (self.avg + avg, self.min + min, self.max + max),
            Function::Min => (self.avg.min(avg), self.min.min(min), self.max.min(max)),
            Function::Max => (self.avg.max(avg), self.min.max(min), self.max.max(max)),
        };
        self.values += 1;
        if self.last != server {
            self.servers += 1;
            self.last = server;
        }
    }

    fn finish(&self, function: Function) -> Option<Shown> {
        if self.values == 0 {
            return None;
        }
        let avg = if function == Function::Avg { self.avg / f64::from(self.values) } else { self.avg };
        Some(Shown { avg: tidy(avg), min: tidy(self.min), max: tidy(self.max) })
    }
}

/// Rounds to hundredths, but a small value, such as a ratio, stays as it is.
fn tidy(value: f64) -> f64 {
    if value.abs() >= 1.0 { (value * 100.0).round() / 100.0 } else { value }
}

/// Adds one server after the other.
#[derive(Debug)]
pub struct Combiner {
    grid: Grid,
    function: Function,
    by: GroupBy,
    cells: BTreeMap<LineKey, Vec<Cell>>,
    members: u32,
}

impl Combiner {
    pub fn new(grid: Grid, function: Function, by: GroupBy) -> Self {
        Self { grid, function, by, cells: BTreeMap::new(), members: 0 }
    }

    /// Adds the columns of a server to the lines of their groups. `names` are the requested names.
    pub fn add(&mut self, member: Member<'_>, names: &[String], series: &Series) -> Result<(), TooManyLines> {
        self.members += 1;
        for (column, points) in &series.columns {
            let values = self.grid.values(&series.timestamps, points, member.spacing_ms);
            for name in names.iter().filter(|name| stands_for(name, column)) {
                for key in self.keys(&member, name, column) {
                    self.join(key, &values)?;
                }
            }
        }
        Ok(())
    }

    fn keys(&self, member: &Member<'_>, name: &str, column: &str) -> Vec<LineKey> {
        let all = LineKey { name: name.to_owned(), server_id: None, tag: None, series: None };
        match self.by {
            GroupBy::None => vec![all],
            GroupBy::Server => vec![LineKey { server_id: Some(member.server_id), ..all }],
            GroupBy::Series => {
                vec![LineKey { server_id: Some(member.server_id), series: Some(column.to_owned()), ..all }]
            }
            GroupBy::Tag if member.tags.is_empty() => vec![all],
            GroupBy::Tag => member.tags.iter().map(|tag| LineKey { tag: Some(tag.clone()), ..all.clone() }).collect(),
        }
    }

    fn join(&mut self, key: LineKey, values: &[Option<Shown>]) -> Result<(), TooManyLines> {
        if !self.cells.contains_key(&key) && (self.cells.len() + 1).saturating_mul(self.grid.count) > MAX_CELLS {
            return Err(TooManyLines);
        }
        let cells = self.cells.entry(key).or_insert_with(|| vec![Cell::default(); self.grid.count]);
        for (cell, value) in cells.iter_mut().zip(values) {
            if let Some(shown) = value {
                cell.add(self.function, *shown, self.members);
            }
        }
        Ok(())
    }

    /// Whether there is a line of a requested name.
    pub fn has(&self, name: &str) -> bool {
        self.cells.keys().any(|key| key.name == name)
    }

    /// Removes the lines of all other names.
    pub fn keep(&mut self, names: &HashSet<&str>) {
        self.cells.retain(|key, _| names.contains(key.name.as_str()));
    }

    /// Returns the `top` lines of each name, by rank.
    pub fn finish(self, rank: Rank, top: usize) -> Lines {
        let Self { function, cells, .. } = self;
        let mut by_name: BTreeMap<String, Vec<(f64, Line)>> = BTreeMap::new();
        for (key, cells) in cells {
            let values: Vec<Option<Shown>> = cells.iter().map(|cell| cell.finish(function)).collect();
            let Some(weight) = weight_of(&values, rank) else { continue };
            let servers = cells.iter().map(|cell| cell.servers).collect();
            by_name.entry(key.name.clone()).or_default().push((weight, Line { key, values, servers }));
        }
        let (mut lines, mut left_out) = (Vec::new(), 0);
        for mut of_name in by_name.into_values() {
            of_name.sort_by(|(one, _), (other, _)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
            left_out += of_name.len().saturating_sub(top);
            lines.extend(of_name.into_iter().take(top).map(|(_, line)| line));
        }
        Lines { lines, left_out }
    }
}

/// Whether a requested name stands for a series.
pub fn stands_for(name: &str, column: &str) -> bool {
    let base_of_all = name.strip_suffix(ANY_TARGET).filter(|base| base.ends_with(':'));
    base_of_all.map_or(name == column, |base| column.starts_with(base))
}

/// The value by which a line ranks; `None` for a line without any value.
fn weight_of(values: &[Option<Shown>], rank: Rank) -> Option<f64> {
    let known = || values.iter().flatten().map(|shown| shown.avg);
    let last = known().next_back()?;
    Some(match rank {
        Rank::Last => last,
        Rank::Max => known().fold(f64::NEG_INFINITY, f64::max),
        Rank::Mean => known().sum::<f64>() / known().count() as f64,
    })
}

#[cfg(test)]
#[path = "combined_tests.rs"]
mod tests;
