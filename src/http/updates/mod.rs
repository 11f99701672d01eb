//! `/updates`: releases of the agent, rolled out to servers.

mod input;
mod out;

use actix_web::web::Json;
use paperclip::actix::web::{Resource, get, post};
use paperclip::actix::{CreatedJson, api_v2_operation};
use serde_json::json;
use signalbox_protocol::agent::AgentInfo;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::CrossChecked;
use super::extract::param::PageQuery;
use super::extract::{self, CallerAt, Checked, IdPath, NoQuery, Recent, SignedIn};
use super::path::at;
use super::reply::Listed;
use super::task::run_detached;
use crate::audit::{Actor, Entry, action};
use crate::auth::Caller;
use crate::install::OfferedRelease;
use crate::state::State;
use crate::store::rollouts::{RolloutStep, UpdateRollout, UpdateRolloutServer, rollout};
use crate::store::{PageRequest, Server, ServerFilter};
use crate::updates::takes_updates;
use input::{RolloutIn, wave_of};
pub(super) use out::FailedUpdateOut;
use out::{RolloutOut, RolloutSummaryOut, UpdatesOut, agent_of};

/// The servers of one answer, and of one rollout.
const MAX_SERVERS: u64 = 10_000;

/// Get the agent's release and your servers
///
/// The release that this service offers, which of your own servers take it, and your newest rollout. The service has no key for
/// releases: agents take them only with a signature by a key that their owner pinned.
#[api_v2_operation(tags(Updates), operation_id = "read_updates")]
pub async fn overview(ask: Checked<SignedIn>) -> Result<Json<UpdatesOut>, ApiError> {
    let (state, caller) = (&ask.state, &ask.subject.caller);
    let release = state.programs.release().await?;
    let servers = own_servers(state, caller).await?;
    let newest = state.store.list_rollouts(caller.user_id, PageRequest { limit: 1, offset: 0 }).await?;
    let rollout = summaries(state, newest.items).await?.pop();
    Ok(Json(UpdatesOut::new(release, &servers, rollout)))
}

/// List your rollouts
///
/// Newest first, without their servers. The newest 50 are kept.
#[api_v2_operation(tags(Updates), operation_id = "list_rollouts")]
pub async fn list(ask: Checked<SignedIn, PageQuery>) -> Result<Listed<RolloutSummaryOut>, ApiError> {
    let page = ask.state.store.list_rollouts(ask.subject.caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: summaries(&ask.state, page.items).await?, total: page.total })
}

/// Roll the agent's release out
///
/// To those of your own servers whose agents take signed updates and have another version, wave by wave. Which servers these are, and
/// the wave of each, is decided now.
#[api_v2_operation(tags(Updates), operation_id = "create_rollout")]
pub async fn create(
    ask: Checked<Recent<SignedIn>, NoQuery, extract::Json<CrossChecked<RolloutIn>>>,
) -> Result<CreatedJson<RolloutOut>, ApiError> {
    let extract::Json(CrossChecked(input)) = ask.body;
    let Recent(SignedIn { caller, actor }) = ask.subject;
    let state = ask.state;
    let release = state.programs.release().await?.ok_or(ApiError::code(ErrorCode::NoRelease))?;
    if !release.missing.is_empty() {
        let detail = format!("Not here as the release names them: {}", release.missing.join(", "));
        return Err(ApiError::Refused { code: ErrorCode::ReleaseIncomplete, detail: detail.into() });
    }
    let row = row_of(&state, release, &input, &actor, caller.user_id);
    let members = members(&own_servers(&state, &caller).await?, &row, &input.tags());
    let Some(first) = members.iter().map(|member| member.wave).min() else {
        return Err(ApiError::code(ErrorCode::NothingToUpdate));
    };
    let row = UpdateRollout { wave: first, ..row };
    run_detached(async move {
        let detail = json!({
            "version": row.version, "waves": input.tags(), "pause_minutes": row.pause_seconds / 60,
            "max_failed": row.max_failed, "servers": members.len(),
        });
        let entry = entry(action::ROLLOUT_CREATE, &row, actor).detail(detail);
        if !state.store.create_rollout(&row, &members, entry).await? {
            return Err(ApiError::code(ErrorCode::RolloutRunning));
        }
        Ok(CreatedJson(whole(&state, row).await?))
    })
    .await
}

/// Get a rollout
///
/// With its servers. One that was deleted, or went to another account, is not part of it any more.
#[api_v2_operation(tags(Updates), operation_id = "read_rollout")]
pub async fn read(ask: Checked<CallerAt<IdPath>>) -> Result<Json<RolloutOut>, ApiError> {
    let row = find(&ask.state, &ask.subject.caller, ask.subject.path.id.0).await?;
    Ok(Json(whole(&ask.state, row).await?))
}

/// Pause a rollout
///
/// No further server is offered the release. What agents have taken already continues, and its outcome is noted.
#[api_v2_operation(tags(Updates), operation_id = "pause_rollout")]
pub async fn pause(ask: Checked<CallerAt<IdPath>>) -> Result<Json<RolloutOut>, ApiError> {
    step(ask.state, ask.subject, RolloutStep::Pause).await
}

/// Resume a paused rollout
///
/// It continues where it was.
#[api_v2_operation(tags(Updates), operation_id = "resume_rollout")]
pub async fn resume(ask: Checked<Recent<CallerAt<IdPath>>>) -> Result<Json<RolloutOut>, ApiError> {
    let Recent(subject) = ask.subject;
    step(ask.state, subject, RolloutStep::Resume).await
}

/// Cancel a rollout
///
/// It ends. What agents have taken already continues.
#[api_v2_operation(tags(Updates), operation_id = "cancel_rollout")]
pub async fn cancel(ask: Checked<CallerAt<IdPath>>) -> Result<Json<RolloutOut>, ApiError> {
    step(ask.state, ask.subject, RolloutStep::Cancel).await
}

async fn step(state: State, subject: CallerAt<IdPath>, step: RolloutStep) -> Result<Json<RolloutOut>, ApiError> {
    let CallerAt { caller, actor, path } = subject;
    run_detached(async move {
        let before = find(&state, &caller, path.id.0).await?;
        let action = match step {
            RolloutStep::Pause => action::ROLLOUT_PAUSE,
            RolloutStep::Resume => action::ROLLOUT_RESUME,
            RolloutStep::Cancel => action::ROLLOUT_CANCEL,
        };
        let entry = entry(action, &before, actor);
        let is_changed = state.store.step_rollout(caller.user_id, before.id, step, state.clock.now(), entry).await?;
        let after = find(&state, &caller, before.id).await?;
        if !is_changed && after.ended_at.is_some() {
            return Err(ApiError::code(ErrorCode::RolloutEnded));
        }
        Ok(Json(whole(&state, after).await?))
    })
    .await
}

/// The servers that belong to the caller's account, by name.
async fn own_servers(state: &State, caller: &Caller) -> Result<Vec<Server>, ApiError> {
    let owned = state.accounts.access.owned(caller);
    let all = PageRequest { limit: MAX_SERVERS, offset: 0 };
    Ok(state.store.list_servers(&owned, ServerFilter::default(), all).await?.items)
}

fn row_of(state: &State, release: OfferedRelease, input: &RolloutIn, actor: &Actor, owner_id: Uuid) -> UpdateRollout {
    let now = state.clock.now().into();
    UpdateRollout {
        id: Uuid::now_v7(),
        owner_id,
        version: release.version,
        release: release.release,
        signature: release.signature,
        waves: json!(input.tags()).to_string(),
        pause_seconds: input.pause_seconds(),
        max_failed: input.max_failed(),
        status: rollout::RUNNING.to_owned(),
        stopped_reason: None,
        wave: 0,
        wave_since: now,
        created_by: actor.username.to_string(),
        created_at: now,
        ended_at: None,
    }
}

/// The servers of a rollout, each with its wave: those whose agents take updates and have another version.
fn members(servers: &[Server], row: &UpdateRollout, waves: &[Vec<String>]) -> Vec<UpdateRolloutServer> {
    let member = |server: &Server| {
        let agent: AgentInfo = agent_of(server).filter(takes_updates).filter(|agent| agent.version != row.version)?;
        Some(UpdateRolloutServer {
            rollout_id: row.id,
            server_id: server.record.id,
            wave: wave_of(waves, &server.tags)?,
            state: rollout::WAITING.to_owned(),
            reason: None,
            from_version: agent.version,
            session_id: None,
            offers: 0,
            changed_at: row.created_at,
        })
    };
    servers.iter().filter_map(member).collect()
}

async fn find(state: &State, caller: &Caller, id: Uuid) -> Result<UpdateRollout, ApiError> {
    let found = state.store.find_rollout(caller.user_id, id).await?;
    found.ok_or(ApiError::not_found("Rollout not found"))
}

async fn summaries(state: &State, rows: Vec<UpdateRollout>) -> Result<Vec<RolloutSummaryOut>, ApiError> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut counts = state.store.rollout_counts(&ids).await?;
    let with_counts = |row: UpdateRollout| {
        let counted = counts.remove(&row.id).unwrap_or_default();
        RolloutSummaryOut::new(row, counted.iter().map(|(_, state, count)| (state.as_str(), *count)))
    };
    Ok(rows.into_iter().map(with_counts).collect())
}

async fn whole(state: &State, row: UpdateRollout) -> Result<RolloutOut, ApiError> {
    let servers = state.store.rollout_servers(&row).await?;
    Ok(RolloutOut::new(row, servers))
}

fn entry(action: &'static str, row: &UpdateRollout, actor: Actor) -> Entry {
    Entry::new(action, row.owner_id, actor).target(row.id).detail(json!({ "version": row.version }))
}

/// The routes.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/updates").route(get().to(overview)),
        at("/updates/rollouts").route(get().to(list)).route(post().to(create)),
        at("/updates/rollouts/{id}").route(get().to(read)),
        at("/updates/rollouts/{id}/pause").route(post().to(pause)),
        at("/updates/rollouts/{id}/resume").route(post().to(resume)),
        at("/updates/rollouts/{id}/cancel").route(post().to(cancel)),
    ]
}
