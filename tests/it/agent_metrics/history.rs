//! `GET /metrics/{server_id}/history`: raw, and averaged to the requested number of points.

use serde_json::Value;
use signalbox_protocol::sample::{NetworkUsage, Temperature};
use signalbox_protocol::{Encoding, Sample, Timestamp};

use crate::support::agent::{sample_aged, sample_at};
use crate::support::site::Site;
use crate::support::{Answer, text_of};

/// Samples every 10 s from `start` on, told apart by their values: the n-th has counters of n and a CPU of n/10.
fn numbered(start: Timestamp, numbers: std::ops::Range<u64>) -> Vec<Sample> {
    let sample = |number: u64| Sample {
        cpu_percent: number as f64 / 10.0,
        network: vec![NetworkUsage {
            interface: "eth0".to_owned(),
            bytes_sent: number,
            bytes_recv: number,
            in_total: None,
        }],
        temperatures: vec![Temperature { label: "core".to_owned(), celsius: 40.0 }],
        ..sample_at(start.plus_millis(10_000 * number as i64))
    };
    numbers.map(sample).collect()
}

async fn answer(site: &Site, query: &str) -> Answer {
    let path = format!("/metrics/{}/history?{query}", site.server_id);
    site.service.client.get(path).bearer(&site.owner.token).expect_answer(200).await
}

fn time_of(sample: &Value) -> Timestamp {
    Timestamp::parse(&text_of(&sample["timestamp"])).unwrap()
}

fn resolution_of(answer: &Answer) -> f64 {
    let text = answer.header("X-Resolution-Seconds");
    text.parse().unwrap_or_else(|_| panic!("X-Resolution-Seconds: {text:?}"))
}

#[actix_web::test]
async fn it_is_empty_before_the_first_sample_in_the_range() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    agent.store(1, vec![sample_aged(30)]).await;

    let past = Timestamp::now().plus_millis(-7_200_000);
    let query = format!("start={}&end={}", past, past.plus_millis(600_000));

    assert_eq!(site.history(&query).await, Vec::<Value>::new());
}

#[actix_web::test]
async fn the_default_range_is_the_last_hour() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let inside = sample_aged(3_500);
    agent.store(1, vec![sample_aged(3_700), inside.clone(), sample_aged(1)]).await;

    let history = site.history("resolution=raw").await;

    assert_eq!(history.len(), 2);
    assert_eq!(history[0]["timestamp"], inside.timestamp.to_string());
}

#[actix_web::test]
async fn the_range_is_what_was_asked_for_in_any_offset() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, numbered(start, 0..60)).await;
    let offset = chrono::FixedOffset::west_opt(8 * 3600).unwrap();
    let from = start.plus_millis(95_000).to_datetime().with_timezone(&offset).to_rfc3339();
    let to = start.plus_millis(145_000).to_string();

    let path = format!("/metrics/{}/history", site.server_id);
    let query = [("start", from.as_str()), ("end", to.as_str()), ("resolution", "raw")];
    let call = site.service.client.get(path).query(&query).bearer(&site.owner.token);
    let history = call.expect(200).await;

    let counters: Vec<u64> = history.as_array().unwrap().iter().map(counter_of).collect();
    assert_eq!(counters, [10, 11, 12, 13, 14]);
}

fn counter_of(sample: &Value) -> u64 {
    sample["network"][0]["bytes_recv"].as_u64().unwrap_or_else(|| panic!("no counter: {sample}"))
}

#[actix_web::test]
async fn raw_gives_every_sample_oldest_first_with_its_resolution() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let start = Timestamp::now().plus_millis(-600_000);
    agent.store(1, numbered(start, 0..50)).await;

    let answer = answer(&site, "resolution=raw").await;

    let history = answer.json();
    let counters: Vec<u64> = history.as_array().unwrap().iter().map(counter_of).collect();
    assert_eq!(counters, (0..50).collect::<Vec<_>>());
    assert!(resolution_of(&answer) >= 0.0);
}

#[actix_web::test]
async fn averages_are_means_of_whole_buckets_and_the_last_counters() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let start = Timestamp::now().plus_millis(-2_000_000);
    agent.store(1, numbered(start, 0..180)).await;

    let end = start.plus_millis(1_800_000);
    let answer = answer(&site, &format!("start={start}&end={end}&max_points=20")).await;

    let history = answer.json();
    let points = history.as_array().unwrap();
    assert!((2..=20).contains(&points.len()), "{} points", points.len());
    let resolution = resolution_of(&answer);
    assert!(resolution >= 1_800.0 / 20.0, "{resolution} s");
    assert_buckets_cover(points, 180);
    assert!(points.windows(2).all(|pair| time_of(&pair[0]) < time_of(&pair[1])), "oldest first: {points:?}");
}

/// Asserts that the points are the means of successive runs of the numbered samples, none left out and none twice.
#[track_caller]
fn assert_buckets_cover(points: &[Value], samples: u64) {
    let mut first = 0;
    for point in points {
        let last = counter_of(point);
        assert!(last >= first, "counters run backwards: {point}");
        let mean = (first + last) as f64 / 20.0;
        let shown = point["cpu_percent"].as_f64().unwrap();
        assert!((shown - mean).abs() < 0.0051, "{shown} is not the mean of {first} to {last}, {mean}");
        first = last + 1;
    }
    assert_eq!(first, samples, "the buckets do not reach the last sample");
}

#[actix_web::test]
async fn averages_are_kept_to_hundredths_and_tenths() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    // The middle of a minute, so that any bucket of a minute or more holds all three.
    let middle = Timestamp::from_millis((Timestamp::now().as_millis() / 3_600_000 - 1) * 3_600_000 + 90_000);
    let sample = |index: i64, cpu: f64, celsius: f64| Sample {
        cpu_percent: cpu,
        temperatures: vec![Temperature { label: "core".to_owned(), celsius }],
        ..sample_at(middle.plus_millis(index * 1000))
    };
    agent.store(1, vec![sample(0, 1.0, 40.0), sample(1, 1.0, 40.0), sample(2, 2.0, 41.0)]).await;

    let (start, end) = (middle.plus_millis(-90_000), middle.plus_millis(3_510_000));
    let history = site.history(&format!("start={start}&end={end}&resolution=1m")).await;

    assert_eq!(history.len(), 1, "{history:?}");
    assert_eq!(history[0]["cpu_percent"], 1.33);
    assert_eq!(history[0]["temperatures"][0]["celsius"], 40.3);
}

#[actix_web::test]
async fn a_gap_stays_a_gap() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let start = Timestamp::now().plus_millis(-3_000_000);
    // 10 minutes of samples, 20 of silence, 10 of samples.
    agent.store(1, numbered(start, 0..60)).await;
    agent.store(2, numbered(start, 180..240)).await;

    for query in ["max_points=60", "resolution=raw", "resolution=1m"] {
        let end = start.plus_millis(2_400_000);
        let history = site.history(&format!("start={start}&end={end}&{query}")).await;

        let silence = start.plus_millis(660_000)..start.plus_millis(1_740_000);
        let invented: Vec<_> = history.iter().filter(|sample| silence.contains(&time_of(sample))).collect();
        assert!(invented.is_empty(), "{query}: {invented:?}");
        assert!(history.len() >= 20, "{query}: {} points", history.len());
    }
}

#[actix_web::test]
async fn max_points_is_never_exceeded() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let start = Timestamp::now().plus_millis(-3_600_000);
    agent.store(1, numbered(start, 0..350)).await;

    for most in [1, 2, 3, 7, 100, 349, 20_000] {
        let history = site.history(&format!("max_points={most}")).await;

        assert!((1..=most).contains(&history.len()), "{} points for max_points={most}", history.len());
    }
}
