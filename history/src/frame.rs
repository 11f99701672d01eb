//! A time range of one server's history in columns: the source and the result of blocks.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use signalbox_protocol::{Sample, Timestamp};

use super::metric::{Field, Kind, Scale, Series};
use super::open::{Measured, Open};
use super::shape::{self, ColumnOwner, ColumnRef, Entry, Schema, Shape};

/// Whether rows are samples, or aggregates of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// Each row is a sample.
    Raw,
    /// Each row is an aggregate of several samples.
    Rolled,
}

/// Stands for an unknown rate. Read as a float it is -0, which no rate is.
pub const NO_RATE: i64 = i64::MIN;

impl Granularity {
    /// How many integers a column has per row. Raw: the value. Rolled: of a gauge mean, minimum, maximum, and how many samples
    /// lacked it; of a counter the last value, then these four of its rate (see [`Field::rate`]); else the last value.
    pub fn stats(self, field: Field) -> usize {
        match (self, field.kind) {
            (Self::Raw, _) | (Self::Rolled, Kind::Last) => 1,
            (Self::Rolled, Kind::Gauge) => 4,
            (Self::Rolled, Kind::Counter) => 5,
        }
    }

    /// How many of these, counted from the first, hold the bits of a float; the last of a gauge or counter counts samples.
    pub fn floats(self, field: Field) -> usize {
        match (field.scale, self) {
            (Scale::Whole | Scale::Parts(_), _) => 0,
            (Scale::Float, Self::Raw) => 1,
            (Scale::Float, Self::Rolled) if field.kind == Kind::Last => 1,
            (Scale::Float, Self::Rolled) => self.stats(field) - 1,
        }
    }
}

/// A sample, or an aggregate of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// When the sample was taken, or when the row's time range began; milliseconds since the epoch.
    pub at: i64,
    /// How many samples the row represents.
    pub count: i64,
    /// The row's columns.
    pub shape: Arc<Shape>,
    /// For each column of the shape as many values as the grain has stats.
    pub values: Arc<[i64]>,
}

impl Row {
    /// The row of a sample without open series.
    pub fn of(sample: &Sample, shape: Arc<Shape>) -> Self {
        Self::with_open(sample, &Open::default(), shape)
    }

    /// The row of a sample with open series. `shape` must be that of both.
    pub fn with_open(sample: &Sample, open: &Open, shape: Arc<Shape>) -> Self {
        let mut values = shape::flatten(sample);
        values.extend(open.iter().map(|(_, value)| value.to_bits().cast_signed()));
        Self { at: sample.timestamp.as_millis(), count: 1, shape, values: values.into() }
    }

    /// The sample that the row was made of, or the mean of its samples (of counters and facts the last value).
    pub fn sample(&self, granularity: Granularity) -> Sample {
        let mut rest = self.values.iter().copied();
        let first_of_each = self.shape.slots().map(|slot| {
            let first = rest.next().unwrap_or_default();
            (1..granularity.stats(slot.field)).for_each(|_| _ = rest.next());
            first
        });
        shape::unflatten(Timestamp::from_millis(self.at), &self.shape, first_of_each)
    }

    /// The same, with open series.
    pub fn measured(&self, granularity: Granularity) -> Measured {
        Measured { sample: self.sample(granularity), open: self.open(granularity) }
    }

    fn open(&self, granularity: Granularity) -> Open {
        let of_open: usize = self.shape.series.iter().map(|series| granularity.stats(Field::open(series.kind))).sum();
        let mut rest = self.values.iter().skip(self.values.len().saturating_sub(of_open));
        let mut first_of = |series: &Arc<Series>| {
            let field = Field::open(series.kind);
            let first = rest.next().copied().unwrap_or_default();
            (1..granularity.stats(field)).for_each(|_| _ = rest.next());
            (series.clone(), field.value(first))
        };
        Open::new(self.shape.series.iter().map(&mut first_of).collect())
    }
}

/// Identifies a column of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// What is measured.
    pub field: Field,
    /// What it is measured of.
    pub of: Owner,
}

/// What a column belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The machine as a whole.
    Machine,
    /// The core of this number, from 0.
    Core(u32),
    /// An entry of a list.
    Entry(Arc<Entry>),
    /// An open series.
    Series(Arc<Series>),
}

impl From<ColumnRef<'_>> for Column {
    fn from(slot: ColumnRef<'_>) -> Self {
        let of = match slot.of {
            ColumnOwner::Machine => Owner::Machine,
            ColumnOwner::Core(core) => Owner::Core(core),
            ColumnOwner::Entry(entry) => Owner::Entry(entry.clone()),
            ColumnOwner::Series(series) => Owner::Series(series.clone()),
        };
        Self { field: slot.field, of }
    }
}

/// Consecutive rows of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The index of the layout's shape.
    pub shape: usize,
    /// How many rows there are.
    pub rows: usize,
}

/// Which rows have which columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// The entries of all shapes.
    pub entries: Vec<Arc<Entry>>,
    /// The open series of all shapes.
    pub series: Vec<Arc<Series>>,
    /// The shapes of the rows.
    pub shapes: Vec<Arc<Shape>>,
    /// Which rows have which shape.
    pub runs: Vec<Run>,
}

impl Layout {
    /// The combined fields of all shapes.
    pub fn schema(&self) -> Arc<Schema> {
        let schemas = self.shapes.iter().map(|shape| shape.schema.clone());
        schemas.reduce(|union, other| Schema::union(&union, &other)).unwrap_or_else(Schema::current)
    }

    /// All columns, in stored order.
    pub fn columns(&self) -> Vec<Column> {
        let schema = self.schema();
        let machine = schema.machine.iter().map(|field| Column { field: *field, of: Owner::Machine });
        let cores = self.shapes.iter().map(|shape| shape.cores).max().unwrap_or_default();
        let cores = (0..cores).flat_map(|core| {
            let fields = schema.core.iter();
            fields.map(move |field| Column { field: *field, of: Owner::Core(core) })
        });
        let entries = self.entries.iter().flat_map(|entry| {
            let fields = schema.of_list(entry.list).iter();
            fields.map(move |field| Column { field: *field, of: Owner::Entry(entry.clone()) })
        });
        let series = self.series.iter().map(|series| {
            let field = Field::open(series.kind);
            Column { field, of: Owner::Series(series.clone()) }
        });
        machine.chain(cores).chain(entries).chain(series).collect()
    }

    fn is_that_of(&self, shape: &Shape) -> bool {
        fn are_same<T>(own: &[Arc<T>], others: &[Arc<T>]) -> bool {
            own.len() == others.len() && own.iter().zip(others).all(|(own, other)| Arc::ptr_eq(own, other))
        }
        are_same(&self.entries, &shape.entries) && are_same(&self.series, &shape.series)
    }

    /// For each shape, the layout's column of each of its own.
    fn places(&self) -> Vec<Vec<usize>> {
        if let [only] = self.shapes.as_slice()
            && self.is_that_of(only)
        {
            // The common case: no name is looked up.
            return vec![(0..only.width()).collect()];
        }
        let columns = self.columns();
        let places: HashMap<&Column, usize> =
            columns.iter().enumerate().map(|(place, column)| (column, place)).collect();
        let place = |slot: ColumnRef<'_>| places.get(&Column::from(slot)).copied();
        self.shapes.iter().map(|shape| shape.slots().filter_map(place).collect()).collect()
    }

    /// For each column, the ranges of rows that have it.
    pub fn rows_with(&self) -> Vec<Vec<Range<usize>>> {
        if let [only] = self.shapes.as_slice() {
            let rows = self.runs.iter().map(|run| run.rows).sum();
            return vec![vec![0..rows]; only.width()];
        }
        let places = self.places();
        let mut ranges: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.columns().len()];
        let mut start = 0;
        for run in &self.runs {
            let end = start + run.rows;
            for place in places.get(run.shape).into_iter().flatten() {
                let Some(ranges) = ranges.get_mut(*place) else { continue };
                match ranges.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => ranges.push(start..end),
                }
            }
            start = end;
        }
        ranges
    }
}

/// Rows in columns, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Whether rows are samples or aggregates.
    pub granularity: Granularity,
    /// Whether the frame only precedes the requested time, so that its last row yields the first rate.
    pub is_lead: bool,
    /// One for each row; milliseconds since the epoch.
    pub times: Vec<i64>,
    /// One for each row: how many samples it represents. Empty where every row is a sample.
    pub counts: Vec<i64>,
    /// Which rows have which columns.
    pub layout: Layout,
    /// The layout's columns.
    pub columns: Vec<Column>,
    /// For each column its stats, each with a value for every row that has the column; none for unwanted columns.
    pub vectors: Vec<Option<Vec<Vec<i64>>>>,
}

impl Frame {
    /// Converts rows, which must be sorted, to columns.
    pub fn from_rows(granularity: Granularity, rows: &[Row]) -> Self {
        let layout = layout(rows);
        let (columns, places) = (layout.columns(), layout.places());
        // Exact capacities: each of a thousand names may occur in only one row.
        let mut rows_with = vec![0; columns.len()];
        for run in &layout.runs {
            for place in places.get(run.shape).into_iter().flatten() {
                rows_with.get_mut(*place).into_iter().for_each(|rows| *rows += run.rows);
            }
        }
        let room =
            |(column, n): (&Column, usize)| (0..granularity.stats(column.field)).map(move |_| Vec::with_capacity(n));
        let mut vectors: Vec<Vec<Vec<i64>>> =
            columns.iter().zip(rows_with).map(|column| room(column).collect()).collect();
        let mut left = rows.iter();
        for run in &layout.runs {
            let Some(places) = places.get(run.shape) else { continue };
            for row in left.by_ref().take(run.rows) {
                let mut values = row.values.iter();
                for place in places {
                    let Some(stats) = vectors.get_mut(*place) else { continue };
                    stats.iter_mut().zip(values.by_ref()).for_each(|(vector, value)| vector.push(*value));
                }
            }
        }
        let times = rows.iter().map(|row| row.at).collect();
        let counts = match granularity {
            Granularity::Raw => Vec::new(),
            Granularity::Rolled => rows.iter().map(|row| row.count).collect(),
        };
        let vectors = vectors.into_iter().map(Some).collect();
        Self { granularity, is_lead: false, times, counts, layout, columns, vectors }
    }

    /// The frame as rows. It must have all its columns.
    pub fn rows(&self) -> Vec<Row> {
        let places = self.layout.places();
        let mut cursors: Vec<Vec<std::slice::Iter<'_, i64>>> =
            self.vectors.iter().map(|stats| stats.iter().flatten().map(|vector| vector.iter()).collect()).collect();
        let mut times = self.times.iter();
        let mut counts = self.counts.iter();
        let mut rows = Vec::with_capacity(self.times.len());
        for run in &self.layout.runs {
            let (Some(shape), Some(places)) = (self.layout.shapes.get(run.shape), places.get(run.shape)) else {
                continue;
            };
            for at in times.by_ref().take(run.rows) {
                let mut values = Vec::with_capacity(places.len());
                for place in places {
                    let stats = cursors.get_mut(*place).into_iter().flatten();
                    values.extend(stats.map(|vector| vector.next().copied().unwrap_or_default()));
                }
                let count = counts.next().copied().unwrap_or(1);
                rows.push(Row { at: *at, count, shape: shape.clone(), values: values.into() });
            }
        }
        rows
    }

    /// Keeps the rows from `from` until before `until`, in milliseconds since the epoch.
    pub fn into_between(self, from: i64, until: i64) -> Self {
        let is_within = |at: Option<&i64>| at.is_some_and(|at| (from..until).contains(at));
        if is_within(self.times.first()) && is_within(self.times.last()) { self } else { self.between(from, until) }
    }

    /// Returns the rows from `from` until before `until`, in milliseconds since the epoch.
    pub fn between(&self, from: i64, until: i64) -> Self {
        let first = self.times.partition_point(|at| *at < from);
        let end = self.times.partition_point(|at| *at < until).max(first);
        let cut = |values: &[i64]| values.get(first..end).unwrap_or_default().to_vec();
        let cut_column = |(rows, vectors): (Vec<Range<usize>>, &Option<Vec<Vec<i64>>>)| {
            let vectors = vectors.as_ref()?;
            let before =
                |row: usize| rows.iter().map(|range| range.end.min(row).saturating_sub(range.start)).sum::<usize>();
            let (first, end) = (before(first), before(end));
            Some(vectors.iter().map(|values| values.get(first..end).unwrap_or_default().to_vec()).collect())
        };
        let mut start = 0;
        let mut runs = Vec::new();
        for run in &self.layout.runs {
            let rows = (start + run.rows).min(end).saturating_sub(start.max(first));
            if rows > 0 {
                runs.push(Run { shape: run.shape, rows });
            }
            start += run.rows;
        }
        Self {
            granularity: self.granularity,
            is_lead: self.is_lead,
            times: cut(&self.times),
            counts: cut(&self.counts),
            layout: Layout { runs, ..self.layout.clone() },
            columns: self.columns.clone(),
            vectors: self.layout.rows_with().into_iter().zip(&self.vectors).map(cut_column).collect(),
        }
    }

    /// How many integers the frame holds.
    pub fn cells(&self) -> usize {
        self.vectors.iter().flatten().flatten().map(Vec::len).sum()
    }
}

#[expect(clippy::mutable_key_type, reason = "what a shape keeps of its description has no part in what it equals")]
fn layout(rows: &[Row]) -> Layout {
    let mut layout = Layout::default();
    let mut known: HashMap<&Arc<Shape>, usize> = HashMap::new();
    let mut entries: HashSet<&Arc<Entry>> = HashSet::new();
    let mut series: HashSet<&Arc<Series>> = HashSet::new();
    let mut previous: Option<&Arc<Shape>> = None;
    for row in rows {
        // Nearly every row shares the shape of the one before it; then nothing is hashed.
        if let (Some(same), Some(run)) = (previous, layout.runs.last_mut())
            && Arc::ptr_eq(same, &row.shape)
        {
            run.rows += 1;
            continue;
        }
        let shape = *known.entry(&row.shape).or_insert_with(|| {
            layout.shapes.push(row.shape.clone());
            for entry in &row.shape.entries {
                if entries.insert(entry) {
                    layout.entries.push(entry.clone());
                }
            }
            for one in &row.shape.series {
                if series.insert(one) {
                    layout.series.push(one.clone());
                }
            }
            layout.shapes.len() - 1
        });
        previous = Some(&row.shape);
        match layout.runs.last_mut() {
            Some(run) if run.shape == shape => run.rows += 1,
            _ => layout.runs.push(Run { shape, rows: 1 }),
        }
    }
    // Keeps the entries of one list together, in whatever order they came.
    layout.entries.sort_by_key(|entry| entry.list);
    layout
}

/// Sorts rows, and keeps the first one given of those with the same time.
pub fn merged(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.at);
    rows.dedup_by_key(|row| row.at);
    rows
}
