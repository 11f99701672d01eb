//! The history as snapshots, streamed: a JSON array or a table of any length.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use bytes::Bytes;
use deserr::Deserr;
use futures_util::stream;
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use signalbox_history::open::Measured;
use uuid::Uuid;

use super::csv::Table;
use super::range::{ResolutionParam, check_range, range, resolution};
use super::schema::SnapshotOut;
use super::slices::next_slice;
use super::{DAMAGED_BLOCKS, RESOLUTION_SECONDS, prefers_csv};
use crate::fleet::snapshot_json;
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::param::{TimeParam, Whole};
use crate::http::extract::{Checked, OnServer, See};
use crate::http::reply::add_header;
use crate::metrics::query::HistoryError;
use crate::metrics::query::reader::{Point, Reader};
use crate::metrics::query::wanted::Selection;
use crate::shares::Revocable;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct HistoryQuery {
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
}

impl CrossCheck for HistoryQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_range(fields.sound("start"), fields.sound("end"))
    }
}

/// The format of the points.
enum Form {
    Json(Uuid),
    Csv(Table),
}

impl Form {
    fn content_type(&self) -> &'static str {
        match self {
            Self::Json(_) => "application/json",
            Self::Csv(_) => "text/csv; charset=utf-8",
        }
    }

    /// The text before all points.
    fn opening(&self) -> Vec<u8> {
        match self {
            Self::Json(_) => b"[".to_vec(),
            Self::Csv(table) => table.header(),
        }
    }

    fn write(&self, points: &[Point], is_first: bool, out: &mut Vec<u8>) {
        for (index, point) in points.iter().enumerate() {
            match self {
                Self::Json(server_id) => {
                    if index > 0 || !is_first {
                        out.push(b',');
                    }
                    let Measured { sample, open } = point.measured();
                    out.extend_from_slice(&snapshot_json(*server_id, &sample, &open));
                }
                Self::Csv(table) => table.write(point, out),
            }
        }
    }

    fn closing(&self) -> &'static [u8] {
        match self {
            Self::Json(_) => b"]",
            Self::Csv(_) => b"",
        }
    }
}

/// Snapshots, written page by page, however many there are.
pub struct Streamed {
    pages: Pages,
    /// How long the client may take nothing.
    pause: Duration,
}

struct Pages {
    reader: Reader,
    form: Form,
    /// What is left of the piece that is being sent.
    piece: Bytes,
    /// The text to be sent next; `None` at the end.
    next: Option<Vec<u8>>,
    /// All points are in it.
    is_over: bool,
}

impl Pages {
    /// Reads the first points.
    async fn open(mut reader: Reader, form: Form) -> Result<Self, HistoryError> {
        let first = reader.next_page().await?;
        let mut opening = form.opening();
        form.write(&first, true, &mut opening);
        Ok(Self { reader, form, piece: Bytes::new(), next: Some(opening), is_over: first.is_empty() })
    }

    /// Returns the next slice of the answer, or `None` at its end.
    async fn next_slice(&mut self) -> Result<Option<Bytes>, HistoryError> {
        while self.piece.is_empty() {
            let Some(piece) = self.next_piece().await? else { return Ok(None) };
            self.piece = piece;
        }
        Ok(next_slice(&mut self.piece))
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, HistoryError> {
        let Some(mut piece) = self.next.take() else { return Ok(None) };
        if self.is_over {
            piece.extend_from_slice(self.form.closing());
        } else {
            let points = self.reader.next_page().await?;
            let mut following = Vec::new();
            self.form.write(&points, false, &mut following);
            (self.next, self.is_over) = (Some(following), points.is_empty());
        }
        Ok(Some(piece.into()))
    }
}

impl Responder for Streamed {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let Self { pages, pause } = self;
        let reader = &pages.reader;
        let mut response = HttpResponse::Ok();
        response
            .content_type(pages.form.content_type())
            .insert_header((RESOLUTION_SECONDS, reader.resolution_seconds().to_string()))
            .insert_header((header::CACHE_CONTROL, "no-store"))
            .insert_header((header::VARY, "accept"));
        if reader.damaged_blocks() > 0 {
            response.insert_header((DAMAGED_BLOCKS, reader.damaged_blocks().to_string()));
        }
        // A client that reads steadily may take as long as it needs: an export of years takes hours.
        let rest = Revocable::new(pages, Duration::MAX, pause);
        let sent = stream::unfold(rest, |mut rest| async move {
            let read = rest.piece(async |pages: &mut Pages| pages.next_slice().await).await;
            let cut_off = |error: HistoryError| {
                // The status has been sent already, so cutting off the response is the only way to report the
                // error.
                tracing::error!(%error, "cannot read a history to its end");
                io::Error::other(error.to_string())
            };
            let slice = read.and_then(|read| read.map_err(cut_off)).transpose()?;
            Some((slice, rest))
        });
        response.streaming(Box::pin(sent))
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

/// Get the metrics history of a server
///
/// Snapshots, oldest first. Each is the mean of its period (for counters, the last value). A gap stays a gap. With
/// `Accept: text/csv` the response is a table.
#[api_v2_operation(tags(Metrics), operation_id = "read_metrics_history")]
pub async fn history(
    request: HttpRequest,
    ask: Checked<OnServer<See>, CrossChecked<HistoryQuery>>,
) -> Result<Streamed, ApiError> {
    let CrossChecked(query) = ask.query;
    let server_id = ask.subject.access.server_id();
    let history = ask.state.metrics.history.read_by(ask.subject.actor.user_id);
    let (range, wanted) = (range(query.start, query.end), resolution(query.resolution, query.max_points));
    let form = if prefers_csv(&request) {
        // The header of a table names every column that any of its rows has.
        Form::Csv(Table::new(history.columns(server_id, range).await?))
    } else {
        Form::Json(server_id)
    };
    let reader = history.open(server_id, range, wanted, Selection::everything()).await?;
    Ok(Streamed { pages: Pages::open(reader, form).await?, pause: ask.state.config.timing.answer_pause })
}
