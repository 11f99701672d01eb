//! What tokens of programs and enrolments have in common: when they end, and from which networks they may be used.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::Timestamp;

use super::error::ApiError;
use super::extract::cross_check::Fields;
use super::extract::fault::{Faults, Part};
use super::extract::field::{At, described, string, text_field};
use super::reply::fault_of;
use crate::networks;

pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

const MAX_NETWORKS: usize = 20;

text_field!(
    /// A network, or a single address.
    Network(String),
    |text, location| {
        let network = networks::network(&text);
        let network = network.map_err(|msg| Faults::at(location, "value_error.network", msg))?;
        Ok(network.trunc().to_string())
    },
    json!({ "type": "string", "example": "10.0.0.0/8" })
);

/// How long a token is valid.
pub struct Life {
    /// If its request does not say it.
    pub usual_ms: i64,
    /// The last moment at which a token that is created now may end.
    pub latest: fn(now: Timestamp) -> Timestamp,
    /// The longest, in words.
    pub longest: &'static str,
}

impl Life {
    /// When a new token stops working.
    pub fn end(&self, asked: Option<At>, now: Timestamp) -> Result<Timestamp, ApiError> {
        let Some(At(at)) = asked else { return Ok(now.plus_millis(self.usual_ms)) };
        let refused = |msg: &str| {
            Err(ApiError::Invalid(fault_of("expires_at", "value_error.expires_at", msg).within(Part::Body)))
        };
        if at <= now {
            refused("ensure this time is in the future")
        } else if at > (self.latest)(now) {
            refused(&format!("ensure this time is at most {} from now", self.longest))
        } else {
            Ok(at)
        }
    }
}

/// Checks that there are not too many networks.
pub fn check_networks(fields: &Fields<'_>) -> Result<(), Faults> {
    let networks: Option<Vec<Network>> = fields.sound("networks");
    check_length("networks", networks.map(|networks| networks.len()), MAX_NETWORKS, fields.location)
}

/// Checks the length of a list, which may be left out.
pub fn check_length(
    field: &str,
    length: Option<usize>,
    most: usize,
    location: ValuePointerRef<'_>,
) -> Result<(), Faults> {
    if length.is_none_or(|length| length <= most) {
        return Ok(());
    }
    let msg = format!("ensure this value has at most {most} items");
    Err(Faults::at(location.push_key(field), "value_error.list.max_items", msg))
}

/// The networks, as they are stored. None are all.
pub fn stored(networks: Option<Vec<Network>>) -> Vec<String> {
    networks.unwrap_or_default().into_iter().map(|Network(text)| text).collect()
}
