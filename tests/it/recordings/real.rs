//! The real agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Browser, entries, read, recordings, sha256, until_recorded};
use crate::real_agent::agent_program;
use crate::support::command_line::Launched;
use crate::support::machine::Machine;
use crate::support::mount::flags_to_mount;
use crate::support::site::Site;
use crate::support::wire::Wire;
use crate::support::{eventually, text_of};

/// The flags of an agent whose owner wants terminals recorded.
const RECORDED: [&str; 4] = ["--terminal", "on", "--record", "on"];

async fn start(flags: &[&str]) -> (Site, Machine, Launched) {
    let (site, machine) = (Site::start().await, Machine::new());
    let agent = machine.agent(site.service.address, &site.key, flags);
    site.until_status("online").await;
    (site, machine, agent)
}

#[actix_web::test]
async fn what_a_terminal_shows_is_recorded_what_is_typed_is_not_and_the_hash_is_in_the_audit_log() {
    let (site, _machine, _agent) = start(&RECORDED).await;
    let mut browser = Browser::open(&site).await;

    browser.type_in("stty -echo; echo rea''dy; read secret; stty echo; echo got''it\n").await;
    browser.until("ready\r\n").await;
    browser.type_in("hunter2\n").await;
    browser.until("gotit\r\n").await;
    browser.socket.send(json!({"type": "resize", "data": {"columns": 132, "rows": 43}})).await;
    browser.type_in("stty size\n").await;
    browser.until("43 132\r\n").await;
    browser.type_in("exit 7\n").await;
    assert_eq!(browser.socket.until("exit").await, json!({"exit_code": 7}));
    let recorded = until_recorded(&site, 1).await.remove(0);

    let opened = entries(&site, "terminal.open").await.remove(0);
    for field in ["target", "server_id", "user_id", "username", "login_id", "address"] {
        assert_eq!(recorded[field], opened[field], "{field} of {recorded}");
    }
    let listed = site.read(&recordings(&site)).await;
    let id = &listed[0]["id"];
    assert_eq!((id, listed.as_array().unwrap().len()), (&opened["target"], 1));
    let answer = read(&site, id).await;
    let hash = sha256(&answer.text);
    let (seconds, bytes) = (listed[0]["seconds"].clone(), answer.text.len());
    assert_eq!(recorded["detail"], json!({"sha256": hash, "bytes": bytes, "seconds": seconds}));
    let expected = json!({
        "id": id, "by": "owner from 127.0.0.1", "started_at": listed[0]["started_at"], "seconds": seconds, "bytes": bytes,
        "sha256": hash, "width": 100, "height": 30, "interrupted": false,
    });
    assert_eq!(listed[0], expected);
    assert_eq!(answer.header("Content-Type"), "application/x-asciicast");
    assert_eq!(answer.header("Content-Length"), bytes.to_string());
    let named = format!("attachment; filename=\"{}.cast\"", text_of(id));
    assert_eq!(answer.header("Content-Disposition"), named);
    let text = &answer.text;
    assert!(text.contains("gotit\\r\\n") && text.contains("\"r\", \"132x43\"]\n"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.lines().skip(1).all(|line| serde_json::from_str::<(f64, String, String)>(line).is_ok()), "{text}");
    let replays = entries(&site, "terminal.replay").await;
    assert_eq!(replays.len(), 1);
    assert_eq!((&replays[0]["target"], &replays[0]["username"]), (id, &json!("owner")));
    let capabilities = site.server().await["agent"]["capabilities"].clone();
    assert!(capabilities.as_array().unwrap().contains(&json!("recordings")), "{capabilities}");
}

#[actix_web::test]
async fn a_recording_ends_with_its_browser_its_connection_and_its_agent() {
    let (site, machine) = (Site::start().await, Machine::new());
    let wire = Wire::to(site.service.address).await;
    let agent = machine.agent(wire.address, &site.key, &RECORDED);
    site.until_status("online").await;
    let shows = async |text: &str| {
        let mut browser = Browser::open(&site).await;
        browser.type_in(&format!("echo of''{text}\n")).await;
        browser.until(&format!("of{text}\r\n")).await;
        browser
    };

    shows("browser").await.socket.socket.abort();
    until_recorded(&site, 1).await;

    let _browser = shows("connection").await;
    wire.cut();
    site.until_status("offline").await;
    wire.mend();
    until_recorded(&site, 2).await;

    let _browser = shows("agent").await;
    agent.signal("KILL");
    agent.outcome().await;
    assert_eq!(until_recorded(&site, 2).await.len(), 2);
    let agent = machine.agent(wire.address, &site.key, &RECORDED);
    until_recorded(&site, 3).await;

    let _browser = shows("stop").await;
    agent.signal("TERM");
    agent.outcome().await;
    let _agent = machine.agent(wire.address, &site.key, &RECORDED);
    let all = until_recorded(&site, 4).await;

    let interrupted: Vec<&Value> = all.iter().map(|entry| &entry["detail"]["interrupted"]).collect();
    assert_eq!(interrupted, [&Value::Null, &Value::Null, &json!(true), &Value::Null]);
    for (entry, shown) in all.iter().zip(["ofbrowser", "ofconnection", "ofagent", "ofstop"]) {
        let answer = read(&site, &entry["target"]).await;
        assert_eq!(entry["detail"]["sha256"], sha256(&answer.text), "{shown}");
        assert!(answer.text.contains(&format!("{shown}\\r\\n")), "{}", answer.text);
    }
    // Newest first, and in pages.
    let path = recordings(&site);
    let page = site.service.client.get(format!("{path}?limit=2&offset=1")).bearer(&site.owner.token);
    let page = page.expect_answer(200).await;
    let ids: Vec<Value> = page.json().as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, [all[2]["target"].clone(), all[1]["target"].clone()]);
    assert_eq!(page.header("X-Total-Count"), "4");
}

#[actix_web::test]
async fn without_record_nothing_is_kept() {
    let (site, machine, _agent) = start(&["--terminal", "on"]).await;
    let mut browser = Browser::open(&site).await;
    browser.type_in("exit\n").await;
    browser.socket.until("exit").await;

    let refused =
        site.service.client.get(recordings(&site)).bearer(&site.owner.token).expect_error(400, "agent_refused");
    assert_eq!(refused.await["detail"], "this agent does not record terminals");
    let path = format!("{}/{}", recordings(&site), Uuid::now_v7());
    site.service.client.get(path).bearer(&site.owner.token).expect_error(400, "agent_refused").await;
    assert!(machine.path("state").is_dir() && !machine.path("state/recordings").exists());
    assert_eq!(entries(&site, "terminal.recorded").await, Vec::<Value>::new());
}

#[actix_web::test]
async fn a_terminal_that_cannot_be_recorded_is_not_opened() {
    let (site, machine, agent) = start(&RECORDED).await;
    agent.signal("TERM");
    agent.outcome().await;
    fs::remove_dir(machine.path("state/recordings")).unwrap();
    fs::write(machine.path("state/recordings"), "").unwrap();
    let _agent = machine.agent(site.service.address, &site.key, &RECORDED);
    let session = eventually("a new session", async || {
        let mut browser = Browser::open(&site).await;
        let error = browser.socket.until("error").await;
        (error["code"] == "agent_error").then_some(error)
    });

    let error = session.await;

    let detail = text_of(&error["detail"]);
    assert!(detail.starts_with("no terminal was opened, because it cannot be recorded: "), "{detail}");
    assert_eq!(entries(&site, "terminal.recorded").await, Vec::<Value>::new());
}

/// A state directory on a small disk in memory, which only the agent sees and which ends with it.
struct SmallDisk {
    agent: Launched,
    /// The directory, as the test sees it.
    recordings: PathBuf,
}

impl SmallDisk {
    /// None where such a disk cannot be created.
    fn start(site: &Site, machine: &Machine) -> Option<Self> {
        let flags = flags_to_mount()?;
        let state = machine.path("small");
        fs::create_dir(&state).unwrap();
        // A shell without a profile of its own, which may take its time.
        let users = machine.path("passwd");
        fs::write(&users, "root:x:0:0:root:/:/bin/sh\n").unwrap();
        let mut command = Command::new("unshare");
        command.args([
            flags,
            "--",
            "sh",
            "-c",
            "mount -t tmpfs -o size=512k tmpfs \"$1\" && mount --bind \"$2\" /etc/passwd && shift 2 && exec \"$@\"",
            "sh",
        ]);
        command.arg(&state).arg(users).arg(agent_program()).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command.args(["--url", &format!("http://{}", site.service.address), "--key", &site.key, "--state-dir"]);
        command.arg(&state).args(["--interval", "0.5"]).args(RECORDED);
        let agent = Launched::start(command);
        let inside = state.strip_prefix("/").unwrap();
        let recordings = Path::new(&format!("/proc/{}/root", agent.id())).join(inside).join("recordings");
        Some(Self { agent, recordings })
    }
}

#[actix_web::test]
async fn a_terminal_on_a_server_whose_disk_is_full_ends_with_an_error_and_its_recording_stays_whole() {
    let (site, machine) = (Site::start().await, Machine::new());
    let Some(disk) = SmallDisk::start(&site, &machine) else { return };
    site.until_status("online").await;
    let mut browser = Browser::open(&site).await;

    browser.type_in("echo rea''dy; cat /dev/zero | tr '\\0' x\n").await;
    let error = browser.socket.until("error").await;
    let recorded = until_recorded(&site, 1).await.remove(0);

    let detail = text_of(&error["detail"]);
    let expected = "the terminal was closed, because it cannot be recorded any longer: No space left on device";
    assert!(error["code"] == "agent_error" && detail.starts_with(expected), "{error}");
    let answer = read(&site, &recorded["target"]).await;
    assert_eq!(recorded["detail"]["sha256"], sha256(&answer.text));
    assert!(answer.text.len() > 100 * 1024 && answer.text.ends_with("\"]\n"), "{} bytes", answer.text.len());
    let file = disk.recordings.join(format!("{}.cast", text_of(&recorded["target"])));
    assert_eq!(sha256(&fs::read_to_string(file).unwrap()), sha256(&answer.text));
    disk.agent.signal("TERM");
    disk.agent.outcome().await;
}
