//! The one form of time on the wire: ISO 8601 in UTC with milliseconds and a `Z`.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch, in UTC.
///
/// Human-readable formats carry `2026-11-20T09:30:00.123Z` and accept any ISO 8601 offset; compact ones (the sample
/// store) carry the integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Years 0000 to 9999, which is what four-digit years can say; anything else is refused on input.
const RANGE_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

impl Timestamp {
    /// The present, by the system's clock.
    pub fn now() -> Self {
        Self(Utc::now().timestamp_millis())
    }

    /// From milliseconds since the epoch, clamped to the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*RANGE_MS.start(), *RANGE_MS.end()))
    }

    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub fn as_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// `self` moved by `millis`, which may be negative.
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to `self`; negative when `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    pub fn to_datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }

    /// Parses ISO 8601 with any offset; a missing offset means UTC.
    pub fn parse(text: &str) -> Option<Self> {
        // A `+` of a query string that was not percent-encoded arrives as a blank.
        let text = text.trim();
        let parsed = DateTime::parse_from_rfc3339(text)
            .map(|time| time.to_utc())
            .or_else(|_| text.parse::<DateTime<chrono::FixedOffset>>().map(|time| time.to_utc()))
            .or_else(|_| {
                chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.and_utc())
            });
        let millis = parsed.ok()?.timestamp_millis();
        RANGE_MS.contains(&millis).then_some(Self(millis))
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_millis(time.timestamp_millis())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_datetime().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { serializer.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an ISO 8601 timestamp")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).ok_or_else(|| E::custom("not an ISO 8601 timestamp"))
            }
        }

        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Text)
        } else {
            i64::deserialize(deserializer).map(Self::from_millis)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_milliseconds_and_a_z() {
        assert_eq!(Timestamp::from_millis(1_795_166_130_120).to_string(), "2026-11-20T09:15:30.120Z");
    }

    #[test]
    fn accepts_any_offset() {
        let utc = Timestamp::parse("2026-11-20T09:30:00.123Z");

        assert_eq!(Timestamp::parse("2026-11-20T15:00:00.123+05:30"), utc);
        assert_eq!(Timestamp::parse("2026-11-20T09:30:00.123"), utc);
        assert!(utc.is_some());
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "1795167330", "2026-11-20"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
