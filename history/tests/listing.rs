//! The interface's list of the typed metrics, which is generated from their table.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use signalbox_history::metric::{
    CONTAINERS, CORES, DISK_IO, DISKS, MACHINE, Metric, MetricOf, NETWORK, TEMPERATURES, Threshold,
};
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};

/// Every row, with the sample's list that has it and the key of the entries' names.
fn listed() -> Value {
    let all = [
        rows(&MACHINE, None, None),
        rows(&CORES, Some("cpu_per_core"), None),
        rows(&DISKS, Some("disk_usage"), Some("path")),
        rows(&DISK_IO, Some("disk_io"), Some("device")),
        rows(&NETWORK, Some("network"), Some("interface")),
        rows(&TEMPERATURES, Some("temperatures"), Some("label")),
        rows(&CONTAINERS, Some("containers"), Some("name")),
    ];
    Value::Array(all.concat())
}

fn rows<T>(table: &[MetricOf<T>], list: Option<&str>, of: Option<&str>) -> Vec<Value> {
    let one = |row: &MetricOf<T>| {
        let Metric { field, series, unit, label, threshold, .. } = &row.metric;
        json!({
            "series": series,
            "kind": field.kind.word(),
            "unit": unit.as_str(),
            "label": label,
            "list": list,
            "of": of,
            "key": row.key.name,
            "place": row.key.place,
            "threshold": threshold.map(|Threshold { word, label, unit, counts, usual }| {
                json!({ "word": word, "label": label, "unit": unit.as_str(), "counts": counts, "usual": usual })
            }),
        })
    };
    table.iter().map(one).collect()
}

#[test]
fn the_interface_has_the_table() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../web/src/charts/metrics.json"));
    let expected = listed();
    if env::var_os("SIGNALBOX_WRITE_METRICS").is_some() {
        fs::write(&path, format!("{expected:#}\n")).unwrap();
    }

    let found: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();

    assert_eq!(found, expected, "run `make openapi`");
}

#[test]
fn values_lie_where_the_list_says() {
    let sample = Sample {
        cpu_per_core: vec![0.0],
        disk_usage: vec![DiskUsage::default()],
        disk_io: vec![DiskIo::default()],
        network: vec![NetworkUsage::default()],
        temperatures: vec![Temperature::default()],
        containers: vec![ContainerUsage::default()],
        ..Sample::default()
    };
    let sample = serde_json::to_value(&sample).unwrap();

    for row in listed().as_array().unwrap() {
        let word = |key: &str| row[key].as_str();
        let value = match (word("list"), word("of")) {
            (None, _) => &sample[word("key").unwrap()],
            (Some(list), None) => &sample[list][0],
            (Some(list), Some(of)) => {
                assert!(sample[list][0][of].is_string(), "{row}");
                &sample[list][0][word("key").unwrap()]
            }
        };
        let value = row["place"].as_u64().map_or(value, |place| &value[place as usize]);
        assert!(value.is_number(), "{row}");
    }
}
