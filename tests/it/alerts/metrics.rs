//! Every metric fires and recovers at the exact boundary of every comparison.

use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::support::agent::sample_at;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;

const COMPARISONS: [&str; 4] = ["gt", "gte", "lt", "lte"];

/// The threshold of every metric here.
const LIMIT: f64 = 50.0;

/// Samples of one metric, exactly one second apart.
struct Series {
    metric: &'static str,
    at: Timestamp,
    /// What the interface has carried.
    carried: u64,
}

impl Series {
    fn new(metric: &'static str) -> Self {
        Self { metric, at: Timestamp::now().plus_millis(-20_000), carried: 1_000_000 }
    }

    /// The next sample, of which the metric is `value`.
    fn next(&mut self, value: u64) -> Sample {
        self.after(1, value)
    }

    /// The sample these seconds after the last one, of which the metric is `value`; a rate is that for each of them.
    fn after(&mut self, seconds: u64, value: u64) -> Sample {
        self.at = self.at.plus_millis(1000 * seconds.cast_signed());
        self.carried += seconds * value;
        let mut sample = sample_at(self.at);
        let number = value as f64;
        match self.metric {
            "cpu" => sample.cpu_percent = number,
            "memory" => sample.memory_percent = number,
            "swap" => (sample.swap_total, sample.swap_used) = (1000, 10 * value),
            "disk" => sample.disk_usage = vec![disk("/", number)],
            "load" => sample.load_average = [number, 7.0, 3000.0],
            "network_in" => sample.network = vec![carried("eth0", self.carried, 0)],
            "network_out" => sample.network = vec![carried("eth0", 0, self.carried)],
            "temperature" => sample.temperatures = vec![Temperature { label: "cpu".to_owned(), celsius: number }],
            other => panic!("no metric: {other}"),
        }
        sample
    }
}

fn disk(path: &str, percent: f64) -> DiskUsage {
    DiskUsage { path: path.to_owned(), total: 1000, used: 400, free: 600, percent }
}

fn carried(interface: &str, bytes_recv: u64, bytes_sent: u64) -> NetworkUsage {
    NetworkUsage { interface: interface.to_owned(), bytes_sent, bytes_recv, in_total: None }
}

/// Which of four thresholds have an alert that is not resolved.
async fn open(alarms: &Alarms, thresholds: &[Uuid; 4]) -> Vec<&'static str> {
    let active = alarms.list("status=active").await;
    let is_open = |id: &Uuid| active.iter().any(|alert| alert["threshold_id"] == id.to_string());
    COMPARISONS.into_iter().zip(thresholds).filter(|(_, id)| is_open(id)).map(|(comparison, _)| comparison).collect()
}

async fn fires_and_recovers_at_the_boundary(metric: &'static str) {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let mut thresholds = [Uuid::nil(); 4];
    for (id, comparison) in thresholds.iter_mut().zip(COMPARISONS) {
        *id = alarms.add(Threshold::on(metric, comparison, LIMIT)).await;
    }
    let mut probe = Probe::at(&site).await;
    let mut series = Series::new(metric);
    // The first sample of a counter has no rate; a gauge would have a value.
    if metric.starts_with("network") {
        probe.tell(vec![series.next(0)]).await;
        assert!(alarms.all().await.is_empty(), "one reading of a counter is no rate");
    }

    for (value, expected) in
        [(50, ["gte", "lte"]), (51, ["gt", "gte"]), (50, ["gte", "lte"]), (49, ["lt", "lte"]), (50, ["gte", "lte"])]
    {
        probe.tell(vec![series.next(value)]).await;
        assert_eq!(open(&alarms, &thresholds).await, expected, "{metric} is {value}");
    }

    let mut raised = Vec::new();
    for id in thresholds {
        raised.push(alarms.of_threshold(id).await.len());
    }
    assert_eq!(raised, [1, 2, 1, 2], "{metric}: an alert for each crossing");
    let alerts = alarms.all().await;
    assert!(alerts.iter().all(|alert| alert["metric_type"] == metric), "{alerts:?}");
    let resolved = alerts.iter().filter(|alert| alert["status"] == "resolved");
    assert!(resolved.clone().count() == 4 && resolved.clone().all(|alert| alert["resolved_by"] == "recovery"));
}

#[actix_web::test]
async fn the_processor() {
    fires_and_recovers_at_the_boundary("cpu").await;
}

#[actix_web::test]
async fn the_memory() {
    fires_and_recovers_at_the_boundary("memory").await;
}

#[actix_web::test]
async fn the_swap() {
    fires_and_recovers_at_the_boundary("swap").await;
}

#[actix_web::test]
async fn the_disks() {
    fires_and_recovers_at_the_boundary("disk").await;
}

#[actix_web::test]
async fn the_load_of_one_minute() {
    fires_and_recovers_at_the_boundary("load").await;
}

#[actix_web::test]
async fn what_comes_in() {
    fires_and_recovers_at_the_boundary("network_in").await;
}

#[actix_web::test]
async fn what_goes_out() {
    fires_and_recovers_at_the_boundary("network_out").await;
}

#[actix_web::test]
async fn the_temperature() {
    fires_and_recovers_at_the_boundary("temperature").await;
}

#[actix_web::test]
async fn a_reset_counter_has_no_rate() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let over = alarms.add(Threshold::on("network_in", "gt", 100.0)).await;
    let under = alarms.add(Threshold::on("network_in", "lt", 1.0)).await;
    let mut probe = Probe::at(&site).await;
    let mut series = Series::new("network_in");
    probe.tell(vec![series.next(0), series.next(50)]).await;

    series.carried = 7;
    probe.tell(vec![series.next(0)]).await;

    alarms.expect_none(over).await;
    alarms.expect_none(under).await;
    probe.tell(vec![series.next(101)]).await;
    let alert = alarms.until_only(over, "active").await;
    assert_eq!(alert["value"], 101.0);
}

#[actix_web::test]
async fn the_first_sample_after_a_servers_first_threshold_has_a_rate() {
    for seconds in [1, 60] {
        let site = Site::start().await;
        let alarms = Alarms::at(&site);
        let mut probe = Probe::at(&site).await;
        let mut series = Series::new("network_in");
        probe.tell(vec![series.after(seconds, 0), series.after(seconds, 50)]).await;

        let over = alarms.add(Threshold::on("network_in", "gt", 100.0)).await;
        probe.tell(vec![series.after(seconds, 101)]).await;

        let alert = alarms.until_only(over, "active").await;
        assert_eq!(alert["value"], 101.0, "every {seconds} s");
    }
}

#[actix_web::test]
async fn a_sample_that_comes_twice_keeps_the_rate_of_the_next() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let over = alarms.add(Threshold::on("network_in", "gt", 100.0)).await;
    let mut probe = Probe::at(&site).await;
    let mut series = Series::new("network_in");
    let (first, second) = (series.after(60, 0), series.after(60, 50));

    probe.tell(vec![first, second.clone()]).await;
    probe.tell(vec![second]).await;
    probe.tell(vec![series.after(60, 101)]).await;

    let alert = alarms.until_only(over, "active").await;
    assert_eq!(alert["value"], 101.0);
}

#[actix_web::test]
async fn a_server_without_swap_has_no_alert_of_it() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let under = alarms.add(Threshold::on("swap", "lte", 10.0)).await;
    let over = alarms.add(Threshold::on("swap", "gte", 0.0)).await;
    let mut probe = Probe::at(&site).await;

    probe.now(|sample| (sample.swap_total, sample.swap_used) = (0, 0)).await;

    alarms.expect_none(under).await;
    alarms.expect_none(over).await;
}
