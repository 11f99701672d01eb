//! The part of a head that says which rows have which columns.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::derived::{self, Predictions};
use super::{BlockError, MAX_CELLS};
use crate::frame::{Granularity, Layout, Run};
use crate::metric::{Field, Series};
use crate::shape::{Entry, MAX_CORES, Schema, Shape};
use crate::wire::{Reader, Writer, all_different};

/// Writes a layout and the predictions of its block.
pub fn write(layout: &Layout, predictions: &Predictions, out: &mut Writer) {
    derived::write(predictions, out);
    let mut schemas: Vec<&Arc<Schema>> = Vec::new();
    for shape in &layout.shapes {
        if !schemas.contains(&&shape.schema) {
            schemas.push(&shape.schema);
        }
    }
    out.number(schemas.len() as u64);
    schemas.iter().for_each(|schema| out.schema(schema));
    out.number(layout.entries.len() as u64);
    layout.entries.iter().for_each(|entry| out.entry(entry));
    out.number(layout.series.len() as u64);
    layout.series.iter().for_each(|series| out.series(series));
    let entries: HashMap<&Arc<Entry>, u64> = layout.entries.iter().zip(0..).collect();
    let series: HashMap<&Arc<Series>, u64> = layout.series.iter().zip(0..).collect();
    out.number(layout.shapes.len() as u64);
    for shape in &layout.shapes {
        let schema = schemas.iter().position(|schema| **schema == shape.schema);
        out.number(schema.unwrap_or_default() as u64);
        out.number(shape.cores.into());
        out.number(shape.entries.len() as u64);
        shape.entries.iter().for_each(|entry| out.number(entries.get(entry).copied().unwrap_or_default()));
        out.number(shape.series.len() as u64);
        shape.series.iter().for_each(|one| out.number(series.get(one).copied().unwrap_or_default()));
    }
    out.number(layout.runs.len() as u64);
    for run in &layout.runs {
        out.number(run.shape as u64);
        out.number(run.rows as u64);
    }
}

/// Reads a layout of `rows` rows, and the predictions of its block.
///
/// # Errors
///
/// When the bytes are not a layout, or claim more than a block can hold.
pub fn read(input: &mut Reader<'_>, rows: usize) -> Result<(Layout, Predictions), BlockError> {
    let most = input.0.len();
    let predictions = derived::read(input)?;
    let count = input.count(most)?;
    let schemas: Vec<Arc<Schema>> = (0..count).map(|_| input.schema()).collect::<Result<_, _>>()?;
    let mut layout = Layout::default();
    for _ in 0..input.count(most)? {
        layout.entries.push(Arc::new(input.entry()?));
    }
    for _ in 0..input.count(most)? {
        layout.series.push(Arc::new(input.series()?));
    }
    all_different(&layout.entries)?;
    all_different(&layout.series)?;
    for _ in 0..input.count(most)? {
        let schema =
            schemas.get(input.count(usize::MAX)?).cloned().ok_or(BlockError::Corrupt("a schema is missing"))?;
        let cores = input.count(MAX_CORES)? as u32;
        let entries = some_of(&layout.entries, input, most)?;
        let series = some_of(&layout.series, input, most)?;
        layout.shapes.push(Arc::new(Shape::with(schema, cores, entries, series)));
    }
    layout.runs = read_runs(input, &layout.shapes, rows)?;
    Ok((layout, predictions))
}

/// Version 1 knew one schema, and no open series.
pub fn read_version_1(input: &mut Reader<'_>, rows: usize) -> Result<Layout, BlockError> {
    let (most, schema) = (input.0.len(), Schema::version_1());
    let mut layout = Layout::default();
    for _ in 0..input.count(most)? {
        let entry = input.entry()?;
        if schema.of_list(entry.list).is_empty() {
            return Err(BlockError::Corrupt("an unknown list"));
        }
        layout.entries.push(Arc::new(entry));
    }
    all_different(&layout.entries)?;
    for _ in 0..input.count(most)? {
        let cores = input.count(MAX_CORES)? as u32;
        let entries = some_of(&layout.entries, input, most)?;
        layout.shapes.push(Arc::new(Shape::with(schema.clone(), cores, entries, Vec::new())));
    }
    layout.runs = read_runs(input, &layout.shapes, rows)?;
    Ok(layout)
}

/// Reads a count and then that many positions in `known`.
fn some_of<T: Eq + Hash>(known: &[Arc<T>], input: &mut Reader<'_>, most: usize) -> Result<Vec<Arc<T>>, BlockError> {
    let count = input.count(most)?;
    let one = |_| {
        let place = input.count(usize::MAX)?;
        known.get(place).cloned().ok_or(BlockError::Corrupt("an entry is missing"))
    };
    let some: Vec<Arc<T>> = (0..count).map(one).collect::<Result<_, BlockError>>()?;
    all_different(&some)?;
    Ok(some)
}

fn read_runs(input: &mut Reader<'_>, shapes: &[Arc<Shape>], rows: usize) -> Result<Vec<Run>, BlockError> {
    let most = input.0.len();
    let (mut runs, mut counted) = (Vec::new(), 0);
    for _ in 0..input.count(most)? {
        let run = Run { shape: input.count(usize::MAX)?, rows: input.count(rows - counted)? };
        if run.shape >= shapes.len() {
            return Err(BlockError::Corrupt("a shape is missing"));
        }
        counted += run.rows;
        runs.push(run);
    }
    if counted == rows { Ok(runs) } else { Err(BlockError::Corrupt("rows are missing")) }
}

/// Refuses a layout with more than a block can hold, before columns and rows are allocated for it: a few bytes can claim any
/// size. `rest` is how many bytes of the head are left; each column takes at least one of them.
pub fn check_size(layout: &Layout, granularity: Granularity, rest: usize) -> Result<(), BlockError> {
    let stats = |fields: &[Field]| fields.iter().map(|field| granularity.stats(*field)).sum::<usize>();
    let width = |schema: &Schema, cores: u32, entries: &[Arc<Entry>], series: &[Arc<Series>]| {
        let listed: usize = entries.iter().map(|entry| stats(schema.of_list(entry.list))).sum();
        let open: usize = series.iter().map(|series| granularity.stats(Field::open(series.kind))).sum();
        stats(&schema.machine) + cores as usize * stats(&schema.core) + listed + open
    };
    let cores = layout.shapes.iter().map(|shape| shape.cores).max().unwrap_or_default();
    if width(&layout.schema(), cores, &layout.entries, &layout.series) > rest {
        return Err(BlockError::Corrupt("it ends too early"));
    }
    let of_shape = |shape: &Arc<Shape>| width(&shape.schema, shape.cores, &shape.entries, &shape.series);
    let widths: Vec<usize> = layout.shapes.iter().map(of_shape).collect();
    // Shapes and runs take memory and time even without rows.
    let of_run = |run: &Run| widths.get(run.shape).map_or(0, |width| width.saturating_mul(run.rows.max(1)));
    let cells = widths.iter().copied().chain(layout.runs.iter().map(of_run)).fold(0, usize::saturating_add);
    if cells > MAX_CELLS { Err(BlockError::Corrupt("there is too much of something")) } else { Ok(()) }
}
