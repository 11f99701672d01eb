//! WebSocket routes: decides before the upgrade who may open them.

use std::sync::Arc;

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Route, web};
use deserr::Deserr;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::TerminalSize;
use uuid::Uuid;

use super::client_address::client_address;
use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::CrossChecked;
use super::extract::fault::Faults;
use super::extract::param::{Flag, Whole};
use super::extract::{bearer_token, check_recent, find_caller, parse_query};
use super::logs::{WatchQuery, in_query};
use super::origin::check_origin;
use super::signed_in::{SignedText, checked_signing};
use crate::auth::Caller;
use crate::auth::access::{Action, Right, ServerAccess};
use crate::commands::job::Job;
use crate::logs::Log;
use crate::shares::{Connection, Permit, Share};
use crate::state::State;
use crate::ws::dashboard::{BEARER_PROTOCOL, SocketAuth};
use crate::ws::fleet_subscription::ListPlaces;
use crate::ws::metrics_subscription::{LiveMetrics, Sources};
use crate::ws::terminal::{self, LiveTerminal, MAX_CHARACTERS};
use crate::ws::{
    agent_session, alert_subscription, command_subscription, fleet_subscription, log_subscription, metrics_subscription,
};

/// The path below the API, and the handler, of each socket. The document describes each of them, and tests/it/rights says who may
/// open it.
pub fn routes() -> [(&'static str, Route); 7] {
    let get = web::get;
    [
        ("/agents/ws", get().to(agents)),
        ("/ws/metrics/{server_id}", get().to(metrics)),
        ("/ws/alerts", get().to(alerts)),
        ("/ws/fleet", get().to(fleet)),
        ("/ws/logs/{server_id}", get().to(logs)),
        ("/ws/commands/{server_id}/{command_id}", get().to(commands)),
        ("/ws/terminal/{server_id}", get().to(terminal)),
    ]
}

/// `/agents/ws`: an agent sends its key in its first message.
async fn agents(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
    services: web::Data<agent_session::Services>,
) -> Result<HttpResponse, actix_web::Error> {
    check_origin(&request, &state)?;
    let address = client_address(&request, &state);
    let share = Share::of_written(&address);
    agent_session::open(services.into_inner(), (share, address), &request, payload).map_err(not_an_upgrade)
}

/// `/ws/metrics/{server_id}`: a dashboard sends its user's token.
async fn metrics(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let (pass, access) = visitor(&request, &state).await?.admit(&request, &state, Action::See).await?;
    let recorded = recorded(&state, access).await?;
    metrics_subscription::open(&state, pass, recorded, &request, payload).map_err(not_an_upgrade)
}

async fn recorded(state: &State, access: ServerAccess) -> Result<LiveMetrics, ApiError> {
    let server = state.store.find_server(access.owner_id(), access.server_id()).await?;
    let server = server.ok_or(ApiError::not_found("Server not found"))?;
    let latest = state.metrics.history.latest(access.server_id()).await?;
    let sources = Sources {
        fleet: state.fleet.clone(),
        feeds: state.feeds.clone(),
        store: state.store.clone(),
        history: state.metrics.history.clone(),
    };
    Ok(LiveMetrics { sources, server_id: access.server_id(), status: server.status(), latest })
}

/// `/ws/alerts`: the same, for the alerts of all servers of the user.
async fn alerts(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let pass = visitor(&request, &state).await?.pass();
    alert_subscription::open(&state, pass, &request, payload).map_err(not_an_upgrade)
}

/// `/ws/fleet`: the same, for all servers of the user.
async fn fleet(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let pass = visitor(&request, &state).await?.pass();
    // The list of servers costs more than the rest of the socket.
    let share = Share::Account(pass.caller.user_id);
    let places = ListPlaces::new(&state.limits.shares.fleet_views, share).map_err(ApiError::from)?;
    fleet_subscription::open(&state, pass, places, &request, payload).map_err(not_an_upgrade)
}

/// `/ws/logs/{server_id}`: the same, for a log.
async fn logs(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let visitor = visitor(&request, &state).await?;
    let CrossChecked(query) = parse_query::<CrossChecked<WatchQuery>>(request.query_string()).map_err(in_query)?;
    let source = query.source().map_err(in_query)?;
    let (pass, access) = visitor.admit(&request, &state, Action::Use(Right::Logs)).await?;
    let by = pass.caller.at(client_address(&request, &state)).to_string();
    let watcher = state.logs.watch(Log { server_id: access.server_id(), source }, query.tail(), by);
    log_subscription::open(&state, pass, watcher, &request, payload).map_err(not_an_upgrade)
}

/// `/ws/commands/{server_id}/{command_id}`: the same, for a command.
async fn commands(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let right = Action::Use(Right::Commands);
    let (pass, access) = visitor(&request, &state).await?.admit(&request, &state, right).await?;
    let job = job(&request, &state, access.server_id()).await?;
    command_subscription::open(&state, pass, job, &request, payload).map_err(not_an_upgrade)
}

async fn job(request: &HttpRequest, state: &State, server_id: Uuid) -> Result<Arc<Job>, ApiError> {
    let not_found = || ApiError::not_found("Command not found");
    let id = request.match_info().get("command_id").and_then(|text| Uuid::try_parse(text).ok());
    let job = state.jobs.watch(server_id, id.ok_or_else(not_found)?).await?;
    job.ok_or_else(not_found)
}

/// `/ws/terminal/{server_id}`: the same, for a terminal on the server.
async fn terminal(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<State>,
) -> Result<HttpResponse, actix_web::Error> {
    let visitor = visitor(&request, &state).await?;
    let query: TerminalQuery = parse_query(request.query_string()).map_err(in_query)?;
    let (pass, access) = visitor.admit(&request, &state, Action::Use(Right::Terminal)).await?;
    check_recent(&state, &pass.caller).await?;
    // No terminal is opened for a request that cannot be upgraded.
    actix_http::ws::verify_handshake(request.head()).map_err(|error| not_an_upgrade(error.into()))?;
    let actor = pass.caller.at(client_address(&request, &state));
    let size = query.size();
    let is_set = |flag: Option<Flag>| flag.is_some_and(|Flag(is_set)| is_set);
    let kept_for = is_set(query.keep).then_some(state.config.timing.terminal_kept);
    let signed = query.signed.map(|SignedText(signed)| signed);
    if signed.is_some() {
        checked_signing(&state, access.owner_id(), access.server_id(), "terminal_signed").await?;
    }
    let opening = terminal::Opening {
        owner_id: access.owner_id(),
        asker: state.accounts.access.asker(&actor),
        actor,
        size,
        signed,
        kept_for,
    };
    let server = terminal::Server { id: access.server_id(), registry: &state.registry, store: &state.store };
    let live = match is_set(query.resume) {
        true => LiveTerminal::resuming(&server, opening, state.config.timing.terminal_kept),
        false => LiveTerminal::start(&server, opening).await.map_err(ApiError::from)?,
    };
    terminal::open(&state, pass, live, &request, payload).map_err(not_an_upgrade)
}

#[derive(Debug, Deserr)]
#[deserr(error = Faults)]
struct TerminalQuery {
    #[deserr(default)]
    columns: Option<Whole<1, MAX_CHARACTERS>>,
    #[deserr(default)]
    rows: Option<Whole<1, MAX_CHARACTERS>>,
    /// What operators signed: JSON in base64url.
    #[deserr(default)]
    signed: Option<SignedText>,
    /// It waits for its client when the connection is lost.
    #[deserr(default)]
    keep: Option<Flag>,
    /// The first message names a terminal that waits.
    #[deserr(default)]
    resume: Option<Flag>,
}

impl TerminalQuery {
    /// Defaults to 80 columns and 24 rows.
    fn size(&self) -> TerminalSize {
        let or = |asked: &Option<Whole<1, MAX_CHARACTERS>>, usual| {
            asked.and_then(|Whole(count)| u16::try_from(count).ok()).unwrap_or(usual)
        };
        TerminalSize { columns: or(&self.columns, 80), rows: or(&self.rows, 24) }
    }
}

/// The caller, and when their token expires.
struct Visitor {
    caller: Caller,
    token_expires_at: Timestamp,
    address: String,
    permit: Permit,
}

/// Checks that the page may open sockets here and that its token is valid.
async fn visitor(request: &HttpRequest, state: &State) -> Result<Visitor, ApiError> {
    check_origin(request, state)?;
    let token = token(request).ok_or(ApiError::code(ErrorCode::NotAuthenticated))?;
    let address = client_address(request, state);
    let (caller, token_expires_at) = find_caller(state, &token, &address).await?;
    let permit = state.limits.shares.dashboards.try_enter(Share::Account(caller.user_id))?;
    request.conn_data::<Connection>().into_iter().for_each(Connection::count_as_known);
    Ok(Visitor { caller, token_expires_at, address, permit })
}

impl Visitor {
    /// The pass for a socket that shows all servers.
    fn pass(self) -> SocketAuth {
        let Self { caller, token_expires_at, address, permit } = self;
        SocketAuth { caller, token_expires_at, address, server: None, _permit: permit }
    }

    /// Checks whether the caller may do this to the server in the path.
    async fn admit(
        self,
        request: &HttpRequest,
        state: &State,
        action: Action,
    ) -> Result<(SocketAuth, ServerAccess), ApiError> {
        let server_id = request.match_info().get("server_id").and_then(|text| Uuid::try_parse(text).ok());
        let server_id = server_id.ok_or(ApiError::not_found("Server not found"))?;
        let access = state.accounts.access.server(&self.caller, server_id, action).await?;
        Ok((SocketAuth { server: Some((server_id, action)), ..self.pass() }, access))
    }
}

/// The token from any of the three places. Browsers cannot set headers on a WebSocket.
fn token(request: &HttpRequest) -> Option<String> {
    bearer_token(request).map(str::to_owned).or_else(|| subprotocol_token(request)).or_else(|| query_token(request))
}

/// The token after `bearer` in `Sec-WebSocket-Protocol: bearer, <token>`, on one line or several.
fn subprotocol_token(request: &HttpRequest) -> Option<String> {
    let lines = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL).filter_map(|line| line.to_str().ok());
    let mut protocols = lines.flat_map(|line| line.split(',')).map(str::trim);
    protocols.find(|protocol| *protocol == BEARER_PROTOCOL)?;
    protocols.next().map(str::to_owned)
}

fn query_token(request: &HttpRequest) -> Option<String> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(request.query_string()).ok()?;
    pairs.into_iter().find(|(name, _)| name == "token").map(|(_, token)| token)
}

/// The error of a request that is no WebSocket handshake.
fn not_an_upgrade(error: actix_web::Error) -> actix_web::Error {
    tracing::debug!(%error, "a request was no WebSocket handshake");
    ApiError::Refused { code: ErrorCode::BadRequest, detail: "This address accepts only WebSocket connections".into() }
        .into()
}
