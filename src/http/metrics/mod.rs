//! `/metrics`: the latest snapshot, its history in snapshots or columns, what there is, and who used the most.

mod csv;
mod fleet;
mod history;
mod range;
mod schema;
mod series;

use std::collections::BTreeMap;

use actix_web::body::BoxBody;
use actix_web::http::header::{self, Header};
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::{Deserr, ValuePointerRef};
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use signalbox_protocol::Timestamp;

pub use fleet::fleet;
pub use history::history;
use schema::{NamesOut, ProcessesOut, SeriesNameOut, SnapshotOut};
pub use series::columns;

use self::range::{check_range, range_of};
use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::param::Moment;
use super::extract::{Ask, OnServer, Read};

/// The header that says how far points are apart.
const RESOLUTION_SECONDS: &str = "X-Resolution-Seconds";

/// The header that says how many blocks of the asked range cannot be read.
const DAMAGED_BLOCKS: &str = "X-Damaged-Blocks";

/// For how long back series are listed unless told otherwise: as long as each minute is kept, usually.
const NAMES_RANGE_MS: i64 = 90 * 24 * 3_600_000;

/// JSON that is written already, documented as a `T`.
pub struct Written<T> {
    bytes: Bytes,
    _of: std::marker::PhantomData<fn() -> T>,
}

impl<T> Responder for Written<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().content_type("application/json").body(self.bytes)
    }
}

impl<T: Apiv2Schema> Apiv2Schema for Written<T> {}

impl<T: Apiv2Schema> OperationModifier for Written<T> {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<T> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<T> as OperationModifier>::update_definitions(map);
    }
}

/// Whether a request would rather have CSV than JSON.
fn prefers_csv(request: &HttpRequest) -> bool {
    let Ok(accept) = header::Accept::parse(request) else { return false };
    let ranked = accept.ranked();
    let first = ranked.iter().find(|kind| {
        kind.type_() == "*" || kind.essence_str() == "text/csv" || kind.essence_str() == "application/json"
    });
    first.is_some_and(|kind| kind.essence_str() == "text/csv")
}

/// The latest metrics of a server
///
/// 404 `no_metrics` until the first sample has come.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics")]
pub async fn latest(ask: Ask<OnServer<Read>>) -> Result<Written<SnapshotOut>, ApiError> {
    let latest = ask.state.history.latest(ask.subject.access.server_id()).await?;
    let snapshot = latest.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    Ok(Written { bytes: snapshot.json(), _of: std::marker::PhantomData })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = ends_after_start -> Faults)]
pub struct NamesQuery {
    /// The beginning; 90 days before the end unless told.
    #[deserr(default)]
    start: Option<Moment>,
    /// The end; now unless told.
    #[deserr(default)]
    end: Option<Moment>,
}

fn ends_after_start(query: NamesQuery, _: ValuePointerRef<'_>) -> Result<NamesQuery, Faults> {
    check_range(query.start, query.end)?;
    Ok(query)
}

/// The series that a server has
///
/// Every name that `names=` of the series takes, in the asked range.
#[api_v2_operation(tags(Metrics), operation_id = "list_metrics_names")]
pub async fn names(ask: Ask<OnServer<Read>, NamesQuery>) -> Result<actix_web::web::Json<NamesOut>, ApiError> {
    let range = range_of(ask.query.start, ask.query.end, NAMES_RANGE_MS);
    let names = ask.state.history.names(ask.subject.access.server_id(), range).await?;
    Ok(actix_web::web::Json(NamesOut { names: names.into_iter().map(SeriesNameOut::from).collect() }))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ProcessesQuery {
    /// When; now unless told.
    #[deserr(default)]
    at: Option<Moment>,
}

/// The processes that used the most
///
/// The last list before the asked time, at most an hour old; 404 `no_metrics` when there is none.
#[api_v2_operation(tags(Metrics), operation_id = "read_top_processes")]
pub async fn processes(
    ask: Ask<OnServer<Read>, ProcessesQuery>,
) -> Result<actix_web::web::Json<ProcessesOut>, ApiError> {
    let at = ask.query.at.map_or_else(Timestamp::now, |Moment(at)| at);
    let found = ask.state.history.processes(ask.subject.access.server_id(), at).await?;
    let (taken, top) = found.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    Ok(actix_web::web::Json(ProcessesOut::new(taken, top)))
}
