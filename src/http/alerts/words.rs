//! The words of thresholds and alerts in requests and responses.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use serde_json::json;

use crate::alert_words::{Comparison, MetricType, Severity, Status, Trouble};
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};

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
