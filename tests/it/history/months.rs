//! Longer than two months: nothing is lost where blocks of a month meet, and a finer tier may already be gone.

use signalbox::config::{Config, Retention};
use signalbox_protocol::Sample;

use super::reference::{assert_means, assert_series};
use super::scene::{DAY, HOUR, MINUTE, Scene, days_ago, disk, every, network, rich, rows};

/// Over at least two borders of months, wherever they are.
const DAYS: i64 = 70;

const STEP: i64 = 10 * MINUTE;

/// A sample with a gauge, a whole number, a counter and a list, and nothing else.
fn lean(at: i64) -> Sample {
    let rich = rich(at);
    Sample {
        timestamp: rich.timestamp,
        cpu_percent: rich.cpu_percent,
        memory_used: rich.memory_used,
        uptime_seconds: rich.uptime_seconds,
        disk_usage: vec![disk("/", at as u64 / 7 % 1_000, 12.34)],
        network: vec![network("eth0", rich.network[0].bytes_sent, 7)],
        ..Sample::default()
    }
}

async fn assert_gauges(scene: &Scene, range: (i64, i64), resolution: &str, width: i64) {
    let mut expected = scene.model.series(Some(width), range);
    expected.retain(|name, _| !name.starts_with("network_"));
    let names: Vec<&str> = expected.keys().map(String::as_str).collect();
    let query = format!("resolution={resolution}&names={}", names.join(","));
    assert_series(resolution, &scene.series(range, &query).await, &expected);
}

fn keeping(config: &mut Config, minute_days: u32) {
    config.retention = Retention { raw_days: minute_days, minute_days, quarter_days: 400, hour_days: 400 };
}

#[actix_web::test]
async fn months_are_complete_over_their_borders() {
    let mut scene = Scene::with(STEP, |config| keeping(config, 400)).await;
    let start = days_ago(DAYS + 1);
    let range = (start, start + DAYS * DAY - 1);
    scene.send(every(STEP, (start, start + DAYS * DAY), lean)).await;
    scene.settle().await;
    assert!(rows(&scene.site.service, "history_blocks", "span = 2").await > 1, "there are blocks of months");

    for (resolution, width) in [("1h", HOUR), ("15m", 15 * MINUTE)] {
        let query = format!("resolution={resolution}");
        assert_means(resolution, &scene.history(range, &query).await, &scene.model.means(width, range));
        assert_gauges(&scene, range, resolution, width).await;
    }
    scene.assert_raw("every sample", range).await;
    let answer = scene.answer("history", range, "max_points=1000").await;
    let seconds: i64 = answer.header("X-Resolution-Seconds").parse().unwrap();
    let history = answer.json().as_array().unwrap().clone();
    assert!((500..=1_000).contains(&history.len()), "{} points of {seconds} s", history.len());
    assert_means("auto", &history, &scene.model.means(seconds * 1_000, range));

    // The minutes are dropped, coarser tiers stay as they were.
    scene = scene.restart_with(|config| keeping(config, 10)).await;
    scene.settle().await;
    let minutes = scene.history(range, "resolution=1m").await;
    let first: Sample = serde_json::from_value(minutes[0].clone()).unwrap();
    assert!(first.timestamp.as_millis() >= days_ago(12), "minutes from {}", first.timestamp);
    let young = (days_ago(9), range.1);
    assert_means("1m", &scene.history(young, "resolution=1m").await, &scene.model.means(MINUTE, young));
    for (resolution, width) in [("1h", HOUR), ("15m", 15 * MINUTE)] {
        let query = format!("resolution={resolution}");
        assert_means(resolution, &scene.history(range, &query).await, &scene.model.means(width, range));
    }
    let again = scene.answer("history", range, "max_points=1000").await;
    assert_eq!(again.json().as_array().unwrap(), &history, "auto");
}

#[actix_web::test]
async fn months_that_come_in_portions_are_put_together() {
    let mut scene = Scene::with(2 * STEP, |config| keeping(config, 400)).await;
    let start = days_ago(DAYS + 1);
    let range = (start, start + DAYS * DAY - 1);
    let samples = every(2 * STEP, (start, start + DAYS * DAY), lean);
    // Every third day, then those between them, then the rest, each portion settled before the next comes.
    for portion in 0..3 {
        let is_of_it = |sample: &&Sample| (sample.timestamp.as_millis() - start) / DAY % 3 == portion;
        scene.send(samples.iter().filter(is_of_it).cloned().collect()).await;
        scene.settle().await;
    }

    for (resolution, width) in [("1h", HOUR), ("15m", 15 * MINUTE)] {
        let query = format!("resolution={resolution}");
        assert_means(resolution, &scene.history(range, &query).await, &scene.model.means(width, range));
        assert_gauges(&scene, range, resolution, width).await;
    }
    scene.assert_raw("every sample", range).await;
}
