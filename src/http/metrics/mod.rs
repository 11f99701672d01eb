//! `/metrics`: the latest snapshot, the history as snapshots or columns, the names of series, and the top processes.

pub(super) mod combined;
mod csv;
pub(super) mod fleet;
pub(super) mod heat;
pub(super) mod history;
pub(super) mod names;
mod range;
mod schema;
pub(super) mod series;
mod slices;

use std::collections::BTreeMap;

use actix_web::body::BoxBody;
use actix_web::http::header::{self, Header, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::Deserr;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use signalbox_protocol::Timestamp;

pub use combined::combined;
pub use fleet::fleet;
pub use heat::heat;
pub use history::history;
pub use names::{names, present_names};
use schema::{ProcessesOut, SnapshotOut};
pub use series::columns;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::param::TimeParam;
use super::extract::{Checked, OnServer, See};
use super::path::at;

/// The header with the seconds between points.
const RESOLUTION_SECONDS: &str = "X-Resolution-Seconds";

/// The header with the number of blocks in the range that cannot be read.
const DAMAGED_BLOCKS: &str = "X-Damaged-Blocks";

/// Serialized JSON, documented as a `T`.
pub struct RawJson<T> {
    bytes: Bytes,
    _of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Responder for RawJson<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().content_type(HeaderValue::from_static("application/json")).body(self.bytes)
    }
}

impl<T: Apiv2Schema> Apiv2Schema for RawJson<T> {}

impl<T: Apiv2Schema> OperationModifier for RawJson<T> {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<T> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<T> as OperationModifier>::update_definitions(map);
    }
}

/// Whether a request prefers CSV to JSON.
fn prefers_csv(request: &HttpRequest) -> bool {
    let Ok(accept) = header::Accept::parse(request) else { return false };
    let ranked = accept.ranked();
    let first = ranked.iter().find(|kind| {
        kind.type_() == "*" || kind.essence_str() == "text/csv" || kind.essence_str() == "application/json"
    });
    first.is_some_and(|kind| kind.essence_str() == "text/csv")
}

/// Get the latest metrics of a server
///
/// 404 `no_metrics` until the server has sent its first sample.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics")]
pub async fn latest(ask: Checked<OnServer<See>>) -> Result<RawJson<SnapshotOut>, ApiError> {
    let latest = ask.state.metrics.history.latest(ask.subject.access.server_id()).await?;
    let snapshot = latest.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    Ok(RawJson { bytes: snapshot.json(), _of: std::marker::PhantomData })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ProcessesQuery {
    /// The time of the list. Defaults to now.
    #[deserr(default)]
    at: Option<TimeParam>,
}

/// Get the processes that used the most
///
/// Returns the last list before the given time, at most one hour older; 404 `no_metrics` if there is none.
#[api_v2_operation(tags(Metrics), operation_id = "read_top_processes")]
pub async fn processes(
    ask: Checked<OnServer<See>, ProcessesQuery>,
) -> Result<actix_web::web::Json<ProcessesOut>, ApiError> {
    let at = ask.query.at.map_or_else(Timestamp::now, |TimeParam(at)| at);
    let found = ask
        .state
        .metrics
        .history
        .read_by(ask.subject.actor.user_id)
        .processes(ask.subject.access.server_id(), at)
        .await?;
    let (taken, top) = found.ok_or_else(no_processes)?;
    Ok(actix_web::web::Json(ProcessesOut::new(taken, top)))
}

/// The server may have sent other metrics: it sends lists once a minute, and only if the agent's policy allows them.
fn no_processes() -> ApiError {
    let detail = "There is no list of processes in the hour before this time";
    ApiError::Refused { code: ErrorCode::NoMetrics, detail: detail.into() }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/metrics/fleet").route(get().to(fleet)),
        at("/metrics/fleet/series").route(get().to(combined)),
        at("/metrics/fleet/names").route(get().to(present_names)),
        at("/metrics/fleet/heat").route(get().to(heat)),
        at("/metrics/{server_id}").route(get().to(latest)),
        at("/metrics/{server_id}/history").route(get().to(history)),
        at("/metrics/{server_id}/series").route(get().to(columns)),
        at("/metrics/{server_id}/names").route(get().to(names)),
        at("/metrics/{server_id}/processes").route(get().to(processes)),
    ]
}
