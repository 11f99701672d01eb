//! Logs of files on real agents.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::support::{Running, Site, eventually, open_to_all};
use crate::terminal::Terminal;

pub fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A directory with a log, as its path without links.
pub fn log(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let room = tempfile::tempdir().unwrap();
    open_to_all(room.path());
    let path = room.path().canonicalize().unwrap().join(name);
    append(&path, text);
    let path = path.to_str().unwrap().to_owned();
    (room, path)
}

#[tokio::test]
async fn files_of_several_servers_are_merged_by_their_time() {
    let site = Site::start().await;
    let (room, path) = log("a.log", "2026-11-20T09:00:01Z one\n2026-11-20T09:00:03Z three\n  continued\n");
    let directory = room.path().canonicalize().unwrap();
    let other = directory.join("b.log");
    append(&other, "2026-11-20T09:00:02Z two\n2026-11-20T09:00:04Z four \x1b[31mred\x1b[0m\n");
    let flags = ["--logs", "on", "--log-path", directory.to_str().unwrap()];
    let _agents = [site.agent("web-1", &[], &flags).await, site.agent("web-2", &[], &flags).await];

    let one = site.run(&["logs", "web-1", "--file", &path, "-n", "2"]).await;
    let both = site.run(&["logs", "web-1", "--file", &path, "--file", other.to_str().unwrap(), "-o", "json"]).await;
    let matched = site.run(&["logs", "web-1", "web-2", "--file", &path, "-g", "thr.e", "--color", "always"]).await;

    assert_eq!(one.done().lines().count(), 2, "{one:?}");
    assert!(!one.stdout.contains("web-1"), "one log needs no label: {one:?}");
    let messages: Vec<String> = both
        .done()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["message"].as_str().unwrap().to_owned())
        .collect();
    let order: Vec<usize> = ["one", "two", "three", "continued", "four"]
        .iter()
        .map(|word| messages.iter().position(|message| message.contains(word)).unwrap())
        .collect();
    assert_eq!(order, [0, 1, 2, 3, 4], "{messages:?}");
    assert_eq!(matched.done().lines().count(), 2, "{matched:?}");
    assert!(matched.stdout.contains("web-2:") && matched.stdout.contains("\x1b[31mthree\x1b[0m"), "{matched:?}");
}

#[tokio::test]
async fn new_lines_are_shown_as_they_are_written_also_after_the_agent_was_away() {
    let site = Site::start().await;
    let (room, path) = log("a.log", "first\nnoise\n");
    let directory = room.path().canonicalize().unwrap();
    let agent = site.agent("web-1", &[], &["--logs", "on", "--log-path", directory.to_str().unwrap()]).await;

    let running = Running::start(site.command(&["logs", "-f", "web-1", "--file", &path, "-g", "first|second|third"]));
    running.until("first").await;
    append(Path::new(&path), "second\n");
    running.until("second").await;
    agent.restart(&site).await;
    // Lines of the time between are not part of a live log.
    eventually("the log continues", async || {
        append(Path::new(&path), "third\n");
        running.stdout().contains("third").then_some(())
    })
    .await;

    let shown = running.stdout();
    assert!(!shown.contains("noise"), "{shown}");
    assert!(
        running.stderr().contains("the agent is offline; the log continues when it is back"),
        "{}",
        running.stderr()
    );
}

#[tokio::test]
async fn a_log_that_may_not_be_read_says_what_to_run_and_does_not_end_the_others() {
    let site = Site::start().await;
    let (room, path) = log("a.log", "first\n");
    let directory = room.path().canonicalize().unwrap();
    let _open = site.agent("web-1", &[], &["--logs", "on", "--log-path", directory.to_str().unwrap()]).await;
    let _closed = site.agent("web-2", &[], &[]).await;

    let past = site.run(&["logs", "web-1", "web-2", "--file", &path]).await;
    let elsewhere = site.run(&["logs", "web-1", "--file", "/etc/shadow"]).await;
    let running = Running::start(site.command(&["logs", "-f", "web-1", "web-2", "--file", &path]));
    running.until("first").await;
    running.until("web-2's agent does not let").await;

    past.refused(1, "web-2's agent does not let");
    assert!(past.stdout.contains("first"), "{past:?}");
    assert!(past.stderr.contains(&format!("sudo sh -s -- --logs on --log-path {path}")), "{past:?}");
    assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
    assert_eq!(elsewhere.stdout, "");
}

#[tokio::test]
async fn each_failure_of_a_log_that_is_followed_is_said_once() {
    let site = Site::start().await;
    let _agents = [site.agent("web-1", &[], &[]).await, site.agent("web-2", &[], &[]).await];

    let one = site.run(&["logs", "-f", "web-1"]).await;
    let both = site.run(&["logs", "-f", "web-1", "web-2"]).await;

    one.refused(1, "web-1's agent does not let its log be read");
    assert_eq!(one.stderr.matches("does not let").count(), 1, "{one:?}");
    both.refused(1, "2 of 2 logs failed\n");
    assert_eq!(both.stderr.matches("does not let").count(), 2, "{both:?}");
}

#[tokio::test]
async fn nothing_that_a_server_wrote_reaches_the_terminal_as_a_command() {
    let site = Site::start().await;
    let (room, path) = log("a.log", "red \x1b[31malert\x1b[0m \x1b]0;title\x07 end\n");
    let directory = room.path().canonicalize().unwrap();
    let _agent = site.agent("web-1", &[], &["--logs", "on", "--log-path", directory.to_str().unwrap()]).await;

    let mut terminal = Terminal::start(&site, &["logs", "web-1", "--file", &path, "--color", "never"]);
    terminal.until(" end").await;
    let piped = site.run(&["logs", "web-1", "--file", &path]).await;

    assert_eq!(terminal.ended().await, Some(0));
    assert!(terminal.shown().contains("red alert \u{fffd}]0;title\u{fffd} end"), "{:?}", terminal.shown());
    assert!(piped.done().contains("\x1b[31malert"), "a pipe gets the line as it is: {piped:?}");
}

#[tokio::test]
async fn json_in_a_terminal_has_escapes_for_what_a_server_wrote_as_a_command() {
    let site = Site::start().await;
    let (room, path) = log("a.log", "red \u{9b}31malert\u{7f} \u{202e}reversed end\n");
    let directory = room.path().canonicalize().unwrap();
    let _agent = site.agent("web-1", &[], &["--logs", "on", "--log-path", directory.to_str().unwrap()]).await;
    let arguments = ["logs", "web-1", "--file", &path, "-o", "json"];

    let mut terminal = Terminal::start(&site, &arguments);
    terminal.until(" end").await;
    let piped = site.run(&arguments).await;

    assert_eq!(terminal.ended().await, Some(0));
    assert!(terminal.shown().contains(r"red \u009b31malert\u007f \u202ereversed end"), "{:?}", terminal.shown());
    let line = "red \u{9b}31malert\u{7f} \u{202e}reversed end";
    assert!(piped.done().contains(line), "a pipe gets the line as it is: {piped:?}");
}

#[tokio::test]
async fn a_pattern_that_is_none_is_wrong_usage() {
    let site = Site::start().await;

    let outcome = site.run(&["logs", "web-1", "-g", "("]).await;
    let csv = site.run(&["logs", "web-1", "-o", "csv"]).await;

    outcome.refused(2, "no regular expression");
    csv.refused(2, "no columns");
}
