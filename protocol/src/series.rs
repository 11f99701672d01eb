//! Open series: what an agent measures beyond the fields of a sample. The agent describes each series once per connection, and
//! samples carry pairs of id and value. The service needs no code for any of them.

use serde::{Deserialize, Serialize, Serializer};

use crate::sample::OutOfRange;
use crate::text::clean;

/// The most series of one server at a time. The service drops and counts the others; that is no error.
pub const MAX_SERIES: usize = 2_000;
/// The most values of a sample, and descriptions of a message: as many as there are ids.
pub const MAX_VALUES: usize = 1 << 16;
/// The value of [`Unread::list`](crate::sample::Unread::list) for series that could not be read.
pub const UNREAD_LIST: &str = "series";
/// The longest name, in bytes.
pub const MAX_SERIES_NAME_BYTES: usize = 64;
/// The longest target, in characters.
pub const MAX_TARGET_CHARS: usize = 255;
/// The longest help, in characters.
pub const MAX_HELP_CHARS: usize = 200;

/// One open series. Name, unit, kind and target identify it; the id stands for it on one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesDescription {
    /// Chosen by the agent. It means the same series until the connection ends.
    pub id: u16,
    /// `[a-z][a-z0-9_]{0,63}`, without the unit.
    pub name: String,
    /// The unit of its values.
    pub unit: Unit,
    /// How its values are combined over time.
    pub kind: SeriesKind,
    /// What is measured: a device, a mount, a state.
    #[serde(default)]
    pub target: Option<String>,
    /// One line for people.
    #[serde(default)]
    pub help: String,
}

impl SeriesDescription {
    /// Checks name and lengths.
    pub fn validate(&self) -> Result<(), OutOfRange> {
        if !is_series_name(&self.name) {
            return Err(OutOfRange { field: "series.name" });
        }
        text("series.target", self.target.as_deref().unwrap_or_default(), MAX_TARGET_CHARS)?;
        text("series.help", &self.help, MAX_HELP_CHARS)
    }

    /// Removes the characters from the target and the help that a name may not have. An empty target becomes none.
    pub fn clean(&mut self) {
        self.target.iter_mut().for_each(clean);
        self.target.take_if(|target| target.is_empty());
        clean(&mut self.help);
    }
}

/// Whether this is `[a-z][a-z0-9_]{0,63}`.
pub fn is_series_name(name: &str) -> bool {
    let begins = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    begins && name.len() <= MAX_SERIES_NAME_BYTES && name.bytes().all(is_letter)
}

/// The unit of a series' values. The list is closed: a message with another unit is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Degrees Celsius.
    Celsius,
    /// A number of things.
    Count,
    /// Things per second.
    PerSecond,
    /// A quotient without a unit.
    Ratio,
    /// Volts.
    Volts,
    /// Watts.
    Watts,
    /// Revolutions per minute.
    Rpm,
    /// 0 or 1.
    Bool,
    /// Days.
    Days,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 14] = [
        Self::Percent,
        Self::Bytes,
        Self::BytesPerSecond,
        Self::Seconds,
        Self::Milliseconds,
        Self::Celsius,
        Self::Count,
        Self::PerSecond,
        Self::Ratio,
        Self::Volts,
        Self::Watts,
        Self::Rpm,
        Self::Bool,
        Self::Days,
    ];

    /// The unit's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Percent => "percent",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes_per_second",
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Celsius => "celsius",
            Self::Count => "count",
            Self::PerSecond => "per_second",
            Self::Ratio => "ratio",
            Self::Volts => "volts",
            Self::Watts => "watts",
            Self::Rpm => "rpm",
            Self::Bool => "bool",
            Self::Days => "days",
        }
    }

    /// The unit of this name; none for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.as_str() == name)
    }
}

/// How the values of a series are combined when many become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// Mean, minimum and maximum.
    Gauge,
    /// Only rises, and may begin again at 0: the rate matters.
    Counter,
    /// Only the last value.
    Last,
}

impl SeriesKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Gauge, Self::Counter, Self::Last];

    /// The kind's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Last => "last",
        }
    }
}

/// Checks the values of a sample: finite numbers, and no more of them than there are ids.
pub fn validate_values(values: &[(u16, f64)]) -> Result<(), OutOfRange> {
    let is_sound = values.len() <= MAX_VALUES && values.iter().all(|(_, value)| value.is_finite());
    if is_sound { Ok(()) } else { Err(OutOfRange { field: "values" }) }
}

/// Writes `[[id, number], ...]`, whole numbers as integers: most values are small and take one byte instead of nine.
pub(crate) fn serialize_values<S: Serializer>(values: &[(u16, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|(id, value)| (id, Number(*value))))
}

struct Number(f64);

/// Above it a float cannot represent every integer, and neither can readers of JSON.
const MAX_INTEGER: u64 = 1 << 53;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.0 as i64;
        let is_exact = whole.unsigned_abs() < MAX_INTEGER && whole as f64 == self.0;
        if is_exact { serializer.serialize_i64(whole) } else { serializer.serialize_f64(self.0) }
    }
}

fn text(field: &'static str, value: &str, most_chars: usize) -> Result<(), OutOfRange> {
    let is_sound = value.chars().count() <= most_chars && !value.contains('\0');
    if is_sound { Ok(()) } else { Err(OutOfRange { field }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, target: Option<&str>, help: &str) -> SeriesDescription {
        SeriesDescription {
            id: 1,
            name: name.to_owned(),
            unit: Unit::Percent,
            kind: SeriesKind::Gauge,
            target: target.map(str::to_owned),
            help: help.to_owned(),
        }
    }

    #[test]
    fn names_are_those_of_the_exposition() {
        let long = format!("a{}", "b".repeat(63));
        let too_long = format!("{long}c");
        for good in ["a", "cpu_mode", "tcp6", long.as_str()] {
            assert_eq!(series(good, None, "").validate(), Ok(()), "{good}");
        }
        for bad in ["", "_a", "6a", "Cpu", "cpu-mode", "cpu mode", "köln", "a\n", too_long.as_str()] {
            assert_eq!(series(bad, None, "").validate(), Err(OutOfRange { field: "series.name" }), "{bad:?}");
        }
    }

    #[test]
    fn targets_and_helps_are_bounded_in_characters() {
        let (target, help) = ("ü".repeat(MAX_TARGET_CHARS), "ü".repeat(MAX_HELP_CHARS));
        let (longer_target, longer_help) = (format!("{target}x"), format!("{help}x"));
        let refused = |field| Err(OutOfRange { field });

        assert_eq!(series("a", Some(&target), &help).validate(), Ok(()));
        assert_eq!(series("a", Some(&longer_target), "").validate(), refused("series.target"));
        assert_eq!(series("a", Some("a\0"), "").validate(), refused("series.target"));
        assert_eq!(series("a", None, &longer_help).validate(), refused("series.help"));
    }

    #[test]
    fn what_does_not_belong_in_a_name_is_taken_out_and_an_empty_target_is_none() {
        let mut hostile = series("a", Some("\u{1b}sda\u{202e}"), "How\r\n full.");
        let mut empty = series("a", Some("\u{7}"), "");

        hostile.clean();
        empty.clean();

        assert_eq!(hostile, series("a", Some("sda"), "How full."));
        assert_eq!(empty, series("a", None, ""));
    }

    #[test]
    fn units_and_kinds_have_one_name_everywhere() {
        for unit in Unit::ALL {
            assert_eq!(serde_json::to_value(unit).unwrap(), unit.as_str());
            assert_eq!(Unit::parse(unit.as_str()), Some(unit));
        }
        for kind in SeriesKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(Unit::parse("furlongs"), None);
        assert!(serde_json::from_str::<Unit>("\"furlongs\"").is_err());
    }

    #[test]
    fn values_must_be_finite() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(validate_values(&[(0, 1.0), (1, bad)]), Err(OutOfRange { field: "values" }), "{bad}");
        }
        assert_eq!(validate_values(&[(0, -1e300), (1, 0.0)]), Ok(()));
        assert_eq!(validate_values(&vec![(0, 0.0); MAX_VALUES]), Ok(()));
        assert_eq!(validate_values(&vec![(0, 0.0); MAX_VALUES + 1]), Err(OutOfRange { field: "values" }));
    }
}
