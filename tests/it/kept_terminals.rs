//! Terminals that wait for clients that have lost their connections, with the real agent's program.

mod ends;
mod entries;
mod rights;
mod streams;

use serde_json::{Value, json};

use crate::support::command_line::Launched;
use crate::support::machine::Machine;
use crate::support::site::Site;
use crate::support::terminal::{Client, Ticket, ask};
use crate::support::{Account, eventually, text_of};
use signalbox::config::Config;

/// The flags of an agent whose owner wants terminals recorded.
const RECORDED: [&str; 4] = ["--terminal", "on", "--record", "on"];

/// A service, and the real agent on its server.
struct Scene {
    site: Site,
    machine: Machine,
    agent: Launched,
}

impl Scene {
    async fn start() -> Self {
        Self::start_with(&["--terminal", "on"], |_| {}).await
    }

    async fn start_with(flags: &[&str], adjust: impl FnOnce(&mut Config)) -> Self {
        let (site, machine) = (Site::start_with(adjust).await, Machine::new());
        let agent = machine.agent(site.service.address, &site.key, flags);
        site.until_status("online").await;
        Self { site, machine, agent }
    }

    async fn open(&self) -> Client {
        self.open_as(&self.site.owner).await
    }

    async fn open_as(&self, account: &Account) -> Client {
        Client::open(self.site.service.address, &account.token, self.site.server_id).await
    }

    async fn resume(&self, ticket: Ticket) -> Client {
        Client::resume(self.site.service.address, &self.site.owner.token, ticket).await
    }

    /// The error of a terminal that cannot be resumed.
    async fn refusal(&self, account: &Account, ticket: &Ticket) -> Value {
        let mut socket = ask(self.site.service.address, &account.token, ticket).await.unwrap();
        let error = socket.expect("error").await;
        socket.expect_close(1000).await;
        error
    }

    /// The entries of terminals in the audit log, oldest first.
    async fn told(&self) -> Vec<String> {
        let entries = self.site.read("/audit").await;
        let told = entries.as_array().unwrap().iter().rev().filter(|entry| {
            ["terminal.open", "terminal.detach", "terminal.resume"].contains(&text_of(&entry["action"]).as_str())
        });
        told.map(|entry| format!("{} {}", text_of(&entry["action"]), text_of(&entry["outcome"]))).collect()
    }

    async fn until_told(&self, last: &str) {
        eventually(last, async || self.told().await.last().is_some_and(|told| told == last).then_some(())).await;
    }

    /// Waits until the home has noticed that the client is lost.
    async fn until_detached(&self) {
        self.until_told("terminal.detach ok").await;
    }
}

#[actix_web::test]
async fn a_shell_continues_without_its_client_which_then_gets_what_it_missed() {
    let scene = Scene::start().await;
    let gate = scene.machine.gate();
    let mut client = scene.open().await;
    let written = scene.machine.path("written");
    client.type_in(&format!("echo o''ne; {}; echo zw''ölf; echo x > {}\n", gate.wait(), written.display())).await;
    client.until("one\r\n").await;

    let ticket = client.lose();
    scene.until_detached().await;
    gate.open();
    scene.machine.until_written("written").await;
    let mut client = scene.resume(ticket).await;
    client.until("zwölf\r\n").await;
    client.type_in("stty size\n").await;
    client.until("43 132\r\n").await;
    client.type_in("exit 7\n").await;

    assert_eq!(client.socket.until("exit").await, json!({"exit_code": 7}));
    client.socket.expect_close(1000).await;
    scene.until_told("terminal.open ok").await;
    let all = ["terminal.open started", "terminal.detach ok", "terminal.resume ok", "terminal.open ok"];
    assert_eq!(scene.told().await, all);
    let entries = scene.site.read("/audit?action=terminal.detach").await;
    let opened = scene.site.read("/audit?action=terminal.open").await;
    for field in ["target", "username", "address", "server_id"] {
        assert_eq!(entries[0][field], opened[0][field], "{field}");
    }
    let everything = scene.site.read("/audit").await.to_string();
    assert!(!everything.contains(text_of(&client.ticket.secret).as_str()), "the secret is in the audit log");
}

#[actix_web::test]
async fn more_output_than_is_kept_waits_for_the_client_and_nothing_is_lost() {
    const LINES: usize = 300_000;
    let scene = Scene::start().await;
    let gate = scene.machine.gate();
    let mut client = scene.open().await;
    client.type_in(&format!("echo b''egun; {}; seq {LINES}; echo e''nd\n", gate.wait())).await;
    client.until("begun\r\n").await;

    let ticket = client.lose();
    scene.until_detached().await;
    gate.open();
    let mut client = scene.resume(ticket).await;
    let shown = client.until("end\r\n").await;

    let lines: Vec<&str> = shown.lines().collect();
    let numbers = &lines[lines.len() - LINES - 1..lines.len() - 1];
    assert!(numbers.iter().zip(1..).all(|(line, number)| *line == number.to_string()), "{} lines", lines.len());
}

#[actix_web::test]
async fn a_client_that_has_kept_nothing_gets_the_newest_output_and_hears_what_is_missing() {
    let scene = Scene::start().await;
    let mut client = scene.open().await;
    client.type_in("seq 200000; echo e''nd\n").await;
    client.until("end\r\n").await;
    let end = client.ticket.offset;

    let ticket = Ticket { offset: 0, ..client.lose() };
    let mut client = scene.resume(ticket).await;
    let missing = client.socket.expect("left_out").await["bytes"].as_u64().unwrap();
    client.ticket.offset = missing;
    let shown = client.until("end\r\n").await;

    assert!(missing > 0 && end - missing <= 512 * 1024 && end - missing > 256 * 1024, "{missing} of {end}");
    assert!(shown.contains("\r\n199999\r\n200000\r\n"));
    client.type_in("echo st''ill\n").await;
    client.until("still\r\n").await;
}

#[actix_web::test]
async fn another_client_takes_a_terminal_from_the_first() {
    let scene = Scene::start().await;
    let mut first = scene.open().await;
    first.type_in("echo on''ce\n").await;
    first.until("once\r\n").await;

    let mut second = scene.resume(Ticket { offset: 0, ..first.ticket.clone() }).await;
    let error = first.socket.until("error").await;
    first.socket.expect_close(1000).await;
    second.type_in("echo tw''ice\n").await;
    let shown = second.until("twice\r\n").await;

    assert_eq!(error, json!({"code": "terminal_resumed", "detail": "the terminal was resumed elsewhere"}));
    assert!(shown.contains("once\r\n"), "{shown}");
    assert_eq!(scene.told().await, ["terminal.open started", "terminal.resume ok"]);
}

#[actix_web::test]
async fn a_recording_continues_without_its_client() {
    let scene = Scene::start_with(&RECORDED, |_| {}).await;
    let gate = scene.machine.gate();
    let mut client = scene.open().await;
    client.type_in(&format!("echo bef''ore; {}; echo betw''een\n", gate.wait())).await;
    client.until("before\r\n").await;

    let ticket = client.lose();
    scene.until_detached().await;
    gate.open();
    let mut client = scene.resume(ticket).await;
    client.until("between\r\n").await;
    client.type_in("echo af''ter; exit\n").await;
    client.socket.until("exit").await;

    let path = format!("/servers/{}/recordings", scene.site.server_id);
    let listed = eventually("the recording has ended", async || {
        let listed = scene.site.read(&path).await;
        (listed.as_array().is_some_and(|listed| !listed.is_empty())).then_some(listed)
    })
    .await;
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["id"], client.ticket.terminal_id);
    let cast = scene.site.service.client.get(format!("{path}/{}", text_of(&listed[0]["id"])));
    let cast = cast.bearer(&scene.site.owner.token).expect_answer(200).await.text;
    for shown in ["before\\r\\n", "between\\r\\n", "after\\r\\n", "\"r\", \"132x43\""] {
        assert!(cast.contains(shown), "{shown} in {cast}");
    }
}
