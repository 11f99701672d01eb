use chrono::{DateTime, NaiveDateTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::*;

const SERVER: Uuid = Uuid::from_u128(1);

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// A silence for all servers that never holds.
fn silence() -> Silence {
    Silence {
        id: Uuid::nil(),
        owner_id: Uuid::nil(),
        server_id: None,
        tag: None,
        reason: String::new(),
        starts_at: None,
        ends_at: None,
        weekdays: None,
        start_minute: None,
        duration_minutes: None,
        time_zone: None,
        created_by: "ada".to_owned(),
        created_at: Timestamp::default().into(),
        updated_at: Timestamp::default().into(),
    }
}

fn once(starts_at: &str, ends_at: &str) -> Silence {
    Silence { starts_at: Some(at(starts_at).into()), ends_at: Some(at(ends_at).into()), ..silence() }
}

fn weekly(weekdays: &str, start_minute: i32, duration_minutes: i32, time_zone: &str) -> Silence {
    Silence {
        weekdays: Some(weekdays.to_owned()),
        start_minute: Some(start_minute),
        duration_minutes: Some(duration_minutes),
        time_zone: Some(time_zone.to_owned()),
        ..silence()
    }
}

fn held(silences: &[Silence], now: &str) -> Option<String> {
    held_until(silences.iter(), SERVER, &["web".to_owned()], at(now)).map(|end| end.to_string())
}

fn assert_held(silences: &[Silence], now: &str, end: &str) {
    assert_eq!(held(silences, now).as_deref(), Some(end), "at {now}");
}

#[test]
fn a_single_silence_includes_its_start_and_excludes_its_end() {
    let silences = [once("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z")];

    assert_eq!(held(&silences, "2026-11-20T09:59:59.999Z"), None);
    assert_held(&silences, "2026-11-20T10:00:00Z", "2026-11-20T12:00:00.000Z");
    assert_held(&silences, "2026-11-20T11:59:59.999Z", "2026-11-20T12:00:00.000Z");
    assert_eq!(held(&silences, "2026-11-20T12:00:00Z"), None);
}

#[test]
fn only_silences_that_cover_the_server_count() {
    let now = "2026-11-20T11:00:00Z";
    let of = |server_id: Option<Uuid>, tag: Option<&str>| {
        let tag = tag.map(str::to_owned);
        held(&[Silence { server_id, tag, ..once("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z") }], now)
    };

    assert!(of(None, None).is_some());
    assert!(of(Some(SERVER), None).is_some());
    assert!(of(None, Some("web")).is_some());
    assert_eq!(of(Some(Uuid::from_u128(2)), None), None);
    assert_eq!(of(None, Some("db")), None);
}

#[test]
fn silences_that_overlap_or_adjoin_continue_each_other() {
    let silences = [
        once("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"),
        once("2026-11-20T10:00:00Z", "2026-11-20T12:00:00Z"),
        once("2026-11-20T12:30:00Z", "2026-11-20T14:00:00Z"),
        once("2026-11-20T14:00:00.001Z", "2026-11-20T15:00:00Z"),
    ];

    assert_held(&silences, "2026-11-20T11:00:00Z", "2026-11-20T14:00:00.000Z");
}

#[test]
fn a_weekly_silence_crosses_midnight_and_the_end_of_the_week() {
    // Sundays from 22:00 for four hours; the 22nd is one.
    let silences = [weekly("7", 22 * 60, 4 * 60, "UTC")];

    assert_eq!(held(&silences, "2026-11-22T21:59:59Z"), None);
    assert_held(&silences, "2026-11-22T22:00:00Z", "2026-11-23T02:00:00.000Z");
    assert_held(&silences, "2026-11-23T01:59:00Z", "2026-11-23T02:00:00.000Z");
    assert_eq!(held(&silences, "2026-11-23T02:00:00Z"), None);
    assert_eq!(held(&silences, "2026-11-23T22:30:00Z"), None);
}

#[test]
fn a_weekly_silence_follows_its_time_zone() {
    let silences = [weekly("1,2,3,4,5,6,7", 22 * 60, 60, "Europe/Berlin")];

    assert_held(&silences, "2026-07-01T20:30:00Z", "2026-07-01T21:00:00.000Z");
    assert_held(&silences, "2026-12-01T21:30:00Z", "2026-12-01T22:00:00.000Z");
    assert_eq!(held(&silences, "2026-12-01T20:30:00Z"), None);
}

#[test]
fn a_start_in_a_skipped_hour_takes_effect_when_the_clocks_jump() {
    // In Berlin the clocks jump from 02:00 to 03:00 on the 29th of March, at 01:00 UTC.
    let silences = [weekly("7", 150, 30, "Europe/Berlin")];

    assert_eq!(held(&silences, "2026-03-29T00:59:59Z"), None);
    assert_held(&silences, "2026-03-29T01:00:00Z", "2026-03-29T01:30:00.000Z");
    assert_eq!(held(&silences, "2026-03-29T01:30:00Z"), None);
}

#[test]
fn a_start_in_a_repeated_hour_takes_effect_the_first_time() {
    // In Berlin the hour from 02:00 to 03:00 occurs twice on the 25th of October: at 00:00 and at 01:00 UTC.
    let silences = [weekly("7", 150, 30, "Europe/Berlin")];

    assert_held(&silences, "2026-10-25T00:30:00Z", "2026-10-25T01:00:00.000Z");
    assert_eq!(held(&silences, "2026-10-25T01:30:00Z"), None);
}

#[test]
fn a_weekly_silence_holds_only_within_its_validity() {
    let valid = once("2026-11-20T10:30:00Z", "2026-11-21T10:15:00Z");
    let silences =
        [Silence { starts_at: valid.starts_at, ends_at: valid.ends_at, ..weekly("5,6", 10 * 60, 60, "UTC") }];

    assert_eq!(held(&silences, "2026-11-20T10:29:00Z"), None);
    assert_held(&silences, "2026-11-20T10:30:00Z", "2026-11-20T11:00:00.000Z");
    assert_held(&silences, "2026-11-21T10:00:00Z", "2026-11-21T10:15:00.000Z");
    assert_eq!(held(&silences, "2026-11-21T10:15:00Z"), None);
    assert_eq!(held(&silences, "2026-11-27T10:30:00Z"), None);
}

#[test]
fn a_silence_without_end_is_reported_up_to_a_bound() {
    let now = "2026-11-20T10:00:00Z";
    let silence = weekly("1,2,3,4,5,6,7", 0, 24 * 60, "UTC");

    let end = holds_until(&silence, at(now)).unwrap();

    assert!(end.millis_since(at(now)) > 30 * DAY_MS);
    assert!(holds_until(&silence, end).is_some());
}

#[test]
fn a_silence_that_cannot_be_read_does_not_hold() {
    let now = "2026-11-20T10:00:00Z";
    let whole = weekly("5", 600, 60, "UTC");

    assert!(held(std::slice::from_ref(&whole), now).is_some());
    assert_eq!(held(&[Silence { time_zone: Some("Mars/Olympus".to_owned()), ..whole.clone() }], now), None);
    assert_eq!(held(&[Silence { start_minute: Some(1_440), ..whole.clone() }], now), None);
    assert_eq!(held(&[Silence { duration_minutes: None, ..whole }], now), None);
    assert_eq!(held(&[silence()], now), None);
}

/// Zones whose clocks jump by an hour, by half an hour, at midnight, over midnight, by a day, and not at all.
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/St_Johns",
    "Pacific/Apia",
    "Asia/Kolkata",
];

/// Times around changes of those clocks, and an ordinary week.
const TIMES: [&str; 12] = [
    "2026-03-29T00:00:00Z",
    "2026-10-25T00:00:00Z",
    "2026-03-08T06:00:00Z",
    "2026-11-01T05:00:00Z",
    "2026-04-04T14:00:00Z",
    "2026-10-03T15:00:00Z",
    "2010-03-14T03:00:00Z",
    "2010-11-07T02:30:00Z",
    "2011-12-30T09:00:00Z",
    "2026-06-10T12:00:00Z",
    "2026-12-31T23:00:00Z",
    "2012-11-04T04:00:00Z",
];

/// How many minutes the brute force checks.
const MINUTES: i64 = 10 * 24 * 60;

/// Returns for each minute after `from` whether a silence holds, by reading the local clock: a weekly one begins when the
/// clock first shows its start or a later time.
fn by_watching(silence: &Silence, from: DateTime<Utc>, minutes: i64) -> Vec<bool> {
    let valid = |minute: DateTime<Utc>| {
        let at = Timestamp::from(minute);
        silence.starts_at.is_none_or(|start| at >= start.into()) && silence.ends_at.is_none_or(|end| at < end.into())
    };
    let minute = |index: i64| from + chrono::Duration::minutes(index);
    let Some(weekdays) = &silence.weekdays else {
        return (0..minutes).map(|index| valid(minute(index))).collect();
    };
    let zone: Tz = silence.time_zone.as_deref().unwrap().parse().unwrap();
    let start = silence.start_minute.unwrap();
    let is_start = |local: NaiveDateTime| {
        let day = (local.weekday().num_days_from_monday() + 1).to_string();
        i32::try_from(local.hour() * 60 + local.minute()).unwrap() == start && weekdays.split(',').any(|d| d == day)
    };
    // Longer than any of them lasts.
    let lead = 3 * 24 * 60;
    let mut shown = zone.from_utc_datetime(&minute(-lead).naive_utc()).naive_local();
    let mut ends = i64::MIN;
    let mut holds = Vec::new();
    for index in -lead..minutes {
        let now = zone.from_utc_datetime(&minute(index).naive_utc()).naive_local();
        while shown < now {
            shown += chrono::Duration::minutes(1);
            if is_start(shown) {
                ends = ends.max(index + i64::from(silence.duration_minutes.unwrap()));
            }
        }
        if index >= 0 {
            holds.push(index < ends && valid(minute(index)));
        }
    }
    holds
}

fn any_weekly() -> impl Strategy<Value = Silence> {
    let days = proptest::collection::btree_set(1_u8..=7, 1..3);
    let duration = prop_oneof![1_i32..=180, 1_i32..=3_000, Just(1_440)];
    (days, 0_i32..1_440, duration, 0..ZONES.len()).prop_map(|(days, start, duration, zone)| {
        let days: Vec<String> = days.iter().map(u8::to_string).collect();
        weekly(&days.join(","), start, duration, ZONES[zone])
    })
}

fn any_silence(around: Timestamp) -> impl Strategy<Value = Silence> {
    let minute = move |minutes: i64| Some(around.plus_millis(minutes * MINUTE_MS).into());
    prop_oneof![
        3 => any_weekly(),
        1 => (any_weekly(), -3_000_i64..3_000, 1_i64..3_000).prop_map(move |(weekly, start, length)| Silence {
            starts_at: minute(start),
            ends_at: minute(start + length),
            ..weekly
        }),
        1 => (-3_000_i64..3_000, 1_i64..3_000).prop_map(move |(start, length)| Silence {
            starts_at: minute(start),
            ends_at: minute(start + length),
            ..silence()
        }),
    ]
}

fn any_scene() -> impl Strategy<Value = (Timestamp, Vec<Silence>)> {
    (0..TIMES.len(), -3_000_i64..3_000).prop_flat_map(|(time, minutes)| {
        let around = at(TIMES[time]);
        let now = around.plus_millis(minutes * MINUTE_MS);
        (Just(now), proptest::collection::vec(any_silence(around), 1..4))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_end_is_the_first_minute_without_silence((now, silences) in any_scene()) {
        let watched: Vec<Vec<bool>> =
            silences.iter().map(|silence| by_watching(silence, now.to_datetime(), MINUTES)).collect();
        let minutes = usize::try_from(MINUTES).unwrap();
        let first = (0..minutes).find(|minute| !watched.iter().any(|holds| holds[*minute]));

        let end = held_until(silences.iter(), SERVER, &[], now);

        let Some(first) = first else {
            // The end is later than the minutes checked.
            prop_assert!(end.is_some());
            return Ok(());
        };
        let expected = (first > 0).then(|| now.plus_millis(i64::try_from(first).unwrap() * MINUTE_MS));
        prop_assert_eq!(end, expected);
    }
}
