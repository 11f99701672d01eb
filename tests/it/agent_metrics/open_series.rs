//! What an agent describes and sends in addition to the fields of a sample.

use serde_json::json;
use signalbox_protocol::agent::AgentMessage;
use signalbox_protocol::series::{SeriesDescription, SeriesKind, Unit};
use signalbox_protocol::{Encoding, Sample};

use crate::support::agent::sample_aged;
use crate::support::site::Site;

fn described(name: &str) -> AgentMessage {
    let series = SeriesDescription {
        id: 3,
        name: name.to_owned(),
        unit: Unit::Percent,
        kind: SeriesKind::Gauge,
        target: Some("sda".to_owned()),
        help: "Share of the time that the device was busy.".to_owned(),
    };
    AgentMessage::Series { series: vec![series] }
}

#[actix_web::test]
async fn a_described_series_may_have_a_value_in_each_sample() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let site = Site::start().await;
        let mut agent = site.agent_in(encoding).await;

        agent.send(&described("disk_busy")).await;
        agent.store(1, vec![Sample { values: vec![(3, 12.5)], ..sample_aged(1) }]).await;

        assert_eq!(site.latest().await.get("values"), None, "they are no field of the snapshot");
    }
}

#[actix_web::test]
async fn a_description_that_breaks_the_rules_ends_the_connection() {
    for name in ["", "Disk", "disk-busy"] {
        let site = Site::start().await;
        let mut agent = site.agent().await;

        agent.send(&described(name)).await;

        agent.expect_close(4400).await;
    }
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let series = json!([{"id": 3, "name": "a", "unit": "furlongs", "kind": "gauge"}]);

    agent.send_value(&json!({"type": "series", "data": {"series": series}})).await;

    agent.expect_close(4400).await;
}

#[actix_web::test]
async fn a_value_that_is_no_number_ends_the_connection() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;

    agent.send(&described("disk_busy")).await;
    agent.send_metrics(1, vec![Sample { values: vec![(3, f64::NAN)], ..sample_aged(1) }]).await;

    agent.expect_close(4400).await;
}
