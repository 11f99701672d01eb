//! The history as columns.

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

use super::range::{ResolutionParam, check_range, range, resolution};
use super::schema::SeriesOut;
use super::{DAMAGED_BLOCKS, csv, prefers_csv};
use crate::http::error::ApiError;
use crate::http::extract::fault::Faults;
use crate::http::extract::param::{Names, TimeParam, Whole};
use crate::http::extract::{Checked, OnServer, See};
use crate::metrics::query::wanted::Selection;
use crate::metrics::series::{self, Points, Series, Shown};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = ends_after_start -> Faults)]
pub struct SeriesQuery {
    /// The start of the range. Defaults to one hour before the end.
    #[deserr(default)]
    start: Option<TimeParam>,
    /// The end of the range. Defaults to now.
    #[deserr(default)]
    end: Option<TimeParam>,
    /// The time between points. `auto` selects the finest one that `max_points` allows.
    #[deserr(default)]
    resolution: Option<ResolutionParam>,
    /// Maximum number of points for `auto`. Defaults to 1000.
    #[deserr(default)]
    max_points: Option<Whole<1, 20_000>>,
    /// The series, separated by commas. Defaults to all.
    #[deserr(default)]
    names: Option<Names>,
}

fn ends_after_start(query: SeriesQuery, _: ValuePointerRef<'_>) -> Result<SeriesQuery, Faults> {
    check_range(query.start, query.end)?;
    Ok(query)
}

/// Columns, serialized one after the other.
pub enum Columns {
    Json(Series),
    Csv(Series),
}

impl Responder for Columns {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.insert_header((header::VARY, "accept")).insert_header((header::CACHE_CONTROL, "no-store"));
        let (Self::Json(series) | Self::Csv(series)) = &self;
        if series.damaged_blocks > 0 {
            response.insert_header((DAMAGED_BLOCKS, series.damaged_blocks.to_string()));
        }
        match self {
            Self::Csv(series) => response.content_type("text/csv; charset=utf-8").body(csv::series(&series)),
            Self::Json(series) => {
                response.content_type("application/json");
                // A small response is sent in one piece, with its length.
                if series.timestamps.len() * series.columns.len() < STREAMED_FROM {
                    return response.body(chunks(series).collect::<Vec<_>>().concat());
                }
                let chunks = chunks(series).map(|chunk| Ok::<_, std::convert::Infallible>(Bytes::from(chunk)));
                response.streaming(stream::iter(chunks))
            }
        }
    }
}

/// From this many points on, a response is serialized while it is sent: some megabyte.
const STREAMED_FROM: usize = 20_000;

/// The response, one column at a time.
pub fn chunks(series: Series) -> impl Iterator<Item = Vec<u8>> {
    let Series { resolution_seconds, timestamps, columns, .. } = series;
    let count = timestamps.len();
    let mut opening = format!("{{\"resolution_seconds\":{resolution_seconds},\"timestamps\":").into_bytes();
    // Writing numbers to memory does not fail.
    _ = serde_json::to_writer(&mut opening, &timestamps);
    opening.extend_from_slice(b",\"series\":{");
    let column = move |(index, (name, points)): (usize, (String, Points))| {
        let mut out = Vec::with_capacity(count * 24 + name.len());
        if index > 0 {
            out.push(b',');
        }
        _ = serde_json::to_writer(&mut out, &name);
        for (key, of) in KINDS {
            out.extend_from_slice(key);
            for place in 0..count {
                if place > 0 {
                    out.push(b',');
                }
                match points.get(place) {
                    Some(shown) => _ = serde_json::to_writer(&mut out, &of(shown)),
                    None => out.extend_from_slice(b"null"),
                }
            }
        }
        out.extend_from_slice(b"]}");
        out
    };
    std::iter::once(opening).chain(columns.into_iter().enumerate().map(column)).chain(std::iter::once(b"}}".to_vec()))
}

/// The text before each list of a column, and the value that the list has.
const KINDS: [Kind; 3] = [(b":{\"avg\":[", |it| it.avg), (b"],\"min\":[", |it| it.min), (b"],\"max\":[", |it| it.max)];

type Kind = (&'static [u8], fn(Shown) -> f64);

impl Apiv2Schema for Columns {}

impl OperationModifier for Columns {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<SeriesOut> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<SeriesOut> as OperationModifier>::update_definitions(map);
    }
}

/// Get the metrics history of a server as columns
///
/// For charts: one list of times, and for each series the mean, minimum and maximum at each of them. Counters are rates
/// per second. Missing points are null. With `Accept: text/csv` the response is a table.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics_series")]
pub async fn columns(request: HttpRequest, ask: Checked<OnServer<See>, SeriesQuery>) -> Result<Columns, ApiError> {
    let query = ask.query;
    let server_id = ask.subject.access.server_id();
    let history = ask.state.metrics.history.read_by(ask.subject.actor.user_id);
    let requested = resolution(query.resolution, query.max_points);
    let wanted = query.names.map_or_else(Selection::series, |Names(names)| Selection::named(names));
    let reader = history.open(server_id, range(query.start, query.end), requested, wanted).await?;
    let series = series::read(reader, requested).await?;
    Ok(if prefers_csv(&request) { Columns::Csv(series) } else { Columns::Json(series) })
}
