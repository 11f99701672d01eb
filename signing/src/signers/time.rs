//! The times of `valid-after` and `valid-before`.

use chrono::{Local, MappedLocalTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use signalbox_protocol::Timestamp;

/// Which end of a key's validity a time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Start,
    End,
}

/// Reads `YYYYMMDD` or `YYYYMMDDHHMM[SS]`: in UTC with a `Z` at its end, otherwise in the machine's time zone. A local time
/// that a change of the clock repeats is read so that the key is valid for the shorter time.
pub fn parse_time(text: &str, bound: Bound) -> Option<Timestamp> {
    let (digits, is_utc) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, time) = digits.split_at_checked(8)?;
    let date = NaiveDate::parse_from_str(date, "%Y%m%d").ok()?;
    let time = match time.len() {
        0 => NaiveTime::MIN,
        4 => NaiveTime::parse_from_str(time, "%H%M").ok()?,
        6 => NaiveTime::parse_from_str(time, "%H%M%S").ok()?,
        _ => return None,
    };
    let moment = NaiveDateTime::new(date, time);
    if is_utc {
        return Some(Utc.from_utc_datetime(&moment).into());
    }
    match (Local.from_local_datetime(&moment), bound) {
        (MappedLocalTime::Single(only), _) => Some(only.to_utc().into()),
        (MappedLocalTime::Ambiguous(_, latest), Bound::Start) => Some(latest.to_utc().into()),
        (MappedLocalTime::Ambiguous(earliest, _), Bound::End) => Some(earliest.to_utc().into()),
        (MappedLocalTime::None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_forms_of_openssh() {
        let utc = |text| Timestamp::parse(text);

        assert_eq!(parse_time("20270101Z", Bound::End), utc("2027-01-01T00:00:00Z"));
        assert_eq!(parse_time("202701011230Z", Bound::End), utc("2027-01-01T12:30:00Z"));
        assert_eq!(parse_time("20270101123045Z", Bound::Start), utc("2027-01-01T12:30:45Z"));
        assert!(parse_time("20270101", Bound::Start).is_some());
        for other in ["", "Z", "2027", "2027-01-01", "202701011Z", "20270230Z", "202701012500Z", "+0270101Z"] {
            assert_eq!(parse_time(other, Bound::Start), None, "{other}");
        }
    }
}
