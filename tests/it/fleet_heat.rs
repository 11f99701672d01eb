//! `GET /metrics/fleet/heat`: one metric of many servers in buckets that are the same for all.

use serde_json::{Value, json};
use signalbox_protocol::sample::DiskUsage;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::site::Site;
use crate::support::{keys_of, uuid_of};

/// Whole minutes of an hour ago, so that all samples are still there.
fn beginning() -> i64 {
    (Timestamp::now().as_seconds() - 3_600).div_euclid(60) * 60
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

async fn heat(site: &Site, query: &str) -> Value {
    site.read(&format!("/metrics/fleet/heat?{query}")).await
}

fn rows(heat: &Value) -> Vec<Uuid> {
    heat["servers"].as_array().unwrap().iter().map(|row| uuid_of(&row["server_id"])).collect()
}

/// Samples every 10 s for ten minutes without the fourth one; the CPU is the number of the minute, once with a peak.
fn samples(start: i64) -> Vec<Sample> {
    let sample = |index: i64| {
        let cpu = (index / 6) as f64;
        Sample { cpu_percent: if index == 7 { 91.26 } else { cpu }, ..sample_at(at(start + 10 * index)) }
    };
    (0..60).filter(|index| index / 6 != 3).map(sample).collect()
}

#[actix_web::test]
async fn every_server_has_the_same_buckets() {
    let site = Site::start().await;
    let (late_id, late_key) = site.service.server_with_key(&site.owner, "web-2").await;
    let (silent_id, _) = site.service.server_with_key(&site.owner, "web-3").await;
    let start = beginning();
    site.agent().await.store(1, samples(start)).await;
    let mut late = FakeAgent::online(site.service.address, &late_key).await;
    // One sample a minute and a half: its value counts until the next one.
    let few = [(0, 10.0), (90, 20.0), (180, 30.0)]
        .map(|(offset, cpu)| Sample { cpu_percent: cpu, ..sample_at(at(start + offset)) });
    late.store(1, few.to_vec()).await;

    let range = format!("start={}&end={}", at(start), at(start + 599));
    let found = heat(&site, &format!("{range}&buckets=10")).await;

    assert_eq!(keys_of(&found), ["bucket_seconds", "buckets", "metric", "scale", "servers", "start"]);
    let head = json!({ "metric": "cpu_percent", "start": start, "bucket_seconds": 60, "buckets": 10, "scale": 10 });
    for (key, value) in head.as_object().unwrap() {
        assert_eq!(&found[key], value, "{key}");
    }
    assert_eq!(rows(&found), [site.server_id, late_id, silent_id]);
    let [busy, late, silent] = [0_usize, 1, 2].map(|place| &found["servers"][place]);
    assert_eq!(busy["max"], json!([0, 913, 20, null, 40, 50, 60, 70, 80, 90]));
    assert_eq!(busy["mean"], json!([0, 160, 20, null, 40, 50, 60, 70, 80, 90]));
    // 100 at 0, 200 at 90, 300 at 180 and for the time after it that one sample stands for.
    assert_eq!(late["mean"].as_array().unwrap()[..4], [json!(100), json!(200), json!(200), json!(300)]);
    assert_eq!(late["mean"][9], Value::Null);
    assert_eq!((&silent["mean"], &silent["max"]), (&json!([]), &json!([])));
}

#[actix_web::test]
async fn of_several_targets_the_highest_counts() {
    let site = Site::start().await;
    let start = beginning();
    let disk = |path: &str, percent| DiskUsage { path: path.to_owned(), total: 100, used: 1, free: 99, percent };
    let sample = Sample { disk_usage: vec![disk("/", 40.0), disk("/data", 81.5)], ..sample_at(at(start)) };
    site.agent().await.store(1, vec![sample]).await;
    let range = format!("start={}&end={}&buckets=1", at(start), at(start + 5));

    for (metric, value) in
        [("disk_percent", json!([815])), ("disk_percent:/", json!([400])), ("disk_percent:/x", json!([]))]
    {
        let found = heat(&site, &format!("{range}&metric={metric}")).await;

        assert_eq!(found["servers"][0]["max"], value, "{metric}");
    }
}

#[actix_web::test]
async fn only_own_servers_have_rows() {
    let site = Site::start().await;
    let stranger = site.service.register("stranger").await;
    let theirs = site.service.server(&stranger, "web-1").await;
    let (other_id, _) = site.other_server().await;

    let all = heat(&site, "").await;
    let chosen = heat(&site, &format!("servers={other_id},{theirs},{}", Uuid::now_v7())).await;
    let page = site.service.client.get("/metrics/fleet/heat?limit=1&offset=1").bearer(&site.owner.token);
    let page = page.expect_answer(200).await;

    let mut own = rows(&all);
    own.sort_unstable();
    let mut expected = [site.server_id, other_id];
    expected.sort_unstable();
    assert_eq!(own, expected);
    assert_eq!(rows(&chosen), [other_id]);
    assert_eq!((rows(&page.json()).len(), page.header("X-Total-Count")), (1, "2"));
}

#[actix_web::test]
async fn all_faults_come_in_one_answer() {
    let site = Site::start().await;
    let get = |query: &str| site.service.client.get(format!("/metrics/fleet/heat?{query}")).bearer(&site.owner.token);

    get("start=2026-11-20T10:00:00Z&end=2026-11-20T09:00:00Z&servers=1")
        .expect_faults(422, &[("query", "end", "value_error.range"), ("query", "servers", "type_error.uuid")])
        .await;
    let many: Vec<String> = (0..101).map(|_| Uuid::now_v7().to_string()).collect();
    get(&format!("servers={}", many.join(",")))
        .expect_faults(422, &[("query", "servers", "value_error.list.max_items")])
        .await;
    get("limit=500&buckets=501").expect_faults(422, &[("query", "buckets", "value_error.number.not_le")]).await;
    get("limit=500&buckets=500").expect(200).await;
}
