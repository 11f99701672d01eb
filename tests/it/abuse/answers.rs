//! Clients that ask for long answers of the history and read nothing of them.

use std::time::Duration;

use signalbox::shares::{Gate, Share};
use signalbox_protocol::Encoding;
use signalbox_protocol::series::{SeriesKind, Unit};

use crate::open_series::{describe, sample, seconds_ago, series};
use crate::support::agent::large_sample;
use crate::support::eventually;
use crate::support::raw::RawSocket;
use crate::support::site::Site;

/// Places for exports, of which an account gets half.
const PLACES: usize = 4;

/// 20 MB of snapshots: more than the kernel takes for a peer that reads nothing.
const SAMPLES: u64 = 80;

/// A site, and exports of its owner that have begun and are not read.
struct Scene {
    site: Site,
    exports: Gate,
    _idle: Vec<RawSocket>,
}

impl Scene {
    /// Exports whose clients take nothing for this long end.
    async fn new(pause: Duration) -> Self {
        let site = Site::start_with(|config| {
            config.shares.exports.places = PLACES;
            config.shares.exports.waiting = 0;
            config.timing.answer_pause = pause;
        })
        .await;
        let mut agent = site.agent_in(Encoding::MessagePack).await;
        for seq in 1..=SAMPLES {
            agent.store(seq, vec![large_sample((SAMPLES - seq) as i64)]).await;
        }
        let mut idle = Vec::new();
        for _ in 0..PLACES / 2 {
            idle.push(begun(&site, &history(&site)).await);
        }
        let exports = site.service.state.limits.shares.exports.clone();
        Self { site, exports, _idle: idle }
    }
}

/// A connection of the owner with an answer that has begun.
async fn begun(site: &Site, path: &str) -> RawSocket {
    let mut socket = RawSocket::connect(site.service.address).await;
    let token = &site.owner.token;
    let request = format!("GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    socket.write(request.as_bytes()).await.unwrap();
    assert_eq!(socket.status().await, 200);
    socket
}

fn history(site: &Site) -> String {
    format!("/metrics/{}/history?resolution=raw", site.server_id)
}

#[actix_web::test]
async fn exports_of_one_account_that_nobody_reads_leave_room_for_others() {
    let Scene { site, exports, _idle } = Scene::new(Duration::from_secs(3_600)).await;
    let neighbour = site.service.register("neighbour").await;
    let theirs = site.service.server(&neighbour, "web-1").await;
    let client = &site.service.client;

    client.get(history(&site)).bearer(&site.owner.token).expect_error(503, "busy").await;

    client.get(format!("/metrics/{theirs}/history")).bearer(&neighbour.token).expect(200).await;
    // Their own charts are no exports, and neither are maps of all servers, also without a limit of their series.
    site.read(&format!("/metrics/{}/series?names=cpu_percent", site.server_id)).await;
    site.read("/metrics/fleet/heat?metric=temperature").await;
    assert_eq!(exports.inside(), PLACES / 2);
}

#[actix_web::test]
async fn exports_that_nobody_reads_are_given_up() {
    let Scene { site, exports, _idle } = Scene::new(Duration::from_secs(1)).await;

    eventually("their places are free", async || (exports.inside() == 0).then_some(())).await;

    // One that takes a place, too: its series are not named.
    site.read(&format!("/metrics/{}/series?max_points=1", site.server_id)).await;
}

#[actix_web::test]
async fn a_list_of_servers_takes_one_place_by_the_most_that_it_can_have() {
    let site = Site::start_with(|config| {
        for places in [&mut config.shares.answers, &mut config.shares.exports] {
            (places.places, places.waiting) = (2, 0);
        }
    })
    .await;
    site.other_server().await;
    let neighbour = site.service.register("neighbour").await;
    let (client, shares) = (&site.service.client, &site.service.state.limits.shares);

    for (places, names) in [(&shares.answers, "cpu_percent"), (&shares.exports, "temperature:*")] {
        let path = format!("/metrics/fleet?names={names}");
        let others = places.try_enter(Share::Account(site.owner.id)).unwrap();

        client.get(&path).bearer(&site.owner.token).expect_error(503, "busy").await;
        client.get(&path).bearer(&neighbour.token).expect(200).await;

        drop(others);
        site.read(&path).await;
        assert_eq!(places.inside(), 0, "{names}");
    }
}

#[actix_web::test]
async fn a_list_of_servers_that_nobody_reads_keeps_its_place() {
    /// Each point of a series is three numbers of mostly 17 digits: 20 MB, as above.
    const SERIES: u16 = 1_900;
    const MOMENTS: i64 = 240;
    let site = Site::start_with(|config| config.timing.answer_pause = Duration::from_secs(3_600)).await;
    let mut agent = site.agent_in(Encoding::MessagePack).await;
    let queue = |id: u16| series(id, "queue", Unit::Count, SeriesKind::Gauge, Some(&id.to_string()));
    describe(&mut agent, (0..SERIES).map(queue).collect()).await;
    for (seq, newest) in [(1, MOMENTS / 2), (2, 0)] {
        let values: Vec<(u16, f64)> = (0..SERIES).map(|id| (id, f64::from(id + 1) / 7.0)).collect();
        let moments = (newest..newest + MOMENTS / 2).rev();
        agent.store(seq, moments.map(|age| sample(seconds_ago(age), &values)).collect()).await;
    }

    let unread = begun(&site, "/metrics/fleet?names=queue:*&limit=1&max_points=500").await;

    let exports = &site.service.state.limits.shares.exports;
    assert_eq!(exports.inside(), 1);
    drop(unread);
    eventually("its place is free", async || (exports.inside() == 0).then_some(())).await;
}
