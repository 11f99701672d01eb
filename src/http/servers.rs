//! `/servers`: managed machines.

use std::collections::{HashMap, HashSet};

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{self, Resource, get, post, put};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::fault::Faults;
use super::extract::field::{Clearable, Description, Host, Name, Port, Tags, described};
use super::extract::param::page;
use super::extract::{self, Checked, IdPath, Manage, NoQuery, OnServer, Own, See, SignedIn, check_recent};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::people_out::{OwnRoleParam, PersonOut, RightOut, RoleOut};
use super::reply::{Done, Listed};
use super::server_filter::{ServersQuery, filter};
use super::signed_in::SigningOut;
use super::task::run_detached;
use super::updates::FailedUpdateOut;
use crate::audit::Actor;
use crate::auth::access::{Action, ServerAccess, Standing};
use crate::auth::machines;
use crate::change::Change;
use crate::effects;
use crate::feeds::{FeedFrame, Topic};
use crate::fleet::Fleet;
use crate::state::State;
use crate::store::{Caller, DEFAULT_PORT, NewServer, Server, ServerPatch};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ServerIn {
    name: Name,
    host: Host,
    /// The SSH port. Defaults to 22.
    #[deserr(default)]
    port: Option<Port>,
    #[deserr(default)]
    description: Option<Description>,
    #[deserr(default)]
    tags: Option<Tags>,
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ServerPatchIn {
    #[deserr(default)]
    name: Option<Name>,
    #[deserr(default)]
    host: Option<Host>,
    #[deserr(default)]
    port: Option<Port>,
    #[deserr(default)]
    description: Clearable<Description>,
    #[deserr(default)]
    tags: Clearable<Tags>,
}

/// Whether an agent is connected: `pending` (none has ever been), `online` or `offline`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Status(pub ServerStatus);

described!(Status, json!({ "type": "string", "enum": ["pending", "online", "offline"], "example": "online" }));

/// What the agent reported about itself when it last connected.
#[derive(Debug, Clone, Serialize, Deserialize, Apiv2Schema)]
pub struct AgentOut {
    version: String,
    hostname: String,
    os: String,
    kernel: String,
    arch: String,
    cpu_count: u32,
    /// What the agent's own policy allows.
    capabilities: Vec<String>,
    /// What the agent asks of those who sign. Null where nothing needs a signature, and for older agents.
    signing: Option<SigningOut>,
    /// The last build of itself that the agent tried and that did not work, as long as it runs the one before.
    failed_update: Option<FailedUpdateOut>,
    connected_at: Option<AgentMoment>,
    /// How far the machine's clock is ahead of the service's, in milliseconds. Updated while the agent is connected.
    clock_offset_ms: Option<i64>,
    /// Another machine uses a key of this server, for example a clone of it: they take over the server from each other.
    /// Null if there is no conflict.
    conflict: Option<ConflictOut>,
}

/// The machine that lost the server when the connected one took over.
#[derive(Debug, Clone, Serialize, Deserialize, Apiv2Schema)]
pub struct ConflictOut {
    since: AgentMoment,
    /// When a machine last took over the server; the agent of the other one tries again after an hour.
    last_at: AgentMoment,
    hostname: String,
    /// The address that it connected from.
    address: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentMoment(Timestamp);

described!(AgentMoment, json!({ "type": "string", "format": "date-time" }));

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServerOut {
    id: Id,
    name: String,
    host: String,
    port: Port16,
    status: Status,
    description: String,
    tags: Vec<String>,
    owner: PersonOut,
    /// Your role.
    role: RoleOut,
    /// Your rights, for what a role alone does not allow.
    rights: Vec<RightOut>,
    last_seen_at: Option<TimeOut>,
    agent: Option<AgentOut>,
    /// The number of series of a recent sample that the history dropped because the server has too many; usually 0.
    series_dropped: u32,
    created_at: TimeOut,
    updated_at: TimeOut,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Port16(u16);

described!(Port16, json!({ "type": "integer", "minimum": 1, "maximum": 65_535, "example": 22 }));

impl ServerOut {
    /// The record, with the present state of the agent, and what the caller is for it.
    fn new(server: Server, owner: PersonOut, standing: Standing, fleet: &Fleet, now: Timestamp) -> Self {
        let status = server.status();
        let Server { record, tags } = server;
        // A row that was read just before the first connection does not show it, so all its values are from that
        // moment.
        let presence = fleet.presence(record.id).filter(|_| record.agent.is_some());
        let mut agent = record.agent.as_deref().and_then(|json| {
            serde_json::from_str::<AgentOut>(json)
                .inspect_err(
                    |error| tracing::warn!(server.id = %record.id, %error, "an agent's description is unreadable"),
                )
                .ok()
        });
        if let Some(agent) = &mut agent {
            agent.clock_offset_ms = fleet.clock_offset(record.id).or(agent.clock_offset_ms);
            agent.conflict.take_if(|ConflictOut { last_at: AgentMoment(at), .. }| !machines::is_current(*at, now));
        }
        Self {
            id: Id(record.id),
            name: record.name,
            host: record.host,
            port: Port16(u16::try_from(record.port).unwrap_or(DEFAULT_PORT)),
            status: Status(presence.map_or(status, |presence| presence.status)),
            description: record.description,
            tags,
            owner,
            role: RoleOut(standing.role),
            rights: standing.rights.iter().map(RightOut).collect(),
            last_seen_at: presence
                .and_then(|presence| presence.last_seen_at)
                .or(record.last_seen_at.map(Timestamp::from))
                .map(TimeOut),
            agent,
            series_dropped: u32::try_from(record.series_dropped).unwrap_or_default(),
            created_at: TimeOut(record.created_at.into()),
            updated_at: TimeOut(record.updated_at.into()),
        }
    }
}

/// List the servers that you can see
///
/// Your own and those that others share with you, sorted by name.
#[api_v2_operation(tags(Servers), operation_id = "list_servers")]
pub async fn list(ask: Checked<SignedIn, ServersQuery>) -> Result<Listed<ServerOut>, ApiError> {
    let query = ask.query;
    let filter = filter(query.status, query.tag, query.q);
    let wanted = page(query.limit, query.offset);
    let caller = ask.subject.caller;
    let listed = match query.role {
        Some(OwnRoleParam) => ask.state.accounts.access.owned(&caller),
        None => ask.state.accounts.access.visible(&caller),
    };
    let found = ask.state.store.list_servers(&listed, filter, wanted).await?;
    let others = found.items.iter().map(|server| server.record.owner_id).filter(|id| *id != caller.user_id);
    let others: Vec<Uuid> = others.collect::<HashSet<_>>().into_iter().collect();
    let names = if others.is_empty() { HashMap::new() } else { ask.state.store.usernames(&others).await? };
    let (access, now) = (&ask.state.accounts.access, ask.state.clock.now());
    let shown = |server: Server| {
        // A grant may have ended since the list was read.
        let standing = access.standing(&caller, &server)?;
        let owner_id = server.record.owner_id;
        let owner =
            if owner_id == caller.user_id { caller.username.to_string() } else { names.get(&owner_id)?.clone() };
        Some(ServerOut::new(server, PersonOut::new(owner_id, owner), standing, &ask.state.fleet, now))
    };
    Ok(Listed { items: found.items.into_iter().filter_map(shown).collect(), total: found.total })
}

/// A server that was read or changed by somebody with access.
async fn out(state: &State, caller: &Caller, access: &ServerAccess, server: Server) -> Result<ServerOut, ApiError> {
    let owner_id = server.record.owner_id;
    let owner = match owner_id == caller.user_id {
        true => Some(caller.username.to_string()),
        false => state.store.usernames(&[owner_id]).await?.remove(&owner_id),
    };
    let owner = PersonOut::new(owner_id, owner.ok_or(ApiError::not_found("Server not found"))?);
    // The change of a manager may have ended their own access.
    let standing = state.accounts.access.standing(caller, &server);
    let standing = standing.unwrap_or(Standing { role: access.role(), rights: access.rights() });
    Ok(ServerOut::new(server, owner, standing, &state.fleet, state.clock.now()))
}

/// Add a server
#[api_v2_operation(tags(Servers), operation_id = "create_server")]
pub async fn create(
    ask: Checked<SignedIn, NoQuery, extract::Json<ServerIn>>,
) -> Result<CreatedJson<ServerOut>, ApiError> {
    let extract::Json(input) = ask.body;
    ask.state.accounts.access.account(&ask.subject.caller, None, Action::Manage)?;
    let new = NewServer {
        owner_id: ask.subject.caller.user_id,
        name: input.name.0,
        host: input.host.0,
        port: input.port.map_or(DEFAULT_PORT, |Port(port)| port),
        description: input.description.map(|Description(text)| text).unwrap_or_default(),
        tags: input.tags.unwrap_or_default().0,
    };
    expect_may_share(&ask.state, &ask.subject.caller, new.owner_id, &new.tags).await?;
    run_detached(async move {
        let owner_id = new.owner_id;
        let created = ask.state.store.create_server(new, ask.subject.actor).await;
        let server = match created {
            Ok(server) => server,
            Err(error) => {
                // The server may be stored although the answer was lost, so open dashboards read the list again.
                ask.state.feeds.publish(Topic::Servers(owner_id), FeedFrame::Notice);
                return Err(error.into());
            }
        };
        effects::commit(&ask.state, Change::ServerChanged { server_id: server.record.id, owner_id }).await;
        let caller = &ask.subject.caller;
        let owner = PersonOut::new(owner_id, caller.username.to_string());
        let standing = ask.state.accounts.access.standing(caller, &server).unwrap_or(Standing::OWNER);
        Ok(CreatedJson(ServerOut::new(server, owner, standing, &ask.state.fleet, ask.state.clock.now())))
    })
    .await
}

/// Get a server
#[api_v2_operation(tags(Servers), operation_id = "read_server")]
pub async fn read(ask: Checked<OnServer<See, IdPath>>) -> Result<Json<ServerOut>, ApiError> {
    let OnServer { access, caller, .. } = ask.subject;
    let server = ask.state.store.find_server(access.owner_id(), access.server_id()).await?;
    Ok(Json(out(&ask.state, &caller, &access, found(server)?).await?))
}

/// Change a server
///
/// Changes the given fields; null clears the description or the tags.
#[api_v2_operation(tags(Servers), operation_id = "update_server")]
pub async fn update(
    ask: Checked<OnServer<Manage, IdPath>, NoQuery, extract::Json<ServerPatchIn>>,
) -> Result<Json<ServerOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let OnServer { access, caller, actor, .. } = ask.subject;
    let patch = ServerPatch {
        name: input.name.map(|Name(name)| name),
        host: input.host.map(|Host(host)| host),
        port: input.port.map(|Port(port)| port),
        description: input.description.change(|Description(text)| text),
        tags: input.tags.change(|Tags(tags)| tags),
    };
    if let Some(tags) = &patch.tags {
        let present = ask.state.store.tags_of_server(access.server_id()).await?;
        let added: Vec<String> = tags.iter().filter(|tag| !present.contains(tag)).cloned().collect();
        expect_may_share(&ask.state, &caller, access.owner_id(), &added).await?;
    }
    run_detached(async move {
        let (owner_id, server_id, now) = (access.owner_id(), access.server_id(), ask.state.clock.now());
        let updated = ask.state.store.update_server(owner_id, server_id, patch, actor, now).await;
        // Even after an error: a change may be stored although its answer was lost.
        effects::commit(&ask.state, changed(&access)).await;
        Ok(Json(out(&ask.state, &caller, &access, found(updated?)?).await?))
    })
    .await
}

/// A tag that is shared gives others rights on the server, so it needs what a grant needs.
async fn expect_may_share(state: &State, caller: &Caller, owner_id: Uuid, tags: &[String]) -> Result<(), ApiError> {
    if state.accounts.access.is_shared_by_tag(owner_id, tags) {
        check_recent(state, caller).await?;
    }
    Ok(())
}

/// Delete a server
///
/// Closes its agent's connection, and removes its keys, metrics, thresholds, alerts and grants. Only its owner may.
#[api_v2_operation(tags(Servers), operation_id = "delete_server")]
pub async fn delete(ask: Checked<OnServer<Own, IdPath>>) -> Result<Done, ApiError> {
    let OnServer { access, actor, .. } = ask.subject;
    let existed = run_detached(async move { remove(&ask.state, access, actor).await }).await?;
    if existed { Ok(Done("Server deleted")) } else { Err(ApiError::not_found("Server not found")) }
}

/// Removes a server: first its record, then whatever depends on it, then samples that arrived during the deletion.
async fn remove(state: &State, access: ServerAccess, actor: Actor) -> Result<bool, ApiError> {
    let server_id = access.server_id();
    let deleted = state.store.delete_server(access.owner_id(), server_id, actor).await;
    let change = match &deleted {
        Ok(_) => Change::ServerDeleted { server_id, owner_id: access.owner_id() },
        // After an error the server may be deleted or not, so everything about it is read again.
        Err(_) => changed(&access),
    };
    effects::commit(state, change).await;
    let existed = deleted?;
    _ = state.metrics.recorder.flush().await;
    if let Err(error) = state.store.delete_history(server_id).await {
        // The server has been deleted nevertheless. The archive finds what is left.
        tracing::warn!(server.id = %server_id, %error, "cannot remove the history of a deleted server yet, will retry");
    }
    Ok(existed)
}

fn changed(access: &ServerAccess) -> Change {
    Change::ServerChanged { server_id: access.server_id(), owner_id: access.owner_id() }
}

fn found(server: Option<Server>) -> Result<Server, ApiError> {
    server.ok_or(ApiError::not_found("Server not found"))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/servers").route(get().to(list)).route(post().to(create)),
        at("/servers/{id}").route(get().to(read)).route(put().to(update)).route(web::delete().to(delete)),
    ]
}

#[cfg(test)]
mod tests {
    use entity::{Millis, server};

    use super::*;

    fn read_before_any_agent() -> Server {
        let at = Millis::from(Timestamp::from_millis(1));
        let record = server::Model {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            search_text: String::new(),
            name: "web-1".to_owned(),
            host: "web-1.example".to_owned(),
            port: 22,
            description: String::new(),
            agent: None,
            session_id: None,
            instance_id: None,
            session_epoch: 0,
            last_seen_at: None,
            series_dropped: 0,
            created_at: at,
            updated_at: at,
        };
        Server { record, tags: Vec::new() }
    }

    #[test]
    fn an_agent_that_connects_while_the_row_is_read_is_shown_completely_or_not_at_all() {
        let (fleet, row) = (Fleet::default(), read_before_any_agent());
        fleet.online(Uuid::nil(), Uuid::nil(), Uuid::nil(), Timestamp::from_millis(2));

        let owner = PersonOut::new(Uuid::nil(), "ada".to_owned());
        let shown =
            serde_json::to_value(ServerOut::new(row, owner, Standing::OWNER, &fleet, Timestamp::now())).unwrap();

        assert_eq!(
            (&shown["status"], &shown["agent"], &shown["last_seen_at"]),
            (&json!("pending"), &json!(null), &json!(null))
        );
    }
}
