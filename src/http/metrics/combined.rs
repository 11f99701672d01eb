//! The series of many servers, combined into the lines of one chart.

use std::collections::{BTreeMap, HashMap};

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
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::range::{check_range, range_of};
use super::{DAMAGED_BLOCKS, csv, prefers_csv};
use crate::auth::access::{AccessError, Action};
use crate::http::error::ApiError;
use crate::http::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use crate::http::extract::fault::{Faults, Part, not_a_member};
use crate::http::extract::field::{described, string};
use crate::http::extract::names::FewNames;
use crate::http::extract::param::{IdTexts, SearchText, TimeParam, Whole};
use crate::http::extract::{Checked, SignedIn};
use crate::http::field_out::Id;
use crate::http::reply::fault_of;
use crate::http::server_filter::{StatusParam, filter};
use crate::metrics::combined::{Combiner, Function, Grid, GroupBy, Line, Lines, Member, Rank, TooManyLines};
use crate::metrics::query::wanted::Selection;
use crate::metrics::query::{History, HistoryError, Resolution, TimeRange};
use crate::metrics::series::{self, Series, Shown};
use crate::state::State;
use crate::store::{Caller, PageRequest, Server};

/// A chart of a page's width has room for as many.
const DEFAULT_MAX_POINTS: u64 = 300;

const DEFAULT_NAME: &str = "cpu_percent";

pub const MAX_NAMES: usize = 8;

/// More lines than a chart can show are not sent.
const DEFAULT_TOP: u64 = 20;

pub const MAX_SERVER_IDS: usize = 100;

/// The history of more servers takes longer to read than a page waits.
const MAX_SERVERS: u64 = 1_000;

/// Servers whose history one request reads at the same time.
const READ_AT_ONCE: usize = 4;

/// Implements a word of a closed set, in parameters and in bodies.
macro_rules! word {
    ($type:ident) => {
        impl Deserr<Faults> for $type {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                location: ValuePointerRef<'_>,
            ) -> Result<Self, Faults> {
                let given = string(value, location)?;
                let found = Self::ALL.into_iter().find(|known| known.word() == given);
                found.ok_or_else(|| not_a_member(&Self::ALL.map(Self::word), location))
            }
        }

        described!($type, json!({ "type": "string", "enum": $type::ALL.map($type::word) }));
    };
}

word!(Function);
word!(GroupBy);
word!(Rank);

/// Ids of servers, separated by commas or in several parameters.
#[derive(Debug, Clone)]
pub struct ServerIds(Vec<Uuid>);

impl Deserr<Faults> for ServerIds {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let IdTexts(texts) = IdTexts::deserialize_from_value(value, location)?;
        if texts.len() > MAX_SERVER_IDS {
            let msg = format!("ensure this value has at most {MAX_SERVER_IDS} items");
            return Err(Faults::at(location, "value_error.list.max_items", msg));
        }
        let id = |text: String| Uuid::try_parse(&text).ok().filter(|_| text.len() == 36);
        let ids: Option<Vec<Uuid>> = texts.into_iter().map(id).collect();
        ids.map(Self).ok_or_else(|| Faults::at(location, "type_error.uuid", "value is not a valid uuid"))
    }
}

described!(ServerIds, json!({ "type": "string", "example": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10" }));

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct CombinedQuery {
    /// The start of the range. Defaults to one hour before the end.
    #[deserr(default)]
    start: Option<TimeParam>,
    /// The end of the range. Defaults to now.
    #[deserr(default)]
    end: Option<TimeParam>,
    /// Maximum number of points. Defaults to 300.
    #[deserr(default)]
    max_points: Option<Whole<1, 500>>,
    /// The series, separated by commas or each in a parameter of its own, as a name with a comma must be. At most 8.
    /// Defaults to `cpu_percent`. `container_cpu:*` stands for every target of a series.
    #[deserr(default)]
    names: Option<FewNames<MAX_NAMES>>,
    /// Only these servers, at most 100. Servers that do not exist are left out.
    #[deserr(default)]
    server: Option<ServerIds>,
    #[deserr(default)]
    status: Option<StatusParam>,
    /// Only servers with this tag.
    #[deserr(default)]
    tag: Option<SearchText>,
    /// Only servers with this text in their name, host or description.
    #[deserr(default)]
    q: Option<SearchText>,
    /// What a line stands for: a server (the default), the servers with a tag, one series of one server, or all servers.
    #[deserr(default)]
    by: Option<GroupBy>,
    /// How the values of a line become one. Defaults to `avg`.
    #[deserr(default)]
    function: Option<Function>,
    /// Maximum number of lines of each name: those that rank highest. Defaults to 20.
    #[deserr(default)]
    top: Option<Whole<1, 100>>,
    /// By which of its values a line ranks. Defaults to `max`.
    #[deserr(default)]
    rank: Option<Rank>,
}

impl CrossCheck for CombinedQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_range(fields.sound("start"), fields.sound("end"))
    }
}

/// Values by bucket; null where no server has one.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Values(Vec<Option<f64>>);

described!(
    Values,
    json!({ "type": "array", "items": { "type": "number", "format": "double", "nullable": true }, "example": [1.5, null] })
);

/// A line of a chart.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct LineOut {
    /// The requested name.
    name: String,
    /// The name of the series; null if a line is of several.
    series: Option<String>,
    /// The server; null if a line is of several.
    server_id: Option<Id>,
    /// The server's name.
    server_name: Option<String>,
    /// The tag; null if lines are not by tags, and for the servers without one.
    tag: Option<String>,
    /// The function applied to the means.
    avg: Values,
    /// The function applied to the minima; for `avg` the least of them.
    min: Values,
    /// The function applied to the maxima; for `avg` the greatest of them.
    max: Values,
    /// How many servers each point is of.
    servers: Vec<u32>,
}

/// The lines of a chart.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CombinedOut {
    resolution_seconds: i64,
    /// The starts of the buckets, in seconds since the epoch, without gaps.
    timestamps: Vec<i64>,
    /// By name, those of the highest rank first.
    lines: Vec<LineOut>,
    /// How many lines ranked lower than `top`.
    left_out: u64,
    /// How many servers were read.
    server_count: u64,
}

/// The lines, as JSON or as a table.
pub struct Combined {
    lines: CombinedOut,
    is_csv: bool,
    damaged_blocks: usize,
}

impl Responder for Combined {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Ok();
        response.insert_header((header::VARY, "accept")).insert_header((header::CACHE_CONTROL, "no-store"));
        if self.damaged_blocks > 0 {
            response.insert_header((DAMAGED_BLOCKS, self.damaged_blocks.to_string()));
        }
        if !self.is_csv {
            return response.json(self.lines);
        }
        response.content_type("text/csv; charset=utf-8").body(table(&self.lines))
    }
}

impl Apiv2Schema for Combined {}

impl OperationModifier for Combined {
    fn update_response(op: &mut DefaultOperationRaw) {
        <actix_web::web::Json<CombinedOut> as OperationModifier>::update_response(op);
    }

    fn update_definitions(map: &mut BTreeMap<String, DefaultSchemaRaw>) {
        <actix_web::web::Json<CombinedOut> as OperationModifier>::update_definitions(map);
    }
}

/// Get series of many servers, combined
///
/// Any series of the servers that you can see in common buckets, a line each for a server, a tag, a series or all of them; with `top`, the
/// lines that rank highest. Counters are rates per second. A point counts only the servers that have a value there, and says
/// how many. Missing points are null. At most 1000 servers. With `Accept: text/csv` the response is a table.
#[api_v2_operation(tags(Metrics), operation_id = "read_combined_series")]
pub async fn combined(
    request: HttpRequest,
    ask: Checked<SignedIn, CrossChecked<CombinedQuery>>,
) -> Result<Combined, ApiError> {
    let CrossChecked(query) = ask.query;
    let caller = ask.subject.caller;
    let filter = Filter { ids: query.server, status: query.status, tag: query.tag, text: query.q };
    let servers = filter.servers(&ask.state, &caller).await?;

    let range = range_of(query.start, query.end, HOUR_MS);
    let history = ask.state.metrics.history.read_by(Some(caller.user_id)).in_passing();
    let grid = Grid::new(range, history.common_width(range, query.max_points.map_or(DEFAULT_MAX_POINTS, |Whole(n)| n)));
    let given = query.names.map(|FewNames(names)| names).filter(|names| names.count() > 0);
    let wanted = given.unwrap_or_else(|| [DEFAULT_NAME].into());
    let mut names: Vec<String> = wanted.all().into_iter().collect();
    names.sort_unstable();

    let asked = Asked { grid, range, names: &names };
    let function = query.function.unwrap_or(Function::Avg);
    let mut combiner = Combiner::new(grid, function, query.by.unwrap_or(GroupBy::Server));
    let mut damaged_blocks = 0;
    let mut courses = stream::iter(servers.iter().map(|server| asked.read(&history, server))).buffered(READ_AT_ONCE);
    while let Some((server, spacing_ms, series)) = courses.try_next().await? {
        damaged_blocks += series.damaged_blocks;
        let member = Member { server_id: server.record.id, tags: &server.tags, spacing_ms };
        combiner.add(member, &names, &series).map_err(|TooManyLines| HistoryError::TooMuch)?;
    }
    combiner.keep(&wanted.meant(|name| combiner.has(name)));
    let top = query.top.map_or(DEFAULT_TOP, |Whole(top)| top);
    let found = combiner.finish(query.rank.unwrap_or(Rank::Max), usize::try_from(top).unwrap_or(usize::MAX));
    let lines = CombinedOut::new(grid, found, &servers);
    Ok(Combined { lines, is_csv: prefers_csv(&request), damaged_blocks })
}

/// The default range.
const HOUR_MS: i64 = 3_600_000;

/// What the request asks for each server.
struct Asked<'a> {
    grid: Grid,
    range: TimeRange,
    names: &'a [String],
}

impl Asked<'_> {
    /// Reads a server's series. Also returns the usual distance of its samples.
    async fn read<'s>(&self, history: &History, server: &'s Server) -> Result<(&'s Server, i64, Series), HistoryError> {
        // The first bucket is read whole.
        let start = Timestamp::from_millis(self.grid.start_ms());
        let range = TimeRange { start, end: self.range.end };
        let resolution = Resolution::Seconds(self.grid.resolution_seconds());
        if self.grid.count() == 0 {
            return Ok((server, 0, Series::default()));
        }
        let wanted = Selection::named(self.names.iter().cloned());
        let reader = history.open(server.record.id, range, resolution, wanted).await?;
        let spacing_ms = reader.spacing_ms();
        Ok((server, spacing_ms, series::read(reader, resolution).await?))
    }
}

/// Which servers are read.
pub struct Filter {
    pub ids: Option<ServerIds>,
    pub status: Option<StatusParam>,
    pub tag: Option<SearchText>,
    pub text: Option<SearchText>,
}

impl Filter {
    /// The servers that it selects among those that the caller can see.
    pub async fn servers(self, state: &State, caller: &Caller) -> Result<Vec<Server>, ApiError> {
        let is_filtered = self.status.is_some() || self.tag.is_some() || self.text.is_some();
        let ids = match self.ids {
            Some(ServerIds(ids)) => Some(readable(state, caller, ids).await?),
            None => None,
        };
        if let (Some(ids), false) = (&ids, is_filtered) {
            let mut servers = Vec::with_capacity(ids.len());
            for (id, owner_id) in ids {
                servers.extend(state.store.find_server(*owner_id, *id).await?);
            }
            return Ok(servers);
        }
        let filter = filter(self.status, self.tag, self.text);
        let page = PageRequest { limit: MAX_SERVERS, offset: 0 };
        let found = state.store.list_servers(&state.accounts.access.visible(caller), filter, page).await?;
        if found.total > MAX_SERVERS {
            let msg = format!("{} servers are selected; ensure that they are at most {MAX_SERVERS}", found.total);
            return Err(ApiError::Invalid(fault_of("tag", "value_error.servers", &msg).within(Part::Query)));
        }
        let is_asked = |server: &Server| ids.as_ref().is_none_or(|ids| ids.contains_key(&server.record.id));
        Ok(found.items.into_iter().filter(is_asked).collect())
    }
}

/// Those of these servers that the caller may read, each with its owner.
async fn readable(state: &State, caller: &Caller, ids: Vec<Uuid>) -> Result<HashMap<Uuid, Uuid>, ApiError> {
    let mut readable = HashMap::with_capacity(ids.len());
    for id in ids {
        match state.accounts.access.server(caller, id, Action::See).await {
            Ok(access) => _ = readable.insert(id, access.owner_id()),
            // A view may name a server that was deleted since.
            Err(AccessError::NotFound | AccessError::Forbidden | AccessError::TokenNotAllowed) => {}
            Err(error @ AccessError::Store(_)) => return Err(error.into()),
        }
    }
    Ok(readable)
}

impl CombinedOut {
    fn new(grid: Grid, Lines { lines, left_out }: Lines, servers: &[Server]) -> Self {
        let names: HashMap<Uuid, &str> =
            servers.iter().map(|server| (server.record.id, server.record.name.as_str())).collect();
        let line = |Line { key, values, servers }: Line| {
            let of = |pick: fn(Shown) -> f64| Values(values.iter().map(|value| value.map(pick)).collect());
            LineOut {
                avg: of(|shown| shown.avg),
                min: of(|shown| shown.min),
                max: of(|shown| shown.max),
                name: key.name,
                series: key.series,
                server_id: key.server_id.map(Id),
                server_name: key.server_id.and_then(|id| names.get(&id).map(|name| (*name).to_owned())),
                tag: key.tag,
                servers,
            }
        };
        Self {
            resolution_seconds: grid.resolution_seconds(),
            timestamps: grid.timestamps(),
            lines: lines.into_iter().map(line).collect(),
            left_out: left_out as u64,
            server_count: servers.len() as u64,
        }
    }
}

/// The lines as CSV, with mean, minimum, maximum and the number of servers of each.
fn table(lines: &CombinedOut) -> Vec<u8> {
    let heads: Vec<String> = lines.lines.iter().map(head).collect();
    let mut table = csv::Lines::new(&heads, &["avg", "min", "max", "servers"]);
    for (place, seconds) in lines.timestamps.iter().enumerate() {
        let values = lines.lines.iter().flat_map(|line| {
            let of = |Values(values): &Values| values.get(place).copied().flatten();
            let servers = line.servers.get(place).map(|count| f64::from(*count));
            [of(&line.avg), of(&line.min), of(&line.max), servers]
        });
        table.add(*seconds, values);
    }
    table.finish()
}

fn head(line: &LineOut) -> String {
    let name = line.series.as_ref().unwrap_or(&line.name);
    match (&line.server_name, &line.tag) {
        (Some(server), _) => format!("{name} {server}"),
        (None, Some(tag)) => format!("{name} {tag}"),
        (None, None) => name.clone(),
    }
}
