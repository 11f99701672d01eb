//! A service that crashes and comes back, while somebody watches.

use std::path::Path;

use crate::logs::{append, log};
use crate::support::{Agent, Running, Site, eventually};
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

/// An agent that lets a file be read.
async fn logging(site: &Site, path: &str) -> Agent {
    let directory = Path::new(path).parent().unwrap().to_str().unwrap();
    site.agent("web-1", &[], &["--logs", "on", "--log-path", directory]).await
}

/// One line for each number.
fn numbered(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|number| format!("line {number}\n")).collect()
}

#[tokio::test]
async fn a_log_continues_and_its_lines_come_once() {
    let mut site = Site::start().await;
    let (_room, path) = log("a.log", "first\n");
    let _agent = logging(&site, &path).await;
    let running = Running::start(site.command(&["logs", "-f", "web-1", "--file", &path]));
    running.until("first").await;

    site.crash();
    running.until("reconnecting").await;
    append(Path::new(&path), "between\n");
    site.begin_again().await;
    running.until("between").await;
    // A line that comes twice comes before this one.
    append(Path::new(&path), "last\n");
    running.until("last\n").await;

    assert_eq!(running.stdout(), "first\nbetween\nlast\n");
    assert!(!running.stderr().contains("missing"), "{}", running.stderr());
}

#[tokio::test]
async fn lines_from_before_those_that_were_shown_are_not_shown_when_a_log_continues() {
    let mut site = Site::start().await;
    let (_room, path) = log("a.log", &numbered(1..=500));
    let _agent = logging(&site, &path).await;
    let running = Running::start(site.command(&["logs", "-f", "web-1", "--file", &path, "-n", "5"]));
    running.until("line 500\n").await;

    site.crash();
    running.until("reconnecting").await;
    append(Path::new(&path), "between\n");
    site.begin_again().await;
    running.until("between").await;
    // Lines from before come before this one.
    append(Path::new(&path), "last\n");
    running.until("last\n").await;

    assert_eq!(running.stdout(), numbered(496..=500) + "between\nlast\n");
}

#[tokio::test]
async fn a_log_that_continues_after_more_lines_than_come_again_says_so() {
    let mut site = Site::start().await;
    let (_room, path) = log("a.log", "first\n");
    let _agent = logging(&site, &path).await;
    let running = Running::start(site.command(&["logs", "-f", "web-1", "--file", &path]));
    running.until("first").await;

    site.crash();
    running.until("reconnecting").await;
    append(Path::new(&path), &numbered(1..=1500));
    site.begin_again().await;
    running.until("line 1500\n").await;

    assert!(running.stderr().contains("lines may be missing here"), "{}", running.stderr());
    assert_eq!(running.stdout(), "first\n".to_owned() + &numbered(501..=1500));
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

#[tokio::test]
async fn an_alert_that_ended_while_nobody_was_connected_is_shown() {
    let mut site = Site::start().await;
    let agent = site.agent("web-1", &[], &[]).await;
    let watching = Running::start(site.command(&["alerts", "watch"]));
    let threshold = serde_json::json!({"server_id": agent.server_id, "metric_type": "memory", "threshold_value": 0.0,
        "comparison": "gt"});
    site.post("/alerts/thresholds", &threshold).await;
    watching.until("active").await;

    site.crash();
    watching.until("reconnecting").await;
    // It must not be back before the alert has ended.
    watching.signal("STOP");
    site.begin_again().await;
    let alert =
        eventually("the alert is still there", async || site.get("/alerts?status=active").await.get(0).cloned());
    let id = alert.await["id"].as_str().unwrap().to_owned();
    site.run(&["alerts", "resolve", &id]).await.done();
    watching.signal("CONT");
    watching.until("resolved after").await;

    assert_eq!(watching.stdout().lines().count(), 2, "each change once: {}", watching.stdout());
}
