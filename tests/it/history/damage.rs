//! A disk that returns wrong data: damage is reported, and affects nothing else.

use sea_orm::{ConnectionTrait, Statement, Value};
use signalbox::config::Retention;
use signalbox_protocol::Sample;
use signalbox_protocol::sample::{ProcessUsage, TopProcesses};

use super::present_day::{at_work, until_compacted};
use super::reference::assert_means;
use super::scene::{DAY, HOUR, MINUTE, SECOND, Scene, database, days_ago, every, fresh_table, open_hour, rich, rows};
use crate::support::eventually;

/// The tiers and spans by their stored numbers.
const RAW: i64 = 0;
const MINUTES: i64 = 1;
const QUARTERS: i64 = 2;
const HOURS: i64 = 3;
const PROCESSES: i64 = 4;
const OF_AN_HOUR: i64 = 0;
const OF_A_DAY: i64 = 1;

/// Changes one byte in the middle of every part that a condition on `table` selects. Returns how many there were.
async fn damage(scene: &Scene, table: &str, condition: &str) -> usize {
    let database = database(&scene.site.service).await;
    let backend = database.get_database_backend();
    let query = format!("SELECT data FROM {table} WHERE {condition}");
    let rows = database.query_all_raw(Statement::from_string(backend, query)).await.unwrap();
    for row in &rows {
        let whole: Vec<u8> = row.try_get("", "data").unwrap();
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x10;
        let values: [Value; 2] = [damaged.into(), whole.into()];
        let update = format!("UPDATE {table} SET data = $1 WHERE data = $2 AND {condition}");
        let updated = database.execute_raw(Statement::from_sql_and_values(backend, update, values)).await.unwrap();
        assert_ne!(updated.rows_affected(), 0, "something else was written: {condition}");
    }
    database.close().await.unwrap();
    rows.len()
}

async fn damage_block(scene: &Scene, tier: i64, span: i64, at: i64) {
    let condition = format!("tier = {tier} AND span = {span} AND start = {}", at / HOUR);
    assert!(damage(scene, "history_blocks", &condition).await > 0, "no such block: {condition}");
}

async fn damaged_total(scene: &Scene) -> f64 {
    let text = scene.site.service.root.get("/metrics").expect_answer(200).await.text;
    let line = text.lines().find(|line| line.starts_with("signalbox_history_damaged_total"));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Two whole days of an agent, settled; and when the first of them began.
async fn two_days() -> (Scene, i64) {
    let mut scene = Scene::of_interval(300 * SECOND).await;
    let start = days_ago(3);
    scene.send(every(300 * SECOND, (start, start + 48 * HOUR), rich)).await;
    scene.settle().await;
    (scene, start)
}

#[actix_web::test]
async fn a_damaged_day_of_samples_costs_that_day_alone() {
    let (scene, start) = two_days().await;
    let second = (start + 24 * HOUR, start + 48 * HOUR - 1);
    let sound = scene.series(second, "resolution=raw").await;
    damage_block(&scene, RAW, OF_A_DAY, start).await;
    let before = damaged_total(&scene).await;

    let answer = scene.answer("series", (start, start + 48 * HOUR - 1), "resolution=raw&names=cpu_percent").await;

    assert_ne!(answer.header("X-Damaged-Blocks"), "", "{answer}");
    assert!(damaged_total(&scene).await > before);
    assert_eq!(scene.series(second, "resolution=raw").await, sound, "the other day");
    assert_eq!(scene.history((start, second.1), "resolution=raw").await, scene.model.raw(scene.site.server_id, second));
    assert_eq!(scene.history((start, second.1), "resolution=1m").await.len(), 576, "the minutes are sound");
}

#[actix_web::test]
async fn a_damaged_day_of_minutes_leaves_the_samples_and_the_hours() {
    let (scene, start) = two_days().await;
    damage_block(&scene, MINUTES, OF_A_DAY, start).await;

    let range = (start, start + 48 * HOUR - 1);
    scene.assert_raw("raw", range).await;
    assert_eq!(scene.history(range, "resolution=1h").await.len(), 48);
    assert_eq!(scene.history(range, "resolution=1m").await.len(), 288);
}

/// Makes the first hour of a day, which is all that the day has so far, one that is sealed and not compacted.
async fn take_apart(scene: &Scene) {
    let finer = format!("UPDATE history_blocks SET span = {OF_AN_HOUR} WHERE tier IN ({RAW}, {MINUTES})");
    let coarser = format!("DELETE FROM history_blocks WHERE tier IN ({QUARTERS}, {HOURS})");
    scene.site.service.storage().execute(&[&finer, &coarser]).await;
}

#[actix_web::test]
async fn a_damaged_hour_of_minutes_keeps_no_other_hour_from_being_kept() {
    let mut scene = Scene::of_interval(300 * SECOND).await;
    let start = days_ago(5);
    scene.send(every(300 * SECOND, (start, start + HOUR), rich)).await;
    scene.settle().await;
    take_apart(&scene).await;
    damage_block(&scene, MINUTES, OF_AN_HOUR, start).await;

    scene.send(every(300 * SECOND, (start + HOUR, start + DAY), rich)).await;
    scene.settle().await;
    let reported = damaged_total(&scene).await;
    assert!(reported > 0.0);
    // A late sample has the day compacted again.
    scene.send(vec![rich(start + 5 * HOUR + 7 * SECOND)]).await;
    scene.settle().await;
    assert_eq!(damaged_total(&scene).await, reported, "it is reported once");
    scene.assert_raw("the samples of all hours", (start, start + DAY - 1)).await;
    // The minutes expire.
    let short = Retention { raw_days: 1, minute_days: 2, quarter_days: 60, hour_days: 60 };
    scene = scene.restart_with(|config| config.retention = short).await;
    scene.settle().await;

    let (day, sound) = ((start, start + DAY - 1), (start + HOUR, start + DAY - 1));
    for (resolution, width_ms) in [("15m", 15 * MINUTE), ("1h", HOUR)] {
        let history = scene.history(day, &format!("resolution={resolution}")).await;
        assert_means(resolution, &history, &scene.model.means(width_ms, sound));
    }
    assert!(scene.history(day, "resolution=1m").await.is_empty(), "the minutes have expired");
}

#[actix_web::test]
async fn samples_that_come_into_a_damaged_hour_are_not_lost() {
    let (mut scene, start) = two_days().await;
    damage_block(&scene, RAW, OF_A_DAY, start).await;
    let late = every(300 * SECOND, (start + 7 * SECOND, start + HOUR), rich);

    scene.send(late.clone()).await;
    scene.settle().await;
    scene = scene.restart().await;
    scene.settle().await;

    let shown = scene.history((start, start + HOUR - 1), "resolution=raw").await;
    let times: Vec<String> = shown.iter().map(|it| it["timestamp"].as_str().unwrap().to_owned()).collect();
    assert_eq!(times, late.iter().map(|sample| sample.timestamp.to_string()).collect::<Vec<_>>());
}

#[actix_web::test]
async fn hours_after_a_damaged_one_are_sealed() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = signalbox_protocol::Timestamp::now().as_millis() / HOUR * HOUR - 6 * HOUR;
    scene.send(every(60 * SECOND, (start, start + HOUR), rich)).await;
    scene.settle().await;
    // In the first hours of a day it is in the block of the day before.
    let sealed = format!("tier = {RAW} AND start <= {} AND span IN ({OF_AN_HOUR}, {OF_A_DAY})", start / HOUR);
    assert!(damage(&scene, "history_blocks", &sealed).await > 0, "the hour is sealed");

    scene.send(every(60 * SECOND, (start + HOUR, start + 5 * HOUR), rich)).await;
    scene.settle().await;

    scene.assert_raw("the sound hours", (start + HOUR, start + 5 * HOUR - 1)).await;
    // New samples of a damaged day wait in its pieces, as for the late samples above.
    let day = 24 * HOUR;
    if start / day == signalbox_protocol::Timestamp::now().as_millis() / day {
        assert_eq!(
            rows(&scene.site.service, fresh_table(&scene.site.service), "TRUE").await,
            0,
            "nothing is left to seal"
        );
    }
}

#[actix_web::test]
async fn a_damaged_piece_costs_itself_alone() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let hour = open_hour();
    // It is not sealed.
    scene.send(every(SECOND, (hour, hour + 60 * SECOND), rich)).await;
    scene.settle().await;
    assert!(damage(&scene, fresh_table(&scene.site.service), "TRUE").await > 0);
    scene.send(every(SECOND, (hour + 60 * SECOND, hour + 120 * SECOND), rich)).await;

    for query in ["resolution=raw", "resolution=1m", ""] {
        let history = scene.history((hour, hour + HOUR - 1), query).await;
        assert!(!history.is_empty(), "{query}");
    }
    scene.answer("names", (hour, hour + HOUR - 1), "").await;
}

#[actix_web::test]
async fn a_damaged_list_of_processes_is_not_there() {
    let mut scene = Scene::of_interval(60 * SECOND).await;
    let start = days_ago(2);
    let process = ProcessUsage { pid: 7, name: "cron".to_owned(), user: "root".to_owned(), ..ProcessUsage::default() };
    let top = TopProcesses { by_cpu: vec![process.clone()], by_memory: vec![process] };
    let with_processes = |at| Sample { processes: Some(top.clone()), ..rich(at) };
    scene.send(every(60 * SECOND, (start, start + HOUR), with_processes)).await;
    scene.settle().await;
    damage_block(&scene, PROCESSES, OF_A_DAY, start).await;

    let at = signalbox_protocol::Timestamp::from_millis(start + HOUR);
    let path = format!("/metrics/{}/processes?at={at}", scene.site.server_id);
    scene.site.service.client.get(path).bearer(&scene.site.owner.token).expect_error(404, "no_metrics").await;
}

#[actix_web::test]
async fn a_damaged_block_of_the_day_so_far_leaves_the_rest_of_the_day() {
    let day = days_ago(3);
    let hours = |from: i64, until: i64| (day + from * HOUR, day + until * HOUR - 1);
    let samples = |from: i64, until: i64| every(300 * SECOND, (day + from * HOUR, day + until * HOUR), rich);
    let mut scene = Scene::with(300 * SECOND, |config| at_work(config, day + 9 * HOUR + MINUTE)).await;
    scene.send(samples(0, 9)).await;
    until_compacted(&scene, 9).await;
    damage_block(&scene, MINUTES, OF_A_DAY, day).await;
    let answer = scene.answer("history", hours(0, 9), "resolution=1m").await;
    assert_ne!(answer.header("X-Damaged-Blocks"), "", "{answer}");

    scene = scene.restart_with(|config| at_work(config, day + 18 * HOUR + MINUTE)).await;
    scene.send(samples(9, 18)).await;
    let sealed = format!("tier = {RAW} AND span = {OF_AN_HOUR}");
    eventually("the hours after it", async || {
        (rows(&scene.site.service, "history_blocks", &sealed).await == 18).then_some(())
    })
    .await;
    let minutes = scene.history(hours(9, 18), "resolution=1m").await;
    assert_means("1m", &minutes, &scene.model.means(MINUTE, hours(9, 18)));
    scene.assert_raw("every sample", hours(0, 18)).await;

    // When the day is over, its samples are compacted.
    scene = scene.restart_with(|config| at_work(config, day + DAY + MINUTE)).await;
    eventually("a day of samples", async || {
        (rows(&scene.site.service, "history_blocks", &sealed).await == 0).then_some(())
    })
    .await;
    scene.assert_raw("every sample", hours(0, 18)).await;

    // The minutes expire, and quarters and hours remain, those that were made of the damaged minutes, too.
    let short = Retention { raw_days: 1, minute_days: 2, quarter_days: 60, hour_days: 60 };
    scene = scene.restart_with(|config| config.retention = short).await;
    scene.settle().await;
    assert!(scene.history(hours(0, 18), "resolution=1m").await.is_empty(), "the minutes have expired");
    for (resolution, width_ms) in [("15m", 15 * MINUTE), ("1h", HOUR)] {
        let history = scene.history(hours(0, 18), &format!("resolution={resolution}")).await;
        assert_means(resolution, &history, &scene.model.means(width_ms, hours(0, 18)));
    }
}
