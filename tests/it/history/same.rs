//! The same query, wherever the data is: in memory, in sealed hours, in days, before and after a restart.

use serde_json::{Value, json};
use signalbox_protocol::{Sample, Timestamp};

use super::scene::{HOUR, MINUTE, SECOND, Scene, container, days_ago, disk, every, network, rich, sensor};
use crate::support::keys_of;

/// Queries everything of a range before and after it is sealed, after a restart, and after the next steps.
async fn assert_the_same_throughout(mut scene: Scene, range: (i64, i64)) {
    scene.assert_as_modelled("in memory", range).await;
    scene = scene.restart().await;
    scene.assert_as_modelled("read again", range).await;
    scene.settle().await;
    scene.assert_as_modelled("settled", range).await;
    scene = scene.restart().await;
    scene.assert_as_modelled("settled and restarted", range).await;
    scene.settle().await;
    scene.assert_as_modelled("settled again", range).await;
}

#[actix_web::test]
async fn every_field_is_the_same_in_memory_sealed_and_after_a_restart() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 22 * HOUR;
    // Across the end of a day.
    let range = (start, start + 4 * HOUR - 1);
    scene.send(every(20 * SECOND, (start, start + 4 * HOUR), rich)).await;

    assert_the_same_throughout(scene, range).await;
}

#[actix_web::test]
async fn what_comes_and_goes_within_an_hour_is_the_same() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 5 * HOUR;
    let changing = |at: i64| {
        let mut sample = rich(at);
        let minute = (at - start) / MINUTE;
        if (20..50).contains(&minute) {
            sample.disk_usage.insert(1, disk("/mnt/usb", 500, 50.0));
            sample.temperatures.push(sensor("core", 60.0));
            sample.containers.insert(0, container("job", "c3d4", 250.0, at as u64));
        }
        if (70..110).contains(&minute) {
            sample.network.remove(1);
            sample.cpu_per_core = vec![1.0; 8];
        }
        sample
    };
    scene.send(every(20 * SECOND, (start, start + 3 * HOUR), changing)).await;

    assert_the_same_throughout(scene, (start, start + 3 * HOUR - 1)).await;
}

#[actix_web::test]
async fn what_comes_and_goes_within_a_minute_counts_for_as_long_as_it_was_there() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 5 * HOUR;
    let changing = |at: i64| {
        let mut sample = rich(at);
        // One sample of the first minute and all of the two that follow.
        if (50 * SECOND..3 * MINUTE).contains(&(at - start)) {
            let percent = if at - start < MINUTE { 100.0 } else { 0.0 };
            sample.disk_usage.push(disk("/mnt/usb", 500, percent));
        }
        sample
    };
    scene.send(every(10 * SECOND, (start, start + HOUR), changing)).await;

    assert_the_same_throughout(scene, (start, start + HOUR - 1)).await;
}

#[actix_web::test]
async fn reset_counters_are_the_same() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 5 * HOUR;
    let rebooting = |at: i64| {
        let since_boot = (at - start) % (25 * MINUTE + 30 * SECOND);
        Sample { network: vec![network("eth0", since_boot as u64 * 3, rich(at).network[0].bytes_recv)], ..rich(at) }
    };
    scene.send(every(10 * SECOND, (start, start + 2 * HOUR), rebooting)).await;

    assert_the_same_throughout(scene, (start, start + 2 * HOUR - 1)).await;
}

#[actix_web::test]
async fn gaps_are_the_same() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 21 * HOUR;
    let mut samples = every(10 * SECOND, (start, start + 6 * HOUR), rich);
    // Of a minute and a half, of twenty minutes across an hour's end, of more than an hour across the day's end.
    let gaps = [(600, 690), (3_000, 4_200), (8_000, 13_000)];
    samples.retain(|sample| {
        let second = (sample.timestamp.as_millis() - start) / SECOND;
        !gaps.iter().any(|(from, until)| (*from..*until).contains(&second))
    });
    scene.send(samples).await;

    assert_the_same_throughout(scene, (start, start + 6 * HOUR - 1)).await;
}

#[actix_web::test]
async fn a_sample_a_minute_has_a_rate_at_every_minute() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2) + 22 * HOUR;
    scene.send(every(MINUTE, (start + 30 * SECOND, start + 5 * HOUR), rich)).await;

    assert_the_same_throughout(scene, (start, start + 5 * HOUR - 1)).await;
}

#[actix_web::test]
async fn a_range_within_an_hour_is_the_same() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 8 * HOUR;
    scene.send(every(20 * SECOND, (start, start + 2 * HOUR), rich)).await;
    // From the middle of one minute to the middle of another, and its whole minutes.
    for range in [(start + 630 * SECOND, start + 4_830 * SECOND), (start + 600 * SECOND, start + 4_800 * SECOND - 1)] {
        let mut answers: Vec<Vec<Value>> = Vec::new();
        for _ in 0..2 {
            let mut all = Vec::new();
            for resolution in ["raw", "1m", "15m", "1h"] {
                let query = format!("resolution={resolution}");
                all.push(json!(scene.history(range, &query).await));
            }
            answers.push(all);
            scene.settle().await;
        }

        let (sealed, fresh) = (answers.pop().unwrap(), answers.pop().unwrap());
        for ((fresh, sealed), resolution) in fresh.iter().zip(&sealed).zip(["raw", "1m", "15m", "1h"]) {
            let times = |answer: &Value| -> Vec<Value> {
                answer.as_array().unwrap().iter().map(|point| point["timestamp"].clone()).collect()
            };
            assert_eq!(times(fresh), times(sealed), "{resolution}");
            let counters = |answer: &Value| -> Vec<Value> {
                answer.as_array().unwrap().iter().map(|point| point["network"][0].clone()).collect()
            };
            assert_eq!(counters(fresh), counters(sealed), "{resolution}");
        }
        // The next range is also queried in memory.
        scene = Scene::of_interval(20 * SECOND).await;
        scene.send(every(20 * SECOND, (start, start + 2 * HOUR), rich)).await;
    }
}

#[actix_web::test]
async fn auto_gives_the_same_before_and_after() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 20 * HOUR;
    let range = (start, start + 8 * HOUR - 1);
    scene.send(every(10 * SECOND, (start, start + 8 * HOUR), rich)).await;
    let mut answers: Vec<Vec<(String, usize, i64)>> = Vec::new();

    for _ in 0..3 {
        let mut all = Vec::new();
        for most in [1, 7, 30, 100, 479, 480, 1_000, 2_880, 20_000] {
            let answer = scene.answer("history", range, &format!("max_points={most}")).await;
            let points = answer.json().as_array().unwrap().len();
            let series = scene.series(range, &format!("max_points={most}")).await;
            assert!((1..=most).contains(&points), "{points} points of at most {most}");
            assert!(series["timestamps"].as_array().unwrap().len() <= most, "series of at most {most}");
            let seconds = answer.header("X-Resolution-Seconds").to_owned();
            assert_eq!(series["resolution_seconds"].to_string(), seconds);
            all.push((seconds, points, series["timestamps"].as_array().unwrap().len() as i64));
        }
        answers.push(all);
        scene.settle().await;
        if answers.len() == 2 {
            scene = scene.restart().await;
        }
    }

    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    assert_eq!(answers[0].last().unwrap(), &("10".to_owned(), 2_880, 2_880), "every sample where all fit");
}

#[actix_web::test]
async fn every_name_alone_gives_its_series() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 10 * HOUR;
    let range = (start, start + 2 * HOUR - 1);
    scene.send(every(20 * SECOND, (start, start + 2 * HOUR), rich)).await;

    for when in ["in memory", "settled"] {
        let listed = scene.answer("names", range, "").await.json();
        let names: Vec<String> =
            listed["names"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
        for resolution in ["raw", "15m"] {
            let all = scene.series(range, &format!("resolution={resolution}")).await;
            assert!(all["series"].as_object().unwrap().keys().eq(&names), "{when}: {names:?}");
            for name in &names {
                let query = format!("resolution={resolution}&names={}", name.replace('#', "%23"));
                let one = scene.series(range, &query).await;
                assert_eq!(keys_of(&one["series"]), [name], "{when}, {resolution}");
                for kind in ["avg", "min", "max"] {
                    let (one, all) = (&one["series"][name][kind], &all["series"][name][kind]);
                    assert_eq!(one, all, "{when}, {resolution}: {kind} of {name}");
                }
                assert_eq!(one["timestamps"], all["timestamps"], "{when}, {resolution}: {name}");
            }
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn samples_of_the_hours_to_come_are_kept() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = Timestamp::now().as_millis() / HOUR * HOUR - HOUR;
    scene.send(every(20 * SECOND, (start, start + 7 * HOUR), rich)).await;

    assert_the_same_throughout(scene, (start, start + 7 * HOUR - 1)).await;
}

#[actix_web::test]
async fn the_current_hour_begins_with_a_rate() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let hour = Timestamp::now().as_millis() / HOUR * HOUR;
    let range = (hour - HOUR, hour + HOUR - 1);
    scene.send(every(MINUTE, (hour - HOUR, hour + 30 * MINUTE), rich)).await;
    let before = scene.series(range, "resolution=1m&names=network_in:eth0").await;

    scene.settle().await;

    let after = scene.series(range, "resolution=1m&names=network_in:eth0").await;
    assert_eq!(after["series"]["network_in:eth0"], before["series"]["network_in:eth0"]);
}

#[actix_web::test]
async fn a_series_full_of_gaps_has_no_more_points_than_asked_for() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 7 * HOUR;
    // Two samples every five minutes.
    let mut samples = every(5 * MINUTE, (start, start + 6 * HOUR), rich);
    samples.extend(every(5 * MINUTE, (start + 10 * SECOND, start + 6 * HOUR), rich));
    scene.send(samples).await;

    for most in [20, 100, 150, 300] {
        let body = scene.series((start, start + 6 * HOUR), &format!("max_points={most}")).await;
        let points = body["timestamps"].as_array().unwrap().len();
        assert!(points <= most, "{points} points of at most {most}");
    }
}
