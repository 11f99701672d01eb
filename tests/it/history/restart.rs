//! A start in the middle of everything: with samples in memory, in pieces and in blocks at once.

use std::collections::BTreeSet;

use signalbox_protocol::{Sample, Timestamp};

use super::reference::assert_series;
use super::scene::{
    DAY, HOUR, MINUTE, SECOND, Scene, container, days_ago, disk, every, fresh_table, open_hour, rich, rows, sensor,
};

#[actix_web::test]
async fn memory_pieces_and_blocks_outlive_a_restart_together() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let (day, hour) = (days_ago(2), open_hour());
    let samples = every(20 * SECOND, (hour - 2 * HOUR, hour + HOUR), rich);
    scene.send(every(20 * SECOND, (day, day + 3 * HOUR), rich)).await;
    // Each in three portions, every third sample, so that each hour is in memory, in pieces and in blocks.
    for portion in 0..3 {
        let some = samples.iter().skip(portion).step_by(3).cloned().collect();
        scene.send(some).await;
        scene.send(every(20 * SECOND, (day + portion as i64 * 7 * SECOND, day + HOUR - MINUTE), rich)).await;
        if portion < 2 {
            scene.settle().await;
        }
    }
    assert!(rows(&scene.site.service, fresh_table(&scene.site.service), "TRUE").await > 0, "something is not sealed");
    if scene.site.service.state.config.is_embedded() {
        assert!(rows(&scene.site.service, "history_journal", "TRUE").await > 0, "something is in the journal alone");
    }
    let (past, recent) = ((day, day + 3 * HOUR - 1), (hour - 2 * HOUR, hour + HOUR - 1));

    for when in ["before", "after a restart", "settled", "after another"] {
        scene.assert_as_modelled(when, past).await;
        scene.assert_raw(when, recent).await;
        match when {
            "after a restart" => scene.settle().await,
            _ => scene = scene.restart().await,
        }
    }
    scene.assert_as_modelled("in the end", recent).await;
}

/// The names that a range has.
async fn names(scene: &Scene, range: (i64, i64)) -> BTreeSet<String> {
    let listed = scene.answer("names", range, "").await.json();
    let names: Vec<String> =
        listed["names"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect();
    let unique: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(unique.len(), names.len(), "each name once: {names:?}");
    unique
}

#[actix_web::test]
async fn names_are_those_that_the_days_of_the_range_have() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(4);
    let changing = |at: i64| {
        let mut sample = rich(at);
        let hour = (at - start) / HOUR;
        // A disk of some hours, a container of one day, a sensor that stays, an interface that disappears.
        if (3..5).contains(&(hour % 24)) {
            sample.disk_usage.push(disk("/mnt/usb", 1, 0.1));
        }
        if hour / 24 == 1 {
            sample.containers.push(container("nightly", "f00d", 1.0, at as u64));
        }
        if hour >= 36 {
            sample.temperatures.push(sensor("core", 50.0));
            sample.network.remove(1);
        }
        sample
    };
    // The first six hours of three days.
    for day in 0..3 {
        let from = start + day * DAY;
        scene.send(every(MINUTE, (from, from + 6 * HOUR), changing)).await;
    }
    let days = (0..3).map(|day| (start + day * DAY, start + (day + 1) * DAY - 1));
    let hours = (0..6).map(|hour| (start + DAY + hour * HOUR, start + DAY + (hour + 1) * HOUR - 1));
    let ranges: Vec<(i64, i64)> = days.chain(hours).chain([(start, start + 3 * DAY - 1)]).collect();

    for when in ["in memory", "settled", "started again"] {
        for range in &ranges {
            let what = format!("{when}, from {}", Timestamp::from_millis(range.0));
            let expected = scene.model.series(Some(HOUR), *range);
            let shown = names(&scene, *range).await;
            // A sealed day has one list of names.
            let days = (range.0.div_euclid(DAY) * DAY, (range.1.div_euclid(DAY) + 1) * DAY - 1);
            let of_the_days = scene.model.series(None, days);
            assert!(expected.keys().all(|name| shown.contains(name)), "{what}: {shown:?}");
            assert!(shown.iter().all(|name| of_the_days.contains_key(name)), "{what}: {shown:?}");
            assert_series(&what, &scene.series(*range, "resolution=1h").await, &expected);
        }
        match when {
            "in memory" => scene.settle().await,
            _ => scene = scene.restart().await,
        }
    }
}

#[actix_web::test]
async fn days_without_samples_have_no_names() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(4);
    scene.send(vec![Sample { cpu_percent: 1.0, ..rich(start) }]).await;

    for _ in 0..2 {
        assert_eq!(names(&scene, (start + DAY, start + 2 * DAY - 1)).await, BTreeSet::new());
        assert_eq!(names(&scene, (start - 2 * DAY, start - 1)).await, BTreeSet::new());
        scene.settle().await;
    }
}
