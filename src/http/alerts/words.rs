//! The words of thresholds and alerts in requests and responses.

use std::sync::LazyLock;

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use serde_json::json;

use crate::alert_words::{Comparison, MetricType, Severity, Status, Trouble};
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};
use crate::store::SCHEDULE;

/// Implements a word in requests.
macro_rules! word_in {
    ($($(#[$doc:meta])* $name:ident($kind:ty)),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(pub $kind);

        impl Deserr<Faults> for $name {
            fn deserialize_from_value<V: IntoValue>(
                value: Value<V>,
                location: ValuePointerRef<'_>,
            ) -> Result<Self, Faults> {
                let word = string(value, location)?;
                <$kind>::of(&word).map(Self).ok_or_else(|| not_a_member(<$kind>::WORDS, location))
            }
        }

        described!($name, json!({ "type": "string", "enum": <$kind>::WORDS }));
    )+};
}

/// Implements a word in responses.
macro_rules! word_out {
    ($($(#[$doc:meta])* $name:ident($kind:ty)),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        described!($name, json!({ "type": "string", "enum": <$kind>::WORDS }));
    )+};
}

/// The words of `metric_type` of alerts: that of an alert of a schedule is of no threshold.
static SOURCES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| MetricType::WORDS.iter().copied().chain([SCHEDULE]).collect());

/// What raised an alert: the metric of a threshold, or `schedule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertSourceIn(pub &'static str);

impl Deserr<Faults> for AlertSourceIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let word = string(value, location)?;
        let known = SOURCES.iter().find(|known| **known == word);
        known.map(|known| Self(known)).ok_or_else(|| not_a_member(&SOURCES, location))
    }
}

described!(AlertSourceIn, json!({ "type": "string", "enum": SOURCES.as_slice() }));

/// What raised an alert: the metric of a threshold, or `schedule`.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct AlertSourceOut(pub String);

described!(AlertSourceOut, json!({ "type": "string", "enum": SOURCES.as_slice() }));

word_in!(
    /// The metric that a threshold watches.
    MetricTypeIn(MetricType),
    /// How a value is compared with the threshold.
    ComparisonIn(Comparison),
    /// The severity.
    SeverityIn(Severity),
    /// The state of an alert.
    AlertStatusIn(Status),
    /// A problem of a container.
    TroubleIn(Trouble),
);

word_out!(
    /// The metric that a threshold watches.
    MetricTypeOut(MetricType),
    /// How a value is compared with the threshold.
    ComparisonOut(Comparison),
    /// The severity.
    SeverityOut(Severity),
    /// The state of an alert.
    AlertStatusOut(Status),
    /// A problem of a container.
    TroubleOut(Trouble),
);
