//! Prometheus with Alertmanager, from Debian's packages `prometheus` and `prometheus-alertmanager`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;
use tokio::process::Command;

use super::daemon::{Daemon, fresh_folder};
use super::exporter::{LABEL, LIMIT, METRIC};
use crate::webhook::Call;

const READY: &str = "/-/ready";

/// How often it evaluates, and how long it waits for more of the same group.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub scrape: Duration,
    pub evaluate: Duration,
    pub group_wait: Duration,
}

/// A running pair that watches one exporter.
#[derive(Debug)]
pub struct Watch {
    _alertmanager: Daemon,
    _prometheus: Daemon,
}

/// A series in a call of Alertmanager.
#[derive(Debug, PartialEq, Eq)]
pub struct FiredSeries {
    pub series: usize,
    /// When Prometheus says it raised the alert: RFC 3339.
    pub fired: String,
}

#[derive(Deserialize)]
struct Message {
    alerts: Vec<Alert>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    status: String,
    labels: Labels,
    starts_at: String,
}

#[derive(Deserialize)]
struct Labels {
    series: String,
}

impl Setting {
    /// The defaults of both programs.
    pub const DEFAULTS: Self = Self {
        name: "defaults",
        scrape: Duration::from_secs(60),
        evaluate: Duration::from_secs(60),
        group_wait: Duration::from_secs(30),
    };
    /// As often as the service's agents send, and no wait.
    pub const TUNED: Self = Self {
        name: "tuned",
        scrape: Duration::from_secs(5),
        evaluate: Duration::from_secs(5),
        group_wait: Duration::ZERO,
    };

    /// The period after which everything repeats.
    pub fn period(&self) -> Duration {
        self.scrape.max(self.evaluate)
    }

    /// Longer than an alert takes to come through.
    pub fn patience(&self) -> Duration {
        self.scrape + self.evaluate + self.group_wait + Duration::from_secs(15)
    }
}

impl Watch {
    /// Starts both. `url` is called with every series of the exporter that crosses: each is a group of its own, so that none
    /// waits for another's.
    pub async fn start(work_dir: &Path, setting: &Setting, exporter: SocketAddr, url: &str) -> anyhow::Result<Self> {
        let folder = fresh_folder(work_dir, "alertmanager")?;
        write(&folder, "alertmanager.yml", &alertmanager_yml(setting, url))?;
        let alertmanager = Daemon::start(alertmanager, Vec::new(), READY, folder).await?;
        let folder = fresh_folder(work_dir, "prometheus")?;
        let target = alertmanager.url("").trim_start_matches("http://").to_owned();
        write(&folder, "prometheus.yml", &prometheus_yml(setting, exporter, &target))?;
        write(&folder, "rules.yml", &rules_yml())?;
        let prometheus = Daemon::start(prometheus, Vec::new(), READY, folder).await?;
        Ok(Self { _alertmanager: alertmanager, _prometheus: prometheus })
    }
}

/// The firing series of Alertmanager's call, without those that are over.
pub fn from_alertmanager(call: &Call) -> anyhow::Result<Vec<FiredSeries>> {
    let message: Message = serde_json::from_slice(&call.body)?;
    let firing = message.alerts.into_iter().filter(|alert| alert.status == "firing");
    firing.map(|alert| Ok(FiredSeries { series: alert.labels.series.parse()?, fired: alert.starts_at })).collect()
}

fn alertmanager(folder: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("prometheus-alertmanager");
    command
        .arg(format!("--config.file={}", folder.join("alertmanager.yml").display()))
        .arg(format!("--storage.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        // It has no peers.
        .args(["--cluster.listen-address=", "--log.level=warn"]);
    command
}

fn prometheus(folder: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .arg("--log.level=warn");
    command
}

fn write(folder: &TempDir, name: &str, text: &str) -> anyhow::Result<()> {
    Ok(fs::write(folder.path().join(name), text)?)
}

fn alertmanager_yml(setting: &Setting, url: &str) -> String {
    let wait = setting.group_wait.as_secs();
    format!(
        "\
route:
  receiver: bench
  group_by: [{LABEL}]
  group_wait: {wait}s
receivers:
  - name: bench
    webhook_configs:
      - url: {url}
        send_resolved: false
"
    )
}

fn prometheus_yml(setting: &Setting, exporter: SocketAddr, alertmanager: &str) -> String {
    let (scrape, evaluate) = (setting.scrape.as_secs(), setting.evaluate.as_secs());
    let timeout = setting.scrape.as_secs().min(10);
    format!(
        "\
global:
  scrape_interval: {scrape}s
  scrape_timeout: {timeout}s
  evaluation_interval: {evaluate}s
rule_files: [rules.yml]
alerting:
  alertmanagers:
    - static_configs:
        - targets: ['{alertmanager}']
scrape_configs:
  - job_name: bench
    static_configs:
      - targets: ['{exporter}']
"
    )
}

fn rules_yml() -> String {
    format!(
        "\
groups:
  - name: bench
    rules:
      - alert: High
        expr: {METRIC} > {LIMIT}
"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_call_names_the_series_that_fire() {
        let body = r#"{"receiver":"bench","status":"firing","alerts":[
            {"status":"firing","labels":{"alertname":"High","series":"3"},"startsAt":"2026-11-21T10:00:00.123Z"},
            {"status":"resolved","labels":{"alertname":"High","series":"4"},"startsAt":"2026-11-21T09:00:00Z"}]}"#;
        let call = Call { at: Instant::now(), body: body.into() };

        let told = from_alertmanager(&call).unwrap();

        assert_eq!(told, [FiredSeries { series: 3, fired: "2026-11-21T10:00:00.123Z".to_owned() }]);
    }
}
