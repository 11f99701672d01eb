//! The processes that used the most at a time, wherever the lists are stored.

use serde_json::{Value, json};
use signalbox::config::Retention;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};
use signalbox_protocol::{Sample, Timestamp};

use super::scene::{HOUR, MINUTE, SECOND, Scene, days_ago, every, rich, rows};

/// A list that follows from its time.
fn top(at: i64) -> TopProcesses {
    let process = |name: &str, pid: i64| ProcessUsage {
        pid: u32::try_from(pid).unwrap(),
        name: name.to_owned(),
        user: "www-data".to_owned(),
        cpu_percent: 250.25,
        memory_bytes: u64::MAX - pid as u64,
    };
    let pid = at / SECOND % 1_000_000;
    TopProcesses {
        by_cpu: vec![process("nginx: worker", pid), process("=\"ß\"", 1)],
        by_memory: vec![process("db", pid)],
    }
}

fn listed(at: i64) -> Sample {
    Sample { processes: Some(top(at)), ..rich(at) }
}

/// With a list once a minute, as agents do it.
fn once_a_minute(at: i64) -> Sample {
    if at % MINUTE == 0 { listed(at) } else { rich(at) }
}

fn path(scene: &Scene, at: i64) -> String {
    format!("/metrics/{}/processes?at={}", scene.site.server_id, Timestamp::from_millis(at))
}

async fn assert_list(scene: &Scene, when: &str, at: i64, taken: i64) {
    let mut expected = serde_json::to_value(top(taken)).unwrap();
    expected["timestamp"] = Timestamp::from_millis(taken).to_string().into();
    assert_eq!(scene.site.read(&path(scene, at)).await, expected, "{when}, at {}", Timestamp::from_millis(at));
}

async fn assert_none(scene: &Scene, at: i64) {
    let call = scene.site.service.client.get(path(scene, at)).bearer(&scene.site.owner.token);
    let refused = call.expect_error(404, "no_metrics").await;
    assert_eq!(refused["detail"], "There is no list of processes in the hour before this time");
}

/// Asks about three hours of lists, the last of which is at `end - MINUTE`.
async fn assert_three_hours(scene: &Scene, when: &str, start: i64) {
    let end = start + 3 * HOUR;
    for taken in [start, start + 30 * MINUTE, start + HOUR - MINUTE, start + HOUR, start + 2 * HOUR, end - MINUTE] {
        for later in [0, 1, 20 * SECOND, MINUTE - 1] {
            assert_list(scene, when, taken + later, taken).await;
        }
    }
    assert_none(scene, start - 1).await;
    assert_list(scene, when, end - MINUTE + HOUR - 1, end - MINUTE).await;
    assert_none(scene, end - MINUTE + HOUR + 1).await;
}

#[actix_web::test]
async fn the_last_list_before_a_time_is_found_wherever_it_lies() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    // Across the end of a day, and the hours before this one.
    let (past, recent) = (days_ago(3) + 23 * HOUR, Timestamp::now().as_millis() / HOUR * HOUR - 2 * HOUR);
    for start in [past, recent] {
        scene.send(every(20 * SECOND, (start, start + 3 * HOUR), once_a_minute)).await;
    }
    for when in ["in memory", "settled", "settled again"] {
        assert_three_hours(&scene, when, past).await;
        assert_three_hours(&scene, when, recent).await;
        scene = scene.restart().await;
        assert_three_hours(&scene, when, past).await;
        assert_three_hours(&scene, when, recent).await;
        scene.settle().await;
    }
    // In the first hour of a day no hour of that day is sealed yet.
    let has_sealed_today = (recent + HOUR) / (24 * HOUR) == Timestamp::now().as_millis() / (24 * HOUR);
    let spans = if has_sealed_today { vec!["span = 0", "span = 1"] } else { vec!["span = 1"] };
    for condition in spans.iter().map(|span| format!("tier = 4 AND {span}")) {
        assert!(rows(&scene.site.service, "history_blocks", &condition).await > 0, "no blocks with {condition}");
    }
    scene.assert_raw("beside the lists", (past, past + 3 * HOUR)).await;
}

#[actix_web::test]
async fn one_list_a_minute_is_kept() {
    let mut scene = Scene::of_interval(10 * SECOND).await;
    let start = days_ago(2) + 4 * HOUR;
    scene.send(every(10 * SECOND, (start, start + HOUR), listed)).await;

    scene.settle().await;

    for minute in (0..60).map(|minute| start + minute * MINUTE) {
        assert_list(&scene, "the first one", minute + MINUTE - 1, minute).await;
    }
}

#[actix_web::test]
async fn lists_that_come_late_are_found_among_the_others() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let start = days_ago(2) + 4 * HOUR;
    let is_late = |sample: &Sample| (sample.timestamp.as_millis() - start) / MINUTE % 3 == 1;
    let (late, first): (Vec<_>, Vec<_>) =
        every(20 * SECOND, (start, start + 2 * HOUR), once_a_minute).into_iter().partition(is_late);
    scene.send(first).await;
    scene.settle().await;
    assert_list(&scene, "before", start + 2 * MINUTE - 1, start).await;

    scene.send(late).await;
    for when in ["in memory", "settled"] {
        for minute in (0..120).map(|minute| start + minute * MINUTE) {
            assert_list(&scene, when, minute + MINUTE - 1, minute).await;
        }
        scene.settle().await;
    }
}

#[actix_web::test]
async fn without_a_time_it_is_the_newest_list() {
    let mut scene = Scene::of_interval(20 * SECOND).await;
    let now = Timestamp::now().as_millis();
    let path = format!("/metrics/{}/processes", scene.site.server_id);
    let client = scene.site.service.client.clone();
    client.get(&path).bearer(&scene.site.owner.token).expect_error(404, "no_metrics").await;
    scene.send(vec![listed(now - 2 * MINUTE), listed(now - MINUTE), rich(now - SECOND)]).await;

    let newest = scene.site.read(&path).await;

    assert_eq!(newest["timestamp"], Timestamp::from_millis(now - MINUTE).to_string());
    assert_eq!(newest["by_memory"][0]["memory_bytes"], json!(top(now - MINUTE).by_memory[0].memory_bytes));
}

#[actix_web::test]
async fn lists_go_with_the_minutes() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let (old, young) = (days_ago(5) + 4 * HOUR, days_ago(1) + 4 * HOUR);
    for start in [old, young] {
        scene.send(every(MINUTE, (start, start + HOUR), once_a_minute)).await;
    }
    scene.settle().await;
    assert_list(&scene, "before", old + 10 * MINUTE, old + 10 * MINUTE).await;

    let retention = Retention { raw_days: 1, minute_days: 3, quarter_days: 40, hour_days: 60 };
    scene = scene.restart_with(|config| config.retention = retention).await;
    scene.settle().await;

    assert_none(&scene, old + 10 * MINUTE).await;
    assert_list(&scene, "after", young + 10 * MINUTE, young + 10 * MINUTE).await;
}

#[actix_web::test]
async fn nobody_elses_history_is_shown() {
    let mut scene = Scene::of_interval(MINUTE).await;
    let start = days_ago(2) + 4 * HOUR;
    scene.send(every(MINUTE, (start, start + HOUR), once_a_minute)).await;
    let client = scene.site.service.client.clone();
    let stranger = scene.site.service.register("stranger").await;
    let paths = ["history", "series", "names"].map(|what| {
        let [start, end] = [start, start + HOUR].map(Timestamp::from_millis);
        format!("/metrics/{}/{what}?start={start}&end={end}", scene.site.server_id)
    });

    for _ in 0..2 {
        for path in paths.iter().chain([&path(&scene, start)]) {
            let refused = client.get(path).bearer(&stranger.token).expect(404).await;
            let nowhere = path.replace(&scene.site.server_id.to_string(), "0190a6f0-0000-7000-8000-000000000000");
            let unknown: Value = client.get(nowhere).bearer(&stranger.token).expect(404).await;
            assert_eq!(refused, unknown, "{path}: as if it did not exist");
            client.get(path).expect(401).await;
            client.get(path).bearer(&scene.site.owner.token).expect(200).await;
        }
        scene.settle().await;
    }
}
