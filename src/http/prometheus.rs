//! `/metrics/prometheus`: servers' latest metrics, for a Prometheus that scrapes them.

use std::convert::Infallible;

use actix_web::body::BoxBody;
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder};
use futures_util::stream;
use paperclip::actix::{OperationModifier, api_v2_operation};
use paperclip::v2::models::{DataType, DefaultOperationRaw, DefaultSchemaRaw, Either, MediaRange, Response};
use paperclip::v2::schema::Apiv2Schema;
use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::ServerStatus;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::{Ask, OnServer, Read, SignedIn};
use crate::metrics::exposition::{Described, Exposition, Target};
use crate::state::State;
use crate::store::ServerRecord;

/// The content type of Prometheus' text format.
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Servers that are read at once.
const PAGE: u64 = 500;

/// Metrics as text, written as fast as they are taken.
pub struct Exposed(Exposition);

impl Responder for Exposed {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let chunks = stream::unfold(self.0, |mut exposition| async move {
            let chunk = exposition.next()?;
            // A fleet's text takes a while to make, and a reader that is quick enough would never let others have a turn.
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

/// The latest metrics of all your servers for Prometheus
///
/// In Prometheus' text format 0.0.4, with node_exporter's names where it has them. Each sample is labelled with
/// `instance`, the server's name, and `server_id`. `signalbox_server_up` is 1 while the agent is connected and its
/// latest sample is fresh; of other servers there is little more than this 0.
#[api_v2_operation(tags(Metrics), operation_id = "read_all_prometheus_metrics")]
pub async fn all(ask: Ask<SignedIn>) -> Result<Exposed, ApiError> {
    let targets = targets(&ask.state, ask.subject.caller.user_id).await?;
    Ok(Exposed(Exposition::new(targets)))
}

/// The latest metrics of a server for Prometheus
///
/// As `/metrics/prometheus`, of one server. 404 `no_metrics` until the first sample has come.
#[api_v2_operation(tags(Metrics), operation_id = "read_prometheus_metrics")]
pub async fn one(ask: Ask<OnServer<Read>>) -> Result<Exposed, ApiError> {
    let access = ask.subject.access;
    let latest = ask.state.history.latest(access.server_id()).await?;
    let latest = latest.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    let server = ask.state.store.find_server(access.owner_id(), access.server_id()).await?;
    let server = server.ok_or(ApiError::not_found("Server not found"))?;
    let target = Target::new(described(&server.record, &ask.state), Some(latest), Timestamp::now());
    Ok(Exposed(Exposition::new(vec![target])))
}

/// Every server of an owner, by id, with its latest sample.
async fn targets(state: &State, owner_id: Uuid) -> Result<Vec<Target>, ApiError> {
    let mut targets = Vec::new();
    let mut after = None;
    loop {
        let page = state.store.servers_after(owner_id, after, PAGE).await?;
        // Without an agent there never was a sample to look for.
        let ids: Vec<Uuid> = page.iter().filter(|server| server.agent.is_some()).map(|server| server.id).collect();
        let mut latest = state.history.latest_of(&ids).await?;
        for server in &page {
            targets.push(Target::new(described(server, state), latest.remove(&server.id), Timestamp::now()));
        }
        after = match page.last() {
            Some(last) if page.len() as u64 == PAGE => Some(last.id),
            _ => return Ok(targets),
        };
    }
}

/// A server's record, with what is known of its agent at this moment.
fn described<'a>(server: &'a ServerRecord, state: &State) -> Described<'a> {
    let recorded = server.session_id.is_some();
    let is_online =
        state.fleet.presence(server.id).map_or(recorded, |presence| presence.status == ServerStatus::Online);
    Described { server_id: server.id, name: &server.name, agent: server.agent.as_deref(), is_online }
}
