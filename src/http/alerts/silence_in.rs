//! The fields of silences in requests, and their validation.

use chrono_tz::Tz;
use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde_json::json;
use signalbox_protocol::Timestamp;

use super::reach::{reach_after, reach_of};
use crate::http::extract::fault::{Faults, not_a_member, wrong_kind};
use crate::http::extract::field::{At, Clearable, Number, PROSE, Reference, Tag, described, prose, string};
use crate::http::extract::given::Given;
use crate::http::reply::fault_of;
use crate::store::{SilenceTerms, WeeklySchedule};

/// From Monday to Sunday.
pub const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const MAX_REASON: usize = 200;

/// The longest name of a time zone has 32 characters.
const MAX_ZONE: usize = 64;

/// A one-time silence may last a year; a longer one would be forgotten.
const LONGEST_MS: i64 = 366 * 24 * 60 * 60 * 1000;

/// How long a weekly silence lasts, in minutes: at most a week.
type DurationMinutes = Number<1, 10_080>;

/// Why alerts are silenced.
#[derive(Debug, Clone)]
pub struct Reason(String);

impl Deserr<Faults> for Reason {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        prose(string(value, location)?, 0, MAX_REASON, location).map(Self)
    }
}

described!(
    Reason,
    json!({ "type": "string", "maxLength": MAX_REASON, "pattern": PROSE, "example": "New disks in rack 4" })
);

/// Days of the week: at least one, as 1 (Monday) to 7 or as `mon` to `sun`.
#[derive(Debug, Clone)]
pub struct WeekdaysIn(Vec<usize>);

impl Deserr<Faults> for WeekdaysIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let fault = |kind, msg: &str| Err(Faults::at(location, kind, msg));
        match &value {
            Value::Sequence(items) if items.len() == 0 => {
                return fault("value_error.list.min_items", "ensure this value has at least 1 items");
            }
            Value::Sequence(items) if items.len() > WEEKDAYS.len() => {
                return fault("value_error.list.max_items", "ensure this value has at most 7 items");
            }
            Value::Sequence(_) => {}
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        }
        let given = Vec::<WeekdayIn>::deserialize_from_value(value, location)?;
        let mut days: Vec<usize> = given.into_iter().map(|WeekdayIn(day)| day).collect();
        days.sort_unstable();
        days.dedup();
        Ok(Self(days))
    }
}

described!(
    WeekdaysIn,
    json!({ "type": "array", "minItems": 1, "maxItems": WEEKDAYS.len(), "example": ["sat", "sun"],
            "items": { "anyOf": [{ "type": "string", "enum": WEEKDAYS },
                                 { "type": "integer", "minimum": 1, "maximum": WEEKDAYS.len() }] } })
);

/// A day of the week, counted from 1.
#[derive(Debug, Clone, Copy)]
struct WeekdayIn(usize);

impl Deserr<Faults> for WeekdayIn {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let day = match value {
            Value::Integer(number) => usize::try_from(number).ok().filter(|day| (1..=WEEKDAYS.len()).contains(day)),
            Value::String(word) => WEEKDAYS.iter().position(|day| *day == word).map(|index| index + 1),
            Value::NegativeInteger(_) => None,
            other => return Err(wrong_kind(other.kind(), &[ValueKind::String], location)),
        };
        day.map(Self).ok_or_else(|| not_a_member(&WEEKDAYS, location))
    }
}

/// A time of day, such as `22:00`.
#[derive(Debug, Clone, Copy)]
pub struct TimeOfDay(i32);

impl Deserr<Faults> for TimeOfDay {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = string(value, location)?;
        minute_of(&text)
            .map(Self)
            .ok_or_else(|| Faults::at(location, "value_error.time", "invalid time of day: write it as 22:00"))
    }
}

described!(TimeOfDay, json!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "example": "22:00" }));

fn minute_of(text: &str) -> Option<i32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, below: i32| {
        let is_short = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_short && *number < below)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

/// A time zone of the IANA database.
#[derive(Debug, Clone)]
pub struct ZoneName(String);

impl Deserr<Faults> for ZoneName {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let text = string(value, location)?;
        let is_known = text.len() <= MAX_ZONE && text.parse::<Tz>().is_ok();
        let msg = "value is not a time zone of the IANA database";
        if is_known { Ok(Self(text)) } else { Err(Faults::at(location, "value_error.time_zone", msg)) }
    }
}

described!(ZoneName, json!({ "type": "string", "maxLength": MAX_ZONE, "example": "Europe/Berlin" }));

/// When a silence begins each week, and how long it lasts.
#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ScheduleIn {
    weekdays: WeekdaysIn,
    /// In the local time of the time zone.
    start: TimeOfDay,
    duration_minutes: DurationMinutes,
    time_zone: ZoneName,
}

impl From<&ScheduleIn> for WeeklySchedule {
    fn from(input: &ScheduleIn) -> Self {
        let days: Vec<String> = input.weekdays.0.iter().map(usize::to_string).collect();
        Self {
            weekdays: days.join(","),
            start_minute: input.start.0,
            duration_minutes: i32::try_from(input.duration_minutes.0).unwrap_or(i32::MAX),
            time_zone: input.time_zone.0.clone(),
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = is_sound -> Faults)]
pub struct SilenceIn {
    /// The server that it is for. Alternatives: `tag` or `all`.
    #[deserr(default)]
    server_id: Given<Option<Reference>>,
    /// For all your servers with this tag.
    #[deserr(default)]
    tag: Given<Option<Tag>>,
    /// For all your servers.
    #[deserr(default)]
    all: Given<Option<bool>>,
    #[deserr(default)]
    reason: Given<Option<Reason>>,
    /// When it begins. Defaults to now. A weekly silence is not active before this time.
    #[deserr(default)]
    starts_at: Given<Option<At>>,
    /// When it ends, at most a year later. A weekly silence is not active from this time on; it may omit the end.
    #[deserr(default)]
    ends_at: Given<Option<At>>,
    /// For a weekly silence.
    #[deserr(default)]
    schedule: Given<Option<ScheduleIn>>,
}

#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct SilencePatchIn {
    #[deserr(default)]
    server_id: Clearable<Reference>,
    #[deserr(default)]
    tag: Clearable<Tag>,
    #[deserr(default)]
    all: Option<bool>,
    #[deserr(default)]
    reason: Clearable<Reason>,
    #[deserr(default)]
    starts_at: Clearable<At>,
    #[deserr(default)]
    ends_at: Clearable<At>,
    #[deserr(default)]
    schedule: Clearable<ScheduleIn>,
}

fn is_sound(input: SilenceIn, _: ValuePointerRef<'_>) -> Result<SilenceIn, Faults> {
    // Whether the end has passed depends on the service's clock, which validation does not know.
    input.terms(None)?;
    Ok(input)
}

impl SilenceIn {
    /// The silence's terms, or all faults of the fields.
    pub fn terms(&self, now: impl Into<Option<Timestamp>>) -> Result<SilenceTerms, Faults> {
        let mut faults = Faults::default();
        let all = &mut faults;
        let reach = reach_of(&self.server_id, &self.tag, &self.all, all);
        let reason = self.reason.maybe(all).map(|Reason(reason)| reason.clone()).unwrap_or_default();
        let starts_at = self.starts_at.maybe(all).map(|At(at)| *at);
        let ends_at = self.ends_at.maybe(all).map(|At(at)| *at);
        let schedule = self.schedule.maybe(all).map(WeeklySchedule::from);
        let has_sound_times = !self.starts_at.is_faulty() && !self.ends_at.is_faulty() && !self.schedule.is_faulty();
        let times = Times { starts_at, ends_at, is_weekly: schedule.is_some() }.begun(now.into());
        if has_sound_times {
            all.0.extend(times.faults().0);
        }
        let (Some(reach), []) = (reach, faults.0.as_slice()) else { return Err(faults) };
        Ok(SilenceTerms { reach, reason, starts_at: times.starts_at, ends_at, schedule })
    }
}

impl SilencePatchIn {
    /// The terms after the change, or all faults of it.
    pub fn applied_to(self, found: SilenceTerms, now: Timestamp) -> Result<SilenceTerms, Faults> {
        let mut faults = Faults::default();
        let reach = reach_after(found.reach.clone(), self.server_id, self.tag, self.all).unwrap_or_else(|wrong| {
            faults = wrong;
            found.reach
        });
        let starts_at = self.starts_at.change(|At(at)| Some(at)).unwrap_or(found.starts_at);
        let ends_at = self.ends_at.change(|At(at)| Some(at)).unwrap_or(found.ends_at);
        let schedule = self.schedule.change(|schedule| Some((&schedule).into())).unwrap_or(found.schedule);
        let times = Times { starts_at, ends_at, is_weekly: schedule.is_some() }.begun(Some(now));
        faults.0.extend(times.faults().0);
        if !faults.0.is_empty() {
            return Err(faults);
        }
        let reason = self.reason.change(|Reason(reason)| reason).unwrap_or(found.reason);
        Ok(SilenceTerms { reach, reason, starts_at: times.starts_at, ends_at, schedule })
    }
}

/// When a silence begins and ends.
struct Times {
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
    is_weekly: bool,
}

impl Times {
    /// Fills in the default: a one-time silence begins now.
    fn begun(self, now: Option<Timestamp>) -> Self {
        let starts_at = if self.is_weekly { self.starts_at } else { self.starts_at.or(now) };
        Self { starts_at, ..self }
    }

    fn faults(&self) -> Faults {
        match (self.starts_at, self.ends_at) {
            (_, None) if !self.is_weekly => fault_of("ends_at", "value_error.missing", "field required"),
            (Some(start), Some(end)) if end <= start => {
                fault_of("ends_at", "value_error.range", "ensure that ends_at is after starts_at")
            }
            (Some(start), Some(end)) if !self.is_weekly && end.millis_since(start) > LONGEST_MS => {
                fault_of("ends_at", "value_error.range", "ensure that ends_at is at most a year after starts_at")
            }
            _ => Faults::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_has_two_digits_each() {
        assert_eq!(minute_of("00:00"), Some(0));
        assert_eq!(minute_of("23:59"), Some(1_439));
        for text in ["24:00", "12:60", "1:00", "01:0", "0100", "+1:00", "01:00:00", "", ":"] {
            assert_eq!(minute_of(text), None, "{text}");
        }
    }
}
