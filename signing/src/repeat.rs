//! When something that recurs is due: a cron expression in a time zone. Service and agents decide with the same code; agents know
//! UTC only, because the rules of all other zones would add 1.9 MB to their program.
//!
//! Five fields (minute, hour, day of month, month, day of week) of numbers, `*`, lists, ranges, steps and English names of months
//! and days. Where both days are restricted, either is enough, as in Vixie cron. What the clocks of a zone do twice a year:
//!
//! - A time that they skip: an expression with one minute and one hour is due as soon as they have jumped; one with a list, a range,
//!   a step or `*` in either field is not due in the gap.
//! - A time that they show twice: one minute and one hour are due the first time only; lists, ranges, steps and `*` both times.

use chrono::{DateTime, TimeZone, Utc};
use croner::parser::{CronParser, Seconds, Year};
use croner::{Cron, CronDateTime};
use serde::{Deserialize, Serialize};
use signalbox_protocol::Timestamp;

/// The longest expression, in characters.
pub const MAX_CRON_CHARACTERS: usize = 200;

/// The only time zone that agents know.
pub const ZONE: &str = "UTC";

/// How long after it was due a signed command may still start: a batch reaches its last server later than its first.
pub const LATE_MS: i64 = 5 * 60 * 1_000;

/// How long before it is due a signed command may start: the clocks of service and server differ.
pub const EARLY_MS: i64 = 30 * 1_000;

/// The names that may stand for numbers.
const NAMES: [&str; 19] = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC", "SUN", "MON", "TUE", "WED",
    "THU", "FRI", "SAT",
];

/// A cron expression and a time zone, as payloads have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    pub cron: String,
    /// `UTC`.
    pub time_zone: String,
}

/// Why something does not say when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepeatError {
    #[error("the cron expression needs five fields: minute, hour, day of month, month and day of week")]
    Fields,
    #[error(
        "the cron expression has a field that is none: use numbers, *, lists, ranges, steps, and names such as MON and JAN"
    )]
    Syntax,
    #[error("the cron expression is never due")]
    Never,
    #[error("what is signed recurs in UTC: agents know no other time zone")]
    Zone,
}

/// When something recurs.
#[derive(Debug, Clone)]
pub struct Recurrence<Z> {
    cron: Cron,
    zone: Z,
}

impl Repeat {
    /// Reads the expression and the zone.
    pub fn read(&self) -> Result<Recurrence<Utc>, RepeatError> {
        if self.time_zone == ZONE { Recurrence::parse(&self.cron, Utc) } else { Err(RepeatError::Zone) }
    }
}

impl<Z: TimeZone> Recurrence<Z>
where
    DateTime<Z>: CronDateTime,
{
    pub fn parse(cron: &str, zone: Z) -> Result<Self, RepeatError> {
        let fields = || cron.split(' ').filter(|field| !field.is_empty());
        if cron.len() > MAX_CRON_CHARACTERS || fields().count() != 5 {
            return Err(RepeatError::Fields);
        }
        // croner overlooks an empty part of a list.
        if fields().flat_map(|field| field.split([',', '-', '/'])).any(str::is_empty) {
            return Err(RepeatError::Syntax);
        }
        if !cron.split(|it: char| !it.is_ascii_alphabetic()).all(is_name) || !cron.chars().all(is_usual) {
            return Err(RepeatError::Syntax);
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(cron).map_err(|_| RepeatError::Syntax)?;
        let recurrence = Self { cron, zone };
        // A leap day is due within eight years.
        if recurrence.next_after(Timestamp::from_millis(0)).is_none() {
            return Err(RepeatError::Never);
        }
        Ok(recurrence)
    }

    /// The first time after this one at which it is due.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_next_occurrence(&self.local(time)?, false).ok()?;
        Some(found.with_timezone(&Utc).into())
    }

    /// The last time at or before this one at which it was due.
    pub fn last_until(&self, time: Timestamp) -> Option<Timestamp> {
        let found = self.cron.find_previous_occurrence(&self.local(time)?, true).ok()?;
        Some(found.with_timezone(&Utc).into())
    }

    /// The times at which it is due about now: the one that has come, then the one that is about to.
    pub fn about(&self, now: Timestamp) -> Vec<Timestamp> {
        let last = self.last_until(now).filter(|last| now.millis_since(*last) < LATE_MS);
        let next = self.next_after(now).filter(|next| next.millis_since(now) <= EARLY_MS);
        last.into_iter().chain(next).collect()
    }

    fn local(&self, time: Timestamp) -> Option<DateTime<Z>> {
        // Whole seconds: an expression has no smaller ones.
        let seconds = time.as_millis().div_euclid(1_000);
        DateTime::from_timestamp(seconds, 0).map(|utc: DateTime<Utc>| utc.with_timezone(&self.zone))
    }
}

fn is_name(word: &str) -> bool {
    word.is_empty() || NAMES.iter().any(|name| name.eq_ignore_ascii_case(word))
}

fn is_usual(character: char) -> bool {
    character.is_ascii_alphanumeric() || "*,-/ ".contains(character)
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;

    use super::*;

    fn parse(cron: &str, zone: &str) -> Result<Recurrence<Tz>, RepeatError> {
        Recurrence::parse(cron, zone.parse().unwrap())
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn due(cron: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let recurrence = parse(cron, zone).unwrap();
        let mut times = Vec::new();
        let mut time = at(from);
        for _ in 0..count {
            time = recurrence.next_after(time).unwrap();
            times.push(time.to_string());
        }
        times
    }

    #[test]
    fn an_expression_is_due_at_local_times() {
        let winter = due("0 3 * * *", "Europe/Berlin", "2026-01-10T12:00:00Z", 1);
        let summer = due("0 3 * * *", "Europe/Berlin", "2026-07-10T12:00:00Z", 1);
        let weekdays = due("30 9 * * MON-FRI", "UTC", "2026-11-26T10:00:00Z", 2);
        let either = due("0 0 13 * FRI", "UTC", "2026-11-08T00:00:00Z", 2);

        assert_eq!(winter, ["2026-01-11T02:00:00.000Z"]);
        assert_eq!(summer, ["2026-07-11T01:00:00.000Z"]);
        assert_eq!(weekdays, ["2026-11-27T09:30:00.000Z", "2026-11-30T09:30:00.000Z"]);
        assert_eq!(either, ["2026-11-13T00:00:00.000Z", "2026-11-20T00:00:00.000Z"]);
    }

    #[test]
    fn a_fixed_time_that_the_clocks_skip_is_due_when_they_have_jumped() {
        let times = due("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);

        assert_eq!(times, ["2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]);
    }

    #[test]
    fn a_fixed_time_that_the_clocks_show_twice_is_due_the_first_time() {
        let times = due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);

        assert_eq!(times, ["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]);
    }

    #[test]
    fn steps_are_not_due_in_the_gap_and_both_times_where_the_clocks_repeat_an_hour() {
        let spring = due("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:29:00Z", 3);
        let autumn = due("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", 5);

        assert_eq!(spring, ["2026-03-29T00:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-29T01:30:00.000Z"]);
        let hours = ["2026-10-25T00:00:00.000Z", "2026-10-25T00:30:00.000Z", "2026-10-25T01:00:00.000Z"];
        assert_eq!(autumn[..3], hours);
        assert_eq!(autumn[3..], ["2026-10-25T01:30:00.000Z", "2026-10-25T02:00:00.000Z"]);
    }

    /// A list, a range or a step in either field, even one that could be written as two expressions.
    #[test]
    fn a_list_of_hours_or_minutes_is_not_due_in_the_gap_and_both_times_in_a_repeated_hour() {
        for cron in ["0 2,3 * * *", "0 2-3 * * *", "0 2-3/1 * * *"] {
            let spring = due(cron, "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
            let autumn = due(cron, "Europe/Berlin", "2026-10-24T12:00:00Z", 4);

            assert_eq!(spring, ["2026-03-29T01:00:00.000Z", "2026-03-30T00:00:00.000Z"], "{cron}");
            let repeated = ["2026-10-25T00:00:00.000Z", "2026-10-25T01:00:00.000Z"];
            assert_eq!(autumn[..2], repeated, "{cron}");
            assert_eq!(autumn[2..], ["2026-10-25T02:00:00.000Z", "2026-10-26T01:00:00.000Z"], "{cron}");
        }
        let spring = due("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 1);
        let autumn = due("0,30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 4);

        assert_eq!(spring, ["2026-03-30T00:00:00.000Z"], "the whole day is left out");
        let twice = ["2026-10-25T00:00:00.000Z", "2026-10-25T00:30:00.000Z"];
        assert_eq!(autumn[..2], twice);
        assert_eq!(autumn[2..], ["2026-10-25T01:00:00.000Z", "2026-10-25T01:30:00.000Z"]);
    }

    #[test]
    fn what_is_due_about_now_is_what_has_come_and_what_is_about_to() {
        let recurrence = parse("0 * * * *", "UTC").unwrap();
        let about = |now: &str| recurrence.about(at(now)).iter().map(Timestamp::to_string).collect::<Vec<_>>();

        assert_eq!(about("2026-11-26T10:00:00Z"), ["2026-11-26T10:00:00.000Z"]);
        assert_eq!(about("2026-11-26T10:04:59.999Z"), ["2026-11-26T10:00:00.000Z"]);
        assert!(about("2026-11-26T10:05:00Z").is_empty());
        assert!(about("2026-11-26T10:59:29Z").is_empty());
        assert_eq!(about("2026-11-26T10:59:30Z"), ["2026-11-26T11:00:00.000Z"]);
        let each = parse("* * * * *", "UTC").unwrap();
        assert_eq!(each.about(at("2026-11-26T10:00:45Z")).len(), 2);
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        let fault = |cron: &str| parse(cron, "UTC").err();
        for cron in ["", "* * * *", "0 0 3 * * *", "@daily", &"* ".repeat(200)] {
            assert_eq!(fault(cron), Some(RepeatError::Fields), "{cron:?}");
        }
        let unreadable = [
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "* * L * *",
            "* * 15W * *",
            "* * * * 5#3",
            "* * ? * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "a * * * *",
            "1,,2 * * * *",
            "\u{661} * * * *",
            "* * * * *\t",
            "-1 * * * *",
        ];
        for cron in unreadable {
            assert_eq!(fault(cron), Some(RepeatError::Syntax), "{cron:?}");
        }
        assert_eq!(fault("0 0 30 2 *"), Some(RepeatError::Never));
        let in_zone = |time_zone: &str| Repeat { cron: "* * * * *".into(), time_zone: time_zone.into() }.read().err();
        assert_eq!(in_zone("UTC"), None);
        for zone in ["", "utc", "Europe/Berlin", "CEST+1"] {
            assert_eq!(in_zone(zone), Some(RepeatError::Zone), "{zone:?}");
        }
        assert!(fault("0 0 29 2 *").is_none());
    }
}
