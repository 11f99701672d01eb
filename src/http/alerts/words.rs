//! The words of thresholds and alerts, as they come in and go out.

use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use serde::Serialize;
use serde_json::json;

use crate::alert_words::{Comparison, MetricType, Severity, Status, Trouble};
use crate::http::extract::fault::{Faults, not_a_member};
use crate::http::extract::field::{described, string};

/// Implements a word that somebody says.
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

/// Implements a word as it is kept.
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
    /// What is watched.
    MetricTypeIn(MetricType),
    /// How it is compared.
    ComparisonIn(Comparison),
    /// How bad it is.
    SeverityIn(Severity),
    /// Where an alert stands.
    AlertStatusIn(Status),
    /// What can be wrong with a container.
    TroubleIn(Trouble),
);

word_out!(
    /// What is watched.
    MetricTypeOut(MetricType),
    /// How it is compared.
    ComparisonOut(Comparison),
    /// How bad it is.
    SeverityOut(Severity),
    /// Where an alert stands.
    AlertStatusOut(Status),
    /// What can be wrong with a container.
    TroubleOut(Trouble),
);
