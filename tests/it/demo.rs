//! `signalbox demo`: what a newcomer gets, and whether its output is true.

mod directory;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use sea_orm::{ConnectionTrait, Database, Statement};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;

use crate::support::command_line::{Launched, signalbox};
use crate::support::{Client, eventually, text_of};

/// The text after a label in the greeting.
fn said(greeting: &str, label: &str) -> String {
    let line = greeting.lines().find_map(|line| line.trim().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no {label:?} in {greeting}")).split_whitespace().next().unwrap().to_owned()
}

/// The demo on a free port.
fn demo_with(arguments: &[&str]) -> Command {
    signalbox(&[&["demo", "--listen", "127.0.0.1:0"], arguments].concat())
}

/// How many servers a data directory has; none while the database has no table of them.
async fn servers_in(data: &Path) -> Option<i64> {
    // Before it has this file, the database chooses its journal mode, and must be alone for that.
    if !data.join("signalbox.db-wal").exists() {
        return None;
    }
    let database = Database::connect(format!("sqlite://{}?mode=ro", data.join("signalbox.db").display())).await.ok()?;
    let query = Statement::from_string(database.get_database_backend(), "SELECT COUNT(*) AS count FROM servers");
    let row = database.query_one_raw(query).await.ok().flatten();
    database.close().await.unwrap();
    row?.try_get("", "count").ok()
}

/// Starts a demo and waits for its greeting.
async fn greeted(arguments: &[&str]) -> (Launched, String) {
    let demo = Launched::start(demo_with(arguments));
    let greeting = greeting_of(&demo).await;
    (demo, greeting)
}

async fn greeting_of(demo: &Launched) -> String {
    eventually("the greeting is printed", async || {
        let printed = demo.stdout();
        printed.contains("Ctrl-C").then_some(printed)
    })
    .await
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
    let arguments = ["--fleet", "1", "--data-dir", data.path().to_str().unwrap()];
    let mut ids = Vec::new();

    for _ in 0..2 {
        let (demo, greeting) = greeted(&arguments).await;
        let (client, token) = signed_in(&greeting).await;
        let servers = client.get("/servers").bearer(&token).expect(200).await;
        let listed: Vec<(String, String)> =
            servers.as_array().unwrap().iter().map(|it| (text_of(&it["name"]), text_of(&it["id"]))).collect();
        assert_eq!(listed.len(), 2, "{servers}");
        ids.push(listed);
        demo.signal("INT");
        assert_eq!(demo.outcome().await.code, Some(0));
    }

    assert_eq!(ids[0], ids[1]);
}

#[actix_web::test]
async fn a_demo_that_is_stopped_while_it_starts_removes_its_data() {
    // As soon as it has a directory, while it makes its servers, and once it has all of them and writes their history.
    for count in [None, Some(2), Some(25)] {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = demo_with(&["--fleet", "24"]);
        command.env("TMPDIR", temporary.path());
        let demo = Launched::start(command);
        eventually("it has data", async || {
            let data = fs::read_dir(temporary.path()).unwrap().next()?.unwrap().path();
            (servers_in(&data).await >= count).then_some(())
        })
        .await;

        demo.signal("INT");

        let outcome = demo.outcome().await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        // Nothing works with the database any more when that closes.
        assert!(!outcome.stderr.contains("Connection closed"), "{outcome:?}");
        let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// A running demo with the servers of its stories, and what it knows of them.
struct Fleet {
    demo: Launched,
    client: Client,
    token: String,
    servers: Vec<Value>,
}

/// Enough servers for the full disk, the leak and the container that dies.
const SEVEN: [&str; 2] = ["--fleet", "7"];

impl Fleet {
    async fn start() -> Self {
        Self::start_with(&SEVEN).await
    }

    async fn start_with(arguments: &[&str]) -> Self {
        let (demo, greeting) = greeted(arguments).await;
        let (client, token) = signed_in(&greeting).await;
        let servers = client.get("/servers").bearer(&token).expect(200).await.as_array().unwrap().clone();
        Self { demo, client, token, servers }
    }

    fn id(&self, name: &str) -> String {
        let found = self.servers.iter().find(|server| server["name"] == name);
        text_of(&found.unwrap_or_else(|| panic!("no {name}"))["id"])
    }

    async fn read(&self, path: impl AsRef<str>) -> Value {
        self.client.get(path).bearer(&self.token).expect(200).await
    }

    async fn run(&self, name: &str, command: &str) -> Value {
        let path = format!("/commands/{}", self.id(name));
        self.client.post(path).bearer(&self.token).json(json!({ "command": command })).expect(200).await
    }

    async fn is_connected(&self, name: &str) {
        // Its past has samples before it connects.
        let path = format!("/servers/{}", self.id(name));
        eventually("the server is online", async || (self.read(&path).await["status"] == "online").then_some(())).await;
    }

    /// Waits until a server has history of every day.
    async fn has_a_past(&self, name: &str) {
        let start = Timestamp::now().plus_millis(-29 * 86_400_000);
        let path = format!("/metrics/{}/series?names=cpu_percent&max_points=2000&start={start}", self.id(name));
        let days = eventually("every day has points", async || {
            let series = self.read(&path).await;
            let times = series["timestamps"].as_array().unwrap().iter();
            let values = series["series"]["cpu_percent"]["avg"].as_array()?.iter();
            let days: BTreeSet<i64> = times
                .zip(values)
                .filter(|(_, value)| value.is_number())
                .map(|(time, _)| time.as_i64().unwrap() / 86_400)
                .collect();
            (days.len() >= 29).then_some(days)
        })
        .await;
        assert!(days.iter().zip(days.iter().skip(1)).all(|(day, next)| day + 1 == *next), "{days:?}");
    }

    /// Asserts that the stories are there, each once.
    async fn has_its_stories(&self) {
        let firing = self.read("/alerts?status=active").await;
        let past = self.read(format!("/alerts?status=resolved&server_id={}", self.id("app-eu-2"))).await;
        let story = self.read(format!("/alerts/{}", text_of(&past[0]["id"]))).await;
        let events = self.read(format!("/servers/{}/events?kind=container", self.id("app-eu-2"))).await;
        let commands = self.read(format!("/commands/{}", self.id("web-eu-1"))).await;

        let of = |name: &str| firing.as_array().unwrap().iter().filter(|it| it["server_id"] == self.id(name)).count();
        assert_eq!((of("logs-1"), of("nas")), (1, 1), "{firing}");
        assert_eq!(past.as_array().unwrap().len(), 3, "{past}");
        let kinds: Vec<String> = story["timeline"].as_array().unwrap().iter().map(|it| text_of(&it["kind"])).collect();
        assert_eq!(kinds, ["triggered", "acknowledged", "note", "resolved"], "{story}");
        assert_eq!(story["timeline"][1]["username"], "mira", "{story}");
        assert!(events.as_array().unwrap().iter().any(|event| event["detail"]["action"] == "oom"), "{events}");
        assert!(commands.as_array().unwrap().len() >= 4, "{commands}");
        for (path, count) in [
            ("/alerts/silences", 1),
            ("/alerts/thresholds", 9),
            ("/commands/batches", 1),
            ("/dashboards", 1),
            ("/views", 2),
        ] {
            let list = self.read(path).await;
            assert_eq!(list.as_array().unwrap().len(), count, "{path}: {list}");
        }
    }

    async fn stop(self) {
        self.demo.signal("TERM");
        assert_eq!(self.demo.outcome().await.code, Some(0));
    }
}

#[actix_web::test]
async fn a_simulated_server_has_a_past_in_every_day_and_says_that_it_is_simulated() {
    let fleet = Fleet::start().await;
    let web = fleet.servers.iter().find(|server| server["name"] == "web-eu-1").unwrap();

    fleet.has_a_past("web-eu-1").await;

    assert!(text_of(&web["description"]).starts_with("Simulated"), "{web}");
    assert!(web["tags"].as_array().unwrap().contains(&json!("demo")), "{web}");
    let (created, now) = (Timestamp::parse(&text_of(&web["created_at"])).unwrap(), Timestamp::now());
    assert!(now.millis_since(created) > 29 * 86_400_000, "{web}");
    fleet.stop().await;
}

#[actix_web::test]
async fn the_stories_of_a_demo_are_in_its_alerts_events_and_commands() {
    let fleet = Fleet::start().await;

    fleet.has_its_stories().await;

    fleet.stop().await;
}

#[actix_web::test]
async fn the_next_start_on_kept_data_writes_what_an_unfinished_one_has_not() {
    let data = tempfile::tempdir().unwrap();
    let arguments = [&SEVEN[..], &["--data-dir", data.path().to_str().unwrap()]].concat();
    // Killed before all servers or stories are there, and then stopped before all history is.
    let first = Launched::start(demo_with(&arguments));
    eventually("it has some servers", async || (servers_in(data.path()).await >= Some(3)).then_some(())).await;
    first.signal("KILL");
    first.outcome().await;
    Fleet::start_with(&arguments).await.stop().await;

    let fleet = Fleet::start_with(&arguments).await;

    fleet.has_its_stories().await;
    assert_eq!(fleet.servers.len(), 8, "{:?}", fleet.servers);
    fleet.has_a_past("web-eu-1").await;
    fleet.stop().await;
}

#[actix_web::test]
async fn a_demo_has_a_dashboard_whose_views_can_be_saved_as_they_are() {
    let fleet = Fleet::start().await;

    let dashboards = fleet.read("/dashboards").await;
    let views = fleet.read("/views").await;

    let panels = dashboards[0]["layout"]["panels"].as_array().unwrap();
    let ids: BTreeSet<String> = views.as_array().unwrap().iter().map(|view| text_of(&view["id"])).collect();
    assert_eq!(panels.iter().map(|panel| text_of(&panel["view_id"])).collect::<BTreeSet<_>>(), ids);
    assert_eq!(ids.len(), 2, "{views}");
    // They are in the table as the API would have put them there.
    for (path, list, field) in [("/views", &views, "definition"), ("/dashboards", &dashboards, "layout")] {
        for one in list.as_array().unwrap() {
            let address = format!("{path}/{}", text_of(&one["id"]));
            let again = fleet.client.put(address).bearer(&fleet.token).json(json!({ field: one[field] }));
            assert_eq!(again.expect(200).await[field], one[field]);
        }
    }
    fleet.stop().await;
}

#[actix_web::test]
async fn simulated_servers_answer_commands_and_questions_about_containers_and_logs() {
    let fleet = Fleet::start().await;
    fleet.is_connected("web-eu-1").await;
    let web = fleet.id("web-eu-1");

    let uptime = fleet.run("web-eu-1", "uptime").await;
    let unknown = fleet.run("web-eu-1", "no-such-program").await;
    let containers = fleet.read(format!("/docker/{web}/containers")).await;
    let logs = fleet.read(format!("/docker/{web}/containers/shop/logs?tail=20")).await;
    let stats = fleet.read(format!("/docker/{web}/containers/shop/stats")).await;
    let stop = format!("/docker/{web}/containers/nginx/stop");
    let stopped = fleet.client.post(stop).bearer(&fleet.token).expect(200).await;
    let path = format!("/metrics/{web}/processes");
    let processes = eventually("its processes are stored", async || {
        let answer = fleet.client.get(&path).bearer(&fleet.token).send().await;
        (answer.status == 200).then(|| answer.json())
    })
    .await;

    assert_eq!((&uptime["status"], &uptime["exit_code"]), (&json!("succeeded"), &json!(0)), "{uptime}");
    assert!(text_of(&uptime["stdout"]).contains("load average:"), "{uptime}");
    assert_eq!(unknown["exit_code"], 127, "{unknown}");
    assert_eq!(unknown["stderr"], "sh: 1: no-such-program: not found\n", "{unknown}");
    let names: BTreeSet<String> = containers.as_array().unwrap().iter().map(|it| text_of(&it["name"])).collect();
    assert_eq!(names, ["metrics-proxy", "nginx", "shop"].map(str::to_owned).into(), "{containers}");
    assert_eq!(text_of(&logs["logs"]).lines().count(), 20, "{logs}");
    assert!(stats["memory_bytes"].as_u64().unwrap() > 0, "{stats}");
    assert_eq!(stopped["state"], "exited", "{stopped}");
    assert!(!processes["by_cpu"].as_array().unwrap().is_empty(), "{processes}");
    fleet.stop().await;
}
