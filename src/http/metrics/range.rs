//! The range and resolution of a request for history.

use deserr::{Deserr, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::Timestamp;

use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};
use crate::http::extract::param::{TimeParam, Whole};
use crate::http::reply::fault_of;
use crate::metrics::query::{Resolution, TimeRange};

/// The default range of a request without a start.
const DEFAULT_RANGE_MS: i64 = 3_600_000;

const DEFAULT_MAX_POINTS: u64 = 1_000;

/// The resolution of a response.
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

pub fn check_range(start: Option<TimeParam>, end: Option<TimeParam>) -> Result<(), Faults> {
    match (start, end) {
        (Some(start), Some(end)) if end.0 < start.0 => {
            Err(fault_of("end", "value_error.range", "ensure that end is not before start"))
        }
        _ => Ok(()),
    }
}

/// The range that two parameters select. A start after now is an empty range, not an error.
pub fn range(start: Option<TimeParam>, end: Option<TimeParam>) -> TimeRange {
    range_of(start, end, DEFAULT_RANGE_MS)
}

/// As [`range`], with another default length in milliseconds.
pub fn range_of(start: Option<TimeParam>, end: Option<TimeParam>, usual_ms: i64) -> TimeRange {
    let end = end.map_or_else(Timestamp::now, |TimeParam(end)| end);
    let start = start.map_or_else(|| end.plus_millis(-usual_ms), |TimeParam(start)| start);
    TimeRange { start, end }
}

pub fn resolution(param: Option<ResolutionParam>, max_points: Option<Whole<1, 20_000>>) -> Resolution {
    match param.unwrap_or(ResolutionParam::Auto) {
        ResolutionParam::Auto => Resolution::Auto { max_points: max_points.map_or(DEFAULT_MAX_POINTS, |Whole(n)| n) },
        ResolutionParam::Raw => Resolution::Raw,
        ResolutionParam::Seconds(seconds) => Resolution::Seconds(seconds),
    }
}
