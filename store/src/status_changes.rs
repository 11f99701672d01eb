//! The events that follow from an agent's connections. They are written in the transaction that records which session holds the
//! server, and so only once, whichever instance does it.

use std::collections::HashMap;

use entity::server;
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, FromQueryResult, QueryFilter, QuerySelect};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::StoreError;
use super::commit::{Commit, Connected, Departure, Disconnected, Redescribed};
use super::server_events::{NewServerEvent, REBOOT, insert, presence, take_back};

/// An agent that returns within this time was not away: it was updated, or the service was.
const BRIEF_MS: i64 = 2_000;

/// A clock that is off by less counts as right, where the description does not decide.
const CLOCK_RIGHT_MS: u64 = 5_000;

/// How many capabilities an event lists, and the longest name of one: more than any agent has, and so little that an agent that
/// makes them up fills no table.
const MAX_LISTED: usize = 16;
const MAX_NAME_BYTES: usize = 32;

/// The field of an agent's description that says whether its clock is wrong. The offset alone does not decide, so that a clock
/// that hovers around a bound is one event.
pub const CLOCK_IS_WRONG: &str = "clock_is_wrong";

/// A server's row before a commit.
#[derive(Debug, Clone, FromQueryResult)]
pub(super) struct ServerBefore {
    id: Uuid,
    session_id: Option<Uuid>,
    agent: Option<String>,
}

/// The rows, before a commit, of the servers whose agents connect, change or disconnect in it.
pub(super) async fn before(
    connection: &impl ConnectionTrait,
    commit: &Commit,
) -> Result<HashMap<Uuid, ServerBefore>, StoreError> {
    let connected = commit.connected.iter().map(|connected| connected.server_id);
    let redescribed = commit.redescribed.iter().map(|redescribed| redescribed.server_id);
    let gone = commit.disconnected.iter().map(|gone| gone.server_id);
    let servers: Vec<Uuid> = connected.chain(redescribed).chain(gone).collect();
    if servers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<ServerBefore> = server::Entity::find()
        .select_only()
        .columns([server::Column::Id, server::Column::SessionId, server::Column::Agent])
        .filter(server::Column::Id.is_in(servers))
        .into_model()
        .all(connection)
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Writes the events that a commit causes. Returns the sessions whose machine has rebooted.
pub(super) async fn record(
    connection: &impl ConnectionTrait,
    mut before: HashMap<Uuid, ServerBefore>,
    commit: &Commit,
    refused: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    let mut told = StatusChanges::default();
    for (place, connected) in commit.connected.iter().enumerate() {
        let is_last = !commit.connected.iter().skip(place + 1).any(|next| next.server_id == connected.server_id);
        if let Some(before) = before.get_mut(&connected.server_id)
            && is_last
            && !refused.contains(&connected.session_id)
        {
            told.came(before, connected);
        }
    }
    if !told.came.is_empty() {
        let at = told.came.values().copied().min().unwrap_or_else(Timestamp::now);
        let brief = take_back(connection, told.came.keys().copied(), at.plus_millis(-BRIEF_MS)).await?;
        brief.iter().for_each(|server_id| _ = told.came.remove(server_id));
    }
    let arrivals = told.came.iter().map(|(id, at)| NewServerEvent::new(*id, presence::ONLINE, *at, json!({})));
    told.events.extend(arrivals.collect::<Vec<_>>());
    for redescribed in &commit.redescribed {
        if let Some(before) = before.get_mut(&redescribed.server_id) {
            told.changed(before, redescribed);
        }
    }
    for gone in &commit.disconnected {
        if let Some(before) = before.get_mut(&gone.server_id) {
            told.went(before, gone);
        }
    }
    insert(connection, told.events).await?;
    Ok(told.rebooted)
}

#[derive(Default)]
struct StatusChanges {
    events: Vec<NewServerEvent>,
    /// Servers without a session, and when their agent connected.
    came: HashMap<Uuid, Timestamp>,
    rebooted: Vec<Uuid>,
}

impl StatusChanges {
    fn came(&mut self, before: &mut ServerBefore, connected: &Connected) {
        // It is already written, and only the answer was lost.
        if before.session_id == Some(connected.session_id) {
            return;
        }
        if before.session_id.is_none() {
            self.came.insert(connected.server_id, connected.at);
        }
        if let Some(was) = &before.agent {
            let changes = changes(was, &connected.agent);
            if changes.iter().any(|(kind, _)| *kind == REBOOT) {
                self.rebooted.push(connected.session_id);
            }
            let event = |(kind, detail)| NewServerEvent::new(connected.server_id, kind, connected.at, detail);
            self.events.extend(changes.into_iter().map(event));
        } else if let Some(change) = clock(&Value::Null, &parsed(&connected.agent)) {
            self.events.push(NewServerEvent::new(connected.server_id, "clock", connected.at, change));
        }
        *before = ServerBefore {
            id: before.id,
            session_id: Some(connected.session_id),
            agent: Some(connected.agent.clone()),
        };
    }

    /// Records when the clock of a connected agent goes wrong or becomes right.
    fn changed(&mut self, before: &mut ServerBefore, redescribed: &Redescribed) {
        let Some(was) = before.agent.as_deref().filter(|_| before.session_id == Some(redescribed.session_id)) else {
            return;
        };
        if let Some(change) = clock(&parsed(was), &parsed(&redescribed.agent)) {
            self.events.push(NewServerEvent::new(redescribed.server_id, "clock", redescribed.at, change));
        }
        before.agent = Some(redescribed.agent.clone());
    }

    fn went(&mut self, before: &mut ServerBefore, gone: &Disconnected) {
        let Some(held_by) = before.session_id else { return };
        if held_by != gone.session_id && !gone.replaced.contains(&held_by) {
            return;
        }
        before.session_id = None;
        let (kind, reason) = match gone.why {
            Departure::Left => (presence::OFFLINE, "disconnected"),
            Departure::Silent => (presence::OFFLINE, "silent"),
            Departure::Revoked => (presence::OFFLINE, "key_revoked"),
            Departure::Stopping => (presence::UNWATCHED, "service_stopped"),
        };
        let at = gone.last_seen_at;
        self.events.push(NewServerEvent::new(gone.server_id, kind, at, json!({ "reason": reason })));
    }
}

/// The event of a server whose service vanished after it was last seen at this time.
pub(super) fn abandoned(server_id: Uuid, last_seen_at: Option<Timestamp>) -> NewServerEvent {
    let at = last_seen_at.unwrap_or_else(Timestamp::now);
    NewServerEvent::new(server_id, presence::UNWATCHED, at, json!({ "reason": "service_lost" }))
}

fn parsed(agent: &str) -> Value {
    // An unreadable description is of a version that knew more; it yields no events.
    serde_json::from_str(agent).unwrap_or_default()
}

/// How the description of an agent that connects again differs from the last one.
fn changes(was: &str, is: &str) -> Vec<(&'static str, Value)> {
    let (was, is) = (parsed(was), parsed(is));
    let both = |field: &str| {
        let text = |agent: &Value| {
            let text = agent.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        text(&was).zip(text(&is))
    };
    let changed = |field: &str| both(field).filter(|(was, is)| was != is);
    let mut changes = Vec::new();
    let conflict = |agent: &Value, field: &str| agent.get("conflict").and_then(|conflict| conflict.get(field)).cloned();
    let is_taken_over = conflict(&is, "last_at").is_some_and(|last_at| conflict(&was, "last_at") != Some(last_at));
    // A conflict that continues is one event.
    if is_taken_over && conflict(&is, "since") != conflict(&was, "since") {
        let detail = json!({ "hostname": conflict(&is, "hostname"), "address": conflict(&is, "address") });
        changes.push(("conflict", detail));
    }
    let earlier = was.get("earlier_boots").and_then(Value::as_array);
    let was_there = |boot: &str| earlier.is_some_and(|boots| boots.iter().any(|earlier| earlier == boot));
    // Another machine with the same key has not rebooted because it connects.
    if let Some((from, to)) = changed("boot_id")
        && !is_taken_over
        && changed("machine_id").is_none()
        && !was_there(&to)
        && !is_more_precise(&from, &to)
    {
        changes.push((REBOOT, json!({ "boot_id": { "from": from, "to": to } })));
    }
    for (field, kind) in [("version", "agent_version"), ("kernel", "kernel"), ("os", "os")] {
        if let Some((from, to)) = changed(field) {
            changes.push((kind, json!({ "from": from, "to": to })));
        }
    }
    // Two machines with one key may have different policies, of which neither has changed.
    if !is_taken_over {
        changes.extend(policy(&was, &is).map(|change| ("policy", change)));
    }
    changes.extend(clock(&was, &is).map(|change| ("clock", change)));
    changes
}

/// Whether a boot id is the machine's and now also names the container's start, because the agent is a newer one.
fn is_more_precise(from: &str, to: &str) -> bool {
    !from.contains('.') && to.strip_prefix(from).is_some_and(|rest| rest.starts_with('.'))
}

/// The event of an agent whose policy now permits more, or less.
fn policy(was: &Value, is: &Value) -> Option<Value> {
    // A description without the field does not say what was permitted.
    let capabilities = |agent: &Value| agent.get("capabilities").and_then(Value::as_array).cloned();
    let (was, is) = (capabilities(was)?, capabilities(is)?);
    let is_listed = |name: &Value| name.as_str().is_some_and(|name| name.len() <= MAX_NAME_BYTES);
    let only_in = |one: &[Value], other: &[Value]| -> Vec<Value> {
        one.iter().filter(|name| is_listed(name) && !other.contains(name)).take(MAX_LISTED).cloned().collect()
    };
    let (gained, lost) = (only_in(&is, &was), only_in(&was, &is));
    (!gained.is_empty() || !lost.is_empty()).then(|| json!({ "gained": gained, "lost": lost }))
}

/// The event of a clock that went wrong or became right.
fn clock(was: &Value, is: &Value) -> Option<Value> {
    let offset = |agent: &Value| agent.get("clock_offset_ms").and_then(Value::as_i64);
    // For a row that an earlier version wrote the offset decides.
    let is_off = |agent: &Value| {
        let by_offset = || offset(agent).is_some_and(|offset_ms| offset_ms.unsigned_abs() > CLOCK_RIGHT_MS);
        agent.get(CLOCK_IS_WRONG).and_then(Value::as_bool).unwrap_or_else(by_offset)
    };
    let now = offset(is)?;
    (is_off(was) != is_off(is)).then(|| json!({ "offset_ms": now, "is_off": is_off(is) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(fields: Value) -> String {
        let mut agent = json!({ "version": "1.0", "kernel": "6.1", "os": "Debian 12", "hostname": "web-1",
                                "boot_id": "a", "clock_offset_ms": 12 });
        agent.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        agent.to_string()
    }

    #[test]
    fn an_agent_that_returns_unchanged_has_no_event() {
        assert!(changes(&agent(json!({})), &agent(json!({ "connected_at": "later" }))).is_empty());
    }

    #[test]
    fn another_boot_is_a_reboot_and_other_differences_are_in_the_same_event() {
        let told = changes(&agent(json!({})), &agent(json!({ "boot_id": "b", "kernel": "6.12", "version": "1.1" })));

        assert_eq!(
            told,
            [
                ("reboot", json!({ "boot_id": { "from": "a", "to": "b" } })),
                ("agent_version", json!({ "from": "1.0", "to": "1.1" })),
                ("kernel", json!({ "from": "6.1", "to": "6.12" })),
            ]
        );
    }

    #[test]
    fn another_machine_with_the_same_key_is_no_reboot() {
        let conflict = |since: &str, last_at: &str| {
            let conflict = json!({ "since": since, "last_at": last_at, "hostname": "web-1", "address": "192.0.2.1" });
            agent(json!({ "machine_id": last_at, "boot_id": last_at, "conflict": conflict }))
        };
        let [alone, moved] = ["m1", "m2"].map(|id| agent(json!({ "machine_id": id, "boot_id": id })));
        let (first, second) = (conflict("1", "1"), conflict("1", "2"));

        assert!(changes(&alone, &moved).is_empty());
        let expected = json!({ "hostname": "web-1", "address": "192.0.2.1" });
        assert_eq!(changes(&alone, &first), [("conflict", expected)]);
        assert!(changes(&first, &second).is_empty());
    }

    #[test]
    fn a_boot_of_before_is_another_machines() {
        let was = agent(json!({ "boot_id": "b", "earlier_boots": ["a"] }));

        assert!(changes(&was, &agent(json!({}))).is_empty());
    }

    #[test]
    fn an_unknown_boot_says_nothing() {
        assert!(changes(&agent(json!({ "boot_id": "" })), &agent(json!({}))).is_empty());
        assert!(changes("", &agent(json!({}))).is_empty());
    }

    #[test]
    fn a_policy_that_permits_other_things_is_an_event_with_what_it_gained_and_lost() {
        let with = |capabilities: Value| agent(json!({ "capabilities": capabilities }));
        let (was, is) = (with(json!(["metrics", "logs"])), with(json!(["commands", "metrics"])));

        assert_eq!(changes(&was, &is), [("policy", json!({ "gained": ["commands"], "lost": ["logs"] }))]);
        assert!(changes(&was, &with(json!(["logs", "metrics"]))).is_empty(), "only the order differs");
        assert!(changes(&agent(json!({})), &was).is_empty(), "nobody knows what was permitted before");
    }

    #[test]
    fn two_machines_with_one_key_and_different_policies_are_no_change_of_a_policy() {
        let taken_over = |last_at: &str, capabilities: Value| {
            let conflict = json!({ "since": "1", "last_at": last_at, "hostname": "web-1", "address": "192.0.2.1" });
            agent(json!({ "capabilities": capabilities, "conflict": conflict }))
        };
        let many = json!(["commands", "metrics"]);
        let was = taken_over("1", json!(["metrics"]));

        assert!(changes(&was, &taken_over("2", many.clone())).is_empty());
        let told = changes(&was, &taken_over("1", many));
        assert_eq!(
            told,
            [("policy", json!({ "gained": ["commands"], "lost": [] }))],
            "the same machine connects again"
        );
    }

    #[test]
    fn an_agent_that_makes_capabilities_up_fills_no_event() {
        let with = |names: Vec<String>| agent(json!({ "capabilities": names }));
        let many = (0..64).map(|number| format!("made-up-{number}")).chain(["x".repeat(256)]).collect();

        let told = changes(&with(Vec::new()), &with(many));

        assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["policy"]);
        assert_eq!(told[0].1["gained"].as_array().map(Vec::len), Some(MAX_LISTED));
        assert!(changes(&with(Vec::new()), &with(vec!["x".repeat(256)])).is_empty());
    }

    #[test]
    fn a_clock_has_events_when_it_goes_wrong_and_when_it_is_corrected() {
        let [right, wrong, worse] = [900, 7_200_000, 7_900_000].map(|off| agent(json!({ "clock_offset_ms": off })));

        assert_eq!(changes(&right, &wrong), [("clock", json!({ "offset_ms": 7_200_000, "is_off": true }))]);
        assert!(changes(&wrong, &worse).is_empty());
        assert_eq!(changes(&worse, &right), [("clock", json!({ "offset_ms": 900, "is_off": false }))]);
    }

    #[test]
    fn what_an_agent_says_of_its_clock_counts_more_than_the_offset() {
        let said =
            |offset_ms: i64, is_wrong: bool| agent(json!({ "clock_offset_ms": offset_ms, "clock_is_wrong": is_wrong }));

        assert!(changes(&said(5_100, true), &said(4_900, true)).is_empty());
        assert_eq!(
            changes(&said(4_900, true), &said(2_000, false)),
            [("clock", json!({ "offset_ms": 2_000, "is_off": false }))]
        );
    }

    #[test]
    fn a_more_precise_boot_id_is_the_same_boot() {
        assert!(changes(&agent(json!({})), &agent(json!({ "boot_id": "a.1511370" }))).is_empty());
        let told = changes(&agent(json!({ "boot_id": "a.1511370" })), &agent(json!({ "boot_id": "a.9911370" })));

        assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["reboot"]);
    }
}
