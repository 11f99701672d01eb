//! The history as columns.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;

use super::range::{ResolutionParam, check_range, range, resolution};
use super::schema::SeriesOut;
use super::slices::{SLICED_FROM, sliced};
use super::{DAMAGED_BLOCKS, csv, prefers_csv};
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::names::Names;
use crate::http::extract::param::{TimeParam, Whole};
use crate::http::extract::{Checked, OnServer, See};
use crate::metrics::query::wanted::Selection;
use crate::metrics::series::{self, Points, Series, Shown};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
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
    /// The series, separated by commas or each in a parameter of its own, as a name with a comma must be. Defaults to all.
    #[deserr(default)]
    names: Option<Names>,
}

impl CrossCheck for SeriesQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_range(fields.sound("start"), fields.sound("end"))
    }
}

/// Columns, as JSON or as a table, serialized while they are sent.
pub struct Columns {
    series: Series,
    is_csv: bool,
    /// How long the client may take nothing.
    pause: Duration,
}

impl Responder for Columns {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let Self { series, is_csv, pause } = self;
        let mut response = HttpResponse::Ok();
        response.insert_header((header::VARY, "accept")).insert_header((header::CACHE_CONTROL, "no-store"));
        if series.damaged_blocks > 0 {
            response.insert_header((DAMAGED_BLOCKS, series.damaged_blocks.to_string()));
        }
        response.content_type(if is_csv { "text/csv; charset=utf-8" } else { "application/json" });
        let is_small = series.timestamps.len() * series.columns.len() < SLICED_FROM;
        let pieces: Pieces = if is_csv { Box::new(csv::series(series)) } else { Box::new(chunks(series)) };
        // A small response is sent in one piece, with its length.
        if is_small {
            return response.body(pieces.collect::<Vec<_>>().concat());
        }
        response.streaming(Box::pin(sliced(pieces, pause)))
    }
}

/// The pieces of a response, in order.
type Pieces = Box<dyn Iterator<Item = Vec<u8>> + Send>;

/// The response, one column at a time.
pub fn chunks(series: Series) -> impl Iterator<Item = Vec<u8>> {
    let Series { resolution_seconds, timestamps, columns, place, .. } = series;
    let count = timestamps.len();
    let mut opening = format!("{{\"resolution_seconds\":{resolution_seconds},\"timestamps\":").into_bytes();
    // Writing numbers to memory does not fail.
    _ = serde_json::to_writer(&mut opening, &timestamps);
    opening.extend_from_slice(b",\"series\":{");
    let column = move |(index, (name, points)): (usize, (String, Points))| {
        // Kept until the last column.
        let _place = &place;
        let mut out = Vec::with_capacity(count * 24 + name.len());
        if index > 0 {
            out.push(b',');
        }
        _ = serde_json::to_writer(&mut out, &name);
        for (key, of) in KINDS {
            out.extend_from_slice(key);
            for row in 0..count {
                if row > 0 {
                    out.push(b',');
                }
                match points.get(row) {
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
pub async fn columns(
    request: HttpRequest,
    ask: Checked<OnServer<See>, CrossChecked<SeriesQuery>>,
) -> Result<Columns, ApiError> {
    let CrossChecked(query) = ask.query;
    let server_id = ask.subject.access.server_id();
    let history = ask.state.metrics.history.read_by(ask.subject.actor.user_id);
    let requested = resolution(query.resolution, query.max_points);
    let wanted = query.names.as_ref().map_or_else(Selection::series, |names| Selection::named(names.all()));
    let reader = history.open(server_id, range(query.start, query.end), requested, wanted).await?;
    let mut series = series::read(reader, requested).await?;
    if let Some(names) = &query.names {
        names.remove_parts(&mut series.columns);
    }
    Ok(Columns { series, is_csv: prefers_csv(&request), pause: ask.state.config.timing.answer_pause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::line::{Limits, Stay};
    use crate::shares::{Gate, Share};

    #[test]
    fn an_answer_keeps_its_place_until_it_is_written() {
        let forms: [fn(Series) -> Pieces; 2] =
            [|series| Box::new(chunks(series)), |series| Box::new(csv::series(series))];
        for write in forms {
            let places = Gate::new("answers", Limits { places: 1, waiting: 0, stay: Stay::Long });
            let place = places.try_enter(Share::Service).ok();
            let columns = [("cpu_percent".to_owned(), Points::default())].into();

            let mut pieces = write(Series { timestamps: vec![0], columns, place, ..Series::default() });
            assert!(pieces.next().is_some());

            assert_eq!(places.inside(), 1);
            pieces.for_each(drop);
            assert_eq!(places.inside(), 0);
        }
    }
}
