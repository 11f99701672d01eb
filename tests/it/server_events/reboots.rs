//! Reboots: their alerts are raised whatever happens to the service, and what counts as a reboot of a container.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use signalbox::store::NewServerEvent;
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use crate::real_agent::agent_program;
use crate::support::alerts::{Alarms, Probe, Threshold};
use crate::support::command_line::Launched;
use crate::support::eventually;
use crate::support::site::Site;

#[actix_web::test]
async fn the_next_service_reports_a_reboot_whose_alert_was_lost_with_the_service_and_once() {
    let site = Site::start().await;
    let alarms = Alarms::at(&site);
    let long = alarms.add(Threshold::on("reboot", "gte", 3_600.0)).await;
    let short = alarms.add(Threshold::on("reboot", "gte", 0.0)).await;
    drop(site.agent().await);
    // The state that a service leaves when it ends between the session's commit and the alert's.
    let reboot = NewServerEvent::new(site.server_id, "reboot", Timestamp::now(), json!({}));
    site.service.state.store.record_events(&[reboot]).await.unwrap();
    let newer = alarms.add(Threshold::on("reboot", "gte", 3_600.0)).await;

    let site = site.restart().await;
    let alarms = Alarms::at(&site);
    let raised = alarms.until_only(long, "active").await;
    alarms.until_only(short, "active").await;
    Probe::at(&site).await.cpu(10.0).await;
    alarms.until_only(short, "resolved").await;
    let site = site.restart().await;
    let (alarms, mut probe) = (Alarms::at(&site), Probe::at(&site).await);
    for _ in 0..3 {
        // Each is read when the earlier ones were evaluated.
        probe.cpu(10.0).await;
    }

    let only = alarms.only(long).await;
    assert_eq!((&only["id"], &only["status"], &only["peak_value"]), (&raised["id"], &json!("active"), &json!(1.0)));
    assert_eq!(alarms.only(short).await["status"], "resolved");
    alarms.expect_none(newer).await;
}

/// The real agent as the first process of a container, on a kernel that keeps running.
struct Container {
    uptime: PathBuf,
    state_dir: TempDir,
}

impl Container {
    fn new() -> Self {
        let state_dir = TempDir::new().unwrap();
        let uptime = state_dir.path().join("uptime");
        fs::write(&uptime, "5.00 5.00\n").unwrap();
        Self { uptime, state_dir }
    }

    /// Starts it with this as its uptime.
    fn start(&self, site: &Site, uptime: &Path) -> Launched {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
        command.arg("mount --bind \"$0\" /proc/uptime && exec \"$@\"").arg(uptime).arg(agent_program());
        command.args(["--url", &format!("http://{}", site.service.address), "--key", &site.key]);
        command.args(["--interval", "0.5", "--docker", "off", "--state-dir"]).arg(self.state_dir.path().join("state"));
        Launched::start(command)
    }

    /// Starts it, ends it and starts it again. Returns the number of reboots that are known then.
    async fn restarts(&self, site: &Site, uptime: &Path) -> usize {
        let connected_at = async || site.server().await["agent"]["connected_at"].clone();
        let first = self.start(site, uptime);
        let first_at = eventually("it is there", async || Some(connected_at().await).filter(Value::is_string)).await;
        first.signal("KILL");
        site.until_status("offline").await;

        let _second = self.start(site, uptime);
        eventually("it is back", async || Some(connected_at().await).filter(|at| *at != first_at)).await;
        site.events("kind=reboot").await.len()
    }
}

#[actix_web::test]
async fn a_restart_of_a_system_container_is_a_reboot_though_the_kernel_keeps_running() {
    let (site, container) = (Site::start().await, Container::new());

    container.restarts(&site, &container.uptime).await;

    eventually("the reboot is recorded", async || (site.events("kind=reboot").await.len() == 1).then_some(())).await;
}

#[actix_web::test]
async fn an_application_container_that_is_started_again_is_none() {
    let (site, container) = (Site::start().await, Container::new());

    let reboots = container.restarts(&site, Path::new("/proc/uptime")).await;

    assert_eq!(reboots, 0);
}
