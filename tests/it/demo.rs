//! `signalbox demo`: what a newcomer gets, and whether its output is true.

use std::fs;

use crate::support::command_line::{Launched, signalbox};
use crate::support::{Client, eventually, text_of};

/// The text after a label in the greeting.
fn said(greeting: &str, label: &str) -> String {
    let line = greeting.lines().find_map(|line| line.trim().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label:?} in {greeting}")).split_whitespace().next().unwrap().to_owned()
}

/// Starts a demo and waits for its greeting.
async fn greeted(arguments: &[&str]) -> (Launched, String) {
    let demo = Launched::start(signalbox(&[&["demo", "--listen", "127.0.0.1:0"], arguments].concat()));
    let greeting = eventually("the greeting is printed", async || {
        let printed = demo.stdout();
        printed.contains("Ctrl-C").then_some(printed)
    })
    .await;
    (demo, greeting)
}

/// The API of a demo, and a token of its account.
async fn signed_in(greeting: &str) -> (Client, String) {
    let client = Client::new(format!("{}/api/v1", said(greeting, "address")));
    let (name, password) = (said(greeting, "user name"), said(greeting, "password"));
    let form = [("username", name.as_str()), ("password", password.as_str())];
    let tokens = client.post("/auth/login").form(&form).expect(200).await;
    (client, text_of(&tokens["access_token"]))
}

#[actix_web::test]
async fn a_demo_shows_this_machine_and_its_fleet_to_the_printed_account() {
    let (demo, greeting) = greeted(&["--fleet", "3"]).await;
    let (client, token) = signed_in(&greeting).await;

    // The greeting waits for this machine's agent, for a while.
    eventually("all of them are online", async || {
        let servers = client.get("/servers?status=online").bearer(&token).expect(200).await;
        (servers.as_array().unwrap().len() == 4).then_some(())
    })
    .await;
    let this = client.get("/servers?q=this%20machine").bearer(&token).expect(200).await;
    let id = text_of(&this[0]["id"]);
    let snapshot = eventually("this machine is measured", async || {
        let answer = client.get(format!("/metrics/{id}")).bearer(&token).send().await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;

    assert!(greeting.contains(&format!("/api/v1/metrics/{id}")), "{greeting}");
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(this[0]["agent"]["hostname"], hostname.trim());
    assert!(snapshot["memory_total"].as_u64().unwrap() > 0, "{snapshot}");

    demo.signal("TERM");
    assert_eq!(demo.outcome().await.code, Some(0));
}

#[actix_web::test]
async fn a_demo_on_kept_data_comes_back_with_the_same_server() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--data-dir", data.path().to_str().unwrap()];
    let mut ids = Vec::new();

    for _ in 0..2 {
        let (demo, greeting) = greeted(&arguments).await;
        let (client, token) = signed_in(&greeting).await;
        let servers = client.get("/servers").bearer(&token).expect(200).await;
        assert_eq!(servers.as_array().unwrap().len(), 1, "{servers}");
        ids.push(text_of(&servers[0]["id"]));
        demo.signal("INT");
        assert_eq!(demo.outcome().await.code, Some(0));
    }

    assert_eq!(ids[0], ids[1]);
}
