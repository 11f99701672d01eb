//! Whether the service returns what it received.

use std::collections::HashMap;

use signalbox_protocol::{Sample, Timestamp};

use crate::bucket::Bucket;
use crate::data::Dataset;
use crate::fixture::{Enrolled, Fixture};
use crate::rest::{Column, Rest, Series};
use crate::store::Checked;

/// Servers of which a day is compared sample by sample.
const COMPARED_SERVERS: usize = 3;
const DAY_MS: i64 = 86_400_000;
/// Raw samples that one answer may hold.
const PAGE: i64 = 20_000;
/// A number in a sample.
type ReadNumber = fn(&Sample) -> f64;
/// The part of every server that is compared bucket by bucket, and how it is read from a sample.
const COMPARED: [(&str, ReadNumber); 3] = [
    ("cpu_percent", |sample| sample.cpu_percent),
    ("memory_used", |sample| sample.memory_used as f64),
    ("process_count", |sample| sample.process_count as f64),
];
/// Raw samples are kept for two weeks; of a longer time only buckets are left.
const RAW_DAYS: i64 = 13;

/// Compares buckets of every server over everything, and raw samples of some over the last day.
pub async fn run(fixture: &Fixture, data: &Dataset) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    for (number, enrolled) in fixture.fleet.iter().take(data.servers).enumerate() {
        compare_buckets(&fixture.rest, enrolled, data, number, &mut checked).await?;
    }
    let buckets = checked.compared;
    for (number, enrolled) in fixture.fleet.iter().take(data.servers.min(COMPARED_SERVERS)).enumerate() {
        compare_samples(&fixture.rest, enrolled, data, number, &mut checked).await?;
    }
    let samples = checked.compared - buckets;
    checked.notes.push(("compared".to_owned(), format!("{buckets} buckets of series, {samples} whole samples")));
    Ok(checked)
}

async fn compare_buckets(
    rest: &Rest,
    enrolled: &Enrolled,
    data: &Dataset,
    number: usize,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    // The finest resolution of one answer.
    let span = data.end().millis_since(data.first);
    let (resolution, width) = if span <= RAW_DAYS * DAY_MS { ("1m", 60) } else { ("1h", 3600) };
    let names = COMPARED.map(|(name, _)| name).join(",");
    let told = rest.series(enrolled.server_id, data.first, data.end(), resolution, &names).await?;
    let due = buckets(data, number, width);
    compare_columns(&told, &due, number, checked);
    Ok(())
}

/// The expected content of each bucket of each series, by the time it begins.
fn buckets(data: &Dataset, number: usize, width: i64) -> [HashMap<i64, Bucket>; COMPARED.len()] {
    let mut machine = data.machine(number);
    let mut sample = machine.blank();
    let mut buckets: [HashMap<i64, Bucket>; COMPARED.len()] = Default::default();
    for _ in 0..data.samples {
        machine.fill(&mut sample);
        let begin = sample.timestamp.as_seconds().div_euclid(width) * width;
        for (buckets, (_, value)) in buckets.iter_mut().zip(COMPARED) {
            let value = value(&sample);
            buckets
                .entry(begin)
                .and_modify(|bucket: &mut Bucket| bucket.add(value))
                .or_insert_with(|| Bucket::of(value));
        }
    }
    buckets
}

fn compare_columns(told: &Series, due: &[HashMap<i64, Bucket>], number: usize, checked: &mut Checked) {
    let none = Column::default();
    for ((name, _), due) in COMPARED.iter().zip(due) {
        let column = told.series.get(*name).unwrap_or(&none);
        let rounding = if *name == "cpu_percent" { 0.005_001 } else { 0.500_001 };
        checked.expect(told.timestamps.len() == due.len(), || {
            format!("{name} of server {number}: {} buckets instead of {}", told.timestamps.len(), due.len())
        });
        for (index, begin) in told.timestamps.iter().enumerate() {
            let bucket = due.get(begin);
            checked.expect(bucket.is_some_and(|bucket| bucket.is_told_within(rounding, column, index)), || {
                let told = [&column.avg, &column.min, &column.max].map(|values| values.get(index).copied().flatten());
                format!("{name} of server {number} at {begin}: {told:?} instead of {bucket:?}")
            });
        }
    }
}

/// Compares the raw samples of the last day, or of all there are, to the bit.
async fn compare_samples(
    rest: &Rest,
    enrolled: &Enrolled,
    data: &Dataset,
    number: usize,
    checked: &mut Checked,
) -> anyhow::Result<()> {
    let since = data.first.max(data.end().plus_millis(-DAY_MS));
    let mut machine = data.machine(number);
    let mut sample = machine.blank();
    let mut due = Vec::new();
    for _ in 0..data.samples {
        machine.fill(&mut sample);
        if sample.timestamp >= since {
            due.push(sample.clone());
        }
    }
    let page_ms = PAGE * data.interval_ms / 2;
    let mut stored: Vec<Sample> = Vec::with_capacity(due.len());
    let mut start = since;
    while start < data.end() {
        let end = start.plus_millis(page_ms).min(data.end());
        // Then it does not matter whether the end itself belongs to the answer.
        let page = rest.raw_history(enrolled.server_id, start, end).await?;
        stored.extend(page.into_iter().filter(|sample| is_within(sample, start, end)));
        start = end;
    }
    checked.expect(stored.len() == due.len(), || {
        format!("server {number}: {} raw samples instead of {}", stored.len(), due.len())
    });
    for (stored, due) in stored.iter().zip(&due) {
        checked.expect(stored == due, || format!("server {number}: {stored:?}, not {due:?}"));
    }
    Ok(())
}

fn is_within(sample: &Sample, start: Timestamp, end: Timestamp) -> bool {
    (start..end).contains(&sample.timestamp)
}
