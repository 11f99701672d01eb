//! The real agent's logs through the real service.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use actix_web::rt::{self, task::JoinHandle};
use signalbox_agent::policy::{Policy, Switch};
use signalbox_agent::{Config, Exit};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{message, watch};
use crate::support::site::Site;
use crate::support::text_of;

/// A server whose agent runs in this process, with a directory of logs that may be read.
struct Host {
    site: Site,
    dir: TempDir,
    _stop: oneshot::Sender<()>,
    _running: JoinHandle<Exit>,
}

impl Host {
    async fn start(logs: Switch) -> Self {
        let (site, dir) = (Site::start().await, TempDir::new().unwrap());
        let policy = Policy { logs, log_paths: vec![dir.path().into()], ..Policy::default() };
        let url = format!("http://{}", site.service.address);
        let config = Config { policy, ..Config::new(&url, &site.key).unwrap() };
        let (stop, stopped) = oneshot::channel::<()>();
        let running = rt::spawn(signalbox_agent::run(config, async {
            _ = stopped.await;
        }));
        site.until_status("online").await;
        Self { site, dir, _stop: stop, _running: running }
    }

    fn query(&self, name: &str) -> String {
        format!("source=file&path={}", self.dir.path().join(name).display())
    }
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[actix_web::test]
async fn a_file_is_watched_through_its_rotation() {
    let host = Host::start(Switch::On).await;
    let path = host.dir.path().join("app.log");
    append(&path, "one\ntwo\n");
    let mut dashboard = watch(&host.site, &format!("{}&tail=1", host.query("app.log"))).await;
    assert_eq!(message(&mut dashboard).await, "two");

    append(&path, "three\n");
    std::fs::rename(&path, host.dir.path().join("app.log.1")).unwrap();
    append(&path, "four\n");

    assert_eq!(message(&mut dashboard).await, "three");
    assert_eq!(message(&mut dashboard).await, "four");
}

#[actix_web::test]
async fn a_hundred_thousand_lines_reach_two_dashboards_or_are_reported_as_missing() {
    const LINES: u64 = 100_000;
    let host = Host::start(Switch::On).await;
    let path = host.dir.path().join("busy.log");
    append(&path, "ready\n");
    let query = format!("{}&tail=1", host.query("busy.log"));
    let mut dashboards = [watch(&host.site, &query).await, watch(&host.site, &query).await];
    for dashboard in &mut dashboards {
        assert_eq!(message(dashboard).await, "ready");
    }

    append(&path, &(0..LINES).map(|number| format!("line number {number}\n")).collect::<String>());

    for dashboard in &mut dashboards {
        let mut expected = 0;
        while expected < LINES {
            let told = dashboard.next().await;
            match told["type"].as_str() {
                Some("dropped") => expected += told["data"]["count"].as_u64().unwrap(),
                _ => {
                    assert_eq!(told["data"]["message"], format!("line number {expected}"), "{told}");
                    expected += 1;
                }
            }
        }
    }
}

#[actix_web::test]
async fn a_file_is_searched_on_its_host() {
    let host = Host::start(Switch::On).await;
    append(&host.dir.path().join("app.log"), "all well\nan error\nanother error\nall well again\n");

    let path = format!("/logs/{}?{}&q=ERR", host.site.server_id, host.query("app.log"));
    let none = host.site.read(&path).await;
    let found = host.site.read(&path.replace("ERR", "err")).await;

    assert_eq!(none["lines"].as_array().unwrap().len(), 0);
    let messages: Vec<String> =
        found["lines"].as_array().unwrap().iter().map(|line| text_of(&line["message"])).collect();
    assert_eq!(messages, ["an error", "another error"]);
}

#[actix_web::test]
async fn the_policy_decides_for_every_caller() {
    let closed = Host::start(Switch::Off).await;
    let mut dashboard = watch(&closed.site, "").await;
    assert_eq!(dashboard.expect("error").await["code"], "agent_refused");
    dashboard.expect_close(1000).await;
    let path = format!("/logs/{}", closed.site.server_id);
    closed.site.service.client.get(path).bearer(&closed.site.owner.token).expect_error(400, "agent_refused").await;
    assert!(!closed.site.server().await["agent"]["capabilities"].to_string().contains("logs"));

    let open = Host::start(Switch::On).await;
    let mut dashboard = watch(&open.site, "source=file&path=/etc/passwd").await;
    assert_eq!(dashboard.expect("error").await["code"], "path_not_allowed");
    assert!(open.site.server().await["agent"]["capabilities"].to_string().contains("logs"));
}
