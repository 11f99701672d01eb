//! `/docker`: the containers of a server. Each request asks the server's agent.

mod schema;

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde_json::json;
use signalbox_protocol::container::{ContainerParams, Inspect, List, ListParams, Logs, LogsParams, Stats};
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use schema::{ActedOut, ContainerDetailOut, ContainerLogsOut, Joined, ListedContainerOut, StatsOut};

use super::error::ApiError;
use super::extract::container::{ContainerId, OnContainer};
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::Faults;
use super::extract::param::{Flag, MAX_OFFSET, TimeParam, Whole, in_order, page};
use super::extract::{Checked, NoQuery, OnServer, OptionalJson, See, UseContainers, UseLogs};
use super::logs::turn_to_search;
use super::path::at;
use super::reply::{Listed, fault_of};
use super::signed_in::{SignedOrder, checked_signing};
use crate::audit::{Entry, Outcome};
use crate::docker::{Containers, Verb, outcome_of};
use crate::registry::CallError;
use crate::state::State;
use crate::store::PageRequest;

/// The default number of lines of a log.
const DEFAULT_TAIL: u32 = 100;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ContainersQuery {
    /// Whether to include containers that are not running. Defaults to true.
    #[deserr(default)]
    all: Option<Flag>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// More about an action on a container.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ActionIn {
    /// What operators signed for this action, for a server that asks for signatures.
    #[deserr(default)]
    signed: Option<SignedOrder>,
}

/// What a request asks of a container beside the action.
struct Order {
    timeout: Option<Whole<0, 300>>,
    body: OptionalJson<ActionIn>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct StopQuery {
    /// Seconds that it may take to stop before it is killed. Defaults to the timeout that the container was created
    /// with, otherwise to 10.
    #[deserr(default)]
    timeout_seconds: Option<Whole<0, 300>>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct LogsQuery {
    /// Number of lines from the end. Defaults to 100.
    #[deserr(default)]
    tail: Option<Whole<0, 10_000>>,
    #[deserr(default)]
    since: Option<TimeParam>,
    #[deserr(default)]
    until: Option<TimeParam>,
    /// Whether to include standard output. Defaults to true.
    #[deserr(default)]
    stdout: Option<Flag>,
    /// Whether to include standard error. Defaults to true.
    #[deserr(default)]
    stderr: Option<Flag>,
    /// Whether each line of `logs` starts with its time. Defaults to false.
    #[deserr(default)]
    timestamps: Option<Flag>,
}

impl CrossCheck for LogsQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = in_order(fields.sound("since"), fields.sound("until")).err().unwrap_or_default();
        if !Flag::or(fields.sound("stdout"), true) && !Flag::or(fields.sound("stderr"), true) {
            faults.0.extend(fault_of("stderr", "value_error.streams", "ensure that stdout or stderr is true").0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

/// List the containers of a server
///
/// Newest first. The server's agent reads them now.
#[api_v2_operation(tags(Docker), operation_id = "list_containers")]
pub async fn list(ask: Checked<OnServer<See>, ContainersQuery>) -> Result<Listed<ListedContainerOut>, ApiError> {
    let Checked { subject, query, state, .. } = ask;
    let containers = reader(&state, subject.access.server_id());
    let mut found = containers.ask::<List>(ListParams { all: Flag::or(query.all, true) }).await?;
    // The engine counts in seconds, in which it may create several.
    found.sort_by(|one, other| other.created_at.cmp(&one.created_at).then_with(|| one.id.cmp(&other.id)));
    let total = found.len() as u64;
    let PageRequest { limit, offset } = page(query.limit, query.offset);
    let page = found.into_iter().skip(usize::try_from(offset).unwrap_or(usize::MAX));
    let page = page.take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Listed { items: page.map(ListedContainerOut::from).collect(), total })
}

/// Get a container
///
/// With the names of its environment variables, but never their values.
#[api_v2_operation(tags(Docker), operation_id = "read_container")]
pub async fn inspect(ask: Checked<OnContainer<See>>) -> Result<Json<ContainerDetailOut>, ApiError> {
    let Checked { subject, state, .. } = ask;
    let params = ContainerParams::of(subject.path.container_id.0);
    let detail = reader(&state, subject.access.server_id()).ask::<Inspect>(params).await?;
    Ok(Json(detail.into()))
}

/// Get the resource usage of a container
///
/// Measured now, which takes up to two seconds.
#[api_v2_operation(tags(Docker), operation_id = "read_container_stats")]
pub async fn stats(ask: Checked<OnContainer<See>>) -> Result<Json<StatsOut>, ApiError> {
    let Checked { subject, state, .. } = ask;
    let params = ContainerParams::of(subject.path.container_id.0);
    let stats = reader(&state, subject.access.server_id()).ask::<Stats>(params).await?;
    Ok(Json(stats.into()))
}

/// Get the log of a container
///
/// The last lines, oldest first.
#[api_v2_operation(tags(Docker), operation_id = "read_container_logs")]
pub async fn logs(
    ask: Checked<OnContainer<UseLogs>, CrossChecked<LogsQuery>>,
) -> Result<Json<ContainerLogsOut>, ApiError> {
    let Checked { subject, query: CrossChecked(query), state, .. } = ask;
    let params = LogsParams {
        container_id: subject.path.container_id.0.clone(),
        tail: query.tail.map_or(DEFAULT_TAIL, |Whole(tail)| u32::try_from(tail).unwrap_or(u32::MAX)),
        since: query.since.map(|TimeParam(since)| since),
        until: query.until.map(|TimeParam(until)| until),
        stdout: Flag::or(query.stdout, true),
        stderr: Flag::or(query.stderr, true),
    };
    let _permit = turn_to_search(&state, &subject.actor).await?;
    let logs = reader(&state, subject.access.server_id()).ask::<Logs>(params).await?;
    let joined = if Flag::or(query.timestamps, false) { Joined::WithTimestamps } else { Joined::Messages };
    Ok(Json(ContainerLogsOut::new(subject.path.container_id.0, logs, joined)))
}

/// Start a container
///
/// Succeeds if it is already running.
#[api_v2_operation(tags(Docker), operation_id = "start_container")]
pub async fn start(
    ask: Checked<OnContainer<UseContainers>, NoQuery, OptionalJson<ActionIn>>,
) -> Result<Json<ActedOut>, ApiError> {
    act(Verb::Start, ask.subject, Order { timeout: None, body: ask.body }, ask.state).await
}

/// Stop a container
///
/// Returns when the container has stopped. Succeeds if it is already stopped.
#[api_v2_operation(tags(Docker), operation_id = "stop_container")]
pub async fn stop(
    ask: Checked<OnContainer<UseContainers>, StopQuery, OptionalJson<ActionIn>>,
) -> Result<Json<ActedOut>, ApiError> {
    act(Verb::Stop, ask.subject, Order { timeout: ask.query.timeout_seconds, body: ask.body }, ask.state).await
}

/// Restart a container
///
/// Returns when the container is running again.
#[api_v2_operation(tags(Docker), operation_id = "restart_container")]
pub async fn restart(
    ask: Checked<OnContainer<UseContainers>, StopQuery, OptionalJson<ActionIn>>,
) -> Result<Json<ActedOut>, ApiError> {
    act(Verb::Restart, ask.subject, Order { timeout: ask.query.timeout_seconds, body: ask.body }, ask.state).await
}

/// Pause a container
///
/// Freezes its processes. Succeeds if it is already paused.
#[api_v2_operation(tags(Docker), operation_id = "pause_container")]
pub async fn pause(
    ask: Checked<OnContainer<UseContainers>, NoQuery, OptionalJson<ActionIn>>,
) -> Result<Json<ActedOut>, ApiError> {
    act(Verb::Pause, ask.subject, Order { timeout: None, body: ask.body }, ask.state).await
}

/// Unpause a container
///
/// Succeeds if it is already running.
#[api_v2_operation(tags(Docker), operation_id = "unpause_container")]
pub async fn unpause(
    ask: Checked<OnContainer<UseContainers>, NoQuery, OptionalJson<ActionIn>>,
) -> Result<Json<ActedOut>, ApiError> {
    act(Verb::Unpause, ask.subject, Order { timeout: None, body: ask.body }, ask.state).await
}

/// Acts in a separate task, so that the audit log gets an outcome for each action that it shows as started, even if the
/// client disconnects.
async fn act(
    verb: Verb,
    subject: OnContainer<UseContainers>,
    order: Order,
    state: State,
) -> Result<Json<ActedOut>, ApiError> {
    let OptionalJson(body) = order.body;
    let signed = body.and_then(|body| body.signed).map(Signed::from);
    if signed.is_some() {
        let access = &subject.access;
        checked_signing(&state, access.owner_id(), access.server_id(), "docker_signed").await?;
    }
    let timeout_seconds = order.timeout.map(|Whole(seconds)| u32::try_from(seconds).unwrap_or(u32::MAX));
    let acted = actix_web::rt::spawn(async move {
        let OnContainer { access, actor, path, .. } = subject;
        let ContainerId(container_id) = path.container_id;
        let (by, asker) = (Some(actor.to_string()), state.accounts.access.asker(&actor));
        let entry =
            Entry::new(verb.action(), access.owner_id(), actor).on_server(access.server_id()).target(&container_id);
        let known = name_of(&state, access.server_id(), &container_id);
        let order_id = json!(Uuid::now_v7());
        let started = described(entry.clone(), known.clone(), signed.as_ref()).also("order_id", order_id.clone());
        state.store.record(started.outcome(Outcome::Started)).await?;
        let containers = Containers { registry: &state.registry, server_id: access.server_id(), by };
        let acted = containers.act(verb, ContainerParams { container_id, timeout_seconds, asker, signed }).await;
        let outcome = acted.as_ref().map_or_else(outcome_of, |_| Outcome::Ok);
        let name = acted.as_ref().ok().and_then(|acted| acted.name.clone()).or(known);
        let ended = described(entry, name, None).also("order_id", order_id).outcome(outcome);
        let ended = ended.reason(acted.as_ref().err().and_then(CallError::reason));
        if let Err(error) = state.store.record(ended).await {
            // The action has been done, and that is what the caller must know.
            tracing::error!(%error, "cannot record the outcome of an action on a container");
        }
        Ok::<_, ApiError>(acted?)
    });
    let acted = acted.await.map_err(ApiError::internal)??;
    Ok(Json(ActedOut::new(verb, acted)))
}

/// The name of a container by its id, if the newest sample has it: a stopped one is in none.
fn name_of(state: &State, server_id: Uuid, container_id: &str) -> Option<String> {
    let latest = state.fleet.latest(server_id)?;
    let mut containers = latest.sample.containers.iter();
    containers.find(|container| container.id.starts_with(container_id)).map(|container| container.name.clone())
}

/// People read the audit log long after an id says anything to them.
fn described(entry: Entry, name: Option<String>, signed: Option<&Signed>) -> Entry {
    match (name, signed) {
        (Some(name), Some(signed)) => entry.detail(json!({ "name": name, "signed": signed })),
        (Some(name), None) => entry.detail(json!({ "name": name })),
        (None, Some(signed)) => entry.detail(json!({ "signed": signed })),
        (None, None) => entry,
    }
}

/// Reads are anonymous: no agent needs to log them.
fn reader(state: &State, server_id: Uuid) -> Containers<'_> {
    Containers { registry: &state.registry, server_id, by: None }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/docker/{server_id}/containers").route(get().to(list)),
        at("/docker/{server_id}/containers/{container_id}").route(get().to(inspect)),
        at("/docker/{server_id}/containers/{container_id}/logs").route(get().to(logs)),
        at("/docker/{server_id}/containers/{container_id}/stats").route(get().to(stats)),
        at("/docker/{server_id}/containers/{container_id}/start").route(post().to(start)),
        at("/docker/{server_id}/containers/{container_id}/stop").route(post().to(stop)),
        at("/docker/{server_id}/containers/{container_id}/restart").route(post().to(restart)),
        at("/docker/{server_id}/containers/{container_id}/pause").route(post().to(pause)),
        at("/docker/{server_id}/containers/{container_id}/unpause").route(post().to(unpause)),
    ]
}
