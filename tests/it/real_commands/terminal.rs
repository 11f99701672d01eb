//! `WS /ws/terminal/{server_id}`: a shell in a browser.

use serde_json::{Value, json};

use super::Scene;
use crate::support::dashboard::{Dashboard, Pass};
use crate::support::site::Site;
use crate::support::{eventually, text_of};

/// A browser with a terminal.
struct Browser {
    socket: Dashboard,
    /// Output that was not searched yet.
    shown: String,
}

impl Browser {
    /// A terminal of 100 by 30 characters.
    async fn open(site: &Site) -> Self {
        let socket = open(site, &site.owner.token).await.unwrap();
        Self { socket, shown: String::new() }
    }

    async fn type_in(&mut self, text: &str) {
        self.socket.send(json!({"type": "input", "data": {"data": text}})).await;
    }

    /// Reads until this is shown.
    async fn until(&mut self, wanted: &str) {
        loop {
            if let Some(place) = self.shown.find(wanted) {
                self.shown.drain(..place + wanted.len());
                return;
            }
            let output = self.socket.expect("output").await;
            self.shown.push_str(output["data"].as_str().unwrap());
        }
    }
}

async fn open(site: &Site, token: &str) -> Result<Dashboard, u16> {
    let path = format!("/api/v1/ws/terminal/{}?columns=100&rows=30", site.server_id);
    Dashboard::open(site.service.address, &path, Pass::Subprotocol(token), &[]).await
}

/// The entries of terminals in the audit log, as outcomes, oldest first.
async fn told(site: &Site) -> Vec<String> {
    let entries = site.read("/audit").await;
    let of_terminals =
        |entry: &&Value| entry["action"] == "terminal.open" && entry["server_id"] == json!(site.server_id);
    entries.as_array().unwrap().iter().rev().filter(of_terminals).map(|entry| text_of(&entry["outcome"])).collect()
}

async fn until_told(site: &Site, outcomes: &[&str]) {
    eventually("the audit log has the end", async || (told(site).await == outcomes).then_some(())).await;
}

#[actix_web::test]
async fn a_shell_answers_is_resized_interrupted_and_ends_with_its_code() {
    let scene = Scene::start().await;
    let mut browser = Browser::open(&scene.site).await;

    browser.type_in("echo grü''ße; stty size\n").await;
    browser.until("grüße\r\n").await;
    browser.until("30 100\r\n").await;
    until_told(&scene.site, &["started"]).await;
    browser.socket.send(json!({"type": "resize", "data": {"columns": 132, "rows": 43}})).await;
    browser.type_in("stty size\n").await;
    browser.until("43 132\r\n").await;
    browser.type_in(&format!("X={} sleep 1000\n", scene.machine.marker)).await;
    scene.machine.until_processes(1).await;
    browser.type_in("\u{3}").await;
    browser.type_in("echo code=$?.\n").await;
    browser.until("code=130.").await;
    assert_eq!(scene.machine.processes(), [0; 0]);
    browser.type_in("exit 7\n").await;

    assert_eq!(browser.socket.until("exit").await, json!({"exit_code": 7}));
    browser.socket.expect_close(1000).await;
    until_told(&scene.site, &["started", "ok"]).await;
}

#[actix_web::test]
async fn an_agent_whose_owner_wants_no_terminals_refuses() {
    let scene = Scene::with_flags(&["--commands", "on"]).await;
    let mut browser = Browser::open(&scene.site).await;

    let error = browser.socket.expect("error").await;

    assert_eq!(error, json!({"code": "agent_refused", "detail": "this agent opens no terminals"}));
    browser.socket.expect_close(1000).await;
    until_told(&scene.site, &["started", "failed: agent_refused"]).await;
}

#[actix_web::test]
async fn a_shell_and_what_it_runs_end_when_the_browser_goes_away() {
    let scene = Scene::start().await;
    let mut browser = Browser::open(&scene.site).await;
    browser.type_in(&format!("exec env X={} sh\n", scene.machine.marker)).await;
    browser.type_in("sh -c 'trap \"\" HUP; sleep 1000; :'\n").await;
    scene.machine.until_processes(3).await;

    browser.socket.socket.abort();

    scene.machine.until_no_process().await;
    until_told(&scene.site, &["started", "ok"]).await;
}

#[actix_web::test]
async fn a_flood_that_nobody_reads_delays_no_sample() {
    let scene = Scene::start().await;
    let mut browser = Browser::open(&scene.site).await;
    let mut watcher = scene.site.dashboard().await;

    browser.type_in(&format!("X={} cat /dev/zero\n", scene.machine.marker)).await;
    scene.machine.until_processes(1).await;
    for _ in 0..4 {
        watcher.until("metrics").await;
    }
    let result = scene.run("echo still here").await;
    browser.type_in("\u{3}").await;
    browser.type_in("echo al''ive\n").await;

    assert_eq!(result["stdout"], "still here\n");
    browser.until("alive\r\n").await;
    assert_eq!(scene.machine.processes(), [0; 0]);
}

#[actix_web::test]
async fn nobody_else_gets_a_terminal_and_a_server_without_its_agent_has_none() {
    let Scene { site, machine: _machine, agent } = Scene::start().await;
    let other = site.service.register("mallory").await;
    assert_eq!(open(&site, &other.token).await.unwrap_err(), 404);
    assert_eq!(open(&site, "no token").await.unwrap_err(), 401);
    assert_eq!(told(&site).await, Vec::<String>::new());

    agent.signal("TERM");
    agent.outcome().await;
    site.until_status("offline").await;
    let mut browser = Browser::open(&site).await;

    assert_eq!(browser.socket.expect("error").await["code"], "agent_offline");
    browser.socket.expect_close(1000).await;
    until_told(&site, &["started", "failed: agent_offline"]).await;
}

#[actix_web::test]
async fn a_terminal_whose_agent_is_killed_ends() {
    let Scene { site, machine, agent } = Scene::start().await;
    let mut browser = Browser::open(&site).await;
    browser.type_in(&format!("X={} sleep 1000\n", machine.marker)).await;
    machine.until_processes(1).await;

    agent.signal("KILL");
    agent.outcome().await;

    assert_eq!(browser.socket.until("error").await["code"], "agent_disconnected");
    browser.socket.expect_close(1000).await;
    machine.until_no_process().await;
    until_told(&site, &["started", "failed: agent_disconnected"]).await;
}
