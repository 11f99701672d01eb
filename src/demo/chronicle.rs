//! What has happened on the simulated servers: connections, reboots and containers, and the commands that people ran.

use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::cast::{Incident, Machine};
use super::containers::find;
use super::course::container_id;
use super::incidents::{DEPLOYED, FLAP_MS, FLAP_UP_MS, LAST_OOM, LEAK_HOURS, OFFLINE_SINCE, is_heard};
use super::noise::mix;
use super::past::{DAYS, Simulated};
use super::services::{FLAPPING, LEAKING};
use super::shell::{self, Answer, Host};
use super::{Scene, id_at};
use crate::audit::Actor;
use crate::commands::JobStatus;
use crate::commands::output::Part;
use crate::store::{
    Command, CommandBatch, CommandChange, CommandWrite, Commit, Connected, Departure, Disconnected, NewServerEvent,
    StoreError, presence_kind,
};

/// How long a reboot takes.
const DOWN_MS: i64 = 70_000;

/// Hours with events of the container that dies every few minutes. More would hide everything else.
const FLAPPED_HOURS: f64 = 2.0;

/// Events of one transaction.
const AT_ONCE: usize = 1_000;

/// Who ran a command.
#[derive(Clone, Copy)]
enum By {
    Visitor,
    Colleague,
}

/// Commands: server, hours since the demo began, the command, and who ran it.
const COMMANDS: [(&str, f64, &str, By); 13] = [
    ("web-eu-1", DEPLOYED - 0.01, "/srv/deploy.sh 2026.11.4", By::Colleague),
    ("web-eu-2", DEPLOYED - 0.008, "/srv/deploy.sh 2026.11.4", By::Colleague),
    ("web-eu-1", DEPLOYED + 0.07, "journalctl -n 8", By::Colleague),
    ("web-eu-1", DEPLOYED + 0.14, "/srv/deploy.sh 2026.11.3", By::Colleague),
    ("web-eu-2", DEPLOYED + 0.142, "/srv/deploy.sh 2026.11.3", By::Colleague),
    ("app-eu-2", LAST_OOM + 0.08, "journalctl -n 12 | grep -i memory", By::Colleague),
    ("app-eu-2", LAST_OOM + 0.1, "free -m", By::Colleague),
    ("logs-1", -1.6, "df -h", By::Visitor),
    ("logs-1", -1.55, "ls /var/log", By::Visitor),
    ("queue-1", -0.9, "docker ps -a", By::Visitor),
    ("nas", -1.1, "systemctl status smartd", By::Visitor),
    ("db-primary", -20.0, "ps aux | head -n 6", By::Visitor),
    ("cache-1", -98.0, "systemctl restart redis", By::Colleague),
];

/// A command that ran on all servers with a tag.
const BATCH: (&str, f64, &str) = ("web", -5.2, "uptime");

/// Deploys and notes: the role or the name of the servers, hours since the demo began, the kind, the text and the version.
const ANNOTATIONS: [(&str, f64, &str, &str, &str); 14] = [
    ("web", -671.2, "deploy", "Shop", "2026.10.4"),
    ("app", -506.6, "deploy", "Billing", "4.11.0"),
    ("web", -503.4, "deploy", "Shop", "2026.11.1"),
    ("db", -412.0, "note", "PostgreSQL parameters reviewed: shared_buffers 12 GB, work_mem 64 MB", ""),
    ("web", -335.3, "deploy", "Shop", "2026.11.2"),
    ("app", -266.9, "deploy", "Billing", "4.11.1"),
    ("nas", -190.5, "note", "Replaced the fan of bay 2", ""),
    ("web", -167.1, "deploy", "Shop", "2026.11.3"),
    ("app", -74.3, "deploy", "Billing", "4.12.0"),
    ("web", DEPLOYED, "deploy", "Shop", "2026.11.4"),
    ("web", DEPLOYED + 0.141, "deploy", "Shop, rolled back", "2026.11.3"),
    ("queue", -4.1, "deploy", "Mailer", "1.8.2"),
    ("edge-sao-1", -1.4, "note", "Ticket 48213 with the provider: power lost in the rack", ""),
    ("logs-1", -1.5, "note", "Old archives of /var/log go to the NAS tonight", ""),
];

/// Writes the events. Agents that connect within two seconds continue without one more.
pub async fn events(scene: &Scene<'_>) -> Result<(), StoreError> {
    let mut events = Vec::new();
    for (server_id, machine) in scene.servers {
        presence(scene, *server_id, machine, &mut events);
        containers(scene, *server_id, machine, &mut events);
        annotations(scene, *server_id, machine, &mut events);
    }
    for some in events.chunks(AT_ONCE) {
        scene.state.store.record_events(some).await?;
    }
    Ok(())
}

fn presence(scene: &Scene<'_>, server_id: Uuid, machine: &Machine, events: &mut Vec<NewServerEvent>) {
    let mut add = |kind: &str, at: Timestamp, detail: Value| {
        events.push(NewServerEvent::new(server_id, kind, at, detail));
    };
    add(presence_kind::ONLINE, scene.course.at(-24.0 * DAYS as f64), json!({}));
    let booted = scene.course.last_boot_ms(machine);
    let (down, up) = (Timestamp::from_millis(booted - DOWN_MS), Timestamp::from_millis(booted + 9_000));
    add(presence_kind::OFFLINE, down, json!({ "reason": "disconnected" }));
    add(presence_kind::ONLINE, up, json!({}));
    let [from, to] = [1, 2].map(|boot| format!("{:016x}", mix(machine.seed, boot)));
    add("reboot", up, json!({ "boot_id": { "from": from, "to": to } }));
    if is_heard(machine, 0.0) {
        // As if the service had been restarted this moment: the agents take it back.
        add(presence_kind::UNWATCHED, Timestamp::now(), json!({ "reason": "service_stopped" }));
    }
}

fn annotations(scene: &Scene<'_>, server_id: Uuid, machine: &Machine, events: &mut Vec<NewServerEvent>) {
    let is_its = |place: &str| machine.role.word() == place || machine.name == place;
    for (_, hours, kind, text, version) in ANNOTATIONS.into_iter().filter(|(place, ..)| is_its(place)) {
        let username = scene.colleague.username.as_ref();
        let detail = match version {
            "" => json!({ "text": text, "username": username }),
            version => json!({ "text": text, "username": username, "version": version }),
        };
        events.push(NewServerEvent::new(server_id, kind, scene.course.at(hours), detail));
    }
}

fn containers(scene: &Scene<'_>, server_id: Uuid, machine: &Machine, events: &mut Vec<NewServerEvent>) {
    let mut add = |name: &str, action: &str, at_ms: i64, exit_code: Option<i64>| {
        let at = Timestamp::from_millis(at_ms);
        let image = find(machine, name).map(|service| service.image);
        let detail = json!({
            "action": action, "container_id": container_id(machine, name), "name": name, "image": image,
            "timestamp": at, "exit_code": exit_code,
        });
        events.push(NewServerEvent::new(server_id, "container", at, detail));
    };
    match machine.incident {
        Incident::Leak => {
            for life in 0..8 {
                let oom = scene.course.at(LAST_OOM - f64::from(life) * LEAK_HOURS).as_millis();
                add(LEAKING, "oom", oom, None);
                add(LEAKING, "die", oom + 120, Some(137));
                add(LEAKING, "start", oom + 2_300, None);
            }
        }
        Incident::Flapping => {
            let now = scene.course.began_ms;
            let first = scene.course.at(-FLAPPED_HOURS).as_millis().div_euclid(FLAP_MS);
            for life in first..=now.div_euclid(FLAP_MS) {
                for (action, at_ms, exit_code) in
                    [("start", life * FLAP_MS, None), ("die", life * FLAP_MS + FLAP_UP_MS, Some(1))]
                {
                    if at_ms < now {
                        add(FLAPPING, action, at_ms, exit_code);
                    }
                }
            }
        }
        Incident::Deploy => {
            for at in [DEPLOYED, DEPLOYED + 0.141] {
                let at_ms = scene.course.at(at).as_millis();
                add("shop", "die", at_ms, Some(0));
                add("shop", "start", at_ms + 1_400, None);
            }
        }
        Incident::None | Incident::FullDisk | Incident::NightBackup | Incident::HotDrive | Incident::Offline => {}
    }
}

/// Records that the agent of a server was heard until yesterday.
pub async fn leave(
    scene: &Scene<'_>,
    server_id: Uuid,
    key_id: Uuid,
    agent: &signalbox_protocol::agent::AgentInfo,
) -> Result<(), StoreError> {
    let (store, session_id) = (&scene.state.store, Uuid::now_v7());
    let (at, last_seen_at) = (scene.course.at(-24.0 * DAYS as f64 + 0.01), scene.course.at(OFFLINE_SINCE));
    let connected = Connected { server_id, session_id, key_id, agent: json!(agent).to_string(), at, claim: None };
    let why = Departure::Silent;
    let disconnected = Disconnected { server_id, session_id, replaced: Vec::new(), last_seen_at, why };
    for commit in [
        Commit { connected: vec![connected], ..Commit::default() },
        Commit { disconnected: vec![disconnected], ..Commit::default() },
    ] {
        store.commit(Uuid::now_v7(), &commit).await?;
    }
    Ok(())
}

/// Writes the commands that people have run, in one transaction.
pub async fn commands(scene: &Scene<'_>) -> Result<(), StoreError> {
    let mut changes = Vec::new();
    for (name, hours, command, by) in COMMANDS {
        if let Some(server) = scene.servers.iter().find(|(_, machine)| machine.name == name) {
            let ended = ended(scene, server, (scene.course.at(hours), command, by), None);
            changes.push(CommandChange {
                write: CommandWrite::New(Box::new(ended)),
                entries: Vec::new(),
                can_wait: false,
            });
        }
    }
    let (tag, hours, command) = BATCH;
    let at = scene.course.at(hours);
    let with_tag = scene.servers.iter().filter(|(_, machine)| machine.role.word() == tag);
    let with_tag: Vec<&Simulated> = with_tag.filter(|(_, machine)| is_heard(machine, hours)).take(24).collect();
    if !with_tag.is_empty() {
        let batch = CommandBatch {
            id: id_at(at, 1),
            owner_id: scene.owner_id,
            username: scene.visitor.username.to_string(),
            token_id: None,
            command: command.to_owned(),
            timeout_seconds: 60,
            concurrency: 10,
            stop_on_failure: false,
            is_cancelled: false,
            instance_id: None,
            created_at: at.into(),
            finished_at: Some(at.plus_millis(900).into()),
        };
        let of = |server: &&Simulated| ended(scene, server, (at, command, By::Visitor), Some(batch.id));
        let commands = with_tag.iter().map(of).collect();
        changes.push(CommandChange {
            write: CommandWrite::NewBatch(Box::new(batch), commands, None),
            entries: Vec::new(),
            can_wait: false,
        });
    }
    scene.state.store.write_commands(&changes).await?;
    Ok(())
}

/// A command that has ended.
fn ended(
    scene: &Scene<'_>,
    (server_id, machine): &Simulated,
    (at, command, by): (Timestamp, &str, By),
    batch_id: Option<Uuid>,
) -> Command {
    let by: &Actor = match by {
        By::Visitor => &scene.visitor,
        By::Colleague => &scene.colleague,
    };
    let host = Host { course: scene.course, machine, at_ms: at.as_millis() };
    let Answer { stdout, stderr, exit_code, takes_ms } = shell::run(host, command);
    let status = if exit_code == 0 { JobStatus::Succeeded } else { JobStatus::Failed };
    let parts = [Part::Stdout(stdout.len()), Part::Stderr(stderr.len())];
    let duration_ms = takes_ms.saturating_add(12 + machine.seed % 40).cast_signed();
    Command {
        id: id_at(at, machine.seed ^ u64::from(batch_id.is_some())),
        server_id: *server_id,
        batch_id,
        owner_id: scene.owner_id,
        user_id: by.user_id.unwrap_or_default(),
        login_id: None,
        username: by.username.to_string(),
        token_name: None,
        address: by.address.clone(),
        command: command.to_owned(),
        stdin: None,
        signed: None,
        timeout_seconds: 60,
        status: status.name().to_owned(),
        is_cancel_requested: false,
        exit_code: Some(exit_code),
        duration_ms: Some(duration_ms),
        is_truncated: false,
        output: Some(format!("{stdout}{stderr}").into_bytes()),
        output_parts: serde_json::to_string(&parts).ok(),
        error_code: None,
        error_detail: None,
        error_reason: None,
        created_at: at.into(),
        started_at: Some(at.into()),
        finished_at: Some(at.plus_millis(duration_ms).into()),
    }
}
