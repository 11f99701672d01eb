//! A service that crashes and comes back, while somebody watches.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::support::{Running, Site, eventually, open_to_all};
use crate::terminal::Terminal;

#[tokio::test]
async fn a_command_continues_and_its_output_comes_once() {
    let mut site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let gate = agent.state.path().join("gate");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended; exit 5", gate.display());
    let running = Running::start(site.command(&["exec", "web-1", "--timeout", "10m", "--", &script]));
    running.until("begun").await;

    site.crash();
    site.begin_again().await;
    std::fs::write(gate, "").unwrap();
    let outcome = running.outcome().await;

    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(5), "begun\nended\n"), "{outcome:?}");
}

#[tokio::test]
async fn a_log_continues_and_its_lines_come_once() {
    let mut site = Site::start().await;
    let room = tempfile::tempdir().unwrap();
    open_to_all(room.path());
    let path = room.path().canonicalize().unwrap().join("a.log");
    let append = |text: &str| {
        let mut file = OpenOptions::new().create(true).append(true).open(Path::new(&path)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("first\n");
    let directory = path.parent().unwrap().to_str().unwrap();
    let _agent = site.agent("web-1", &[], &["--logs", "on", "--log-path", directory]).await;
    let running = Running::start(site.command(&["logs", "-f", "web-1", "--file", path.to_str().unwrap()]));
    running.until("first").await;

    site.crash();
    running.until("reconnecting").await;
    append("between\n");
    site.begin_again().await;
    running.until("between").await;

    assert_eq!(running.stdout(), "first\nbetween\n");
}

#[tokio::test]
async fn the_live_table_says_what_is_wrong_and_continues() {
    let mut site = Site::start().await;
    site.add_server("web-1", &[]).await;
    let mut terminal = Terminal::start(&site, &["top"]);
    terminal.until("web-1").await;

    site.crash();
    terminal.until("reconnecting").await;
    site.begin_again().await;
    site.add_server("zz-new", &[]).await;
    terminal.until("zz-new").await;
    terminal.enter("q");

    assert_eq!(terminal.ended().await, Some(0));
}

#[tokio::test]
async fn alerts_are_watched_again() {
    let mut site = Site::start().await;
    let agent = site.agent("web-1", &[], &[]).await;
    let watching = Running::start(site.command(&["alerts", "watch"]));
    let threshold = serde_json::json!({"server_id": agent.server_id, "metric_type": "memory", "threshold_value": 0.0,
        "comparison": "gt"});
    site.post("/alerts/thresholds", &threshold).await;
    watching.until("active").await;

    site.crash();
    watching.until("reconnecting").await;
    site.begin_again().await;
    let alert =
        eventually("the alert is still there", async || site.get("/alerts?status=active").await.get(0).cloned());
    let id = alert.await["id"].as_str().unwrap().to_owned();
    site.run(&["alerts", "ack", &id]).await.done();
    watching.until("acknowledged").await;

    assert_eq!(watching.stdout().lines().count(), 2, "each change once: {}", watching.stdout());
}
