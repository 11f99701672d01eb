//! A server whose agent sends samples of any time, on a service whose history only advances on request.

use std::path::Path;
use std::time::Duration;

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use serde_json::Value;
use signalbox::config::Config;
use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Encoding, Sample, Timestamp};

use super::reference::{Model, assert_means, assert_series};
use crate::support::agent::FakeAgent;
use crate::support::site::Site;
use crate::support::storage::direct;
use crate::support::{Answer, Storage, TestService};

pub const SECOND: i64 = 1_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// The most samples that a message may carry.
const MAX_BATCH_SAMPLES: usize = 1_024;

/// When the day began that many days ago, in milliseconds since the epoch.
pub fn days_ago(days: i64) -> i64 {
    (Timestamp::now().as_millis().div_euclid(DAY) - days) * DAY
}

/// When an hour begins that is not sealed during a test: the present one, or the next one where that is about to end.
pub fn open_hour() -> i64 {
    (Timestamp::now().as_millis() + 5 * MINUTE) / HOUR * HOUR
}

/// Settings with which nothing is moved automatically.
pub fn still(config: &mut Config) {
    config.timing.archive.every = Duration::from_secs(24 * 3_600);
}

pub struct Scene {
    pub site: Site,
    pub model: Model,
    pub agent: FakeAgent,
    seq: u64,
}

impl Scene {
    /// The usual distance of the samples that will be sent.
    pub async fn of_interval(interval_ms: i64) -> Self {
        Self::with(interval_ms, |_| {}).await
    }

    pub async fn with(interval_ms: i64, adjust: impl FnOnce(&mut Config)) -> Self {
        let site = Site::start_with(|config| {
            still(config);
            adjust(config);
        })
        .await;
        let agent = site.agent_in(Encoding::MessagePack).await;
        Self::of(site, Model::of_interval(interval_ms), agent)
    }

    /// With existing data.
    pub fn of(site: Site, model: Model, agent: FakeAgent) -> Self {
        Self { site, model, agent, seq: 0 }
    }

    /// Sends samples as they are ordered, and waits until they are durable.
    pub async fn send(&mut self, samples: Vec<Sample>) {
        samples.iter().for_each(|sample| self.model.add(sample));
        self.send_unnoticed(samples).await;
    }

    /// Sends samples that the model does not record.
    pub async fn send_unnoticed(&mut self, samples: Vec<Sample>) {
        for some in samples.chunks(MAX_BATCH_SAMPLES) {
            self.seq += 1;
            self.agent.store(self.seq, some.to_vec()).await;
        }
    }

    pub async fn settle(&self) {
        self.site.service.state.metrics.archive.settle().await.unwrap();
    }

    pub async fn restart(self) -> Self {
        // On the heap: a test that restarts twice would exceed the stack of its thread.
        Box::pin(self.restart_with(|_| {})).await
    }

    pub async fn restart_with(self, adjust: impl FnOnce(&mut Config)) -> Self {
        self.restart_after(|_| {}, adjust).await
    }

    /// Stops, does something with the data directory, and starts again.
    pub async fn restart_after(self, meanwhile: impl FnOnce(&Path), adjust: impl FnOnce(&mut Config)) -> Self {
        self.restart_changed(async |storage: &Storage| meanwhile(storage.path()), adjust).await
    }

    /// Stops, changes what is stored, and starts again.
    pub async fn restart_changed(
        self,
        meanwhile: impl AsyncFnOnce(&Storage),
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let Self { site, model, agent, seq } = self;
        drop(agent);
        let Site { service, owner, server_id, key } = site;
        let storage = service.stop().await;
        meanwhile(&storage).await;
        let start = TestService::start_on(storage, |config| {
            still(config);
            adjust(config);
        });
        let service = Box::pin(start).await;
        let site = Site { service, owner, server_id, key };
        let agent = site.agent_in(Encoding::MessagePack).await;
        Self { site, model, agent, seq }
    }

    /// The answer of `history` or `series` for `start..=end` in milliseconds.
    pub async fn answer(&self, what: &str, (start, end): (i64, i64), query: &str) -> Answer {
        let [start, end] = [start, end].map(Timestamp::from_millis);
        let path = format!("/metrics/{}/{what}?start={start}&end={end}&{query}", self.site.server_id);
        self.site.service.client.get(path).bearer(&self.site.owner.token).expect_answer(200).await
    }

    pub async fn history(&self, range: (i64, i64), query: &str) -> Vec<Value> {
        self.answer("history", range, query).await.json().as_array().unwrap().clone()
    }

    pub async fn series(&self, range: (i64, i64), query: &str) -> Value {
        self.answer("series", range, query).await.json()
    }

    /// The series of which the model says something.
    async fn modelled(&self, range: (i64, i64), query: &str) -> Value {
        let mut body = self.series(range, query).await;
        body["series"].as_object_mut().unwrap().retain(|name, _| (self.model.knew)(name));
        body
    }

    /// Asserts that every kind of question about a range, which begins and ends with an hour, is answered as the model
    /// says.
    pub async fn assert_as_modelled(&self, when: &str, range: (i64, i64)) {
        self.assert_raw(when, range).await;
        for (resolution, width_ms) in [("1m", MINUTE), ("15m", 15 * MINUTE), ("1h", HOUR)] {
            let (query, what) = (format!("resolution={resolution}"), format!("{when}, {resolution}"));
            assert_means(&what, &self.history(range, &query).await, &self.model.means(width_ms, range));
            assert_series(&what, &self.modelled(range, &query).await, &self.model.series(Some(width_ms), range));
        }
        let raw = self.modelled(range, "resolution=raw").await;
        assert_series(&format!("{when}, raw"), &raw, &self.model.series(None, range));
    }

    /// Asserts that the raw history is what was sent, to the bit.
    pub async fn assert_raw(&self, when: &str, range: (i64, i64)) {
        let (shown, expected) =
            (self.history(range, "resolution=raw").await, self.model.raw(self.site.server_id, range));
        for (shown, expected) in shown.iter().zip(&expected) {
            let (mut shown, expected) = (shown.as_object().unwrap().clone(), expected.as_object().unwrap());
            // The model knows no open series.
            shown.remove("extra");
            assert!(shown.keys().eq(expected.keys()), "{when}: {:?}, not {:?}", shown.keys(), expected.keys());
            for (field, expected) in expected {
                assert_eq!(&shown[field], expected, "{when}: {field} at {}", shown["timestamp"]);
            }
        }
        assert_eq!(shown.len(), expected.len(), "{when}: how many samples");
    }
}

/// A connection of its own to the database of a service.
pub async fn database(service: &TestService) -> DatabaseConnection {
    Database::connect(direct(&service.state.config.database_url())).await.unwrap()
}

/// Where unsealed samples are: the table, or for an embedded database the table of pieces.
pub fn fresh_table(service: &TestService) -> &'static str {
    if service.state.config.is_embedded() { "history_pieces" } else { "history_samples" }
}

/// How many rows of a table a condition finds.
pub async fn rows(service: &TestService, table: &str, condition: &str) -> i64 {
    let database = database(service).await;
    let query = format!("SELECT COUNT(*) AS count FROM {table} WHERE {condition}");
    let query = Statement::from_string(database.get_database_backend(), query);
    let count = database.query_one_raw(query).await.unwrap().unwrap().try_get("", "count").unwrap();
    database.close().await.unwrap();
    count
}

/// A number that looks random, from `0..below`, always the same for one `seed`.
pub fn scattered(seed: u64, below: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678_9ABC_DEF1);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % below
}

/// A sample with something in every field, which only depends on its time. Its counters rise by varying amounts.
pub fn rich(at: i64) -> Sample {
    let seed = at as u64;
    let number = |salt: u64, below: u64| scattered(seed ^ (salt << 48), below);
    let percent = |salt: u64| number(salt, 10_001) as f64 / 100.0;
    let total = |salt: u64| seed * 10 + number(salt, 10_000);
    Sample {
        timestamp: Timestamp::from_millis(at),
        cpu_percent: percent(1),
        cpu_per_core: vec![percent(2), percent(3), percent(4)],
        load_average: [number(5, 900) as f64 / 100.0, 0.07, 12_345.67],
        memory_percent: percent(6),
        memory_total: (1 << 60) + 12_345,
        memory_used: (1 << 53) + number(7, 1 << 30),
        swap_total: u64::MAX,
        swap_used: number(8, 1 << 20),
        disk_usage: ["/", "/srv/data"].map(|path| disk(path, number(9, 1_000), percent(10))).into(),
        disk_io: vec![DiskIo { device: "nvme0n1".to_owned(), read_bytes: total(11), write_bytes: total(12) }],
        network: vec![
            network("eth0", total(13), total(14)),
            network("wlan0", (1 << 63) + total(15), 7),
            network("lo", 0, 0),
        ],
        temperatures: vec![
            sensor("core", (400 + number(16, 300)) as f64 / 10.0),
            sensor("outside", (number(17, 500) as f64 - 450.0) / 10.0),
            sensor("core", 41.5),
        ],
        uptime_seconds: seed / 1000,
        process_count: 100 + number(18, 50),
        containers: vec![container("postgres", "a1b2", number(19, 40_000) as f64 / 100.0, total(20))],
        ..Sample::default()
    }
}

pub fn disk(path: &str, used: u64, percent: f64) -> DiskUsage {
    DiskUsage { path: path.to_owned(), total: 1_000, used, free: 1_000 - used, percent }
}

pub fn network(interface: &str, bytes_sent: u64, bytes_recv: u64) -> NetworkUsage {
    NetworkUsage { interface: interface.to_owned(), bytes_sent, bytes_recv, in_total: None }
}

pub fn sensor(label: &str, celsius: f64) -> Temperature {
    Temperature { label: label.to_owned(), celsius }
}

pub fn container(name: &str, id: &str, cpu_percent: f64, received: u64) -> ContainerUsage {
    ContainerUsage {
        id: id.to_owned(),
        name: name.to_owned(),
        cpu_percent,
        memory_bytes: received / 3,
        network_rx_bytes: received,
        network_tx_bytes: received / 2,
    }
}

/// A sample at each `step_ms` of `start..end`.
pub fn every(step_ms: i64, (start, end): (i64, i64), sample: impl Fn(i64) -> Sample) -> Vec<Sample> {
    (0..).map(|index| start + index * step_ms).take_while(|at| *at < end).map(sample).collect()
}
