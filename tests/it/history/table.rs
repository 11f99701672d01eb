//! The history as CSV: the same numbers as in JSON, in a form that RFC 4180 describes.

use std::collections::BTreeMap;

use serde_json::Value;
use signalbox_protocol::Sample;

use super::reference::readings;
use super::scene::{HOUR, SECOND, Scene, days_ago, disk, every, network, rich, sensor};

/// Parses a table strictly: records end with CRLF, quotes surround whole fields and are doubled within.
fn parse(text: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut rest = text.chars().peekable();
    let mut is_quoted = false;
    let mut was_quoted = false;
    while let Some(letter) = rest.next() {
        let record = records.last_mut().unwrap();
        let field = record.last_mut().unwrap();
        match letter {
            '"' if is_quoted && rest.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if is_quoted => (is_quoted, was_quoted) = (false, true),
            letter if is_quoted => field.push(letter),
            ',' => {
                record.push(String::new());
                was_quoted = false;
            }
            '\r' => {
                assert_eq!(rest.next(), Some('\n'), "a bare CR");
                records.push(vec![String::new()]);
                was_quoted = false;
            }
            '"' => {
                assert!(field.is_empty() && !was_quoted, "a quote within a field: {field}");
                is_quoted = true;
            }
            letter => {
                assert!(letter != '\n' && !was_quoted, "{letter:?} behind {field:?}");
                field.push(letter);
            }
        }
    }
    assert!(!is_quoted, "a quote that does not end");
    assert_eq!(records.pop(), Some(vec![String::new()]), "the last record ends with CRLF");
    let width = records[0].len();
    assert!(records.iter().all(|record| record.len() == width), "records of several widths");
    records
}

async fn table(scene: &Scene, what: &str, range: (i64, i64), query: &str) -> Vec<BTreeMap<String, String>> {
    let [start, end] = [range.0, range.1].map(signalbox_protocol::Timestamp::from_millis);
    let path = format!("/metrics/{}/{what}?start={start}&end={end}&{query}", scene.site.server_id);
    let call = scene.site.service.client.get(path).bearer(&scene.site.owner.token).header("Accept", "text/csv");
    let answer = call.expect_answer(200).await;
    assert!(answer.header("Content-Type").starts_with("text/csv"), "{:?}", answer.headers);
    let mut records = parse(&answer.text).into_iter();
    let names = records.next().unwrap();
    assert_eq!(names[0], "timestamp");
    records.map(|record| names.iter().cloned().zip(record).collect()).collect()
}

/// The service's name of a value in a table: that of its series, but counters are readings.
fn column(name: &str) -> String {
    let (base, of) = name.split_once(':').map_or((name, ""), |(base, of)| (base, of));
    let base = match base {
        "disk_read" => "disk_read_bytes",
        "disk_write" => "disk_write_bytes",
        "network_out" => "bytes_sent",
        "network_in" => "bytes_recv",
        "container_network_in" => "container_network_rx_bytes",
        "container_network_out" => "container_network_tx_bytes",
        base => base,
    };
    if of.is_empty() { base.to_owned() } else { format!("{base}:{of}") }
}

/// Asserts that each record has the numbers of its snapshot, and nothing where that has none.
#[track_caller]
fn assert_same(records: &[BTreeMap<String, String>], history: &[Value]) {
    assert_eq!(records.len(), history.len());
    for (record, snapshot) in records.iter().zip(history) {
        let sample: Sample = serde_json::from_value(snapshot.clone()).unwrap();
        assert_eq!(record["timestamp"], sample.timestamp.to_string());
        let mut left = record.clone();
        left.remove("timestamp");
        for reading in readings(&sample) {
            let shown = left.remove(&column(&reading.name)).unwrap_or_else(|| panic!("no {}", reading.name));
            assert_eq!(shown.parse(), Ok(reading.value), "{}", reading.name);
        }
        assert!(left.values().all(String::is_empty), "{left:?}");
    }
}

fn changing(start: i64) -> impl Fn(i64) -> Sample {
    move |at| {
        let mut sample = rich(at);
        if at - start >= HOUR {
            sample.disk_usage.push(disk("/mnt/a,\"b\"\r\nc", 1, 0.1));
            sample.network.push(network("=cmd|' /C calc'!A0", 5, 6));
            sample.temperatures.push(sensor("Ω, ß", -0.5));
        }
        sample
    }
}

#[actix_web::test]
async fn a_table_has_the_numbers_of_the_snapshots() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    let range = (start, start + 2 * HOUR - 1);
    let changing = changing(start);
    let plain = |at| {
        let mut sample = changing(at);
        sample.network.retain(|it| !it.interface.starts_with('='));
        sample
    };
    scene.send(every(60 * SECOND, (start, start + 2 * HOUR), plain)).await;

    for _ in 0..2 {
        for query in ["resolution=raw", "resolution=15m", "max_points=7"] {
            let records = table(&scene, "history", range, query).await;
            assert_same(&records, &scene.history(range, query).await);
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn a_table_has_byte_counts_exactly() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    let exact = Sample { memory_used: (1 << 53) + 1, swap_total: u64::MAX, ..rich(start) };
    scene.send(vec![exact]).await;

    let records = table(&scene, "history", (start, start + HOUR), "resolution=raw").await;

    assert_eq!(records[0]["memory_used"], "9007199254740993");
    assert_eq!(records[0]["swap_total"], u64::MAX.to_string());
}

#[actix_web::test]
async fn a_name_is_never_a_formula() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    scene.send(every(60 * SECOND, (start, start + 2 * HOUR), changing(start))).await;

    for what in ["history", "series"] {
        let records = table(&scene, what, (start, start + 2 * HOUR), "resolution=1h").await;
        let formulas: Vec<&String> = records[0].keys().filter(|name| name.starts_with(['=', '+', '-', '@'])).collect();
        assert!(formulas.is_empty(), "{formulas:?}");
    }
}

#[actix_web::test]
async fn a_table_of_series_has_the_numbers_of_the_series() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = days_ago(2) + 3 * HOUR;
    let range = (start, start + 3 * HOUR - 1);
    // With a gap of half an hour.
    scene.send(every(60 * SECOND, (start, start + HOUR), changing(start))).await;
    scene.send(every(60 * SECOND, (start + HOUR + HOUR / 2, start + 3 * HOUR), changing(start))).await;

    for resolution in ["raw", "1m", "1h"] {
        let query = format!("resolution={resolution}");
        let records = table(&scene, "series", range, &query).await;
        let body = scene.series(range, &query).await;
        assert_eq!(records.len(), body["timestamps"].as_array().unwrap().len());
        for (place, record) in records.iter().enumerate() {
            let seconds = body["timestamps"][place].as_i64().unwrap();
            assert_eq!(record["timestamp"], signalbox_protocol::Timestamp::from_millis(seconds * 1000).to_string());
            for (name, column) in body["series"].as_object().unwrap() {
                for kind in ["avg", "min", "max"] {
                    let shown = &record[&format!("{name} {kind}")];
                    assert_eq!(shown.parse::<f64>().ok(), column[kind][place].as_f64(), "{resolution}: {name} {kind}");
                }
            }
        }
        scene.settle().await;
    }
}
