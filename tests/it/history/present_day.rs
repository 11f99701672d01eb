//! A day that is not over: its minutes become a block that grows, and nothing that is asked for shows it.

use std::time::Duration;

use signalbox::config::Config;
use signalbox_protocol::Timestamp;

use super::reference::assert_means;
use super::scene::{DAY, HOUR, MINUTE, SECOND, Scene, days_ago, every, rich, rows};
use crate::support::eventually;

/// The distance of the samples.
const STEP: i64 = 30 * SECOND;

/// Seals and compacts by itself, as if it were this time now.
pub fn at_work(config: &mut Config, present: i64) {
    let archive = &mut config.timing.archive;
    archive.every = Duration::from_millis(50);
    archive.move_every = Duration::from_millis(100);
    archive.compact_every = Duration::from_millis(50);
    archive.settle = Duration::from_millis((Timestamp::now().as_millis() - present).unsigned_abs());
}

async fn blocks(scene: &Scene, condition: &str) -> i64 {
    rows(&scene.site.service, "history_blocks", &format!("part = 0 AND {condition}")).await
}

/// Waits until this many hours are sealed, and the minutes of at most six (`MAX_LOOSE_HOURS`) are blocks of their own.
pub async fn until_compacted(scene: &Scene, hours: i64) {
    eventually("few blocks of minutes", async || {
        let sealed = blocks(scene, "tier = 0 AND span = 0").await == hours;
        let loose = blocks(scene, "tier = 1 AND span = 0").await;
        (sealed && (1..=6).contains(&loose)).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn the_minutes_of_a_day_that_is_not_over_are_compacted() {
    let day = days_ago(2);
    let until = |hours: i64| (day, day + hours * HOUR - 1);
    let samples = every(STEP, (day, day + DAY), rich);
    let of_hours = |from: i64, until: i64| {
        let within = day + from * HOUR..day + until * HOUR;
        samples.iter().filter(|sample| within.contains(&sample.timestamp.as_millis())).cloned().collect::<Vec<_>>()
    };
    let mut scene = Scene::with(STEP, |config| at_work(config, day + 9 * HOUR + MINUTE)).await;
    // The third hour comes late.
    scene.send(of_hours(0, 2)).await;
    scene.send(of_hours(3, 9)).await;
    until_compacted(&scene, 8).await;
    assert_eq!(blocks(&scene, "tier = 1 AND span = 1").await, 1, "the minutes of the day so far");
    assert_eq!(blocks(&scene, "tier IN (2, 3) AND span = 1").await, 2, "its quarters and hours");
    scene.assert_as_modelled("at nine", until(9)).await;

    scene.send(of_hours(2, 3)).await;
    until_compacted(&scene, 9).await;
    scene.assert_as_modelled("with the hour that came late", until(9)).await;

    scene = scene.restart_with(|config| at_work(config, day + 18 * HOUR + MINUTE)).await;
    scene.send(of_hours(9, 18)).await;
    until_compacted(&scene, 18).await;
    let grown = format!("tier = 1 AND span = 1 AND last_at >= {}", day + 11 * HOUR);
    assert_eq!(blocks(&scene, &grown).await, 1, "the minutes of the day have grown");
    scene.assert_as_modelled("at six in the evening", until(18)).await;
    let newest = (day + 17 * HOUR, day + 18 * HOUR - 1);
    for (resolution, width_ms) in [("1m", MINUTE), ("15m", 15 * MINUTE), ("1h", HOUR)] {
        let history = scene.history(newest, &format!("resolution={resolution}")).await;
        assert_means(resolution, &history, &scene.model.means(width_ms, newest));
    }

    // Nothing comes any more, and still the day is found when it is over.
    scene = scene.restart_with(|config| at_work(config, day + DAY + MINUTE)).await;
    eventually("a whole day", async || (blocks(&scene, "span = 0").await == 0).then_some(())).await;
    assert_eq!(blocks(&scene, "span = 1").await, 4, "samples, minutes, quarters, hours");
    scene.assert_as_modelled("when it is over", until(18)).await;
}

#[actix_web::test]
async fn a_pause_of_the_present_day_does_not_make_a_chart_coarser() {
    let day = days_ago(2);
    let mut scene = Scene::with(STEP, |config| at_work(config, day + 19 * HOUR + MINUTE)).await;
    scene.send(every(STEP, (day, day + 16 * HOUR), rich)).await;
    scene.send(every(STEP, (day + 17 * HOUR + 30 * MINUTE, day + 19 * HOUR), rich)).await;
    until_compacted(&scene, 18).await;

    // It begins in the pause, where the block of the day has minutes before and after.
    let range = (day + 16 * HOUR + 10 * MINUTE, day + 19 * HOUR - 1);
    let history = scene.history(range, "max_points=1000").await;

    assert_eq!(history.len(), 180, "every sample");
}
