//! Whether somebody has asked for silence, and until when. Pure.
//!
//! A silence holds once, from a time to another, or every week: from a time of day by the clocks of a time zone, for so
//! many minutes. A start in an hour that the clocks skip begins when they jump, one in an hour that comes twice begins
//! the first time. Ends are left out themselves, so one that begins when another ends continues it.

#[cfg(test)]
mod tests;

use chrono::{Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::{GapInfo, Tz};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::store::Silence;

/// How often one silence may continue another until it is told: some never end.
const MOST_CONTINUATIONS: usize = 64;

const MINUTE_MS: i64 = 60 * 1000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Until when there is silence for a server with these tags; none where there is none now. What continues again and
/// again is told up to some time: who asks again then is told the rest.
pub fn held_until<'a>(
    silences: impl Iterator<Item = &'a Silence>,
    server_id: Uuid,
    tags: &[String],
    now: Timestamp,
) -> Option<Timestamp> {
    let plans: Vec<Plan> = silences.filter(|silence| covers(silence, server_id, tags)).filter_map(Plan::of).collect();
    until(&plans, now)
}

/// Until when this silence holds, whatever it is for; none where it does not hold now.
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
    for _ in 0..MOST_CONTINUATIONS {
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
    /// From Monday.
    days: [bool; 7],
    start: NaiveTime,
    duration_ms: i64,
    zone: Tz,
}

impl Plan {
    /// None for one that is kept in a way that this version does not understand.
    fn of(silence: &Silence) -> Option<Self> {
        let weekly = match &silence.weekdays {
            Some(weekdays) => Some(Weekly::of(silence, weekdays)?),
            None => None,
        };
        Some(Self { from: silence.starts_at.map(Into::into), until: silence.ends_at.map(Into::into), weekly })
    }

    /// When the time that it holds without a break ends, if it holds at `at`.
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
        // The day after too: where clocks are put back over midnight it has begun already.
        let last = today.checked_add_days(Days::new(1))?;
        let reach = self.duration_ms.div_euclid(DAY_MS) + 3;
        let days = (0..=u64::try_from(reach).ok()?).filter_map(|back| last.checked_sub_days(Days::new(back)));
        let begun = days.filter_map(|day| self.start_on(day)).filter(|start| *start <= at);
        begun.map(|start| start.plus_millis(self.duration_ms)).filter(|end| *end > at).max()
    }

    /// None on a day that is not one of its days.
    fn start_on(&self, day: NaiveDate) -> Option<Timestamp> {
        let index = usize::try_from(day.weekday().num_days_from_monday()).ok()?;
        if self.days.get(index) == Some(&true) { instant(self.zone, day.and_time(self.start)) } else { None }
    }
}

/// When the clocks of a zone first show this time, or a later one where they skip it.
fn instant(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let at = match zone.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => at,
        LocalResult::None => GapInfo::new(&local, &zone)?.end?,
    };
    Some(at.to_utc().into())
}
