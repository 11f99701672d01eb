//! `GET /metrics/{server_id}/series`: the history as columns for charts.

use serde_json::{Value, json};
use signalbox_protocol::sample::{DiskUsage, NetworkUsage};
use signalbox_protocol::{Sample, Timestamp};

use crate::support::agent::sample_at;
use crate::support::keys_of;
use crate::support::site::Site;

/// Samples every 10 s whose network counter rises by `steps`, and whose second disk only exists in `mounted`.
fn samples(start: Timestamp, counters: &[u64], mounted: std::ops::Range<usize>) -> Vec<Sample> {
    let disk = |path: &str, percent| DiskUsage { path: path.to_owned(), percent, ..DiskUsage::default() };
    let sample = |(index, counter): (usize, &u64)| {
        let mut disks = vec![disk("/", 40.0)];
        if mounted.contains(&index) {
            disks.push(disk("/data", 70.0));
        }
        Sample {
            cpu_percent: 10.0 + index as f64,
            disk_usage: disks,
            network: vec![NetworkUsage {
                interface: "eth0".to_owned(),
                bytes_sent: *counter,
                bytes_recv: *counter,
                in_total: None,
            }],
            ..sample_at(start.plus_millis(10_000 * index as i64))
        }
    };
    counters.iter().enumerate().map(sample).collect()
}

async fn series(site: &Site, query: &str) -> Value {
    site.read(&format!("/metrics/{}/series?{query}", site.server_id)).await
}

/// The numbers of a column; `None` for a missing point.
fn column(series: &Value, name: &str, kind: &str) -> Vec<Option<f64>> {
    let column = series["series"][name][kind].as_array();
    let column = column.unwrap_or_else(|| panic!("no {kind} of {name} in {series}"));
    assert_eq!(column.len(), series["timestamps"].as_array().unwrap().len(), "{kind} of {name}");
    column.iter().map(Value::as_f64).collect()
}

fn present(column: &[Option<f64>]) -> Vec<f64> {
    column.iter().flatten().copied().collect()
}

#[actix_web::test]
async fn columns_stand_beside_their_timestamps() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, samples(start, &[0, 1_000, 2_000, 3_000], 0..0)).await;

    let body = series(&site, "resolution=raw").await;

    assert_eq!(keys_of(&body), ["resolution_seconds", "series", "timestamps"]);
    assert!(body["resolution_seconds"].is_number(), "{body}");
    let shown: Vec<i64> = body["timestamps"].as_array().unwrap().iter().map(|time| time.as_i64().unwrap()).collect();
    assert!(shown.is_sorted(), "{shown:?}");
    for name in ["cpu_percent", "memory_percent", "disk_percent:/", "network_in:eth0"] {
        assert_eq!(keys_of(&body["series"][name]), ["avg", "max", "min"], "{name}");
    }
    for kind in ["avg", "min", "max"] {
        assert_eq!(present(&column(&body, "cpu_percent", kind)), [10.0, 11.0, 12.0, 13.0], "{kind}");
        assert_eq!(present(&column(&body, "disk_percent:/", kind)), [40.0; 4], "{kind}");
    }
    let index = column(&body, "cpu_percent", "avg").iter().position(Option::is_some).unwrap();
    assert_eq!(shown[index], start.as_seconds());
}

#[actix_web::test]
async fn counters_become_rates_in_bytes_a_second() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, samples(start, &[5_000, 6_000, 7_000, 8_000], 0..0)).await;

    let body = series(&site, "resolution=raw").await;

    let rates = present(&column(&body, "network_in:eth0", "avg"));
    assert!(rates.len() >= 3, "{rates:?}");
    assert!(rates.iter().rev().take(3).all(|rate| (rate - 100.0).abs() < 1.0), "{rates:?}");
}

#[actix_web::test]
async fn a_reset_counter_is_no_peak() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, samples(start, &[1_000_000, 1_001_000, 500, 1_500], 0..0)).await;

    let body = series(&site, "resolution=raw").await;

    for kind in ["avg", "min", "max"] {
        let rates = present(&column(&body, "network_in:eth0", kind));
        assert!(rates.iter().all(|rate| (0.0..=101.0).contains(rate)), "{kind}: {rates:?}");
    }
}

#[actix_web::test]
async fn missing_points_are_null() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, samples(start, &[0; 6], 2..4)).await;

    let body = series(&site, "resolution=raw").await;

    let cpu = column(&body, "cpu_percent", "avg");
    let data = column(&body, "disk_percent:/data", "avg");
    let of_samples: Vec<Option<f64>> =
        cpu.iter().zip(&data).filter(|(cpu, _)| cpu.is_some()).map(|(_, data)| *data).collect();
    assert_eq!(of_samples, [None, None, Some(70.0), Some(70.0), None, None]);
}

#[actix_web::test]
async fn nothing_is_drawn_into_a_gap() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-3_000_000);
    agent.store(1, samples(start, &[0; 30], 0..0)).await;
    agent.store(2, samples(start.plus_millis(1_800_000), &[0; 30], 0..0)).await;

    let body = series(&site, "resolution=1m").await;

    assert_eq!(body["resolution_seconds"], 60);
    let silence = start.as_seconds() + 361..start.as_seconds() + 1_739;
    let times = body["timestamps"].as_array().unwrap().iter().map(|time| time.as_i64().unwrap());
    let cpu = column(&body, "cpu_percent", "avg");
    let invented: Vec<_> = times.zip(cpu).filter(|(time, cpu)| silence.contains(time) && cpu.is_some()).collect();
    assert!(invented.is_empty(), "{invented:?}");
}

#[actix_web::test]
async fn names_choose_the_columns() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, samples(start, &[0, 1], 0..2)).await;

    let one = series(&site, "resolution=raw&names=cpu_percent").await;
    let two = series(&site, "resolution=raw&names=cpu_percent,disk_percent:/data").await;

    assert_eq!(keys_of(&one["series"]), ["cpu_percent"]);
    assert_eq!(keys_of(&two["series"]), ["cpu_percent", "disk_percent:/data"]);
}

#[actix_web::test]
async fn a_name_with_a_comma_is_chosen_by_a_parameter_of_its_own() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let disks = ["/mnt/a", "/mnt/a,b", "/srv,disk_percent:/mnt/a", "/data "].map(|path| DiskUsage {
        path: path.to_owned(),
        percent: 40.0,
        ..DiskUsage::default()
    });
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, vec![Sample { disk_usage: disks.into(), ..sample_at(start) }]).await;

    for (names, expected) in [
        ("names=disk_percent:/mnt/a%2Cb", vec!["disk_percent:/mnt/a,b"]),
        // Its parts are names of other series.
        ("names=disk_percent:/srv%2Cdisk_percent:/mnt/a", vec!["disk_percent:/srv,disk_percent:/mnt/a"]),
        (
            "names=disk_percent:/mnt/a,b&names=cpu_percent,memory_percent",
            vec!["cpu_percent", "disk_percent:/mnt/a,b", "memory_percent"],
        ),
        ("names=disk_percent:/mnt/a,b&names=disk_percent:/mnt/a", vec!["disk_percent:/mnt/a", "disk_percent:/mnt/a,b"]),
        ("names=disk_percent:/data%20", vec!["disk_percent:/data "]),
        // No series has the whole name.
        ("names=disk_percent:/mnt/a,cpu_percent%20", vec!["cpu_percent", "disk_percent:/mnt/a"]),
    ] {
        let own = series(&site, &format!("resolution=raw&{names}")).await;
        let fleet = site.read(&format!("/metrics/fleet?{names}")).await;
        let combined = site.read(&format!("/metrics/fleet/series?{names}")).await;

        let mut lines: Vec<&str> =
            combined["lines"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap()).collect();
        lines.sort_unstable();
        assert_eq!(keys_of(&own["series"]), expected, "{names}");
        assert_eq!(keys_of(&fleet[0]["series"]), expected, "{names}");
        assert_eq!(lines, expected, "{names}");
    }
}

#[actix_web::test]
async fn it_has_no_columns_before_the_first_sample() {
    let site = Site::start().await;

    let body = series(&site, "").await;

    let empty = body["series"]
        .as_object()
        .unwrap()
        .values()
        .all(|column| column["avg"].as_array().unwrap().iter().all(Value::is_null));
    assert!(empty, "{body}");
    assert_ne!(body["resolution_seconds"], json!(null));
}
