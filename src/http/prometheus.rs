//! `/metrics/prometheus`: the servers' latest metrics, to be scraped by Prometheus.

use std::convert::Infallible;

use actix_web::body::BoxBody;
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder};
use futures_util::stream;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{OperationModifier, api_v2_operation};
use paperclip::v2::models::{DataType, DefaultOperationRaw, DefaultSchemaRaw, Either, MediaRange, Response};
use paperclip::v2::schema::Apiv2Schema;
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;

use super::error::{ApiError, ErrorCode};
use super::extract::{Checked, OnServer, See, SignedIn};
use super::path::at;
use crate::metrics::exposition::{Described, Exposition, Target};
use crate::state::State;
use crate::store::{ServerRecord, Visibility};

/// The content type of Prometheus' text format.
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Servers in one query.
const PAGE: u64 = 500;

/// Metrics as text, written as fast as the client reads.
pub struct Exposed(Exposition);

impl Responder for Exposed {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let chunks = stream::unfold(self.0, |mut exposition| async move {
            let chunk = exposition.next()?;
            // The text of a fleet takes a while to write, and a fast reader would otherwise block other tasks.
            tokio::task::yield_now().await;
            Some((Ok::<_, Infallible>(chunk), exposition))
        });
        HttpResponse::Ok()
            .content_type(TEXT_FORMAT)
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .streaming(Box::pin(chunks))
    }
}

impl Apiv2Schema for Exposed {}

impl OperationModifier for Exposed {
    fn update_response(op: &mut DefaultOperationRaw) {
        let text = DefaultSchemaRaw { data_type: Some(DataType::String), ..DefaultSchemaRaw::default() };
        let response = Response { description: Some("OK".to_owned()), schema: Some(text), ..Response::default() };
        op.responses.insert(StatusCode::OK.as_str().to_owned(), Either::Right(response));
        op.produces = "text/plain".parse().ok().map(|mime| [MediaRange(mime)].into());
    }
}

/// Get the latest metrics of all servers that you can see for Prometheus
///
/// In Prometheus' text format 0.0.4, with node_exporter's names where they exist. Each sample has the labels
/// `instance`, the server's name, and `server_id`. `signalbox_server_up` is 1 while the agent is connected and its
/// latest sample is fresh; for other servers there is little more than its value 0. Open series are named
/// `signalbox_<name>_<unit>`, with the label `target` if they have one.
#[api_v2_operation(tags(Metrics), operation_id = "read_all_prometheus_metrics")]
pub async fn all(ask: Checked<SignedIn>) -> Result<Exposed, ApiError> {
    ask.state.limits.memory.room().await?;
    let visible = ask.state.accounts.access.visible(&ask.subject.caller);
    let targets = targets(&ask.state, &visible).await?;
    Ok(Exposed(described_exposition(&ask.state, targets).await?))
}

/// Get the latest metrics of a server for Prometheus
///
/// As `/metrics/prometheus`, for one server. 404 `no_metrics` until the server has sent its first sample.
#[api_v2_operation(tags(Metrics), operation_id = "read_prometheus_metrics")]
pub async fn one(ask: Checked<OnServer<See>>) -> Result<Exposed, ApiError> {
    let access = ask.subject.access;
    let latest = ask.state.metrics.history.latest(access.server_id()).await?;
    let latest = latest.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    let server = ask.state.store.find_server(access.owner_id(), access.server_id()).await?;
    let server = server.ok_or(ApiError::not_found("Server not found"))?;
    let target = Target::new(described(&server.record, &ask.state), Some(latest), ask.state.clock.now());
    Ok(Exposed(described_exposition(&ask.state, vec![target]).await?))
}

/// The exposition of targets, with their agents' descriptions of open series.
async fn described_exposition(state: &State, targets: Vec<Target>) -> Result<Exposition, ApiError> {
    let mut exposition = Exposition::new(targets);
    let help = state.store.help_of_series(exposition.described_by().cloned()).await?;
    exposition.describe(&help);
    Ok(exposition)
}

/// All visible servers by id, with their latest samples.
async fn targets(state: &State, visible: &Visibility) -> Result<Vec<Target>, ApiError> {
    let mut targets = Vec::new();
    let mut after = None;
    loop {
        let page = state.store.servers_after(visible, after, PAGE).await?;
        let described: Vec<Described<'_>> = page.iter().map(|server| described(server, state)).collect();
        // Offline servers have nothing to expose that would justify reading the history at every scrape.
        let online = described.iter().filter(|server| server.is_online).map(|server| server.server_id);
        let mut latest = state.metrics.history.latest_of(&online.collect::<Vec<_>>()).await?;
        for server in described {
            let latest = latest.remove(&server.server_id).or_else(|| state.fleet.latest(server.server_id));
            targets.push(Target::new(server, latest, state.clock.now()));
        }
        after = match page.last() {
            Some(last) if page.len() as u64 == PAGE => Some(last.id),
            _ => return Ok(targets),
        };
    }
}

/// A server's record, with the present state of its agent.
fn described<'a>(server: &'a ServerRecord, state: &State) -> Described<'a> {
    let recorded = server.session_id.is_some();
    let is_online =
        state.fleet.presence(server.id).map_or(recorded, |presence| presence.status == ServerStatus::Online);
    let last_seen_at = server.last_seen_at.map(Timestamp::from);
    let clock_offset_ms = state.fleet.clock_offset(server.id);
    Described {
        server_id: server.id,
        name: &server.name,
        agent: server.agent.as_deref(),
        clock_offset_ms,
        is_online,
        last_seen_at,
    }
}

/// The route of all servers: a fixed path, which comes before those with parameters that match it.
pub fn routes() -> Vec<Resource> {
    vec![at("/metrics/prometheus").route(get().to(all))]
}

/// The route of one server.
pub fn routes_of_server() -> Vec<Resource> {
    vec![at("/metrics/{server_id}/prometheus").route(get().to(one))]
}
