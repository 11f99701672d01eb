//! The name of an open series in a request.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde_json::json;
use signalbox_protocol::series::{MAX_SERIES_NAME_BYTES, is_series_name};

use crate::http::extract::fault::Faults;
use crate::http::extract::field::{described, string};

/// The name that an agent has given to an open series.
#[derive(Debug, Clone)]
pub struct SeriesIn(pub String);

const PATTERN: &str = "^[a-z][a-z0-9_]*$";

impl Deserr<Faults> for SeriesIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let name = string(value, location)?;
        if is_series_name(&name) {
            return Ok(Self(name));
        }
        let msg = "ensure this value is the name of an open series: a lower-case letter, then at most 63 lower-case letters, \
                   digits and underscores; its target is a field of its own";
        Err(Faults::at(location, "value_error.str.regex", msg))
    }
}

described!(
    SeriesIn,
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_SERIES_NAME_BYTES, "pattern": PATTERN,
            "example": "fan_speed" })
);
