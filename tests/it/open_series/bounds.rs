//! Malformed and excessive series.

use std::collections::BTreeSet;

use signalbox_protocol::Encoding;
use signalbox_protocol::series::{MAX_SERIES, SeriesKind, Unit};

use super::{describe, sample, seconds_ago, series, three};
use crate::support::eventually;
use crate::support::site::Site;

#[actix_web::test]
async fn an_id_that_was_not_described_ends_the_connection_and_nothing_is_kept() {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    describe(&mut agent, three(0)).await;

    agent
        .send_metrics(1, vec![sample(seconds_ago(2), &[(0, 1.0)]), sample(seconds_ago(1), &[(0, 1.0), (3, 1.0)])])
        .await;

    agent.expect_close(4400).await;
    site.expect_no_metrics().await;
    // Descriptions on another connection do not count.
    let mut agent = site.agent().await;
    agent.send_metrics(1, vec![sample(seconds_ago(1), &[(0, 1.0)])]).await;
    agent.expect_close(4400).await;
    site.expect_no_metrics().await;
}

#[actix_web::test]
async fn a_number_that_is_not_finite_ends_the_connection() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let site = Site::start().await;
        let mut agent = site.agent_in(Encoding::MessagePack).await;
        describe(&mut agent, three(0)).await;

        agent.send_metrics(1, vec![sample(seconds_ago(1), &[(0, bad)])]).await;

        agent.expect_close(4400).await;
        site.expect_no_metrics().await;
    }
}

#[actix_web::test]
async fn only_authenticated_agents_can_describe_series() {
    let site = Site::start().await;
    let mut stranger = crate::support::agent::FakeAgent::connect(site.service.address, Encoding::Json).await;

    describe(&mut stranger, three(0)).await;

    stranger.expect_close(4401).await;
}

#[actix_web::test]
async fn beyond_two_thousand_series_are_dropped_and_counted() {
    let site = Site::start().await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let ids = || 0..=MAX_SERIES as u16 + 4;
    let all = ids().map(|id| series(id, "queue", Unit::Count, SeriesKind::Gauge, Some(&format!("{id:0>4}"))));
    assert_eq!(site.server().await["series_dropped"], 0);

    describe(&mut agent, all.collect()).await;
    agent.store(1, vec![sample(seconds_ago(1), &ids().map(|id| (id, f64::from(id))).collect::<Vec<_>>())]).await;

    let dropped = eventually("the dropped series were counted", || async {
        let dropped = site.server().await["series_dropped"].as_u64().unwrap();
        (dropped > 0).then_some(dropped)
    });
    assert_eq!(dropped.await, 5);
    let extra = site.latest().await["extra"].as_object().unwrap().clone();
    assert_eq!(extra.len(), MAX_SERIES);
    assert_eq!((extra["queue:0000"].as_f64(), extra["queue:1999"].as_f64()), (Some(0.0), Some(1_999.0)));
    let names = site.read(&format!("/metrics/{}/names?q=queue", site.server_id)).await;
    let kept: BTreeSet<&str> =
        names["names"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!((kept.len(), &names["truncated"]), (MAX_SERIES, &false.into()));

    // A connection that describes fewer has nothing to complain of.
    drop(agent);
    let mut agent = site.agent().await;
    describe(&mut agent, three(0)).await;
    agent.store(1, vec![sample(seconds_ago(0), &[(0, 1.0)])]).await;
    eventually("nothing is dropped any more", || async { (site.server().await["series_dropped"] == 0).then_some(()) })
        .await;
}
