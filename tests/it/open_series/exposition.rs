//! Open series for a Prometheus.

use signalbox_protocol::series::{SeriesKind, Unit};

use super::{describe, sample, seconds_ago, series};
use crate::support::agent::FakeAgent;
use crate::support::eventually;
use crate::support::exposition::Exposition;
use crate::support::site::Site;

async fn scrape(site: &Site) -> (String, Exposition) {
    let answer = site.service.client.get("/metrics/prometheus").bearer(&site.owner.token).expect_answer(200).await;
    (answer.text.clone(), Exposition::parse(&answer.text))
}

#[actix_web::test]
async fn open_series_are_families_of_their_name_and_unit() {
    let site = Site::start().await;
    let (other_id, other_key) = site.other_server().await;
    let mut agent = site.agent().await;
    let gauge = SeriesKind::Gauge;
    let described = vec![
        series(1, "fan_speed", Unit::Rpm, gauge, Some("a \"b\"")),
        series(2, "fan_speed", Unit::Rpm, gauge, Some("c")),
        series(3, "jobs_done", Unit::Count, SeriesKind::Counter, None),
        // The name of one of our own families.
        series(4, "cpu_usage", Unit::Ratio, gauge, None),
    ];
    describe(&mut agent, described).await;
    agent.store(1, vec![sample(seconds_ago(1), &[(1, 900.0), (2, 1_200.5), (3, 7.0), (4, 0.5)])]).await;
    // The same name with another unit is another family.
    let mut other = FakeAgent::online(site.service.address, &other_key).await;
    let described =
        vec![series(9, "fan_speed", Unit::Percent, gauge, None), series(8, "fan_speed", Unit::Rpm, gauge, Some("c"))];
    describe(&mut other, described).await;
    other.store(1, vec![sample(seconds_ago(1), &[(9, 55.0), (8, 100.0)])]).await;

    // The help texts are written independently of the samples.
    let help = "# HELP signalbox_fan_speed_rpm What fan_speed is.\n";
    let told = eventually("help is there", async || {
        let (text, told) = scrape(&site).await;
        text.contains(help).then_some(told)
    })
    .await;

    let (id, other_id) = (site.server_id.to_string(), other_id.to_string());
    let value = |name: &str, labels: &[(&str, &str)]| told.value(name, labels).to_owned();
    assert_eq!(value("signalbox_fan_speed_rpm", &[("server_id", &id), ("target", "a \"b\"")]), "900");
    assert_eq!(value("signalbox_fan_speed_rpm", &[("server_id", &id), ("target", "c")]), "1200.5");
    assert_eq!(value("signalbox_fan_speed_rpm", &[("server_id", &other_id)]), "100");
    assert_eq!(value("signalbox_fan_speed_percent", &[("server_id", &other_id), ("instance", "web-2")]), "55");
    assert_eq!(value("signalbox_jobs_done_count", &[("instance", "web-1")]), "7");
    assert_eq!(value("signalbox_cpu_usage_ratio", &[("server_id", &id)]), "0.125", "ours");
    let kinds = ["signalbox_fan_speed_rpm", "signalbox_jobs_done_count"].map(|name| told.families[name].as_str());
    assert_eq!(kinds, ["gauge", "counter"]);
}
