//! How long data is retained, and what `auto` selects from it.

use signalbox::config::{Config, Retention};
use signalbox_protocol::Sample;

use super::reference::assert_means;
use super::scene::{DAY, HOUR, MINUTE, SECOND, Scene, days_ago, every, rich};

fn keeping(raw_days: u32, minute_days: u32, quarter_days: u32, hour_days: u32) -> impl Fn(&mut Config) {
    move |config| config.retention = Retention { raw_days, minute_days, quarter_days, hour_days }
}

/// The beginning of answers, in milliseconds.
async fn first(scene: &Scene, range: (i64, i64), resolution: &str) -> i64 {
    let history = scene.history(range, &format!("resolution={resolution}")).await;
    let first: Sample = serde_json::from_value(history[0].clone()).unwrap();
    first.timestamp.as_millis()
}

#[actix_web::test]
async fn each_tier_is_kept_for_as_long_as_was_set() {
    let mut scene = Scene::with(20 * MINUTE, keeping(1, 2, 40, 60)).await;
    let (start, now) = (days_ago(6), signalbox_protocol::Timestamp::now().as_millis());
    let range = (start, days_ago(0) - 1);
    // Day after day, as they would arrive, so that everything is sealed before it is dropped.
    let keep_all = |config: &mut Config| {
        config.retention = Retention { raw_days: 30, minute_days: 30, quarter_days: 60, hour_days: 60 }
    };
    scene = scene.restart_with(keep_all).await;
    scene.send(every(20 * MINUTE, (start, range.1), rich)).await;
    scene.settle().await;
    scene = scene.restart_with(keeping(1, 2, 40, 60)).await;

    scene.settle().await;

    let raw = first(&scene, range, "raw").await;
    assert!((now - 2 * DAY - HOUR..=now - DAY).contains(&raw), "{raw}");
    let minutes = first(&scene, range, "1m").await;
    assert!((now - 3 * DAY - HOUR..=now - 2 * DAY).contains(&minutes), "{minutes}");
    assert_means("1h", &scene.history(range, "resolution=1h").await, &scene.model.means(HOUR, range));
    assert_means("15m", &scene.history(range, "resolution=15m").await, &scene.model.means(15 * MINUTE, range));
}

#[actix_web::test]
async fn samples_that_come_later_than_samples_are_kept_count_in_the_means() {
    assert_late_ones_count(1).await;
}

#[actix_web::test]
async fn samples_that_come_later_than_samples_are_kept_and_twice_count_once() {
    assert_late_ones_count(2).await;
}

/// Every fourth sample comes so late that only minutes are kept of the others, this many times.
async fn assert_late_ones_count(times: usize) {
    let mut scene = Scene::with(20 * SECOND, keeping(30, 30, 60, 60)).await;
    let start = days_ago(5) + 3 * HOUR;
    let range = (start, start + 2 * HOUR - 1);
    let (first, late): (Vec<_>, Vec<_>) = every(20 * SECOND, (start, start + 2 * HOUR), rich)
        .into_iter()
        .enumerate()
        .partition(|(index, _)| index % 4 != 1);
    let samples = |some: Vec<(usize, Sample)>| some.into_iter().map(|(_, sample)| sample).collect::<Vec<_>>();
    scene.send(samples(first)).await;
    scene.settle().await;
    scene = scene.restart_with(keeping(1, 30, 60, 60)).await;
    scene.settle().await;

    let late = samples(late);
    scene.send(late.clone()).await;
    scene.settle().await;
    for _ in 1..times {
        scene.send_unnoticed(late.clone()).await;
        scene.settle().await;
    }

    assert!(scene.history(range, "resolution=raw").await.is_empty(), "they are not kept");
    for (resolution, width_ms) in [("1m", MINUTE), ("15m", 15 * MINUTE), ("1h", HOUR)] {
        let history = scene.history(range, &format!("resolution={resolution}")).await;
        let mut expected = scene.model.means(width_ms, range);
        // Which of the last values was the last is not known any more.
        let mut shown: Vec<serde_json::Value> = history;
        for (point, (_, expected)) in shown.iter_mut().zip(expected.iter_mut()) {
            let sample: Sample = serde_json::from_value(point.clone()).unwrap();
            for reading in super::reference::readings(&sample) {
                if reading.kind != super::reference::Kind::Gauge {
                    expected.insert(reading.name, reading.value);
                }
            }
        }
        assert_means(resolution, &shown, &expected);
    }
}

#[actix_web::test]
async fn samples_sent_again_after_samples_are_not_kept_any_more_count_once() {
    let mut scene = Scene::with(20 * SECOND, keeping(30, 30, 60, 60)).await;
    let start = days_ago(5) + 3 * HOUR;
    let range = (start, start + HOUR - 1);
    scene
        .send(vec![Sample { cpu_percent: 10.0, ..rich(start) }, Sample { cpu_percent: 40.0, ..rich(start + 1) }])
        .await;
    scene.settle().await;
    scene = scene.restart_with(keeping(1, 30, 60, 60)).await;

    scene.send(vec![Sample { cpu_percent: 40.0, ..rich(start + 1) }]).await;
    scene.settle().await;

    assert_eq!(scene.history(range, "resolution=1m").await[0]["cpu_percent"], 25.0);
}

#[actix_web::test]
async fn samples_that_come_later_than_minutes_are_kept_do_no_harm() {
    let mut scene = Scene::with(20 * MINUTE, keeping(1, 2, 40, 60)).await;
    let start = days_ago(5);
    scene.send_unnoticed(every(20 * MINUTE, (start, start + DAY), rich)).await;
    scene.settle().await;

    let hour = signalbox_protocol::Timestamp::now().as_millis() / HOUR * HOUR - 5 * HOUR;
    let range = (hour, hour + HOUR - 1);
    scene.send(every(20 * SECOND, (range.0, range.1), rich)).await;
    scene.settle().await;

    assert!(scene.history((start, start + DAY), "resolution=1h").await.is_empty(), "they are left out");
    scene.assert_raw("others", range).await;
}

#[actix_web::test]
async fn hours_added_to_a_day_whose_minutes_are_gone_leave_the_days_other_hours() {
    let mut scene = Scene::with(20 * MINUTE, keeping(30, 30, 60, 60)).await;
    let start = days_ago(6);
    let range = (start, start + DAY - 1);
    scene.send(every(20 * MINUTE, (start, start + DAY), rich)).await;
    scene.settle().await;
    scene = scene.restart_with(keeping(1, 2, 60, 60)).await;
    scene.settle().await;
    assert_eq!(scene.history(range, "resolution=1h").await.len(), 24, "the minutes are gone, the hours are not");
    // The retention is raised again, and an agent returns that was away.
    scene = scene.restart_with(keeping(30, 30, 60, 60)).await;

    for hour in [5, 9] {
        scene.send_unnoticed(vec![rich(start + hour * HOUR + 7 * SECOND)]).await;
        scene.settle().await;

        assert_eq!(scene.history(range, "resolution=1h").await.len(), 24, "after hour {hour}");
        assert_eq!(scene.history(range, "resolution=15m").await.len(), 72, "after hour {hour}");
    }
}

#[actix_web::test]
async fn auto_of_years_ago_gives_the_hours() {
    let long = keeping(1_000, 1_000, 1_000, 1_800);
    let mut scene = Scene::with(20 * MINUTE, &long).await;
    let start = days_ago(800);
    let range = (start, start + 2 * DAY - 1);
    scene.send(every(20 * MINUTE, (start, start + 2 * DAY), rich)).await;
    scene.settle().await;
    scene = scene.restart_with(|config| config.retention = Retention::default()).await;
    scene.settle().await;

    let answer = scene.answer("history", range, "").await;

    assert_eq!(answer.header("X-Resolution-Seconds"), "3600");
    assert_means("auto", answer.json().as_array().unwrap(), &scene.model.means(HOUR, range));
}
