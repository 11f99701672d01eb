//! `/servers/{id}/events` and `/servers/{id}/availability`: what happened on a server, and how much of the time it was there.

use actix_web::web::Json;
use deserr::{Deserr, ValuePointerRef};
use paperclip::actix::web::{Resource, get};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::{Map, Value, json};
use signalbox_protocol::Timestamp;

use super::error::ApiError;
use super::extract::fault::Faults;
use super::extract::field::described;
use super::extract::param::{MAX_OFFSET, Moment as MomentParam, SearchText, Whole, page};
use super::extract::{Ask, IdPath, OnServer, Read};
use super::field_out::{Id, Moment};
use super::path::at;
use super::reply::{Listed, fault_of};
use crate::events::Report;
use crate::store::{ServerEvent, ServerEventFilter};

/// What a request for availability that names no start gets.
const AVAILABILITY_RANGE_MS: i64 = 30 * 24 * 3_600_000;

/// Something that happened on a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServerEventOut {
    id: Id,
    server_id: Id,
    /// `online`, `offline` (with a `reason`: `disconnected`, `silent`, `key_revoked`, `missing`), `unwatched` (the service was
    /// away: what became of the server is not known), `reboot`, `agent_version`, `kernel`, `os`, `clock`, `conflict` (two
    /// machines on one key), `container`, and `dropped` (how many events of the agent were left out, because they were too
    /// many).
    kind: String,
    at: Moment,
    detail: EventDetail,
}

/// More about an event.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct EventDetail(Map<String, Value>);

described!(
    EventDetail,
    json!({ "type": "object", "description": "More about it; which fields depends on the kind.",
            "additionalProperties": true, "example": { "reason": "disconnected" } })
);

impl From<ServerEvent> for ServerEventOut {
    fn from(event: ServerEvent) -> Self {
        Self {
            id: Id(event.id),
            server_id: Id(event.server_id),
            kind: event.kind,
            at: Moment(event.at.into()),
            // Only somebody who changed the table behind our back could have written something else.
            detail: EventDetail(serde_json::from_str(&event.detail).unwrap_or_default()),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = events_in_order -> Faults)]
pub struct ServerEventsQuery {
    /// Only events of this kind.
    #[deserr(default)]
    kind: Option<SearchText>,
    /// The beginning.
    #[deserr(default)]
    start: Option<MomentParam>,
    /// The end, which is left out itself.
    #[deserr(default)]
    end: Option<MomentParam>,
    /// How many entries at most. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// How many entries to leave out at the beginning.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

fn events_in_order(query: ServerEventsQuery, _: ValuePointerRef<'_>) -> Result<ServerEventsQuery, Faults> {
    in_order(query.start, query.end)?;
    Ok(query)
}

fn in_order(start: Option<MomentParam>, end: Option<MomentParam>) -> Result<(), Faults> {
    match (start, end) {
        (Some(start), Some(end)) if end.0 < start.0 => {
            Err(fault_of("end", "value_error.range", "ensure that end is not before start"))
        }
        _ => Ok(()),
    }
}

/// What happened on a server
///
/// Newest first: its agent came or went, the machine was started again, a container died, a version or the clock changed.
/// The service keeps events for `--retention-events` days, and at most the newest 10,000 of a server.
#[api_v2_operation(tags(Servers), operation_id = "list_server_events")]
pub async fn events(ask: Ask<OnServer<Read, IdPath>, ServerEventsQuery>) -> Result<Listed<ServerEventOut>, ApiError> {
    let query = ask.query;
    let filter = ServerEventFilter {
        kind: query.kind.map(|SearchText(kind)| kind),
        start: query.start.map(|MomentParam(start)| start),
        end: query.end.map(|MomentParam(end)| end),
    };
    let server_id = ask.subject.access.server_id();
    let found = ask.state.store.list_events(server_id, filter, page(query.limit, query.offset)).await?;
    Ok(Listed { items: found.items.into_iter().map(ServerEventOut::from).collect(), total: found.total })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = availability_in_order -> Faults)]
pub struct AvailabilityQuery {
    /// The beginning. Defaults to 30 days before the end.
    #[deserr(default)]
    start: Option<MomentParam>,
    /// The end. Defaults to now; a later one is taken for now.
    #[deserr(default)]
    end: Option<MomentParam>,
}

fn availability_in_order(query: AvailabilityQuery, _: ValuePointerRef<'_>) -> Result<AvailabilityQuery, Faults> {
    in_order(query.start, query.end)?;
    Ok(query)
}

/// Availability of a server over a range.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AvailabilityOut {
    start: Moment,
    end: Moment,
    /// The share of `up_seconds` in `up_seconds` and `down_seconds`; null where nothing is known.
    uptime_percent: Option<Share>,
    /// Seconds in which its agent was connected.
    up_seconds: Seconds,
    /// Seconds in which it was not.
    down_seconds: Seconds,
    /// Seconds of which nothing is known: the server did not exist yet, or the service itself was away.
    unknown_seconds: Seconds,
    /// How often the machine was started again.
    reboots: u64,
    /// When it was down, oldest first.
    outages: Vec<OutageOut>,
}

/// A part of the range in which a server was down.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct OutageOut {
    start: Moment,
    end: Moment,
    /// The reason, as in the `offline` event.
    reason: Option<String>,
    /// It was not over at the end of the range.
    ongoing: bool,
}

/// 0 to 100, in thousandths: "three nines" show.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Share(f64);

described!(Share, json!({ "type": "number", "format": "double", "minimum": 0, "maximum": 100, "example": 99.987 }));

/// In milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Seconds(f64);

described!(Seconds, json!({ "type": "number", "format": "double", "minimum": 0, "example": 86_123.456 }));

impl Seconds {
    fn of(millis: i64) -> Self {
        Self(millis as f64 / 1_000.0)
    }
}

impl AvailabilityOut {
    fn new(start: Timestamp, end: Timestamp, report: Report) -> Self {
        let Report { availability, reboots } = report;
        let uptime_percent = availability.uptime_percent().map(|percent| Share((percent * 1_000.0).round() / 1_000.0));
        let outages = availability.outages.into_iter().map(|outage| OutageOut {
            start: Moment(outage.start),
            end: Moment(outage.end),
            reason: outage.reason,
            ongoing: outage.is_ongoing,
        });
        Self {
            start: Moment(start),
            end: Moment(end),
            uptime_percent,
            up_seconds: Seconds::of(availability.up_ms),
            down_seconds: Seconds::of(availability.down_ms),
            unknown_seconds: Seconds::of(availability.unknown_ms),
            reboots,
            outages: outages.collect(),
        }
    }
}

/// How much of the time a server was there
///
/// From when its agent came until it went it was up, and down from then on. What the service did not see is neither.
#[api_v2_operation(tags(Servers), operation_id = "read_server_availability")]
pub async fn availability(
    ask: Ask<OnServer<Read, IdPath>, AvailabilityQuery>,
) -> Result<Json<AvailabilityOut>, ApiError> {
    let now = ask.state.clock.now();
    let end = ask.query.end.map_or(now, |MomentParam(end)| end.min(now));
    let start = ask.query.start.map_or_else(|| end.plus_millis(-AVAILABILITY_RANGE_MS), |MomentParam(start)| start);
    let start = start.min(end);
    let report = ask.state.events.report(ask.subject.access.server_id(), start, end).await?;
    Ok(Json(AvailabilityOut::new(start, end, report)))
}

/// Its routes. Fixed paths stand before those with parameters that they would match.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/servers/{id}/events").route(get().to(events)),
        at("/servers/{id}/availability").route(get().to(availability)),
    ]
}
