//! The recent metrics of many servers, for the small charts of an overview.

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use deserr::Deserr;
use futures_util::{StreamExt, TryStreamExt, stream};
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use uuid::Uuid;

use super::DAMAGED_BLOCKS;
use super::range::{check_range, range};
use super::schema::FleetSeriesOut;
use super::series::chunks;
use super::slices::{SLICED_FROM, sliced};
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::names::{FewNames, Names};
use crate::http::extract::param::{Ids, MAX_OFFSET, SearchText, TimeParam, Whole, page};
use crate::http::extract::{Checked, SignedIn};
use crate::http::reply::{Listed, TOTAL_COUNT, fault_of};
use crate::http::server_filter::{StatusParam, filter};
use crate::metrics::query::wanted::Selection;
use crate::metrics::query::{History, HistoryError, Resolution, TimeRange};
use crate::metrics::series::{self, Series};
use crate::shares::Permit;
use crate::store::ServerFilter;

/// As many points as a small chart has room for.
const DEFAULT_MAX_POINTS: u64 = 60;

const DEFAULT_NAMES: [&str; 2] = ["cpu_percent", "memory_percent"];

const MAX_NAMES: usize = 8;

/// The product of servers, names and points, because the response is built in memory: some 6 MB.
const MAX_ASKED: u64 = 250_000;

/// The limit of actual points: one name may stand for many series.
const MAX_POINTS: usize = 500_000;

/// Servers whose history one request reads at the same time.
const READ_AT_ONCE: usize = 4;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct FleetQuery {
    /// The start of the range. Defaults to one hour before the end.
    #[deserr(default)]
    start: Option<TimeParam>,
    /// The end of the range. Defaults to now.
    #[deserr(default)]
    end: Option<TimeParam>,
    /// Maximum number of points of each series. Defaults to 60. The product of `max_points`, `limit` and the number of
    /// names is at most 250000.
    #[deserr(default)]
    max_points: Option<Whole<1, 500>>,
    /// The series, separated by commas or each in a parameter of its own, as a name with a comma must be. At most 8.
    /// Defaults to `cpu_percent` and `memory_percent`.
    #[deserr(default)]
    names: Option<FewNames<MAX_NAMES>>,
    /// Only these of your servers: their ids, separated by commas, at most 100.
    #[deserr(default)]
    ids: Option<Ids>,
    #[deserr(default)]
    status: Option<StatusParam>,
    /// Only servers with this tag.
    #[deserr(default)]
    tag: Option<SearchText>,
    /// Only servers with this text in their name, host or description.
    #[deserr(default)]
    q: Option<SearchText>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

impl CrossCheck for FleetQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = check_range(fields.sound("start"), fields.sound("end")).err().unwrap_or_default();
        let count = |names: Option<FewNames<MAX_NAMES>>| names.map_or(DEFAULT_NAMES.len(), |FewNames(few)| few.count());
        // Those that are too many are as many as may be.
        let names = fields.sound("names").map_or(MAX_NAMES, count) as u64;
        let limit = fields.sound("limit").map(|limit| page(limit, None).limit);
        let asked = fields.sound("max_points").map(max_points).zip(limit).map(|(points, limit)| points * limit * names);
        if let Some(asked) = asked.filter(|asked| *asked > MAX_ASKED) {
            let msg = format!(
                "max_points times limit times names is {asked}; ensure it is less than or equal to {MAX_ASKED}"
            );
            faults.0.extend(fault_of("max_points", "value_error.number.not_le", &msg).0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

fn max_points(asked: Option<Whole<1, 500>>) -> u64 {
    asked.map_or(DEFAULT_MAX_POINTS, |Whole(count)| count)
}

/// The columns of a list of servers, already serialized.
pub struct FleetColumns {
    /// The text, one server at a time.
    pieces: Vec<Vec<u8>>,
    points: usize,
    total: u64,
    damaged_blocks: usize,
    /// Its place among the answers of the account.
    place: Option<Permit>,
    /// How long the client may take nothing.
    pause: Duration,
}

impl Responder for FleetColumns {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let Self { pieces, points, total, damaged_blocks, place, pause } = self;
        let mut response = HttpResponse::Ok();
        response
            .content_type("application/json")
            .insert_header((TOTAL_COUNT, total.to_string()))
            .insert_header((header::CACHE_CONTROL, "no-store"));
        if damaged_blocks > 0 {
            response.insert_header((DAMAGED_BLOCKS, damaged_blocks.to_string()));
        }
        // A small response is sent in one piece, with its length.
        if points < SLICED_FROM {
            return response.body(pieces.concat());
        }
        // Kept until the last piece.
        let pieces = pieces.into_iter().inspect(move |_| _ = &place);
        response.streaming(Box::pin(sliced(pieces, pause)))
    }
}

impl Apiv2Schema for FleetColumns {}

impl OperationModifier for FleetColumns {
    fn update_response(op: &mut DefaultOperationRaw) {
        Listed::<FleetSeriesOut>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        Listed::<FleetSeriesOut>::update_definitions(map);
    }
}

/// Get recent metrics of all servers that you can see
///
/// For small charts: for each server, by name, the same columns as `GET /metrics/{server_id}/series`. Servers are
/// selected as in `GET /servers`.
#[api_v2_operation(tags(Metrics), operation_id = "read_fleet_series")]
pub async fn fleet(ask: Checked<SignedIn, CrossChecked<FleetQuery>>) -> Result<FleetColumns, ApiError> {
    let CrossChecked(query) = ask.query;
    let max_points = max_points(query.max_points);
    let chosen = query.ids.map(|Ids(ids)| ids);
    let filter = ServerFilter { ids: chosen, ..filter(query.status, query.tag, query.q) };
    let listed = page(query.limit, query.offset);
    let found =
        ask.state.store.list_servers(&ask.state.accounts.access.visible(&ask.subject.caller), filter, listed).await?;
    let names = query.names.map_or_else(|| DEFAULT_NAMES.into(), |FewNames(names)| names);
    let asked =
        ColumnsQuery { range: range(query.start, query.end), resolution: Resolution::Auto { max_points }, names };

    let history = ask.state.metrics.history.read_by(Some(ask.subject.caller.user_id));
    let (history, place) = history.for_list(asked.most_points(max_points, found.items.len())).await?;
    let ids = found.items.iter().map(|server| server.record.id);
    let mut courses = stream::iter(ids.map(|id| course(&history, id, &asked))).buffered(READ_AT_ONCE);
    let (mut pieces, mut points, mut damaged_blocks) = (vec![b"[".to_vec()], 0, 0);
    while let Some((written, count, damaged)) = courses.try_next().await? {
        points += count;
        if points > MAX_POINTS {
            return Err(HistoryError::TooMuch.into());
        }
        if pieces.len() > 1 {
            pieces.push(b",".to_vec());
        }
        pieces.push(written);
        damaged_blocks += damaged;
    }
    pieces.push(b"]".to_vec());
    let pause = ask.state.config.timing.answer_pause;
    Ok(FleetColumns { pieces, points, total: found.total, damaged_blocks, place, pause })
}

/// What the request asks for each server.
struct ColumnsQuery {
    range: TimeRange,
    resolution: Resolution,
    names: Names,
}

impl ColumnsQuery {
    /// How many points the columns of these servers have at most; `None` if only the data shows that.
    fn most_points(&self, max_points: u64, servers: usize) -> Option<u64> {
        let series = Selection::named(self.names.all()).most_series()?;
        Some(series.saturating_mul(max_points).saturating_mul(servers as u64))
    }
}

/// The serialized columns of a server, the number of their points, and the number of its unreadable blocks.
async fn course(
    history: &History,
    server_id: Uuid,
    asked: &ColumnsQuery,
) -> Result<(Vec<u8>, usize, usize), HistoryError> {
    let wanted = Selection::named(asked.names.all());
    let reader = history.open(server_id, asked.range, asked.resolution, wanted).await?;
    let mut series = series::read(reader, asked.resolution).await?;
    asked.names.remove_parts(&mut series.columns);
    let (points, damaged_blocks) = (series.timestamps.len() * series.columns.len(), series.damaged_blocks);
    Ok((written(server_id, series), points, damaged_blocks))
}

/// The object of the columns, with the server's id in front.
fn written(server_id: Uuid, series: Series) -> Vec<u8> {
    let mut json = format!("{{\"server_id\":\"{server_id}\",").into_bytes();
    let columns = chunks(series).collect::<Vec<_>>().concat();
    json.extend_from_slice(columns.strip_prefix(b"{").unwrap_or(&columns));
    json
}

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;

    use super::*;
    use crate::shares::line::{Limits, Stay};
    use crate::shares::{Gate, Share};

    #[tokio::test]
    async fn a_long_list_keeps_its_place_until_it_is_sent() {
        let places = Gate::new("answers", Limits { places: 1, waiting: 0, stay: Stay::Long });
        for (points, inside) in [(SLICED_FROM - 1, 0), (SLICED_FROM, 1)] {
            let place = places.try_enter(Share::Service).ok();
            let pieces = ["[", "{}", "]"].map(|piece| piece.as_bytes().to_vec()).into();
            let pause = Duration::from_secs(3_600);
            let list = FleetColumns { pieces, points, total: 1, damaged_blocks: 0, place, pause };

            let response = list.respond_to(&TestRequest::default().to_http_request());

            assert_eq!(places.inside(), inside, "{points} points");
            assert_eq!(to_bytes(response.into_body()).await.unwrap(), "[{}]");
            assert_eq!(places.inside(), 0);
        }
    }
}
