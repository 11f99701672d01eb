//! Recordings of terminals on real agents.

use std::fs;

use aws_lc_rs::digest;

use crate::support::{Agent, Site, eventually};
use crate::terminal::Terminal;

/// A server whose agent has recorded a terminal. Returns the end of the recording's id.
async fn recorded(site: &Site) -> (Agent, String) {
    let agent = site.agent("web-1", &[], &["--terminal", "on", "--record", "on"]).await;
    let mut terminal = Terminal::start(site, &["shell", "web-1"]);
    terminal.enter("printf 'tell\\033]52;c;ZXZpbA==\\007ing-%s\\n' $((40+2))\r");
    terminal.until("ing-42").await;
    terminal.enter("exit\r");
    assert_eq!(terminal.ended().await, Some(0));
    let id = eventually("the recording is listed", async || {
        let list = site.run(&["recordings", "web-1", "--output", "json"]).await.json();
        Some(list[0]["id"].as_str()?.replace('-', ""))
    });
    let id = id.await;
    (agent, id[id.len() - 8..].to_owned())
}

#[tokio::test]
async fn a_recording_is_listed_played_without_what_is_not_drawing_and_downloaded() {
    let site = Site::start().await;
    let (_agent, id) = recorded(&site).await;
    let list = site.run(&["recordings", "web-1"]).await;
    assert!(list.done().contains(&id) && list.stdout.contains("ada from 127.0.0.1"), "{list:?}");

    let played = site.run(&["recordings", "play", "web-1", &id, "--max-pause", "0"]).await;
    assert!(played.done().contains("telling-42"), "{played:?}");
    assert!(!played.stdout.contains("ZXZpbA==\u{7}"), "{played:?}");
    let mut terminal = Terminal::start(&site, &["recordings", "play", "web-1", &id, "--speed", "1000"]);
    terminal.until("telling-42").await;
    assert_eq!(terminal.ended().await, Some(0));
    assert!(terminal.shown().contains("\x1b(B\x1b)B\x0f"), "{:?}", terminal.shown());

    let file = site.home.path().join("kept.cast");
    let name = file.to_str().unwrap();
    let got = site.run(&["recordings", "get", "web-1", &id, "--file", name]).await;
    let bytes = fs::read(&file).unwrap();
    let hash = digest::digest(&digest::SHA256, &bytes);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(got.done(), format!("{} bytes, SHA-256 {hash}.\n", bytes.len()));
    assert!(bytes.starts_with(b"{\"version\":2") || bytes.starts_with(b"{\"version\": 2"));
    site.run(&["recordings", "get", "web-1", &id, "--file", name]).await.refused(2, "the file exists");
}

#[tokio::test]
async fn a_recording_that_was_changed_is_not_kept_and_wrong_calls_are_refused() {
    let site = Site::start().await;
    let (agent, id) = recorded(&site).await;
    let directory = agent.state.path().join("state/recordings");
    let mut files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let cast = files.find(|path| path.extension().is_some_and(|end| end == "cast")).unwrap();
    let text = fs::read_to_string(&cast).unwrap();
    fs::write(&cast, text.replace("ing-42", "ing-43")).unwrap();

    let file = site.home.path().join("changed.cast");
    let got = site.run(&["recordings", "get", "web-1", &id, "--file", file.to_str().unwrap()]).await;

    got.refused(1, "it was changed or cut");
    assert!(!file.exists());
    site.run(&["recordings", "play", "web-1", &id]).await.refused(1, "it was changed or cut");
    site.run(&["recordings", "play", "web-1", "77777777"]).await.refused(1, "no recording of this server");
    site.run(&["recordings", "play", "web-1", &id, "--speed", "0"]).await.refused(2, "no factor");
    site.run(&["recordings", "web-2"]).await.refused(1, "no server");
}
