//! What a schedule that is due has to do. Pure.

use chrono_tz::Tz;
use signalbox_protocol::Timestamp;
use signalbox_signing::Recurrence;

use crate::store::{Occurrence, Schedule};

/// A run begins at most so late; after that it is missed. Agents take a signed command within five minutes.
pub(super) const LATE_MS: i64 = 90 * 1_000;

/// How many missed runs are counted at once: of one each minute, those of a month.
const MAX_MISSED: u32 = 50_000;

/// What is to be done about a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub occurrence: Occurrence,
    /// Whether the time that is due now has just come.
    pub is_on_time: bool,
}

/// When a schedule is due after `time`; none if it ends before.
pub fn next_after(recurrence: &Recurrence<Tz>, time: Timestamp, until: Option<Timestamp>) -> Option<Timestamp> {
    recurrence.next_after(time).filter(|next| until.is_none_or(|until| *next < until))
}

/// What is to be done about a schedule now; none if it is not due.
pub(super) fn plan(schedule: &Schedule, now: Timestamp) -> Option<Plan> {
    let expected = Timestamp::from(schedule.next_at?);
    if now < expected {
        return None;
    }
    let until = schedule.until_at.map(Timestamp::from);
    // It was checked when it was stored. With a zone that a later version does not know any more, it is missed, and never due again.
    let zone = schedule.time_zone.parse::<Tz>().ok();
    let Some(recurrence) = zone.and_then(|zone| Recurrence::parse(&schedule.cron, zone).ok()) else {
        let never = Occurrence { missed: 1, missed_at: Some(expected), ..occurrence(schedule, expected, now) };
        return Some(Plan { occurrence: never, is_on_time: false });
    };
    let latest = until.map_or(now, |until| now.min(until.plus_millis(-1)));
    let due_at = recurrence.last_until(latest).map_or(expected, |last| last.max(expected));
    let is_on_time = now.millis_since(due_at) <= LATE_MS;
    let (mut missed, mut missed_at, mut time) = (0, None, Some(expected));
    while let Some(passed) = time.filter(|time| *time < due_at || (*time == due_at && !is_on_time)) {
        if missed >= MAX_MISSED {
            missed_at = Some(due_at);
            break;
        }
        missed += 1;
        missed_at = Some(passed);
        time = recurrence.next_after(passed);
    }
    let next_at = next_after(&recurrence, due_at, until);
    let occurrence = Occurrence { due_at, next_at, missed, missed_at, ..occurrence(schedule, expected, now) };
    Some(Plan { occurrence, is_on_time })
}

fn occurrence(schedule: &Schedule, expected: Timestamp, now: Timestamp) -> Occurrence {
    let (schedule_id, updated_at) = (schedule.id, schedule.updated_at.into());
    Occurrence { schedule_id, updated_at, expected, due_at: expected, next_at: None, missed: 0, missed_at: None, now }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn daily(next_at: &str, until: Option<&str>) -> Schedule {
        let now = at("2026-01-01T00:00:00Z").into();
        Schedule {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            username: "ada".to_owned(),
            name: "backup".to_owned(),
            command: "true".to_owned(),
            server_ids: "[]".to_owned(),
            tag: None,
            timeout_seconds: 60,
            concurrency: 1,
            stop_on_failure: false,
            signed: None,
            cron: "0 3 * * *".to_owned(),
            time_zone: "UTC".to_owned(),
            is_enabled: true,
            severity: "warning".to_owned(),
            until_at: until.map(|until| at(until).into()),
            next_at: Some(at(next_at).into()),
            missed: 0,
            missed_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    #[test]
    fn what_is_due_runs_once_and_then_the_day_after() {
        let schedule = daily("2026-11-26T03:00:00Z", None);

        assert_eq!(plan(&schedule, at("2026-11-26T02:59:59.999Z")), None);
        let plan = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();
        assert!(plan.is_on_time);
        assert_eq!(plan.occurrence.due_at, at("2026-11-26T03:00:00Z"));
        assert_eq!(plan.occurrence.next_at, Some(at("2026-11-27T03:00:00Z")));
        assert_eq!((plan.occurrence.missed, plan.occurrence.missed_at), (0, None));
    }

    #[test]
    fn what_was_due_while_the_service_was_away_is_counted_and_not_run() {
        let schedule = daily("2026-11-23T03:00:00Z", None);

        let plan_late = plan(&schedule, at("2026-11-26T09:00:00Z")).unwrap();
        let plan_back = plan(&schedule, at("2026-11-26T03:00:30Z")).unwrap();

        assert!(!plan_late.is_on_time);
        assert_eq!(plan_late.occurrence.missed, 4);
        assert_eq!(plan_late.occurrence.missed_at, Some(at("2026-11-26T03:00:00Z")));
        assert_eq!(plan_late.occurrence.next_at, Some(at("2026-11-27T03:00:00Z")));
        assert!(plan_back.is_on_time, "the last one has just come");
        assert_eq!(plan_back.occurrence.missed, 3);
        assert_eq!(plan_back.occurrence.missed_at, Some(at("2026-11-25T03:00:00Z")));
    }

    #[test]
    fn the_end_is_exclusive() {
        let schedule = daily("2026-11-26T03:00:00Z", Some("2026-11-27T03:00:00Z"));

        let plan_last = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();
        let plan_after = plan(&schedule, at("2026-12-26T03:00:01Z")).unwrap();

        assert_eq!((plan_last.is_on_time, plan_last.occurrence.next_at), (true, None));
        assert_eq!((plan_after.is_on_time, plan_after.occurrence.next_at), (false, None));
        assert_eq!(plan_after.occurrence.missed, 1);
    }

    #[test]
    fn a_schedule_that_cannot_be_read_any_more_is_missed_and_never_due_again() {
        let unknown_zone = Schedule { time_zone: "Moon/Tycho".to_owned(), ..daily("2026-11-26T03:00:00Z", None) };
        let no_cron = Schedule { cron: "@moon".to_owned(), ..daily("2026-11-26T03:00:00Z", None) };

        for schedule in [unknown_zone, no_cron] {
            let Plan { occurrence, is_on_time } = plan(&schedule, at("2026-11-26T03:00:01Z")).unwrap();

            assert_eq!((is_on_time, occurrence.next_at, occurrence.missed), (false, None, 1));
            assert_eq!(occurrence.missed_at, Some(at("2026-11-26T03:00:00Z")), "so that it is noted, and moved on");
        }
    }

    #[test]
    fn a_clock_that_went_back_starts_nothing_again() {
        let schedule = daily("2026-11-27T03:00:00Z", None);

        assert_eq!(plan(&schedule, at("2026-11-26T03:00:01Z")), None);
    }
}
