//! `/servers/availability`: the last hours of many servers, as bars of an overview.

use deserr::Deserr;
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::json;
use signalbox_protocol::Timestamp;

use super::error::ApiError;
use super::extract::fault::Faults;
use super::extract::field::described;
use super::extract::param::{Ids, MAX_OFFSET, Whole, page};
use super::extract::{Checked, SignedIn};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::reply::Listed;
use super::server_events::{OutageOut, Share};
use crate::events::Bar;
use crate::events::beats::{Beat, Grid};

/// Parts of a bar: half an hour each of a day.
const BEATS: i64 = 48;

const DEFAULT_HOURS: u64 = 24;

/// Outages of one server that are listed: a bar has no room to tell more apart.
const MAX_OUTAGES: usize = 20;

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct BarsQuery {
    /// The length of the range, up to now. Defaults to 24.
    #[deserr(default)]
    hours: Option<Whole<1, 168>>,
    /// Only these servers: their ids, separated by commas, at most 100.
    #[deserr(default)]
    ids: Option<Ids>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

/// The last hours of a server, in 48 equal parts.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct BarOut {
    server_id: Id,
    /// The start of the first part, a multiple of `beat_seconds`. The last part contains the present.
    start: TimeOut,
    /// The length of a part.
    beat_seconds: u32,
    /// The state in each part, oldest first: `online`, `offline`, `partly` (some of both) or `unknown` (the server did not
    /// exist yet, or the service was stopped).
    beats: Vec<BeatOut>,
    /// The percentage of the known time in which the agent was connected; null if nothing is known.
    uptime_percent: Option<Share>,
    /// The number of outages.
    outage_count: u32,
    /// The outages, oldest first: the newest 20.
    outages: Vec<OutageOut>,
}

/// The state in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BeatOut {
    Online,
    Partly,
    Offline,
    Unknown,
}

described!(BeatOut, json!({ "type": "string", "enum": ["online", "partly", "offline", "unknown"] }));

impl From<Beat> for BeatOut {
    fn from(beat: Beat) -> Self {
        match beat {
            Beat::Online => Self::Online,
            Beat::Partly => Self::Partly,
            Beat::Offline => Self::Offline,
            Beat::Unknown => Self::Unknown,
        }
    }
}

impl BarOut {
    fn new(bar: Bar, start: Timestamp, beat_seconds: u32) -> Self {
        let uptime_percent = bar.availability.uptime_percent().map(Share::of);
        let outages = bar.availability.outages;
        let count = outages.len();
        Self {
            server_id: Id(bar.server_id),
            start: TimeOut(start),
            beat_seconds,
            beats: bar.beats.into_iter().map(BeatOut::from).collect(),
            uptime_percent,
            outage_count: u32::try_from(count).unwrap_or(u32::MAX),
            outages: outages.into_iter().skip(count.saturating_sub(MAX_OUTAGES)).map(OutageOut::from).collect(),
        }
    }
}

/// Get the availability of all servers that you can see
///
/// For the bars of an overview: each server's state in 48 equal parts of the last hours, by name. Servers that you cannot see
/// are left out. Of a server with more than 1,000 connections and disconnections in the range, the time before them is unknown.
#[api_v2_operation(tags(Servers), operation_id = "list_availability")]
pub async fn bars(ask: Checked<SignedIn, BarsQuery>) -> Result<Listed<BarOut>, ApiError> {
    let query = ask.query;
    let visible = ask.state.accounts.access.visible(&ask.subject.caller);
    let among = query.ids.map(|Ids(ids)| ids);
    let listed = page(query.limit, query.offset);
    let found = ask.state.store.visible_server_ids(&visible, among.as_deref(), listed).await?;
    let hours = query.hours.map_or(DEFAULT_HOURS, |Whole(hours)| hours);
    let beat_seconds = u32::try_from(hours * 3_600 / BEATS.unsigned_abs()).unwrap_or(u32::MAX);
    let now = ask.state.clock.now();
    let grid = Grid::up_to(now, i64::from(beat_seconds) * 1_000, BEATS);
    let bars = ask.state.events.bars(&visible, &found.items, grid, now).await?;
    let items = bars.into_iter().map(|bar| BarOut::new(bar, grid.start, beat_seconds)).collect();
    Ok(Listed { items, total: found.total })
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![at("/servers/availability").route(get().to(bars))]
}
