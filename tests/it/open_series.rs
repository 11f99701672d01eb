//! Series that the service has no code for: an agent describes them, sends their values by id, and they are read by name.

mod alerts;
mod bounds;
mod exposition;

use serde_json::{Value, json};
use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::series::{SeriesDescription, SeriesKind, Unit};
use signalbox_protocol::{Encoding, Sample, Timestamp};

use crate::support::agent::{FakeAgent, sample_at};
use crate::support::site::Site;
use crate::support::{eventually, text_of};

/// A description with some help.
pub fn series(id: u16, name: &str, unit: Unit, kind: SeriesKind, target: Option<&str>) -> SeriesDescription {
    let target = target.map(str::to_owned);
    SeriesDescription { id, name: name.to_owned(), unit, kind, target, help: format!("What {name} is.") }
}

/// Three series, whose ids begin with this one.
pub fn three(first: u16) -> Vec<SeriesDescription> {
    vec![
        series(first, "cpu_iowait", Unit::Percent, SeriesKind::Gauge, None),
        series(first + 1, "fan_speed", Unit::Rpm, SeriesKind::Gauge, Some("cpu: 1")),
        series(first + 2, "certificate_left", Unit::Days, SeriesKind::Last, Some("example.org")),
    ]
}

pub async fn describe(agent: &mut FakeAgent, series: Vec<SeriesDescription>) {
    agent.send(&AgentMessage::Series { series }).await;
}

/// An ordinary sample of that moment with these values.
pub fn sample(at: Timestamp, values: &[(u16, f64)]) -> Sample {
    Sample { values: values.to_vec(), ..sample_at(at) }
}

/// The time this many seconds ago, on a whole second.
pub fn seconds_ago(seconds: i64) -> Timestamp {
    let now = Timestamp::now().as_millis();
    Timestamp::from_millis(now - now.rem_euclid(1_000) - 1_000 * seconds)
}

/// The raw history's `extra` by time.
async fn extras(site: &Site) -> Vec<(String, Value)> {
    let history = site.history("resolution=raw").await;
    history.into_iter().map(|snapshot| (text_of(&snapshot["timestamp"]), snapshot["extra"].clone())).collect()
}

#[actix_web::test]
async fn what_an_agent_describes_is_read_by_name() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;
        let mut dashboard = site.dashboard().await;
        dashboard.expect("status").await;
        let at = seconds_ago(2);

        describe(&mut agent, three(40)).await;
        agent.store(1, vec![sample(at, &[(42, 30.0), (40, 12.345), (41, 1_180.0)])]).await;

        let expected = json!({"cpu_iowait": 12.345, "fan_speed:cpu: 1": 1180.0, "certificate_left:example.org": 30.0});
        assert_eq!(dashboard.expect("metrics").await["extra"], expected);
        let latest = site.latest().await;
        assert_eq!((&latest["extra"], &latest["cpu_percent"]), (&expected, &json!(12.5)));
        assert_eq!(latest.get("values"), None);
        assert_eq!(extras(&site).await, [(at.to_string(), expected)]);
        let columns =
            site.read(&format!("/metrics/{}/series?names=fan_speed:cpu%3A%201,cpu_iowait", site.server_id)).await;
        assert_eq!(columns["series"]["fan_speed:cpu: 1"]["avg"], json!([1180.0]));
        assert_eq!(columns["series"]["cpu_iowait"]["max"], json!([12.345]));
        let fleet = site.read("/metrics/fleet?names=cpu_iowait").await;
        assert_eq!(fleet[0]["series"]["cpu_iowait"]["avg"], json!([12.345]));
        // The help texts are written independently of the samples.
        let names = eventually("help is there", async || {
            let names = site.read(&format!("/metrics/{}/names?q=fan", site.server_id)).await;
            let is_there = names["names"][0]["help"].as_str().is_some_and(|help| !help.is_empty());
            is_there.then_some(names)
        })
        .await;
        let fan = json!({"name": "fan_speed:cpu: 1", "unit": "rpm", "kind": "gauge", "help": "What fan_speed is."});
        assert_eq!(names, json!({"names": [fan], "truncated": false}));
    }
}

#[actix_web::test]
async fn a_sample_without_open_series_has_no_extra() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    describe(&mut agent, three(0)).await;

    agent.store(1, vec![sample(seconds_ago(1), &[])]).await;

    assert_eq!(site.latest().await.get("extra"), None);
    assert_eq!(site.history("resolution=raw").await[0].get("extra"), None);
}

#[actix_web::test]
async fn other_ids_after_a_reconnect_stand_for_the_same_series() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let [first, second, third, fourth] = [9, 8, 7, 6].map(seconds_ago);
    describe(&mut agent, three(0)).await;
    agent.store(1, vec![sample(second, &[(0, 2.0), (1, 20.0)])]).await;
    drop(agent);

    // Unsent samples come after it, again together with sent ones, and with ids that meant something else before.
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    describe(&mut agent, three(1)).await;
    agent.store(1, vec![sample(fourth, &[(1, 4.0), (2, 40.0)])]).await;
    let late = vec![
        sample(first, &[(1, 1.0), (2, 10.0)]),
        sample(second, &[(1, 99.0), (2, 99.0)]),
        sample(third, &[(2, 30.0), (1, 3.0)]),
    ];
    agent.store(2, late).await;

    let expected = [(first, 1.0), (second, 2.0), (third, 3.0), (fourth, 4.0)]
        .map(|(at, number)| (at.to_string(), json!({"cpu_iowait": number, "fan_speed:cpu: 1": 10.0 * number})));
    assert_eq!(extras(&site).await, expected);
}

#[actix_web::test]
async fn they_survive_a_restart_and_sealing() {
    let mut site = Site::start().await;
    let mut agent = site.agent().await;
    describe(&mut agent, three(0)).await;
    let [first, second] = [2 * 3_600 + 2, 2 * 3_600 + 1].map(seconds_ago);
    let samples = vec![sample(first, &[(0, 1.5), (2, 30.0)]), sample(second, &[(0, 2.5), (2, 29.0)])];
    agent.store(1, samples).await;
    drop(agent);
    let expected = json!({"cpu_iowait": 2.5, "certificate_left:example.org": 29.0});

    for when in ["fresh", "sealed"] {
        site = site.restart().await;

        assert_eq!(site.latest().await["extra"], expected, "{when}");
        let range = format!("start={first}&end={second}");
        let raw = site.history(&format!("{range}&resolution=raw")).await;
        assert_eq!(raw[0]["extra"], json!({"cpu_iowait": 1.5, "certificate_left:example.org": 30.0}), "{when}");
        let means = site.history(&format!("{range}&resolution=1h")).await;
        let last = means.last().unwrap();
        assert_eq!(last["extra"]["certificate_left:example.org"], 29.0, "{when}");
        site.service.state.metrics.archive.settle().await.unwrap();
    }
}

#[actix_web::test]
async fn the_table_names_them_too() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    describe(&mut agent, three(0)).await;
    agent.store(1, vec![sample(seconds_ago(1), &[(0, 1.5), (1, 900.0)])]).await;

    let path = format!("/metrics/{}/history?resolution=raw", site.server_id);
    let call = site.service.client.get(path).bearer(&site.owner.token).header("Accept", "text/csv");
    let table = call.expect_answer(200).await.text;

    let mut lines = table.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
    let of = |name: &str| row[head.iter().position(|column| column == name).unwrap()].clone();
    assert_eq!(
        (of("cpu_iowait"), of("fan_speed:cpu: 1"), of("cpu_percent")),
        ("1.5".into(), "900".into(), "12.5".into())
    );
}
