//! Limits how many different names one block holds.
//!
//! A build machine creates and removes containers and their interfaces by the thousand, each with its own name. A block
//! with mostly such names would take much memory for little use, so it keeps the names with the most samples.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use signalbox_history::frame::{Granularity, Row};
use signalbox_history::metric::Series;
use signalbox_history::shape::{ColumnOwner, Entry, Shape};
use signalbox_protocol::series::MAX_SERIES;

/// Disks, devices, interfaces, sensors and containers in one block. One sample may have 1,024 of each.
const MAX_ENTRIES: usize = 3 * 1_024;

/// Open series in one block: those of one connection, and some more.
const MAX_BLOCK_SERIES: usize = MAX_SERIES + 1_024;

/// The limits for entries and for open series.
const LIMITS: (usize, usize) = (MAX_ENTRIES, MAX_BLOCK_SERIES);

/// Leaves out the entries and open series with the fewest rows if there are too many. Returns how many were left out.
pub fn limit(rows: &mut [Row]) -> usize {
    limit_to(rows, LIMITS, Granularity::Raw)
}

/// The same for downsampled rows.
pub fn limit_rolled(rows: &mut [Row]) -> usize {
    limit_to(rows, LIMITS, Granularity::Rolled)
}

#[expect(clippy::mutable_key_type, reason = "what a shape keeps of its description has no part in what it equals")]
fn limit_to(rows: &mut [Row], (most, most_series): (usize, usize), granularity: Granularity) -> usize {
    let mut rows_with: HashMap<Arc<Entry>, usize> = HashMap::new();
    let mut rows_with_series: HashMap<Arc<Series>, usize> = HashMap::new();
    let mut shapes: Vec<(Arc<Shape>, usize)> = Vec::new();
    for row in rows.iter() {
        match shapes.last_mut() {
            Some((shape, count)) if Arc::ptr_eq(shape, &row.shape) => *count += 1,
            _ => shapes.push((row.shape.clone(), 1)),
        }
    }
    for (shape, count) in &shapes {
        shape.entries.iter().for_each(|entry| count_rows(&mut rows_with, entry, *count));
        shape.series.iter().for_each(|series| count_rows(&mut rows_with_series, series, *count));
    }
    let too_many = rows_with.len().saturating_sub(most) + rows_with_series.len().saturating_sub(most_series);
    if too_many == 0 {
        return 0;
    }
    let gone = beyond(rows_with, most, |a, b| (a.list, &a.name, &a.id).cmp(&(b.list, &b.name, &b.id)));
    let gone_series = beyond(rows_with_series, most_series, |a, b| a.cmp(b));
    let mut slimmed: HashMap<Arc<Shape>, Arc<Shape>> = HashMap::new();
    for row in rows {
        let slim = slimmed.entry(row.shape.clone()).or_insert_with(|| {
            let entries = row.shape.entries.iter().filter(|entry| !gone.contains(*entry)).cloned().collect();
            let series = row.shape.series.iter().filter(|series| !gone_series.contains(*series)).cloned().collect();
            Arc::new(Shape::with(row.shape.schema.clone(), row.shape.cores, entries, series))
        });
        let mut values = row.values.iter();
        let mut kept = Vec::with_capacity(slim.width());
        for slot in row.shape.slots() {
            let of_slot = values.by_ref().take(granularity.stats(slot.field));
            let is_gone = match slot.of {
                ColumnOwner::Entry(entry) => gone.contains(entry),
                ColumnOwner::Series(series) => gone_series.contains(series),
                ColumnOwner::Machine | ColumnOwner::Core(_) => false,
            };
            let of_slot: Vec<i64> = of_slot.copied().collect();
            if !is_gone {
                kept.extend(of_slot);
            }
        }
        (row.shape, row.values) = (slim.clone(), kept.into());
    }
    metrics::counter!("signalbox_history_names_left_out_total").increment(too_many as u64);
    too_many
}

fn count_rows<T: Hash + Eq>(rows_with: &mut HashMap<Arc<T>, usize>, one: &Arc<T>, count: usize) {
    match rows_with.get_mut(one) {
        Some(rows) => *rows += count,
        None => _ = rows_with.insert(one.clone(), count),
    }
}

/// Returns all except the `most` with the most rows.
fn beyond<T: Hash + Eq>(
    rows_with: HashMap<Arc<T>, usize>,
    most: usize,
    compare: impl Fn(&T, &T) -> Ordering,
) -> HashSet<Arc<T>> {
    let mut ranked: Vec<(Arc<T>, usize)> = rows_with.into_iter().collect();
    ranked.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| compare(a, b)));
    ranked.into_iter().skip(most).map(|(one, _)| one).collect()
}

#[cfg(test)]
mod tests {
    use signalbox_protocol::sample::{NetworkUsage, Temperature};
    use signalbox_protocol::{Sample, Timestamp};

    use super::*;

    #[test]
    fn the_names_with_the_most_samples_are_kept() {
        let sample = |second: i64| Sample {
            timestamp: Timestamp::from_millis(second * 1000),
            network: ["eth0".to_owned(), format!("veth{second}")]
                .map(|interface| NetworkUsage { interface, bytes_sent: second as u64, bytes_recv: 7, in_total: None })
                .into(),
            temperatures: vec![Temperature { label: "core".to_owned(), celsius: 40.5 }],
            ..Sample::default()
        };
        let mut rows: Vec<Row> =
            (0..10).map(|second| Row::of(&sample(second), Arc::new(Shape::of(&sample(second))))).collect();

        let left_out = limit_to(&mut rows, (3, 0), Granularity::Raw);

        assert_eq!(left_out, 9);
        for (second, row) in rows.iter().enumerate() {
            let kept = row.sample(Granularity::Raw);
            assert_eq!(kept.network[0], sample(second as i64).network[0]);
            assert_eq!(kept.network.len(), if second == 0 { 2 } else { 1 }, "second {second}");
            assert_eq!(kept.temperatures, sample(0).temperatures);
        }
    }
}
