//! Times and durations, as people write and read them.

use std::time::Duration;

use chrono::Local;
use signalbox_protocol::Timestamp;

/// `90s`, `15m`, `2h`, `1d`, `2w`, or a plain number of seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is no duration: write 90s, 15m, 2h or 1d");
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let seconds = match text.get(digits.len()..) {
        Some("" | "s") => 1,
        Some("m") => 60,
        Some("h") => 3_600,
        Some("d") => 86_400,
        Some("w") => 604_800,
        _ => return Err(fault()),
    };
    let count: u64 = digits.parse().map_err(|_| fault())?;
    count.checked_mul(seconds).filter(|seconds| *seconds <= MAX_SECONDS).map(Duration::from_secs).ok_or_else(fault)
}

/// A century.
const MAX_SECONDS: u64 = 100 * 366 * 86_400;

/// A duration before now, or a time in ISO 8601.
pub fn parse_moment(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = parse_duration(text) {
        let millis = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        return Ok(Timestamp::now().plus_millis(-millis));
    }
    Timestamp::parse(text).ok_or_else(|| format!("{text:?} is no time: write 15m, 2h, 1d or 2026-11-20T09:30:00Z"))
}

/// `12s`, `5m`, `3h`, `2d`: the largest unit alone.
pub fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// How long ago, or nothing.
pub fn ago(moment: Option<Timestamp>) -> String {
    moment.map_or_else(
        || "never".to_owned(),
        |moment| format!("{} ago", age(Timestamp::now().millis_since(moment) / 1000)),
    )
}

/// In the time zone of this machine.
pub fn local(moment: Timestamp) -> String {
    moment.to_datetime().with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// With milliseconds, for lines of logs.
pub fn local_precise(moment: Timestamp) -> String {
    moment.to_datetime().with_timezone(&Local).format("%b %d %H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_people_write_them() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400), ("2w", 1_209_600), ("30", 30)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "-1s", "1.5h", "1y", "99999999999999999999s", "99999999w"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_moment_is_a_duration_ago_or_a_time() {
        let hour_ago = Timestamp::now().plus_millis(-3_600_000);

        assert!(parse_moment("1h").unwrap().millis_since(hour_ago).abs() < 60_000);
        assert_eq!(parse_moment("2026-11-20T09:30:00Z").unwrap().to_string(), "2026-11-20T09:30:00.000Z");
        assert!(parse_moment("yesterday").is_err());
    }

    #[test]
    fn ages_have_one_unit() {
        assert_eq!([age(-5), age(59), age(3599), age(86_399), age(200_000)], ["0s", "59s", "59m", "23h", "2d"]);
    }
}
