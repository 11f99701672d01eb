//! One disk, interface or sensor, or the worst of all; and those that are gone.

use std::time::Duration;

use serde_json::json;
use signalbox::config::Config;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature, Unread};
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::assert_names;
use crate::support::agent::sample_at;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::site::Site;

fn disks(at: Timestamp, disks: &[(&str, f64)]) -> Sample {
    let usage = |(path, percent): &(&str, f64)| DiskUsage {
        path: (*path).to_owned(),
        total: 1000,
        used: 400,
        free: 600,
        percent: *percent,
    };
    Sample { disk_usage: disks.iter().map(usage).collect(), ..sample_at(at) }
}

fn sensors(at: Timestamp, sensors: &[(&str, f64)]) -> Sample {
    let sensor = |(label, celsius): &(&str, f64)| Temperature { label: (*label).to_owned(), celsius: *celsius };
    Sample { temperatures: sensors.iter().map(sensor).collect(), ..sample_at(at) }
}

fn interfaces(at: Timestamp, interfaces: &[(&str, u64)]) -> Sample {
    let usage = |(name, bytes): &(&str, u64)| NetworkUsage {
        interface: (*name).to_owned(),
        bytes_sent: 0,
        bytes_recv: *bytes,
        in_total: None,
    };
    Sample { network: interfaces.iter().map(usage).collect(), ..sample_at(at) }
}

#[actix_web::test]
async fn a_named_disk_counts_alone() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let root = alarms.add(Threshold::on("disk", "gt", 90.0).target("/")).await;
    let data = alarms.add(Threshold::on("disk", "gt", 90.0).target("/data")).await;
    let mut probe = Probe::at(&site).await;

    let at = probe.moment();
    probe.tell(vec![disks(at, &[("/", 40.0), ("/data", 93.1), ("/data2", 99.0)])]).await;

    let alert = alarms.until_only(data, "active").await;
    assert_eq!((&alert["target"], &alert["value"]), (&json!("/data"), &json!(93.1)));
    assert_eq!(alert["worst_target"], json!(null));
    assert_names(&alert, &["/data", "93.1", "90", "web-1"]);
    alarms.expect_none(root).await;
}

#[actix_web::test]
async fn without_a_name_the_worst_of_all_counts_and_is_named() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let fullest = alarms.add(Threshold::on("disk", "gt", 90.0)).await;
    let hottest = alarms.add(Threshold::on("temperature", "gte", 80.0)).await;
    let coldest = alarms.add(Threshold::on("temperature", "lt", 5.0)).await;
    let mut probe = Probe::at(&site).await;

    let at = probe.moment();
    let disks = disks(at, &[("/", 91.0), ("/data", 97.5), ("/tmp", 92.0)]);
    let sample =
        Sample { disk_usage: disks.disk_usage, ..sensors(at, &[("cpu", 85.5), ("nvme", 4.5), ("acpi", -3.0)]) };
    probe.tell(vec![sample]).await;

    for (threshold, value, worst) in [(fullest, 97.5, "/data"), (hottest, 85.5, "cpu"), (coldest, -3.0, "acpi")] {
        let alert = alarms.until_only(threshold, "active").await;
        assert_eq!((&alert["target"], &alert["worst_target"]), (&json!(null), &json!(worst)));
        assert_eq!(alert["value"], value);
        assert_names(&alert, &[worst]);
    }
}

#[actix_web::test]
async fn one_alert_lasts_while_any_disk_is_too_full() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("disk", "gt", 90.0)).await;
    let mut probe = Probe::at(&site).await;

    for (root, data) in [(95.0, 10.0), (91.0, 99.0), (10.0, 96.0)] {
        let at = probe.moment();
        probe.tell(vec![disks(at, &[("/", root), ("/data", data)])]).await;
    }

    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!((&alert["value"], &alert["peak_value"]), (&json!(95.0), &json!(99.0)));
    let at = probe.moment();
    probe.tell(vec![disks(at, &[("/", 10.0), ("/data", 10.0)])]).await;
    alarms.until_only(threshold, "resolved").await;
}

#[actix_web::test]
async fn a_target_that_is_gone_has_not_recovered() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let disk = alarms.add(Threshold::on("disk", "gt", 90.0).target("/mnt/usb")).await;
    let sensor = alarms.add(Threshold::on("temperature", "gt", 80.0).target("gpu")).await;
    let any_sensor = alarms.add(Threshold::on("temperature", "gt", 80.0)).await;
    let mut probe = Probe::at(&site).await;
    let at = probe.moment();
    let hot = Sample { disk_usage: disks(at, &[("/mnt/usb", 95.0)]).disk_usage, ..sensors(at, &[("gpu", 90.0)]) };
    probe.tell(vec![hot]).await;
    for threshold in [disk, sensor, any_sensor] {
        alarms.until_only(threshold, "active").await;
    }

    let at = probe.moment();
    probe.tell(vec![disks(at, &[("/", 10.0)])]).await;

    for threshold in [disk, sensor, any_sensor] {
        assert_eq!(alarms.only(threshold).await["status"], "active", "no data is no recovery");
    }
    let at = probe.moment();
    let cool = Sample { disk_usage: disks(at, &[("/mnt/usb", 5.0)]).disk_usage, ..sensors(at, &[("gpu", 40.0)]) };
    probe.tell(vec![cool]).await;
    for threshold in [disk, sensor, any_sensor] {
        alarms.until_only(threshold, "resolved").await;
    }
}

const GONE_AFTER: i64 = 10_000;

fn soon_gone(config: &mut Config) {
    config.timing.target_gone = Duration::from_millis(GONE_AFTER.unsigned_abs());
}

/// Everything that a threshold may be about, all of it too much.
fn all_too_much(at: Timestamp) -> Sample {
    let disk_usage = disks(at, &[("/", 10.0), ("/mnt/usb", 95.0)]).disk_usage;
    Sample { disk_usage, swap_total: 100, swap_used: 99, ..sensors(at, &[("gpu", 90.0)]) }
}

/// The same machine without most of it.
fn little(at: Timestamp) -> Sample {
    disks(at, &[("/", 10.0)])
}

/// Thresholds on all that `all_too_much` has too much of, and an agent.
async fn thresholds_about_all() -> (Site, Alarms, [Uuid; 3], Probe) {
    let site = Site::start_with(soon_gone).await;
    let alarms = Alarms::at(&site);
    let thresholds = [
        alarms.add(Threshold::on("disk", "gt", 90.0).target("/mnt/usb")).await,
        alarms.add(Threshold::on("temperature", "gt", 80.0).target("gpu")).await,
        alarms.add(Threshold::on("temperature", "gt", 80.0)).await,
    ];
    let probe = Probe::at(&site).await;
    (site, alarms, thresholds, probe)
}

#[actix_web::test]
async fn a_target_that_is_gone_for_long_ends_its_alert_across_a_restart() {
    let (site, alarms, thresholds, mut probe) = thresholds_about_all().await;
    let at = probe.moment();
    probe.tell(vec![all_too_much(at)]).await;
    let gone_since = probe.moment();
    probe.tell(vec![little(gone_since), little(gone_since.plus_millis(GONE_AFTER - 1))]).await;
    for threshold in thresholds {
        assert_eq!(alarms.only(threshold).await["status"], "active", "it may come back");
    }
    drop(probe);

    let site = site.restart_with(soon_gone).await;
    let (alarms, mut probe) = (Alarms::at(&site), Probe::at(&site).await);
    probe.tell(vec![little(gone_since.plus_millis(GONE_AFTER))]).await;

    for threshold in thresholds {
        let ended = alarms.until_only(threshold, "resolved").await;
        assert_eq!(ended["resolved_by"], "target_gone");
        assert_eq!(alarms.timeline(&ended).await, ["triggered", "resolved"]);
    }
    // A target that comes back is evaluated as before.
    probe.tell(vec![all_too_much(gone_since.plus_millis(GONE_AFTER + 1_000))]).await;
    for threshold in thresholds {
        alarms.until(threshold, "active").await;
    }
}

#[actix_web::test]
async fn an_interface_that_is_removed_ends_its_alert() {
    let site = Site::start_with(soon_gone).await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("network_in", "gt", 1000.0).target("wan0")).await;
    let mut probe = Probe::at(&site).await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);
    let busy = |seconds| interfaces(at(seconds), &[("eth0", 0), ("wan0", seconds.unsigned_abs() * 5_000)]);
    probe.tell(vec![busy(0), busy(5)]).await;
    alarms.until_only(threshold, "active").await;

    let removed = |seconds| interfaces(at(seconds), &[("eth0", 0)]);
    probe.tell(vec![removed(10), removed(15)]).await;
    assert_eq!(alarms.only(threshold).await["status"], "active", "it may come back");
    probe.tell(vec![removed(20)]).await;

    assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "target_gone");
}

fn unread(list: &str, name: Option<&str>) -> Unread {
    Unread { list: list.to_owned(), name: name.map(str::to_owned) }
}

#[actix_web::test]
async fn a_target_that_cannot_be_read_is_not_gone_whatever_restarts() {
    let (site, alarms, thresholds, mut probe) = thresholds_about_all().await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);
    let hanging = |at| {
        let unread = vec![unread("disk_usage", Some("/mnt/usb")), unread("temperatures", None)];
        Sample { unread, ..little(at) }
    };
    probe.tell(vec![all_too_much(at(0)), hanging(at(1)), hanging(at(12))]).await;
    for threshold in thresholds {
        assert_eq!(alarms.only(threshold).await["status"], "active", "it is there");
    }
    drop(probe);

    let site = site.restart_with(soon_gone).await;
    let (alarms, mut probe) = (Alarms::at(&site), Probe::at(&site).await);
    probe.tell(vec![hanging(at(13)), hanging(at(25))]).await;
    for threshold in thresholds {
        assert_eq!(alarms.only(threshold).await["status"], "active", "it is there after a restart");
    }

    probe.tell(vec![little(at(26)), little(at(36))]).await;
    for threshold in thresholds {
        assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "target_gone");
    }
}

#[actix_web::test]
async fn a_worst_of_all_that_cannot_be_read_has_not_recovered() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("disk", "gt", 90.0)).await;
    let mut probe = Probe::at(&site).await;
    let hanging = |sample: &mut Sample| sample.unread = vec![unread("disk_usage", Some("/mnt/nas"))];
    let at = probe.moment();
    probe.tell(vec![disks(at, &[("/", 10.0), ("/mnt/nas", 95.0)])]).await;
    alarms.until_only(threshold, "active").await;

    probe.now(hanging).await;
    assert_eq!(alarms.only(threshold).await["status"], "active", "nobody knows how full it is");
    drop(probe);
    let site = site.restart().await;
    let (alarms, mut probe) = (Alarms::at(&site), Probe::at(&site).await);
    probe.now(hanging).await;
    assert_eq!(alarms.only(threshold).await["status"], "active", "nor after a restart");

    // Another unreadable target says nothing about this one.
    let at = probe.moment();
    let unread = vec![unread("disk_usage", Some("/mnt/other"))];
    probe.tell(vec![Sample { unread, ..disks(at, &[("/", 10.0), ("/mnt/nas", 20.0)]) }]).await;
    assert_eq!(alarms.until_only(threshold, "resolved").await["resolved_by"], "recovery");
}

#[actix_web::test]
async fn a_target_that_comes_back_was_not_gone() {
    let (_site, alarms, thresholds, mut probe) = thresholds_about_all().await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);

    probe.tell(vec![all_too_much(at(0)), little(at(1)), little(at(9)), all_too_much(at(10)), little(at(12))]).await;

    for threshold in thresholds {
        assert_eq!(alarms.only(threshold).await["status"], "active");
    }
}

#[actix_web::test]
async fn what_was_resolved_by_hand_fires_again_after_its_target_was_gone() {
    let (_site, alarms, thresholds, mut probe) = thresholds_about_all().await;
    let start = probe.moment();
    let at = |seconds: i64| start.plus_millis(seconds * 1_000);
    probe.tell(vec![all_too_much(at(0))]).await;
    for threshold in thresholds {
        let active = alarms.until_only(threshold, "active").await;
        alarms.resolve(&active).await;
    }

    probe.tell(vec![little(at(1)), little(at(11))]).await;
    probe.tell(vec![all_too_much(at(12))]).await;

    for threshold in thresholds {
        alarms.until(threshold, "active").await;
        let [_, first] = alarms.of_threshold(threshold).await.try_into().unwrap();
        assert_eq!(alarms.timeline(&first).await, ["triggered", "resolved", "rearmed"]);
    }
}

#[actix_web::test]
async fn an_agent_that_is_silent_says_nothing_of_its_targets() {
    let (site, alarms, thresholds, mut probe) = thresholds_about_all().await;
    let start = probe.moment();
    probe.tell(vec![all_too_much(start), little(start.plus_millis(1))]).await;
    drop(probe);
    site.until_status("offline").await;

    let mut probe = Probe::at(&site).await;
    probe.tell(vec![little(start.plus_millis(GONE_AFTER + 1_000))]).await;

    for threshold in thresholds {
        assert_eq!(alarms.only(threshold).await["status"], "active");
    }
}

#[actix_web::test]
async fn swap_that_is_switched_off_is_empty() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let swap = alarms.add(Threshold::on("swap", "gt", 80.0)).await;
    let mut probe = Probe::at(&site).await;
    let at = probe.moment();
    probe.tell(vec![all_too_much(at)]).await;
    alarms.until_only(swap, "active").await;

    probe.now(|sample| (sample.swap_total, sample.swap_used) = (0, 0)).await;

    assert_eq!(alarms.until_only(swap, "resolved").await["resolved_by"], "recovery");
}

#[actix_web::test]
async fn a_disk_of_no_size_counts_for_nothing() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let over = alarms.add(Threshold::on("disk", "gte", 90.0)).await;
    let under = alarms.add(Threshold::on("disk", "lte", 5.0)).await;
    let mut probe = Probe::at(&site).await;

    let at = probe.moment();
    let mut sample = disks(at, &[("/", 40.0), ("/proc", 100.0), ("/sys", 0.0)]);
    for disk in &mut sample.disk_usage[1..] {
        (disk.total, disk.used, disk.free) = (0, 0, 0);
    }
    probe.tell(vec![sample]).await;

    alarms.expect_none(over).await;
    alarms.expect_none(under).await;
}

#[actix_web::test]
async fn the_loopback_counts_only_where_it_is_named() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let any = alarms.add(Threshold::on("network_in", "gt", 1000.0)).await;
    let loopback = alarms.add(Threshold::on("network_in", "gt", 1000.0).target("lo")).await;
    let mut probe = Probe::at(&site).await;
    let start = Timestamp::now().plus_millis(-10_000);

    probe.tell(vec![interfaces(start, &[("lo", 0), ("eth0", 0)])]).await;
    probe.tell(vec![interfaces(start.plus_millis(2000), &[("lo", 9000), ("eth0", 100)])]).await;

    let alert = alarms.until_only(loopback, "active").await;
    assert_eq!((&alert["value"], &alert["target"]), (&json!(4500.0), &json!("lo")));
    alarms.expect_none(any).await;
}

#[actix_web::test]
async fn an_interface_that_has_just_come_is_no_burst() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("network_in", "gt", 1000.0)).await;
    let mut probe = Probe::at(&site).await;
    let start = Timestamp::now().plus_millis(-10_000);
    probe.tell(vec![interfaces(start, &[("eth0", 0)])]).await;

    probe.tell(vec![interfaces(start.plus_millis(2000), &[("eth0", 10), ("wg0", 5_000_000_000)])]).await;
    alarms.expect_none(threshold).await;

    probe.tell(vec![interfaces(start.plus_millis(4000), &[("eth0", 20), ("wg0", 5_000_004_000)])]).await;
    let alert = alarms.until_only(threshold, "active").await;
    assert_eq!((&alert["value"], &alert["worst_target"]), (&json!(2000.0), &json!("wg0")));
}

#[actix_web::test]
async fn of_two_sensors_with_one_name_the_worst_counts() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let threshold = alarms.add(Threshold::on("temperature", "gt", 80.0).target("core")).await;
    let mut probe = Probe::at(&site).await;

    let at = probe.moment();
    probe.tell(vec![sensors(at, &[("core", 50.0), ("core", 85.0), ("core", 60.0)])]).await;
    assert_eq!(alarms.until_only(threshold, "active").await["value"], 85.0);

    let at = probe.moment();
    probe.tell(vec![sensors(at, &[("core", 85.0), ("core", 50.0)])]).await;
    assert_eq!(alarms.only(threshold).await["status"], "active");
}
