//! `/metrics`: the latest snapshot, its history, and the history as columns.

use std::collections::BTreeMap;

use actix_web::body::BoxBody;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::{Deserr, ValuePointerRef};
use futures_util::stream;
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use serde_json::json;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::fault::{Faults, not_a_member};
use super::extract::field::{described, string};
use super::extract::param::{Moment, Names, Whole};
use super::extract::{Ask, OnServer, Read};
use super::metrics_schema::{SeriesOut, SnapshotOut};
use super::reply::{add_header, fault_of};
use crate::fleet::snapshot_json;
use crate::metrics::query::{Reader, Resolution, TimeRange};
use crate::metrics::series;

/// The header that says how far points are apart.
const RESOLUTION_SECONDS: &str = "X-Resolution-Seconds";

/// What a request for history that names no start gets.
const DEFAULT_RANGE_MS: i64 = 3_600_000;

const DEFAULT_MAX_POINTS: u64 = 1_000;

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

/// The latest metrics of a server
///
/// 404 `no_metrics` until the first sample has come.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics")]
pub async fn latest(ask: Ask<OnServer<Read>>) -> Result<Written<SnapshotOut>, ApiError> {
    let latest = ask.state.history.latest(ask.subject.access.server_id()).await?;
    let snapshot = latest.ok_or(ApiError::code(ErrorCode::NoMetrics))?;
    Ok(Written { bytes: snapshot.json(), _of: std::marker::PhantomData })
}

/// How fine an answer should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolutionParam {
    Auto,
    Raw,
    Seconds(i64),
}

const RESOLUTIONS: [&str; 5] = ["auto", "raw", "1m", "15m", "1h"];

impl Deserr<Faults> for ResolutionParam {
    fn deserialize_from_value<V: deserr::IntoValue>(
        value: deserr::Value<V>,
        location: ValuePointerRef<'_>,
    ) -> Result<Self, Faults> {
        match string(value, location)?.as_str() {
            "auto" => Ok(Self::Auto),
            "raw" => Ok(Self::Raw),
            "1m" => Ok(Self::Seconds(60)),
            "15m" => Ok(Self::Seconds(900)),
            "1h" => Ok(Self::Seconds(3_600)),
            _ => Err(not_a_member(&RESOLUTIONS, location)),
        }
    }
}

described!(ResolutionParam, json!({ "type": "string", "enum": RESOLUTIONS, "default": "auto" }));

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = ends_after_start -> Faults)]
pub struct HistoryQuery {
    /// The beginning; an hour before the end unless told.
    #[deserr(default)]
    start: Option<Moment>,
    /// The end; now unless told.
    #[deserr(default)]
    end: Option<Moment>,
    /// `auto` is as fine as `max_points` allow.
    #[deserr(default)]
    resolution: Option<ResolutionParam>,
    /// How many points `auto` may give; 1000 unless told.
    #[deserr(default)]
    max_points: Option<Whole<1, 20_000>>,
}

fn ends_after_start(query: HistoryQuery, _: ValuePointerRef<'_>) -> Result<HistoryQuery, Faults> {
    check_range(query.start, query.end)?;
    Ok(query)
}

fn check_range(start: Option<Moment>, end: Option<Moment>) -> Result<(), Faults> {
    match (start, end) {
        (Some(start), Some(end)) if end.0 < start.0 => {
            Err(fault_of("end", "value_error.range", "ensure that end is not before start"))
        }
        _ => Ok(()),
    }
}

/// The range that two parameters ask for. A start after now is an empty range, not an error.
fn range(start: Option<Moment>, end: Option<Moment>) -> TimeRange {
    let end = end.map_or_else(Timestamp::now, |Moment(end)| end);
    let start = start.map_or_else(|| end.plus_millis(-DEFAULT_RANGE_MS), |Moment(start)| start);
    TimeRange { start, end }
}

fn resolution(param: Option<ResolutionParam>, max_points: Option<Whole<1, 20_000>>) -> Resolution {
    match param.unwrap_or(ResolutionParam::Auto) {
        ResolutionParam::Auto => Resolution::Auto { max_points: max_points.map_or(DEFAULT_MAX_POINTS, |Whole(n)| n) },
        ResolutionParam::Raw => Resolution::Raw,
        ResolutionParam::Seconds(seconds) => Resolution::Seconds(seconds),
    }
}

/// An array of snapshots, written page by page however long it is.
pub struct Streamed {
    first: Vec<Sample>,
    reader: Reader,
    server_id: Uuid,
}

impl Responder for Streamed {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let Self { first, reader, server_id } = self;
        let mut response = HttpResponse::Ok();
        response
            .content_type("application/json")
            .insert_header((RESOLUTION_SECONDS, reader.resolution_seconds().to_string()))
            .insert_header((header::CACHE_CONTROL, "no-store"));
        let opening = write_page(&first, server_id, b'[');
        let pages = stream::unfold(Some((reader, opening)), move |state| async move {
            let (mut reader, chunk) = state?;
            if chunk.is_empty() {
                return None;
            }
            match reader.next_page().await {
                Ok(page) if page.is_empty() => {
                    let end = [chunk.as_ref(), b"]"].concat();
                    Some((Ok(Bytes::from(end)), None))
                }
                Ok(page) => Some((Ok(chunk), Some((reader, write_page(&page, server_id, b','))))),
                Err(error) => {
                    // The status is sent already: cutting the answer off is all that is left to say.
                    tracing::error!(%error, "a history could not be read to its end");
                    Some((Err(error), None))
                }
            }
        });
        response.streaming(Box::pin(pages))
    }
}

impl Apiv2Schema for Streamed {}

impl OperationModifier for Streamed {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<Vec<SnapshotOut>> as OperationModifier>::update_response(op);
        add_header(op, RESOLUTION_SECONDS, "Seconds between points");
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<Vec<SnapshotOut>> as OperationModifier>::update_definitions(map);
    }
}

/// The snapshots behind a bracket or comma.
fn write_page(samples: &[Sample], server_id: Uuid, before: u8) -> Bytes {
    let mut page = vec![before];
    for (index, sample) in samples.iter().enumerate() {
        if index > 0 {
            page.push(b',');
        }
        page.extend_from_slice(&snapshot_json(server_id, sample));
    }
    Bytes::from(page)
}

/// The metrics history of a server
///
/// Snapshots, oldest first, each the mean of its span of time (counters: the last value). A gap stays a gap.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics_history")]
pub async fn history(ask: Ask<OnServer<Read>, HistoryQuery>) -> Result<Streamed, ApiError> {
    let query = ask.query;
    let server_id = ask.subject.access.server_id();
    let wanted = resolution(query.resolution, query.max_points);
    let mut reader = ask.state.history.open(server_id, range(query.start, query.end), wanted).await?;
    let first = reader.next_page().await?;
    Ok(Streamed { first, reader, server_id })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = series_end_after_start -> Faults)]
pub struct SeriesQuery {
    /// The beginning; an hour before the end unless told.
    #[deserr(default)]
    start: Option<Moment>,
    /// The end; now unless told.
    #[deserr(default)]
    end: Option<Moment>,
    /// `auto` is as fine as `max_points` allow.
    #[deserr(default)]
    resolution: Option<ResolutionParam>,
    /// How many points `auto` may give; 1000 unless told.
    #[deserr(default)]
    max_points: Option<Whole<1, 20_000>>,
    /// Which series, separated by commas; all unless told.
    #[deserr(default)]
    names: Option<Names>,
}

fn series_end_after_start(query: SeriesQuery, _: ValuePointerRef<'_>) -> Result<SeriesQuery, Faults> {
    check_range(query.start, query.end)?;
    Ok(query)
}

/// The metrics history of a server as columns
///
/// For charts: one list of times, and for each series the mean, least and greatest value at each of them.
/// Counters are shown as rates in bytes a second. Missing points are null.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics_series")]
pub async fn columns(ask: Ask<OnServer<Read>, SeriesQuery>) -> Result<Written<SeriesOut>, ApiError> {
    let query = ask.query;
    let server_id = ask.subject.access.server_id();
    let wanted = resolution(query.resolution, query.max_points);
    let reader = ask.state.history.open(server_id, range(query.start, query.end), wanted).await?;
    let names = query.names.map(|Names(names)| names);
    let series = series::read(reader, names.as_ref()).await?;
    let bytes = serde_json::to_vec(&series).map_err(ApiError::internal)?.into();
    Ok(Written { bytes, _of: std::marker::PhantomData })
}
