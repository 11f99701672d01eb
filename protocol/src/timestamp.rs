//! The one form of time on the wire: ISO 8601 in UTC with milliseconds and a `Z`.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch, in UTC.
///
/// Human-readable formats write `2026-11-20T09:30:00.123Z` and accept any ISO 8601 offset; compact ones (stored samples) use
/// the integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Years 0000 to 9999, the range of four-digit years. Input outside of it is refused.
const RANGE_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

impl Timestamp {
    /// The current time, by the system's clock.
    pub fn now() -> Self {
        Self(Utc::now().timestamp_millis())
    }

    /// From milliseconds since the epoch, clamped to the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*RANGE_MS.start(), *RANGE_MS.end()))
    }

    /// Milliseconds since the epoch.
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

    /// The same moment as chrono's type.
    pub fn to_datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }

    /// Parses ISO 8601 with any offset; a missing offset means UTC.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_own(text).or_else(|| Self::parse_any(text))
    }

    /// Parses the form that this build writes, for years of four digits. Every sample has one, and chrono's parser is slower.
    fn parse_own(text: &str) -> Option<Self> {
        let bytes = <&[u8; 24]>::try_from(text.as_bytes()).ok()?;
        let [day @ .., b'T', _, _, b':', _, _, b':', _, _, b'.', _, _, _, b'Z'] = bytes else { return None };
        let [.., h, h1, _, m, m1, _, s, s1, _, f, f1, f2, _] = bytes;
        let [y, y1, y2, y3, b'-', mo, mo1, b'-', d, d1] = day else { return None };
        let year = i32::try_from(number([y, y1, y2, y3])?).ok()?;
        let date = NaiveDate::from_ymd_opt(year, number([mo, mo1])?, number([d, d1])?)?;
        let (hour, minute, second) = (number([h, h1])?, number([m, m1])?, number([s, s1])?);
        let time = date.and_hms_milli_opt(hour, minute, second, number([f, f1, f2])?)?;
        Some(Self(time.and_utc().timestamp_millis()))
    }

    fn parse_any(text: &str) -> Option<Self> {
        let text = with_minutes(text.trim());
        let parsed = DateTime::parse_from_rfc3339(&text)
            .map(|time| time.to_utc())
            .or_else(|_| text.parse::<DateTime<chrono::FixedOffset>>().map(|time| time.to_utc()))
            .or_else(|_| {
                chrono::NaiveDateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f").map(|time| time.and_utc())
            });
        let millis = parsed.ok()?.timestamp_millis();
        RANGE_MS.contains(&millis).then_some(Self(millis))
    }
}

/// The text with the minutes of its offset, which chrono asks for, where it ends in hours alone. A date ends alike, and is no time
/// with them either.
fn with_minutes(text: &str) -> Cow<'_, str> {
    match text.as_bytes() {
        [.., b'+' | b'-', b'0'..=b'9', b'0'..=b'9'] => Cow::Owned(format!("{text}:00")),
        _ => Cow::Borrowed(text),
    }
}

/// The number that these digits make; none if one is not a digit.
fn number<const N: usize>(digits: [&u8; N]) -> Option<u32> {
    let add = |before: u32, digit: &u8| digit.is_ascii_digit().then(|| before * 10 + u32::from(digit - b'0'));
    digits.into_iter().try_fold(0, add)
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
        let same = [
            "2026-11-20T15:00:00.123+0530",
            "2026-11-20T11:30:00.123+02",
            "2026-11-20T04:30:00.123-05",
            "2026-11-20 11:30:00.123+02",
            "2026-11-20T09:30:00.123-00",
            "2026-11-20t09:30:00.123z",
            "2026-11-20t11:30:00.123+02",
        ];
        for text in same {
            assert_eq!(Timestamp::parse(text), utc, "{text}");
        }
        let (plain, far) = ("2099-01-01T00:00:00Z", "2026-11-21T08:30:00.123+23");
        assert_eq!(Timestamp::parse("2099-01-01T02:00:00+02"), Timestamp::parse(plain));
        assert_eq!(Timestamp::parse(far), utc);
    }

    #[test]
    fn reads_its_own_form_as_it_reads_any_other() {
        let bounds = [*RANGE_MS.start(), *RANGE_MS.end(), -1, 0, 951_827_696_789, 1_795_166_130_120];
        for millis in bounds {
            let time = Timestamp(millis);

            assert_eq!(Timestamp::parse_own(&time.to_string()), Some(time), "{time}");
            assert_eq!(Timestamp::parse_any(&time.to_string()), Some(time), "{time}");
        }
        for other in ["2027-02-29T00:00:00.000Z", "2016-12-31T23:59:60.000Z", "2026-11-20T09:15:30.1:0Z"] {
            assert_eq!(Timestamp::parse_own(other), None, "{other}");
            assert_eq!(Timestamp::parse(other), Timestamp::parse_any(other), "{other}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "1795167330", "2026-11-20"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        for offset in ["+24", "-24", "+99", "+2", "+", "+02:", "+02:0", "+023", "Z+02", "+02+02", "+02:00-05", "02"] {
            let text = format!("2026-11-20T09:30:00{offset}");
            assert_eq!(Timestamp::parse(&text), None, "{text}");
        }
        for text in
            ["2026-11-20T09:30+02", "2026-11-20T09-05", "11-20", "-20", "+02", "2026-11-20+02", "2026-11-20T-05"]
        {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
