//! One disk, interface or sensor, or the worst of all; and those that are gone.

use serde_json::json;
use signalbox_protocol::sample::{DiskUsage, NetworkUsage, Temperature};
use signalbox_protocol::{Sample, Timestamp};

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
    let usage =
        |(name, bytes): &(&str, u64)| NetworkUsage { interface: (*name).to_owned(), bytes_sent: 0, bytes_recv: *bytes };
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
