//! `/servers/{id}/events`, `/servers/{id}/availability` and `/events`: the events of a server, its availability, and the
//! events of all servers.

use actix_web::web::Json;
use deserr::Deserr;
use paperclip::actix::web::{Resource, delete as remove, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;
use serde_json::{Map, Value, json};
use signalbox_protocol::Timestamp;

use super::annotations;
use super::error::ApiError;
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::Faults;
use super::extract::field::described;
use super::extract::param::{MAX_OFFSET, SearchText, TimeParam as MomentParam, Whole, page};
use super::extract::{Checked, IdPath, OnServer, See, SignedIn};
use super::field_out::{Id, TimeOut};
use super::path::at;
use super::reply::{Listed, fault_of};
use crate::events::Report;
use crate::events::availability::Outage;
use crate::shares::Share as ReadShare;
use crate::store::{ServerEvent, ServerEventFilter};

/// The default range of a request without a start.
const AVAILABILITY_RANGE_MS: i64 = 30 * 24 * 3_600_000;

/// An event of a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ServerEventOut {
    id: Id,
    server_id: Id,
    /// `online`, `offline` (with a `reason`: `disconnected`, `silent`, `key_revoked`, `missing`), `unwatched` (the
    /// service was stopped, so the server's state is not known), `reboot`, `agent_version`, `kernel`, `os`, `clock`,
    /// `policy` (the agent's policy permits other things: the capabilities that it `gained` and `lost`), `conflict` (two
    /// machines with one key), `container`, `dropped` (the number of the agent's events that were omitted because there
    /// were too many), and what people and programs wrote: `deploy` and `note`, with `text`, `username`, and if given
    /// `version` and `url`.
    kind: String,
    at: TimeOut,
    detail: EventDetail,
}

/// More about an event.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct EventDetail(Map<String, Value>);

described!(
    EventDetail,
    json!({ "type": "object", "description": "More about the event. The fields depend on the kind.",
            "additionalProperties": true, "example": { "reason": "disconnected" } })
);

impl From<ServerEvent> for ServerEventOut {
    fn from(event: ServerEvent) -> Self {
        Self {
            id: Id(event.id),
            server_id: Id(event.server_id),
            kind: event.kind,
            at: TimeOut(event.at.into()),
            // Malformed only if someone changed the table outside of the service.
            detail: EventDetail(serde_json::from_str(&event.detail).unwrap_or_default()),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ServerEventsQuery {
    /// Only events of this kind.
    #[deserr(default)]
    kind: Option<SearchText>,
    /// The start of the range.
    #[deserr(default)]
    start: Option<MomentParam>,
    /// The end of the range, exclusive.
    #[deserr(default)]
    end: Option<MomentParam>,
    /// Maximum number of entries. Defaults to 100.
    #[deserr(default)]
    limit: Option<Whole<1, 500>>,
    /// Number of entries to skip. Defaults to 0.
    #[deserr(default)]
    offset: Option<Whole<0, { MAX_OFFSET }>>,
}

impl CrossCheck for ServerEventsQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        in_order(fields.sound("start"), fields.sound("end"))
    }
}

fn in_order(start: Option<MomentParam>, end: Option<MomentParam>) -> Result<(), Faults> {
    match (start, end) {
        (Some(start), Some(end)) if end.0 < start.0 => {
            Err(fault_of("end", "value_error.range", "ensure that end is not before start"))
        }
        _ => Ok(()),
    }
}

/// List the events of a server
///
/// Newest first: the agent connected or disconnected, the machine was rebooted, a container died, a version or the
/// clock changed. The service keeps events for `--retention-events` days, and at most the newest 10,000 of each server.
#[api_v2_operation(tags(Servers), operation_id = "list_server_events")]
pub async fn events(
    ask: Checked<OnServer<See, IdPath>, CrossChecked<ServerEventsQuery>>,
) -> Result<Listed<ServerEventOut>, ApiError> {
    let CrossChecked(query) = ask.query;
    let wanted = page(query.limit, query.offset);
    let server_id = ask.subject.access.server_id();
    let found = ask.state.store.list_events(server_id, filter(query), wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(ServerEventOut::from).collect(), total: found.total })
}

/// List the events of all servers that you can see
///
/// The events of `GET /servers/{id}/events` for every server, newest first.
#[api_v2_operation(tags(Servers), operation_id = "list_events")]
pub async fn of_fleet(
    ask: Checked<SignedIn, CrossChecked<ServerEventsQuery>>,
) -> Result<Listed<ServerEventOut>, ApiError> {
    let CrossChecked(query) = ask.query;
    let wanted = page(query.limit, query.offset);
    let caller = ask.subject.caller;
    // It searches the events of each server.
    let _permit = ask.state.limits.shares.reads.enter(ReadShare::Account(caller.user_id)).await?;
    let found =
        ask.state.store.list_fleet_events(&ask.state.accounts.access.visible(&caller), filter(query), wanted).await?;
    Ok(Listed { items: found.items.into_iter().map(ServerEventOut::from).collect(), total: found.total })
}

fn filter(query: ServerEventsQuery) -> ServerEventFilter {
    ServerEventFilter {
        kind: query.kind.map(|SearchText(kind)| kind),
        start: query.start.map(|MomentParam(start)| start),
        end: query.end.map(|MomentParam(end)| end),
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct AvailabilityQuery {
    /// The start of the range. Defaults to 30 days before the end.
    #[deserr(default)]
    start: Option<MomentParam>,
    /// The end of the range, at most now. Defaults to now.
    #[deserr(default)]
    end: Option<MomentParam>,
}

impl CrossCheck for AvailabilityQuery {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        in_order(fields.sound("start"), fields.sound("end"))
    }
}

/// The availability of a server over a range.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AvailabilityOut {
    start: TimeOut,
    end: TimeOut,
    /// The percentage of `up_seconds` in the sum of `up_seconds` and `down_seconds`; null if nothing is known.
    uptime_percent: Option<Share>,
    /// Seconds in which the agent was connected.
    up_seconds: Seconds,
    /// Seconds in which the agent was not connected.
    down_seconds: Seconds,
    /// Seconds without data: the server did not exist yet, or the service was stopped.
    unknown_seconds: Seconds,
    /// The number of reboots.
    reboots: u64,
    /// The outages, oldest first.
    outages: Vec<OutageOut>,
}

/// A period in which a server was down.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct OutageOut {
    start: TimeOut,
    end: TimeOut,
    /// The reason, as in the `offline` event.
    reason: Option<String>,
    /// Whether the outage had not ended at the end of the range.
    ongoing: bool,
}

impl From<Outage> for OutageOut {
    fn from(outage: Outage) -> Self {
        Self {
            start: TimeOut(outage.start),
            end: TimeOut(outage.end),
            reason: outage.reason,
            ongoing: outage.is_ongoing,
        }
    }
}

/// 0 to 100, in thousandths, enough for "three nines".
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Share(f64);

described!(Share, json!({ "type": "number", "format": "double", "minimum": 0, "maximum": 100, "example": 99.987 }));

/// With millisecond precision.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub struct Seconds(f64);

described!(Seconds, json!({ "type": "number", "format": "double", "minimum": 0, "example": 86_123.456 }));

impl Share {
    /// Rounds a percentage.
    pub fn of(percent: f64) -> Self {
        Self((percent * 1_000.0).round() / 1_000.0)
    }
}

impl Seconds {
    pub fn of_seconds(seconds: f64) -> Self {
        Self((seconds * 1_000.0).round() / 1_000.0)
    }

    fn of(millis: i64) -> Self {
        Self(millis as f64 / 1_000.0)
    }
}

impl AvailabilityOut {
    fn new(start: Timestamp, end: Timestamp, report: Report) -> Self {
        let Report { availability, reboots } = report;
        let uptime_percent = availability.uptime_percent().map(Share::of);
        let outages = availability.outages.into_iter().map(OutageOut::from);
        Self {
            start: TimeOut(start),
            end: TimeOut(end),
            uptime_percent,
            up_seconds: Seconds::of(availability.up_ms),
            down_seconds: Seconds::of(availability.down_ms),
            unknown_seconds: Seconds::of(availability.unknown_ms),
            reboots,
            outages: outages.collect(),
        }
    }
}

/// Get the availability of a server
///
/// A server is up from when its agent connects until it disconnects, and down otherwise. Time that the service did not
/// observe counts as neither.
#[api_v2_operation(tags(Servers), operation_id = "read_server_availability")]
pub async fn availability(
    ask: Checked<OnServer<See, IdPath>, CrossChecked<AvailabilityQuery>>,
) -> Result<Json<AvailabilityOut>, ApiError> {
    let CrossChecked(query) = ask.query;
    let now = ask.state.clock.now();
    let end = query.end.map_or(now, |MomentParam(end)| end.min(now));
    let start = query.start.map_or_else(|| end.plus_millis(-AVAILABILITY_RANGE_MS), |MomentParam(start)| start);
    let start = start.min(end);
    let report = ask.state.events.report(ask.subject.access.server_id(), start, end).await?;
    Ok(Json(AvailabilityOut::new(start, end, report)))
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/servers/{id}/events").route(get().to(events)).route(post().to(annotations::annotate)),
        at("/servers/{id}/events/{event_id}").route(remove().to(annotations::delete)),
        at("/servers/{id}/availability").route(get().to(availability)),
        at("/events").route(get().to(of_fleet)).route(post().to(annotations::annotate_many)),
    ]
}
