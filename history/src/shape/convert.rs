//! Converts a sample to a row of integers and back.

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

use super::{Entry, List, Shape};
use crate::metric::{CONTAINERS, CORES, DISK_IO, DISKS, Field, MACHINE, MetricOf, NETWORK, TEMPERATURES, find};

/// A sample as integers: the values of its shape's columns, in their order.
pub fn flatten(sample: &Sample) -> Vec<i64> {
    let listed = 4 * sample.disk_usage.len() + 2 * sample.disk_io.len() + 2 * sample.network.len();
    let listed = listed + sample.temperatures.len() + 4 * sample.containers.len();
    let mut values = Vec::with_capacity(MACHINE.len() + sample.cpu_per_core.len() + listed);
    take(&MACHINE, sample, &mut values);
    sample.cpu_per_core.iter().for_each(|it| take(&CORES, it, &mut values));
    sample.disk_usage.iter().for_each(|it| take(&DISKS, it, &mut values));
    sample.disk_io.iter().for_each(|it| take(&DISK_IO, it, &mut values));
    sample.network.iter().for_each(|it| take(&NETWORK, it, &mut values));
    sample.temperatures.iter().for_each(|it| take(&TEMPERATURES, it, &mut values));
    sample.containers.iter().for_each(|it| take(&CONTAINERS, it, &mut values));
    values
}

fn take<T>(metrics: &[MetricOf<T>], from: &T, values: &mut Vec<i64>) {
    values.extend(metrics.iter().map(|metric| metric.get(from)));
}

/// The sample of a shape and its values, in order. A missing value becomes 0, and the sample omits what this build does not
/// know.
pub fn unflatten(at: Timestamp, shape: &Shape, values: impl IntoIterator<Item = i64>) -> Sample {
    let mut values = values.into_iter();
    let mut sample = Sample { timestamp: at, ..Sample::default() };
    put(&MACHINE, &shape.schema.machine, &mut sample, &mut values);
    for _ in 0..shape.cores {
        let mut core = 0.0;
        put(&CORES, &shape.schema.core, &mut core, &mut values);
        sample.cpu_per_core.push(core);
    }
    for entry in &shape.entries {
        add_entry(&mut sample, entry, shape.schema.of_list(entry.list), &mut values);
    }
    sample
}

fn add_entry(sample: &mut Sample, entry: &Entry, fields: &[Field], values: &mut impl Iterator<Item = i64>) {
    let name = entry.name.clone();
    match entry.list {
        List::DISKS => {
            let it = DiskUsage { path: name, ..DiskUsage::default() };
            sample.disk_usage.push(filled(&DISKS, fields, it, values));
        }
        List::DISK_IO => {
            let it = DiskIo { device: name, ..DiskIo::default() };
            sample.disk_io.push(filled(&DISK_IO, fields, it, values));
        }
        List::NETWORK => {
            let it = NetworkUsage { interface: name, ..NetworkUsage::default() };
            sample.network.push(filled(&NETWORK, fields, it, values));
        }
        List::TEMPERATURES => {
            let it = Temperature { label: name, ..Temperature::default() };
            sample.temperatures.push(filled(&TEMPERATURES, fields, it, values));
        }
        List::CONTAINERS => {
            let it = ContainerUsage { id: entry.id.clone(), name, ..ContainerUsage::default() };
            sample.containers.push(filled(&CONTAINERS, fields, it, values));
        }
        // A list of another build.
        List(_) => fields.iter().for_each(|_| _ = values.next()),
    }
}

fn filled<T>(
    metrics: &'static [MetricOf<T>],
    fields: &[Field],
    mut it: T,
    values: &mut impl Iterator<Item = i64>,
) -> T {
    put(metrics, fields, &mut it, values);
    it
}

fn put<T>(metrics: &'static [MetricOf<T>], fields: &[Field], into: &mut T, values: &mut impl Iterator<Item = i64>) {
    for field in fields {
        let value = values.next().unwrap_or_default();
        if let Some(metric) = find(metrics, *field) {
            metric.set(into, *field, value);
        }
    }
}
