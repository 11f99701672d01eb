//! The agent in Python of `docs/examples` against the real service.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use tempfile::TempDir;

use crate::support::command_line::Launched;
use crate::support::port::Port;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::{eventually, text_of, uuid_of, write_private};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/agent.py");

/// How often the agent takes a sample.
const INTERVAL: Duration = Duration::from_millis(500);

/// What an agent ends with when the service says that its key is wrong or revoked.
const KEY_REFUSED: i32 = 3;

/// A service with one server, and a directory for its agent.
struct Host {
    service: ServiceProcess,
    prepared: Prepared,
    port: Port,
    data_dir: TempDir,
    room: TempDir,
}

impl Host {
    async fn start() -> Self {
        let (data_dir, room) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let port = Port::reserve();
        let service = ServiceProcess::start_at(data_dir.path(), &port.address.to_string()).await;
        let prepared = service.prepare().await;
        write_private(&room.path().join("agent.key"), &prepared.key);
        let host = Self { service, prepared, port, data_dir, room };
        fs::create_dir(host.counted()).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(host.counted().join(name), "").unwrap();
        }
        host
    }

    fn agent(&self, flags: &[&str]) -> Launched {
        let mut command = Command::new("python3");
        // So that nothing is written beside the script.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(SCRIPT).args(["--url", &format!("http://{}", self.port.address)]);
        command.args(["--interval", &INTERVAL.as_secs_f64().to_string()]);
        command.arg("--key-file").arg(self.room.path().join("agent.key"));
        command.arg("--count").arg(self.counted()).args(flags);
        Launched::start(command)
    }

    /// The directory whose files the agent counts: three.
    fn counted(&self) -> PathBuf {
        self.room.path().join("counted")
    }

    /// What the API calls the agent's series.
    fn series(&self) -> String {
        format!("directory_entries:{}", self.counted().display())
    }

    async fn until_status(&self, status: &str) {
        let path = format!("/servers/{}", self.prepared.server_id);
        eventually(status, async || {
            let server = self.service.read(&self.prepared, &path).await;
            (server["status"] == status).then_some(())
        })
        .await;
    }

    /// The latest snapshot, as soon as there is one.
    async fn latest(&self) -> Value {
        let path = format!("/metrics/{}", self.prepared.server_id);
        eventually("a sample arrives", async || {
            let answer = self.service.client.get(&path).bearer(&self.prepared.token).send().await;
            (answer.status == 200).then(|| answer.json())
        })
        .await
    }

    /// The moments of all samples, oldest first.
    async fn sample_times(&self) -> Vec<Timestamp> {
        let path = format!("/metrics/{}/history?resolution=raw", self.prepared.server_id);
        let history = self.service.read(&self.prepared, &path).await;
        let time_of = |sample: &Value| Timestamp::parse(&text_of(&sample["timestamp"])).unwrap();
        history.as_array().unwrap().iter().map(time_of).collect()
    }

    fn commands_path(&self) -> String {
        format!("/commands/{}", self.prepared.server_id)
    }

    /// The result of a command that is waited for.
    async fn run(&self, body: Value) -> Value {
        self.service.client.post(self.commands_path()).bearer(&self.prepared.token).json(body).expect(200).await
    }

    /// Kills the service, opens the gate, and starts the service again on the same port ten samples' time later. Returns when it
    /// was away, too.
    async fn crash(self) -> (Self, Range<Timestamp>) {
        self.service.kill().await;
        let began = Timestamp::now();
        fs::write(self.room.path().join("gate"), "").unwrap();
        // Time has to pass for the agent to take samples that it cannot deliver.
        tokio::time::sleep(INTERVAL * 10).await;
        let away = began..Timestamp::now();
        let service = ServiceProcess::start_at(self.data_dir.path(), &self.port.address.to_string()).await;
        (Self { service, ..self }, away)
    }
}

#[actix_web::test]
async fn its_sample_and_its_series_are_readable() {
    let host = Host::start().await;

    let _agent = host.agent(&[]);
    host.until_status("online").await;
    let latest = host.latest().await;
    let (name, metrics) = (host.series(), format!("/metrics/{}", host.prepared.server_id));
    let values = eventually("the series has values", async || {
        let call = host
            .service
            .client
            .get(format!("{metrics}/series"))
            .query(&[("names", name.as_str()), ("resolution", "raw")]);
        let columns = call.bearer(&host.prepared.token).expect(200).await;
        columns["series"][&name]["max"].as_array().filter(|values| !values.is_empty()).cloned()
    })
    .await;
    // What a series means is written beside the samples.
    let names = eventually("the series is explained", async || {
        let names = host.service.read(&host.prepared, &format!("{metrics}/names?q=directory_entries")).await;
        names["names"][0]["help"].as_str().is_some_and(|help| !help.is_empty()).then_some(names)
    })
    .await;

    assert_eq!(latest["extra"], json!({ &name: 3.0 }));
    assert!(latest["memory_total"].as_u64().unwrap() > 0, "{latest}");
    assert_eq!(latest["disk_usage"][0]["path"], "/", "{latest}");
    assert!(values.iter().all(|value| *value == 3.0), "{values:?}");
    let help = "Files and directories in a directory.";
    assert_eq!(names["names"], json!([{"name": name, "unit": "count", "kind": "gauge", "help": help}]));
}

#[actix_web::test]
async fn it_refuses_commands_unless_it_was_started_with_them() {
    let host = Host::start().await;
    let _agent = host.agent(&[]);
    host.until_status("online").await;

    let call = host.service.client.post(host.commands_path()).bearer(&host.prepared.token);

    call.json(json!({"command": "true"})).expect_error(400, "agent_refused").await;
}

#[actix_web::test]
async fn a_command_returns_its_output_and_how_it_ended() {
    let host = Host::start().await;
    let _agent = host.agent(&["--commands"]);
    host.until_status("online").await;

    let failed = host.run(json!({"command": "cat; echo err >&2; exit 7", "stdin": "grüße\n"})).await;
    let killed = host.run(json!({"command": "kill -KILL $$"})).await;
    let slow = host.run(json!({"command": "trap '' TERM; sleep 1000 & sleep 1000; :", "timeout_seconds": 1})).await;
    let long = host.run(json!({"command": "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"})).await;

    assert_eq!((&failed["stdout"], &failed["stderr"]), (&json!("grüße\n"), &json!("err\n")));
    assert_eq!((&failed["status"], &failed["exit_code"]), (&json!("failed"), &json!(7)));
    assert_eq!((&killed["status"], &killed["exit_code"]), (&json!("failed"), &json!(137)));
    assert_eq!((&slow["status"], &slow["exit_code"]), (&json!("timed_out"), &json!(124)));
    assert_eq!((&long["status"], &long["truncated"]), (&json!("succeeded"), &json!(true)));
    let output = text_of(&long["output"]);
    assert!(output.starts_with("begin\nxxx") && output.ends_with("xxx\nend\n"), "{} bytes", output.len());
}

#[actix_web::test]
async fn after_a_crash_of_the_service_it_brings_what_it_kept() {
    let host = Host::start().await;
    let _agent = host.agent(&["--commands"]);
    host.until_status("online").await;
    let room = host.room.path().to_owned();
    let script = "cd $ROOM && echo x >>begun && echo before && until [ -e gate ]; do sleep 0.05; done && echo after";
    let body = json!({"command": script.replace("$ROOM", &room.display().to_string())});
    let call = host.service.client.post(format!("{}?wait=0", host.commands_path())).bearer(&host.prepared.token);
    let command_id = uuid_of(&call.json(body).expect(200).await["command_id"]);
    eventually("the command begins", async || room.join("begun").exists().then_some(())).await;

    let (host, away) = host.crash().await;
    let path = format!("{}/{command_id}", host.commands_path());
    let ended = eventually("the command has its result", async || {
        let command = host.service.read(&host.prepared, &path).await;
        (command["status"] != "running").then_some(command)
    })
    .await;
    let times = eventually("a sample from after the outage", async || {
        let times = host.sample_times().await;
        times.last().is_some_and(|last| *last > away.end).then_some(times)
    })
    .await;

    assert_eq!((&ended["status"], &ended["output"]), (&json!("succeeded"), &json!("before\nafter\n")), "{ended}");
    assert_eq!(fs::read_to_string(room.join("begun")).unwrap(), "x\n", "it ran once");
    assert!(times.iter().any(|time| away.contains(time)), "no sample of the outage: {times:?}");
    host.until_status("online").await;
}

#[actix_web::test]
async fn it_ends_when_its_key_is_revoked() {
    let host = Host::start().await;
    let agent = host.agent(&[]);
    host.until_status("online").await;

    let path = format!("/api-keys/{}", host.prepared.key_id);
    host.service.client.delete(path).bearer(&host.prepared.token).expect(200).await;
    let outcome = agent.outcome().await;

    assert_eq!(outcome.code, Some(KEY_REFUSED), "{outcome:?}");
    assert!(!outcome.stderr.contains(&host.prepared.key), "the key is in its log");
}

#[actix_web::test]
async fn it_ends_well_on_sigterm() {
    let host = Host::start().await;
    let agent = host.agent(&[]);
    host.until_status("online").await;

    agent.signal("TERM");
    let outcome = agent.outcome().await;

    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    host.until_status("offline").await;
}
