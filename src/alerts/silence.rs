//! Decides whether a silence holds, and until when. Pure.
//!
//! A silence holds once, between two times, or every week: from a local time of day in a time zone, for a number of
//! minutes. A start in an hour that the clocks skip takes effect when they jump; one in an hour that occurs twice takes
//! effect the first time. The end is exclusive, so a silence that begins when another ends continues it.

#[cfg(test)]
mod tests;

use chrono::{Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::{GapInfo, Tz};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::store::Silence;

/// How often one silence may continue another within one answer: some never end.
const MAX_CONTINUATIONS: usize = 64;

const MINUTE_MS: i64 = 60 * 1000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Returns until when a server with these tags is silenced; `None` if it is not silenced now. For silences that continue
/// each other without end it returns a time up to which they hold for certain, at which the caller has to ask again.
pub fn held_until<'a>(
    silences: impl Iterator<Item = &'a Silence>,
    server_id: Uuid,
    tags: &[String],
    now: Timestamp,
) -> Option<Timestamp> {
    let plans: Vec<Plan> = silences.filter(|silence| covers(silence, server_id, tags)).filter_map(Plan::of).collect();
    until(&plans, now)
}

/// Returns until when this silence holds, for whatever servers; `None` if it does not hold now.
pub fn holds_until(silence: &Silence, now: Timestamp) -> Option<Timestamp> {
    until(&[Plan::of(silence)?], now)
}

fn covers(silence: &Silence, server_id: Uuid, tags: &[String]) -> bool {
    match (silence.server_id, &silence.tag) {
        (Some(id), _) => id == server_id,
        (None, Some(tag)) => tags.contains(tag),
        (None, None) => true,
    }
}

fn until(plans: &[Plan], now: Timestamp) -> Option<Timestamp> {
    let mut end = None;
    for _ in 0..MAX_CONTINUATIONS {
        let at = end.unwrap_or(now);
        match plans.iter().filter_map(|plan| plan.end_at(at)).max() {
            Some(later) => end = Some(later),
            None => break,
        }
    }
    end
}

/// When a silence holds.
struct Plan {
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    weekly: Option<Weekly>,
}

struct Weekly {
    /// Monday first.
    days: [bool; 7],
    start: NaiveTime,
    duration_ms: i64,
    zone: Tz,
}

impl Plan {
    /// Returns `None` for a row that this version does not understand.
    fn of(silence: &Silence) -> Option<Self> {
        let weekly = match &silence.weekdays {
            Some(weekdays) => Some(Weekly::of(silence, weekdays)?),
            None => None,
        };
        Some(Self { from: silence.starts_at.map(Into::into), until: silence.ends_at.map(Into::into), weekly })
    }

    /// Returns when the silence that holds at `at` ends; `None` if it does not hold then.
    fn end_at(&self, at: Timestamp) -> Option<Timestamp> {
        if self.from.is_some_and(|from| at < from) || self.until.is_some_and(|until| at >= until) {
            return None;
        }
        match &self.weekly {
            None => self.until,
            Some(weekly) => {
                let end = weekly.end_at(at)?;
                Some(self.until.map_or(end, |until| end.min(until)))
            }
        }
    }
}

impl Weekly {
    fn of(silence: &Silence, weekdays: &str) -> Option<Self> {
        let given: Vec<usize> = weekdays.split(',').filter_map(|day| day.parse().ok()).collect();
        let minute = u32::try_from(silence.start_minute?).ok()?;
        Some(Self {
            days: std::array::from_fn(|index| given.contains(&(index + 1))),
            start: NaiveTime::from_hms_opt(minute / 60, minute % 60, 0)?,
            duration_ms: i64::from(silence.duration_minutes?) * MINUTE_MS,
            zone: silence.time_zone.as_deref()?.parse().ok()?,
        })
    }

    fn end_at(&self, at: Timestamp) -> Option<Timestamp> {
        let today = at.to_datetime().with_timezone(&self.zone).date_naive();
        // The day after as well: if the clocks are put back across midnight, it has begun already.
        let last = today.checked_add_days(Days::new(1))?;
        let reach = self.duration_ms.div_euclid(DAY_MS) + 3;
        let days = (0..=u64::try_from(reach).ok()?).filter_map(|back| last.checked_sub_days(Days::new(back)));
        let begun = days.filter_map(|day| self.start_on(day)).filter(|start| *start <= at);
        begun.map(|start| start.plus_millis(self.duration_ms)).filter(|end| *end > at).max()
    }

    /// Returns `None` on a weekday that is not selected.
    fn start_on(&self, day: NaiveDate) -> Option<Timestamp> {
        let index = usize::try_from(day.weekday().num_days_from_monday()).ok()?;
        if self.days.get(index) == Some(&true) { instant(self.zone, day.and_time(self.start)) } else { None }
    }
}

/// Returns when the clocks of a zone first show this local time, or the end of the gap if they skip it.
fn instant(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let at = match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at,
        LocalResult::None => GapInfo::new(&local, &zone)?.end?,
    };
    Some(at.to_utc().into())
}
