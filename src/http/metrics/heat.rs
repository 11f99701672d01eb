//! One metric of many servers over time, for a heat map: a row for each server, with the same buckets in all rows.

use std::collections::BTreeMap;

use actix_web::body::BoxBody;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use futures_util::{StreamExt, TryStreamExt, stream};
use paperclip::actix::{Apiv2Schema, OperationModifier, api_v2_operation};
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw};
use paperclip::v2::schema::Apiv2Schema;
use serde::Serialize;
use serde_json::json;
use signalbox_history::metric;
use signalbox_protocol::series::Unit;
use uuid::Uuid;

use super::DAMAGED_BLOCKS;
use super::range::{check_range, range};
use crate::auth::access::{AccessError, Action};
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::Faults;
use crate::http::extract::field::{TEXT, bounded, described, string};
use crate::http::extract::param::{IdTexts, MAX_OFFSET, TimeParam, Whole, page};
use crate::http::extract::{Checked, SignedIn};
use crate::http::field_out::Id;
use crate::http::reply::{TOTAL_COUNT, add_header, fault_of};
use crate::metrics::heat::{Cell, Grid, Hold};
use crate::metrics::query::wanted::Selection;
use crate::metrics::query::{History, HistoryError, Resolution};
use crate::metrics::series;
use crate::state::State;
use crate::store::{Caller, Page, ServerFilter};

const DEFAULT_METRIC: &str = "cpu_percent";

/// As many columns as a wide screen shows with four pixels each.
const DEFAULT_BUCKETS: u64 = 240;

/// The product of servers and buckets, because the response is built in memory: two numbers each, some 3 MB.
const MAX_ASKED: u64 = 250_000;

/// Ids of one request: more would not fit into the addresses that common proxies accept.
const MAX_SERVERS: usize = 100;

/// Servers whose history one request reads at the same time.
const READ_AT_ONCE: usize = 4;

/// The name of a series, in full or before its colon.
#[derive(Debug, Clone)]
pub struct MetricName(String);

impl Deserr<Faults> for MetricName {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        bounded(string(value, location)?, 1, 500, location).map(Self)
    }
}

described!(
    MetricName,
    json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": TEXT, "example": "cpu_percent" })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct HeatQuery {
    /// The name of the series: in full, or the part before the colon for every disk, interface, sensor or other target.
    /// Of several the highest value counts. Defaults to `cpu_percent`.
    #[deserr(default)]
    metric: Option<MetricName>,
    /// The start of the range. Defaults to one hour before the end.
    #[deserr(default)]
    start: Option<TimeParam>,
    /// The end of the range. Defaults to now.
    #[deserr(default)]
    end: Option<TimeParam>,
    /// Maximum number of buckets. Defaults to 240. The product of `buckets` and the number of servers is at most 250000.
    #[deserr(default)]
    buckets: Option<Whole<1, 2_000>>,
    /// Only these servers: ids separated by commas, at most 100. `limit` and `offset` then have no effect.
    #[deserr(default)]
    servers: Option<IdTexts>,
    /// Maximum number of servers, sorted by name. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of servers to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

impl CrossCheck for HeatQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        let mut faults = check_range(fields.sound("start"), fields.sound("end")).err().unwrap_or_default();
        let count = match fields.sound("servers") {
            Some(Some(IdTexts(ids))) if ids.len() > MAX_SERVERS => {
                let msg = format!("ensure this value has at most {MAX_SERVERS} items");
                faults.0.extend(fault_of("servers", "value_error.list.max_items", &msg).0);
                None
            }
            Some(Some(IdTexts(ids))) => {
                if ids.iter().any(|id| id_of(id).is_none()) {
                    faults.0.extend(fault_of("servers", "type_error.uuid", "value is not a valid uuid").0);
                }
                Some(ids.len() as u64)
            }
            Some(None) => fields.sound("limit").map(|limit| page(limit, None).limit),
            None => None,
        };
        let asked = fields.sound("buckets").map(max_buckets).zip(count).map(|(buckets, count)| buckets * count);
        if let Some(asked) = asked.filter(|asked| *asked > MAX_ASKED) {
            let msg = format!("buckets times servers is {asked}; ensure it is less than or equal to {MAX_ASKED}");
            faults.0.extend(fault_of("buckets", "value_error.number.not_le", &msg).0);
        }
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

fn id_of(text: &str) -> Option<Uuid> {
    Uuid::try_parse(text).ok().filter(|_| text.len() == 36)
}

fn max_buckets(asked: Option<Whole<1, 2_000>>) -> u64 {
    asked.map_or(DEFAULT_BUCKETS, |Whole(count)| count)
}

/// One metric of many servers.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct HeatOut {
    metric: String,
    /// When the first bucket begins, in seconds since the epoch.
    start: i64,
    bucket_seconds: i64,
    /// The number of buckets.
    buckets: u32,
    /// What the values of the rows are divided by.
    scale: i64,
    servers: Vec<HeatRowOut>,
}

/// The row of a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct HeatRowOut {
    server_id: Id,
    /// The mean of each bucket, times `scale`. Empty if the server has no value in the range.
    mean: Cells,
    /// The highest value of each bucket, times `scale`.
    max: Cells,
}

/// One whole number for each bucket; null where nothing was measured.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Cells(Vec<Option<i64>>);

described!(
    Cells,
    json!({
        "type": "array",
        "items": { "type": "integer", "format": "int64", "nullable": true },
        "example": [125, null, 993],
    })
);

/// A matrix, with the number of all servers in a header.
pub struct Heat {
    out: HeatOut,
    total: u64,
    damaged_blocks: usize,
}

impl Responder for Heat {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response
            .insert_header((TOTAL_COUNT, self.total.to_string()))
            .insert_header((header::CACHE_CONTROL, "no-store"));
        if self.damaged_blocks > 0 {
            response.insert_header((DAMAGED_BLOCKS, self.damaged_blocks.to_string()));
        }
        response.json(self.out)
    }
}

impl Apiv2Schema for Heat {}

impl OperationModifier for Heat {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<HeatOut> as OperationModifier>::update_response(op);
        add_header(op, TOTAL_COUNT, "Number of all servers");
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<HeatOut> as OperationModifier>::update_definitions(map);
    }
}

/// Get one metric of all servers that you can see over time
///
/// For a heat map: every server has the same buckets. A value counts until the next one, so a bucket is null only if
/// nothing was measured then.
#[api_v2_operation(tags(Metrics), operation_id = "read_fleet_heat")]
pub async fn heat(ask: Checked<SignedIn, CrossChecked<HeatQuery>>) -> Result<Heat, ApiError> {
    let (caller, CrossChecked(query)) = (ask.subject.caller, ask.query);
    let grid = Grid::new(range(query.start, query.end), max_buckets(query.buckets));
    let servers = match query.servers {
        Some(IdTexts(ids)) => own(&ask.state, &caller, ids.iter().filter_map(|id| id_of(id))).await?,
        None => listed(&ask.state, &caller, query.limit, query.offset).await?,
    };
    let name = query.metric.map_or_else(|| DEFAULT_METRIC.to_owned(), |MetricName(name)| name);
    let scale = scale_of(&name);
    let history = ask.state.metrics.history.read_by(Some(caller.user_id)).in_passing();
    let rows = servers.items.into_iter().map(|id| row(&history, id, &name, grid));
    let mut rows = stream::iter(rows).buffered(READ_AT_ONCE);
    let (mut out, mut damaged_blocks) = (Vec::new(), 0);
    while let Some((server_id, cells, damaged)) = rows.try_next().await? {
        out.push(written(server_id, &cells, scale));
        damaged_blocks += damaged;
    }
    drop(rows);
    let out = HeatOut {
        metric: name,
        start: grid.start,
        bucket_seconds: grid.bucket_seconds,
        buckets: u32::try_from(grid.buckets).unwrap_or(u32::MAX),
        scale,
        servers: out,
    };
    Ok(Heat { out, total: servers.total, damaged_blocks })
}

/// A page of the servers that the caller can see, by name.
async fn listed(
    state: &State,
    caller: &Caller,
    limit: Option<Whole<1, 500>>,
    offset: Option<Whole<0, { MAX_OFFSET }>>,
) -> Result<Page<Uuid>, ApiError> {
    let visible = state.accounts.access.visible(caller);
    let found = state.store.list_servers(&visible, ServerFilter::default(), page(limit, offset)).await?;
    Ok(Page { items: found.items.into_iter().map(|server| server.record.id).collect(), total: found.total })
}

/// Those of these servers that the caller may read. The others are left out, because one may just have been deleted.
async fn own(state: &State, caller: &Caller, ids: impl Iterator<Item = Uuid>) -> Result<Page<Uuid>, ApiError> {
    let mut items = Vec::new();
    for id in ids {
        match state.accounts.access.server(caller, id, Action::See).await {
            Ok(access) => items.push(access.server_id()),
            Err(AccessError::NotFound | AccessError::Forbidden | AccessError::TokenNotAllowed) => {}
            Err(error @ AccessError::Store(_)) => return Err(error.into()),
        }
    }
    // The ids of a request have no order; those of servers do.
    items.sort_unstable();
    Ok(Page { total: items.len() as u64, items })
}

/// The cells of a server, and the number of its unreadable blocks.
async fn row(
    history: &History,
    server_id: Uuid,
    name: &str,
    grid: Grid,
) -> Result<(Uuid, Vec<Option<Cell>>, usize), HistoryError> {
    let is_full = name.contains(':');
    let wanted = if is_full { Selection::named([name.to_owned()]) } else { Selection::based(name) };
    let resolution = Resolution::Auto { max_points: grid.buckets as u64 };
    let reader = history.open(server_id, grid.range(), resolution, wanted).await?;
    let hold = Hold::of(&reader);
    let series = series::read(reader, resolution).await?;
    Ok((server_id, grid.row(&series, hold), series.damaged_blocks))
}

fn written(server_id: Uuid, cells: &[Option<Cell>], scale: i64) -> HeatRowOut {
    if cells.iter().all(Option::is_none) {
        return HeatRowOut { server_id: Id(server_id), mean: Cells(Vec::new()), max: Cells(Vec::new()) };
    }
    let mean = cells.iter().map(|cell| cell.and_then(|cell| scaled(cell.mean, scale))).collect();
    let max = cells.iter().map(|cell| cell.and_then(|cell| scaled(cell.max, scale))).collect();
    HeatRowOut { server_id: Id(server_id), mean: Cells(mean), max: Cells(max) }
}

fn scaled(value: f64, scale: i64) -> Option<i64> {
    value.is_finite().then(|| (value * scale as f64).round() as i64)
}

/// As many decimals as people can see a difference of. The magnitude of an open series is not known.
fn scale_of(name: &str) -> i64 {
    let base = name.split_once(':').map_or(name, |(base, _)| base);
    match metric::find_series(base).map(|metric| metric.unit) {
        Some(Unit::Percent | Unit::Celsius) => 10,
        Some(Unit::Bytes | Unit::BytesPerSecond) => 1,
        Some(Unit::Count) => 100,
        _ => 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_whole_numbers_with_a_common_divisor() {
        let cells = [Some(Cell { mean: 12.34, max: 99.96 }), None, Some(Cell { mean: f64::NAN, max: 0.0 })];

        let row = serde_json::to_value(written(Uuid::nil(), &cells, scale_of("cpu_percent"))).unwrap();

        let expected = json!({ "server_id": Uuid::nil(), "mean": [123, null, null], "max": [1000, null, 0] });
        assert_eq!(row, expected);
    }

    #[test]
    fn a_server_without_values_has_an_empty_row() {
        let row = serde_json::to_value(written(Uuid::nil(), &[None, None], 1)).unwrap();

        assert_eq!(row, json!({ "server_id": Uuid::nil(), "mean": [], "max": [] }));
    }

    #[test]
    fn the_decimals_depend_on_the_unit() {
        let scales = ["memory_percent", "temperature:core", "network_in", "load_1", "fan_speed"].map(scale_of);

        assert_eq!(scales, [10, 10, 1, 100, 1_000]);
    }
}
