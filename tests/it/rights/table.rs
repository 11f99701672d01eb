//! The table: what each operation and socket needs, and how to call it with data that is valid.

mod accounts;
mod updates;

use serde_json::{Value, json};
use signalbox::auth::access::Action::{self, Manage, Own, Respond, See, Use};
use signalbox::auth::access::Right::{Commands, Containers, Logs, Terminal};
use signalbox_protocol::Timestamp;

use super::bodies::{dashboard, schedule, view};
use super::objects::Object;
use super::scene::Scene;

/// What a caller must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Anyone.
    Nothing,
    /// Any account: what it makes or lists is its own.
    Account,
    /// Any account, which changes or shows itself.
    Myself,
    /// An administrator's account.
    Administrator,
    /// An account that may do this to the server. For others who see the server it is forbidden.
    Server(Action),
    /// An account that may do this to the server. For all others it does not exist, even if they see the server.
    Hidden(Action),
    /// An account that may do the second to the server. For others who may do the first it is forbidden; for all others it does
    /// not exist.
    Within(Action, Action),
    /// Any account; the server is in the list of those who may do this to it.
    Lists(Action),
    /// The account that it belongs to. For others it does not exist.
    Mine,
    /// The account that it belongs to. Others see it.
    MineShown,
    /// Who manages the team. For its members it is forbidden, for others the team does not exist.
    Team,
}

/// What the token of a program must be besides: it never does more than its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// For the server, with a role for what the operation needs there.
    Servers,
    /// No token may.
    Never,
    /// For all servers, with a role for this: it is about the whole account.
    Account(Action),
    /// The same, and for narrower tokens it does not exist.
    Hidden(Action),
    /// For the server, with a role that manages it. To others it is not allowed.
    Managed,
    /// The one that made it, which no token of the table is.
    Maker,
}

/// What follows the path of a call.
type Query = &'static str;

/// The fields of a form.
type Form = fn(&Scene) -> Vec<(&'static str, String)>;

pub struct Line {
    /// As in openapi.json.
    pub operation: &'static str,
    pub needs: Needs,
    pub programs: Programs,
    /// With `$server` for the server.
    pub query: Query,
    /// What parameters of the path name, besides the server.
    pub object: Object,
    pub body: Option<fn(&mut Scene) -> Value>,
    pub form: Option<Form>,
    /// The answer to somebody who may, and its code if it is an error.
    pub answer: (u16, &'static str),
    /// Ends the session of the caller.
    pub ends_session: bool,
}

fn on(operation: &'static str, needs: Needs) -> Line {
    let answer = (if operation.contains("/ws") { 101 } else { 200 }, "");
    Line {
        operation,
        needs,
        programs: Programs::Servers,
        query: "",
        object: Object::None,
        body: None,
        form: None,
        answer,
        ends_session: false,
    }
}

impl Line {
    fn of(self, object: Object) -> Self {
        Self { object, ..self }
    }

    fn programs(self, programs: Programs) -> Self {
        Self { programs, ..self }
    }

    fn with(self, query: Query) -> Self {
        Self { query, ..self }
    }

    fn json(self, body: fn(&mut Scene) -> Value) -> Self {
        Self { body: Some(body), ..self }
    }

    fn form(self, form: Form) -> Self {
        Self { form: Some(form), ..self }
    }

    fn answers(self, status: u16) -> Self {
        Self { answer: (status, ""), ..self }
    }

    /// Somebody who may gets this error all the same.
    fn fails(self, status: u16, code: &'static str) -> Self {
        Self { answer: (status, code), ..self }
    }
}

/// Every agent is away: who may use it learns that.
const AWAY: (u16, &str) = (400, "agent_offline");

fn away(line: Line) -> Line {
    Line { answer: AWAY, ..line }
}

pub fn lines() -> Vec<Line> {
    let never = |lines: Vec<Line>| lines.into_iter().map(|line| line.programs(Programs::Never)).collect();
    [
        servers(),
        observations(),
        uses(),
        alerts(),
        own_things(),
        never(later()),
        updates::lines(),
        never(people()),
        never(accounts::own()),
        accounts::public(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn servers() -> Vec<Line> {
    vec![
        on("GET /api/v1/servers", Needs::Lists(See)),
        on("POST /api/v1/servers", Needs::Account)
            .programs(Programs::Account(Manage))
            .json(|scene| json!({"name": scene.name(), "host": "192.0.2.20"}))
            .answers(201),
        on("GET /api/v1/servers/{id}", Needs::Server(See)),
        on("PUT /api/v1/servers/{id}", Needs::Server(Manage)).json(|_| json!({"description": "Rack 4"})),
        on("DELETE /api/v1/servers/{id}", Needs::Server(Own)).of(Object::Server),
        on("GET /api/v1/servers/{id}/access", Needs::Server(See)).programs(Programs::Never),
        on("GET /api/v1/api-keys/me", Needs::Lists(Manage)),
        on("POST /api/v1/api-keys", Needs::Server(Manage))
            .json(|scene| json!({"server_id": scene.server_id, "name": "k"}))
            .answers(201),
        on("DELETE /api/v1/api-keys/{id}", Needs::Hidden(Manage)).of(Object::Key),
        on("GET /api/v1/audit", Needs::Account).programs(Programs::Account(Manage)),
        on("GET /api/v1/audit", Needs::Lists(Manage)).programs(Programs::Managed).with("?server_id=$server"),
        on("GET /api/v1/audit", Needs::Administrator).with("?all=true"),
    ]
}

/// What everybody reads who sees the server.
fn observations() -> Vec<Line> {
    vec![
        on("GET /api/v1/metrics/{server_id}", Needs::Server(See)),
        on("GET /api/v1/metrics/{server_id}/history", Needs::Server(See)),
        on("GET /api/v1/metrics/{server_id}/names", Needs::Server(See)),
        on("GET /api/v1/metrics/{server_id}/processes", Needs::Server(See)).fails(404, "no_metrics"),
        on("GET /api/v1/metrics/{server_id}/prometheus", Needs::Server(See)),
        on("GET /api/v1/metrics/{server_id}/series", Needs::Server(See)).with("?names=cpu_percent"),
        on("GET /api/v1/ws/metrics/{server_id}", Needs::Server(See)),
        on("GET /api/v1/metrics/fleet", Needs::Lists(See)),
        on("GET /api/v1/metrics/fleet/heat", Needs::Lists(See)),
        on("GET /api/v1/metrics/fleet/heat", Needs::Lists(See)).with("?servers=$server"),
        on("GET /api/v1/metrics/fleet/names", Needs::Account),
        on("GET /api/v1/metrics/fleet/series", Needs::Lists(See)).with("?by=server"),
        on("GET /api/v1/metrics/fleet/series", Needs::Lists(See)).with("?by=server&server=$server"),
        on("GET /api/v1/metrics/prometheus", Needs::Lists(See)),
        on("GET /api/v1/ws/fleet", Needs::Lists(See)),
        on("GET /api/v1/servers/availability", Needs::Lists(See)),
        on("GET /api/v1/servers/{id}/availability", Needs::Server(See)),
        on("GET /api/v1/events", Needs::Lists(See)),
        on("POST /api/v1/events", Needs::Server(Respond))
            .json(|scene| json!({"server_ids": [scene.server_id], "kind": "note", "text": "New disks"}))
            .answers(201),
        on("GET /api/v1/servers/{id}/events", Needs::Server(See)),
        on("POST /api/v1/servers/{id}/events", Needs::Server(Respond))
            .json(|_| json!({"kind": "note", "text": "New disks"}))
            .answers(201),
        on("DELETE /api/v1/servers/{id}/events/{event_id}", Needs::Server(Respond)).of(Object::Note),
        away(on("GET /api/v1/docker/{server_id}/containers", Needs::Server(See))),
        away(on("GET /api/v1/docker/{server_id}/containers/{container_id}", Needs::Server(See))),
        away(on("GET /api/v1/docker/{server_id}/containers/{container_id}/stats", Needs::Server(See))),
    ]
}

/// What needs a right of an operator.
fn uses() -> Vec<Line> {
    vec![
        away(on("POST /api/v1/docker/{server_id}/containers/{container_id}/start", Needs::Server(Use(Containers)))),
        away(on("POST /api/v1/docker/{server_id}/containers/{container_id}/stop", Needs::Server(Use(Containers)))),
        away(on("POST /api/v1/docker/{server_id}/containers/{container_id}/restart", Needs::Server(Use(Containers)))),
        away(on("POST /api/v1/docker/{server_id}/containers/{container_id}/pause", Needs::Server(Use(Containers)))),
        away(on("POST /api/v1/docker/{server_id}/containers/{container_id}/unpause", Needs::Server(Use(Containers)))),
        away(on("GET /api/v1/docker/{server_id}/containers/{container_id}/logs", Needs::Server(Use(Logs)))),
        away(on("GET /api/v1/logs/{server_id}", Needs::Server(Use(Logs)))),
        on("GET /api/v1/ws/logs/{server_id}", Needs::Server(Use(Logs))),
        on("GET /api/v1/ws/terminal/{server_id}", Needs::Server(Use(Terminal))),
        away(on("GET /api/v1/servers/{id}/recordings", Needs::Server(Use(Terminal)))).programs(Programs::Never),
        away(on("GET /api/v1/servers/{id}/recordings/{recording_id}", Needs::Server(Use(Terminal))))
            .programs(Programs::Never)
            .of(Object::Nowhere),
        on("GET /api/v1/commands/{server_id}", Needs::Server(Use(Commands))),
        away(
            on("POST /api/v1/commands/{server_id}", Needs::Server(Use(Commands))).json(|_| json!({"command": "true"})),
        ),
        on("GET /api/v1/commands/{server_id}/{command_id}", Needs::Server(Use(Commands))).of(Object::Command),
        on("POST /api/v1/commands/{server_id}/{command_id}/cancel", Needs::Server(Use(Commands))).of(Object::Command),
        on("GET /api/v1/ws/commands/{server_id}/{command_id}", Needs::Server(Use(Commands))).of(Object::Command),
        on("POST /api/v1/commands", Needs::Server(Use(Commands)))
            .json(|scene| json!({"server_ids": [scene.server_id], "command": "true"}))
            .answers(201),
        on("GET /api/v1/commands/batches", Needs::Account),
        on("GET /api/v1/commands/batches/{id}", Needs::Mine).programs(Programs::Maker).of(Object::Batch),
        on("POST /api/v1/commands/batches/{id}/cancel", Needs::Mine).programs(Programs::Maker).of(Object::Batch),
    ]
}

pub fn threshold(scope: &Value) -> Value {
    let mut body = json!({"metric_type": "cpu", "comparison": "gt", "threshold_value": 99.5});
    body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    body
}

pub fn silence(scope: &Value) -> Value {
    let mut body = json!({"reason": "New disks", "ends_at": Timestamp::now().plus_millis(3_600_000).to_string()});
    body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    body
}

fn alerts() -> Vec<Line> {
    vec![
        on("GET /api/v1/alerts", Needs::Lists(See)),
        on("GET /api/v1/alerts", Needs::Lists(See)).with("?server_id=$server"),
        on("GET /api/v1/alerts/summary", Needs::Account),
        on("GET /api/v1/ws/alerts", Needs::Account),
        on("GET /api/v1/alerts/{id}", Needs::Server(See)).of(Object::Alert),
        on("POST /api/v1/alerts/{id}/acknowledge", Needs::Server(Respond)).of(Object::Alert),
        on("POST /api/v1/alerts/{id}/notes", Needs::Server(Respond))
            .of(Object::Alert)
            .json(|_| json!({"text": "On it"})),
        on("POST /api/v1/alerts/{id}/resolve", Needs::Server(Respond)).of(Object::Alert),
        on("GET /api/v1/alerts/thresholds", Needs::Account),
        on("GET /api/v1/alerts/thresholds", Needs::Lists(See)).with("?server_id=$server"),
        on("POST /api/v1/alerts/thresholds", Needs::Server(Manage))
            .json(|scene| threshold(&json!({"server_id": scene.server_id})))
            .answers(201),
        on("POST /api/v1/alerts/thresholds", Needs::Account)
            .programs(Programs::Account(Manage))
            .json(|_| threshold(&json!({"all": true})))
            .answers(201),
        on("GET /api/v1/alerts/thresholds/{id}", Needs::Server(See)).of(Object::Threshold),
        on("PUT /api/v1/alerts/thresholds/{id}", Needs::Server(Manage))
            .of(Object::Threshold)
            .json(|_| json!({"threshold_value": 99.0})),
        on("DELETE /api/v1/alerts/thresholds/{id}", Needs::Server(Manage)).of(Object::Threshold),
        on("DELETE /api/v1/alerts/thresholds/{id}", Needs::Mine)
            .programs(Programs::Hidden(Manage))
            .of(Object::ThresholdOfTag),
        on("GET /api/v1/alerts/silences", Needs::Account),
        on("GET /api/v1/alerts/silences", Needs::Lists(See)).with("?server_id=$server"),
        on("POST /api/v1/alerts/silences", Needs::Server(Respond))
            .json(|scene| silence(&json!({"server_id": scene.server_id})))
            .answers(201),
        on("POST /api/v1/alerts/silences", Needs::Account)
            .programs(Programs::Account(Respond))
            .json(|_| silence(&json!({"tag": "db"})))
            .answers(201),
        on("GET /api/v1/alerts/silences/{id}", Needs::Server(See)).of(Object::Silence),
        on("PUT /api/v1/alerts/silences/{id}", Needs::Server(Respond))
            .of(Object::Silence)
            .json(|_| json!({"reason": "New fans"})),
        on("DELETE /api/v1/alerts/silences/{id}", Needs::Server(Respond)).of(Object::Silence),
        on("DELETE /api/v1/alerts/silences/{id}", Needs::Mine)
            .programs(Programs::Hidden(Respond))
            .of(Object::SilenceOfTag),
    ]
}

const HOOK: &str = "https://hooks.invalid/signalbox";

/// What belongs to an account, not to a server. Tokens may read views and dashboards with any role, the rest managers alone.
fn own_things() -> Vec<Line> {
    let of_account = |line: Line| {
        let is_view = line.operation.starts_with("GET") && !line.operation.contains("/notifications/");
        line.programs(Programs::Account(if is_view { See } else { Manage }))
    };
    own_lines().into_iter().map(of_account).collect()
}

fn own_lines() -> Vec<Line> {
    vec![
        on("GET /api/v1/notifications/channels", Needs::Account),
        on("POST /api/v1/notifications/channels", Needs::Account)
            .json(|scene| json!({"name": scene.name(), "type": "webhook", "settings": {"url": HOOK}}))
            .answers(201),
        on("GET /api/v1/notifications/channels/{id}", Needs::Mine).of(Object::Channel),
        on("PUT /api/v1/notifications/channels/{id}", Needs::Mine)
            .of(Object::Channel)
            .json(|_| json!({"enabled": false})),
        on("DELETE /api/v1/notifications/channels/{id}", Needs::Mine).of(Object::Channel),
        on("POST /api/v1/notifications/channels/{id}/test", Needs::Mine).of(Object::Channel),
        on("GET /api/v1/notifications/deliveries", Needs::Account),
        on("GET /api/v1/views", Needs::Account),
        on("POST /api/v1/views", Needs::Account).json(|scene| view(scene.name(), "nobody")).answers(201),
        on("GET /api/v1/views/{id}", Needs::Mine).of(Object::View),
        on("PUT /api/v1/views/{id}", Needs::Mine).of(Object::View).json(|_| json!({"description": "All"})),
        on("DELETE /api/v1/views/{id}", Needs::Mine).of(Object::View),
        on("GET /api/v1/views/{id}", Needs::Account).of(Object::SharedView),
        on("PUT /api/v1/views/{id}", Needs::MineShown).of(Object::SharedView).json(|_| json!({"description": "All"})),
        on("DELETE /api/v1/views/{id}", Needs::MineShown).of(Object::SharedView),
        on("GET /api/v1/dashboards", Needs::Account),
        on("POST /api/v1/dashboards", Needs::Account).json(|scene| dashboard(scene.name(), "nobody")).answers(201),
        on("GET /api/v1/dashboards/{id}", Needs::Mine).of(Object::Dashboard),
        on("PUT /api/v1/dashboards/{id}", Needs::Mine).of(Object::Dashboard).json(|_| json!({"description": "All"})),
        on("DELETE /api/v1/dashboards/{id}", Needs::Mine).of(Object::Dashboard),
        on("GET /api/v1/dashboards/{id}", Needs::Account).of(Object::SharedDashboard),
        on("PUT /api/v1/dashboards/{id}", Needs::MineShown)
            .of(Object::SharedDashboard)
            .json(|_| json!({"description": "All"})),
        on("DELETE /api/v1/dashboards/{id}", Needs::MineShown).of(Object::SharedDashboard),
    ]
}

/// What waits for signatures and what recurs: it runs later, for its user.
fn later() -> Vec<Line> {
    vec![
        on("POST /api/v1/commands/approvals", Needs::Server(Use(Commands)))
            .json(|scene| {
                let signed = json!({"payload": "e30=", "signatures": [{"type": "sshsig", "signature": "x"}]});
                json!({"server_ids": [scene.server_id], "command": "true", "signed": signed})
            })
            .fails(400, "bad_request"),
        on("GET /api/v1/commands/approvals", Needs::Account),
        on("GET /api/v1/commands/approvals/{id}", Needs::Hidden(Use(Commands))).of(Object::Approval),
        on("POST /api/v1/commands/approvals/{id}/signatures", Needs::Hidden(Use(Commands)))
            .of(Object::Approval)
            .json(|_| json!({"type": "sshsig", "signature": "x"}))
            .fails(400, "bad_request"),
        on("DELETE /api/v1/commands/approvals/{id}", Needs::Within(Use(Commands), Manage)).of(Object::Approval),
        on("GET /api/v1/schedules", Needs::Account),
        on("POST /api/v1/schedules", Needs::Server(Use(Commands)))
            .json(|scene| schedule(scene.server_id, scene.name()))
            .answers(201),
        on("GET /api/v1/schedules/{id}", Needs::Mine).of(Object::Schedule),
        on("PUT /api/v1/schedules/{id}", Needs::Mine).of(Object::Schedule).json(|_| json!({"enabled": false})),
        on("DELETE /api/v1/schedules/{id}", Needs::Mine).of(Object::Schedule),
    ]
}

/// Grants, teams, and the accounts of the service.
fn people() -> Vec<Line> {
    vec![
        on("GET /api/v1/grants", Needs::Account),
        on("POST /api/v1/grants", Needs::Server(Manage))
            .json(|scene| scene.grant(json!({"server_id": scene.server_id})))
            .answers(201),
        on("POST /api/v1/grants", Needs::Account).json(|scene| scene.grant(json!({"tag": "db"}))).answers(201),
        on("DELETE /api/v1/grants/{id}", Needs::Hidden(Manage)).of(Object::Grant),
        on("DELETE /api/v1/grants/{id}", Needs::Within(Manage, Own)).of(Object::GrantOfTag),
        on("DELETE /api/v1/grants/{id}", Needs::Mine).of(Object::GrantOfOtherTag),
        on("GET /api/v1/teams", Needs::Account),
        on("POST /api/v1/teams", Needs::Account).json(|scene| json!({"name": scene.name()})).answers(201),
        on("PUT /api/v1/teams/{id}", Needs::Team).of(Object::Team).json(|scene| json!({"name": scene.name()})),
        on("DELETE /api/v1/teams/{id}", Needs::Team).of(Object::Team),
        on("PUT /api/v1/teams/{id}/members/{user_id}", Needs::Team).of(Object::Team),
        on("DELETE /api/v1/teams/{id}/members/{user_id}", Needs::Team).of(Object::TeamWithSpare),
        on("GET /api/v1/users", Needs::Administrator),
        on("PUT /api/v1/users/{id}", Needs::Administrator).of(Object::User).json(|_| json!({"disabled": true})),
        on("DELETE /api/v1/users/{id}", Needs::Administrator).of(Object::User),
        on("GET /api/v1/users/invitations", Needs::Administrator),
        on("POST /api/v1/users/invitations", Needs::Administrator).json(|_| json!({})).answers(201),
        on("DELETE /api/v1/users/invitations/{id}", Needs::Administrator).of(Object::Invitation),
    ]
}
