//! How many different names one block may hold.
//!
//! Containers and their interfaces are made and removed by the thousand on a build machine, each with a name of its own.
//! A block whose columns are mostly such names takes memory that nobody is helped by: then those that were there the
//! longest are kept.

use std::collections::HashMap;
use std::sync::Arc;

use super::frame::{Grain, Row};
use super::shape::{Entry, Shape};

/// Disks, devices, interfaces, sensors and containers in one block. One sample may have 1,024 of each.
const MOST_ENTRIES: usize = 3 * 1_024;

/// Leaves out the entries with the fewest rows where there are too many. Gives how many there were.
pub fn limit(rows: &mut [Row]) -> usize {
    limit_to(rows, MOST_ENTRIES, Grain::Raw)
}

/// The same for rows that stand for many.
pub fn limit_rolled(rows: &mut [Row]) -> usize {
    limit_to(rows, MOST_ENTRIES, Grain::Rolled)
}

fn limit_to(rows: &mut [Row], most: usize, grain: Grain) -> usize {
    let mut rows_with: HashMap<Arc<Entry>, usize> = HashMap::new();
    let mut shapes: Vec<(Arc<Shape>, usize)> = Vec::new();
    for row in rows.iter() {
        match shapes.last_mut() {
            Some((shape, count)) if Arc::ptr_eq(shape, &row.shape) => *count += 1,
            _ => shapes.push((row.shape.clone(), 1)),
        }
    }
    for (shape, count) in &shapes {
        for entry in &shape.entries {
            match rows_with.get_mut(entry) {
                Some(rows) => *rows += count,
                None => _ = rows_with.insert(entry.clone(), *count),
            }
        }
    }
    let too_many = rows_with.len().saturating_sub(most);
    if too_many == 0 {
        return 0;
    }
    let mut ranked: Vec<(Arc<Entry>, usize)> = rows_with.into_iter().collect();
    ranked.sort_by(|(a, more), (b, less)| {
        less.cmp(more).then_with(|| (a.list, &a.name, &a.id).cmp(&(b.list, &b.name, &b.id)))
    });
    let gone: std::collections::HashSet<Arc<Entry>> = ranked.into_iter().skip(most).map(|(entry, _)| entry).collect();
    let mut slimmed: HashMap<Arc<Shape>, Arc<Shape>> = HashMap::new();
    for row in rows {
        let slim = slimmed.entry(row.shape.clone()).or_insert_with(|| {
            let entries = row.shape.entries.iter().filter(|entry| !gone.contains(*entry)).cloned().collect();
            Arc::new(Shape { cores: row.shape.cores, entries })
        });
        let mut values = row.values.iter();
        let mut kept = Vec::with_capacity(slim.width());
        for slot in row.shape.slots() {
            let of_slot = values.by_ref().take(grain.stats(slot.field));
            let is_gone = matches!(slot.of, super::shape::Of::Entry(entry) if gone.contains(entry));
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

#[cfg(test)]
mod tests {
    use signalbox_protocol::sample::{NetworkUsage, Temperature};
    use signalbox_protocol::{Sample, Timestamp};

    use super::*;

    #[test]
    fn the_names_that_were_there_the_longest_are_kept() {
        let sample = |second: i64| Sample {
            timestamp: Timestamp::from_millis(second * 1000),
            network: ["eth0".to_owned(), format!("veth{second}")]
                .map(|interface| NetworkUsage { interface, bytes_sent: second as u64, bytes_recv: 7 })
                .into(),
            temperatures: vec![Temperature { label: "core".to_owned(), celsius: 40.5 }],
            ..Sample::default()
        };
        let mut rows: Vec<Row> =
            (0..10).map(|second| Row::of(&sample(second), Arc::new(Shape::of(&sample(second))))).collect();

        let left_out = limit_to(&mut rows, 3, Grain::Raw);

        assert_eq!(left_out, 9);
        for (second, row) in rows.iter().enumerate() {
            let kept = row.sample(Grain::Raw);
            assert_eq!(kept.network[0], sample(second as i64).network[0]);
            assert_eq!(kept.network.len(), if second == 0 { 2 } else { 1 }, "second {second}");
            assert_eq!(kept.temperatures, sample(0).temperatures);
        }
    }
}
