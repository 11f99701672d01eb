//! The fields of thresholds in requests, and their validation.

use deserr::{Deserr, IntoValue, Sequence, Value, ValueKind, ValuePointerRef};
use paperclip::actix::Apiv2Schema;
use serde_json::json;

use super::reach::{reach_after, reach_of};
use super::series_in::SeriesIn;
use super::words::{ComparisonIn, MetricTypeIn, SeverityIn, TroubleIn};
use crate::alert_words::{Comparison, MetricType, Severity, Trouble};
use crate::http::extract::fault::{Faults, not_a_member, wrong_kind};
use crate::http::extract::field::{Clearable, LINE, Number, Reference, Tag, described, plain, string};
use crate::http::extract::given::Given;
use crate::http::reply::fault_of;
use crate::store::ThresholdTerms;

/// No disk, interface or sensor has a longer name.
const MAX_TARGET: usize = 500;

/// No measured value is larger: a petabyte per second.
const MAX_LEVEL: f64 = 1e15;

/// The default number of deaths within five minutes that count as a restart loop.
const USUAL_DEATHS: f64 = 3.0;

/// A container engine does not restart a container more often within five minutes.
const MAX_DEATHS: f64 = 100.0;

/// The default number of seconds for which the alert of a reboot stays open.
const USUAL_STAY: f64 = 300.0;

/// After a week nobody needs to be reminded of a reboot.
const LONGEST_STAY: f64 = 7.0 * 86_400.0;

/// How long a condition must hold, in seconds.
type DurationSeconds = Number<0, 86_400>;

/// A value that a metric may reach.
#[derive(Debug, Clone, Copy)]
pub struct Level(f64);

impl Deserr<Faults> for Level {
    #[expect(clippy::cast_precision_loss, reason = "values too large to be exact are refused")]
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let level = match value {
            Value::Integer(number) => number as f64,
            Value::NegativeInteger(number) => number as f64,
            Value::Float(number) => number,
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Float], location)),
        };
        if level > MAX_LEVEL {
            let msg = format!("ensure this value is less than or equal to {MAX_LEVEL}");
            return Err(Faults::at(location, "value_error.number.not_le", msg));
        }
        if level >= -MAX_LEVEL {
            return Ok(Self(level));
        }
        let msg = format!("ensure this value is greater than or equal to -{MAX_LEVEL}");
        Err(Faults::at(location, "value_error.number.not_ge", msg))
    }
}

described!(
    Level,
    json!({ "type": "number", "format": "double", "minimum": -MAX_LEVEL, "maximum": MAX_LEVEL, "example": 90 })
);

/// A mount path, an interface, a sensor, the target of an open series, or a pattern of container names.
#[derive(Debug, Clone)]
pub struct Target(String);

impl Deserr<Faults> for Target {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        plain(string(value, location)?, 1, MAX_TARGET, location).map(Self)
    }
}

described!(
    Target,
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_TARGET, "pattern": LINE, "example": "/var" })
);

/// The container states that raise an alert: at least one.
#[derive(Debug, Clone)]
pub struct States(Vec<Trouble>);

impl Deserr<Faults> for States {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let most = Trouble::ALL.len();
        match &value {
            Value::Sequence(items) if items.len() == 0 => {
                let msg = "ensure this value has at least 1 items";
                return Err(Faults::at(location, "value_error.list.min_items", msg));
            }
            Value::Sequence(items) if items.len() > most => {
                let msg = format!("ensure this value has at most {most} items");
                return Err(Faults::at(location, "value_error.list.max_items", msg));
            }
            Value::Sequence(_) => {}
            other => return Err(wrong_kind(other.kind(), &[ValueKind::Sequence], location)),
        }
        let mut states: Vec<Trouble> =
            Vec::<TroubleIn>::deserialize_from_value(value, location)?.into_iter().map(|TroubleIn(of)| of).collect();
        states.sort_unstable();
        states.dedup();
        Ok(Self(states))
    }
}

described!(
    States,
    json!({ "type": "array", "minItems": 1, "maxItems": Trouble::ALL.len(),
            "items": { "type": "string", "enum": Trouble::WORDS } })
);

impl States {
    /// The states as the database stores them.
    fn joined(&self) -> String {
        self.0.iter().map(|state| state.word()).collect::<Vec<_>>().join(",")
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = is_sound -> Faults)]
pub struct ThresholdIn {
    /// The server that it is for. Alternatives: `tag` or `all`.
    #[deserr(default)]
    server_id: Given<Option<Reference>>,
    /// For all your servers with this tag, including future ones.
    #[deserr(default)]
    tag: Given<Option<Tag>>,
    /// For all your servers, including future ones.
    #[deserr(default)]
    all: Given<Option<bool>>,
    #[deserr(default)]
    metric_type: Given<MetricTypeIn>,
    /// Required for `series`: the name of an open series. `GET /metrics/{server_id}/names` lists it before the colon.
    #[deserr(default)]
    series: Given<Option<SeriesIn>>,
    /// In percent for `cpu`, `memory`, `swap` and `disk`, bytes per second for the network, degrees Celsius for
    /// `temperature`, seconds without the agent for `offline`, or the unit of the open series (for a counter, per
    /// second). For `container_state`: the number of deaths within five minutes that count as a restart loop (defaults
    /// to 3). For `reboot`: for how many seconds the alert stays open after a reboot (defaults to 300).
    #[deserr(default)]
    threshold_value: Given<Level>,
    /// The value at which the alert resolves, on the good side of `threshold_value`. Defaults to `threshold_value`.
    #[deserr(default)]
    clear_value: Given<Option<Level>>,
    /// For `container_state` and `reboot`: only `gte`, which may be omitted.
    #[deserr(default)]
    comparison: Given<ComparisonIn>,
    /// How long the condition must hold before the threshold fires. Defaults to 0.
    #[deserr(default)]
    duration_seconds: Given<Option<DurationSeconds>>,
    /// A mount path, an interface, a sensor, the target of an open series, or a pattern of container names with `*` and
    /// `?`. Defaults to the worst of all targets; for containers, to each of them.
    #[deserr(default)]
    target: Given<Option<Target>>,
    /// For `container_state`: the states that fire. Defaults to all.
    #[deserr(default)]
    states: Given<Option<States>>,
    /// Defaults to `warning`.
    #[deserr(default)]
    severity: Given<Option<SeverityIn>>,
    /// Defaults to true.
    #[deserr(default)]
    enabled: Given<Option<bool>>,
}

#[derive(Debug, Clone, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ThresholdPatchIn {
    #[deserr(default)]
    server_id: Clearable<Reference>,
    #[deserr(default)]
    tag: Clearable<Tag>,
    #[deserr(default)]
    all: Option<bool>,
    #[deserr(default)]
    metric_type: Option<MetricTypeIn>,
    #[deserr(default)]
    series: Clearable<SeriesIn>,
    #[deserr(default)]
    threshold_value: Option<Level>,
    #[deserr(default)]
    clear_value: Clearable<Level>,
    #[deserr(default)]
    comparison: Option<ComparisonIn>,
    #[deserr(default)]
    duration_seconds: Option<DurationSeconds>,
    #[deserr(default)]
    target: Clearable<Target>,
    #[deserr(default)]
    states: Clearable<States>,
    #[deserr(default)]
    severity: Option<SeverityIn>,
    #[deserr(default)]
    enabled: Option<bool>,
}

fn is_sound(input: ThresholdIn, _: ValuePointerRef<'_>) -> Result<ThresholdIn, Faults> {
    input.terms()?;
    Ok(input)
}

impl ThresholdIn {
    /// The threshold's terms, or all faults of the fields.
    pub fn terms(&self) -> Result<ThresholdTerms, Faults> {
        let mut faults = Faults::default();
        let all = &mut faults;
        let reach = reach_of(&self.server_id, &self.tag, &self.all, all);
        let metric = self.metric_type.needed("metric_type", all).map(|MetricTypeIn(metric)| *metric);
        let series = self.series.maybe(all).map(|SeriesIn(name)| name.clone());
        let usual = metric.and_then(usual_level);
        let (level, comparison) = if let Some(usual) = usual {
            let level = self.threshold_value.sound(all).map_or(usual, |Level(level)| *level);
            let comparison = self.comparison.sound(all).map_or(Comparison::Gte, |ComparisonIn(word)| *word);
            (Some(level), Some(comparison))
        } else {
            let level = self.threshold_value.needed("threshold_value", all).map(|Level(level)| *level);
            (level, self.comparison.needed("comparison", all).map(|ComparisonIn(word)| *word))
        };
        let clear = self.clear_value.maybe(all).map(|Level(level)| *level);
        let duration = self.duration_seconds.maybe(all).copied();
        let target = self.target.maybe(all).map(|Target(target)| target.clone());
        let states = self.states.maybe(all).map(States::joined);
        let severity = self.severity.maybe(all).map_or(Severity::Warning, |SeverityIn(severity)| *severity);
        let enabled = self.enabled.maybe(all).copied().unwrap_or(true);
        let parts = Parts {
            metric,
            has_series: series.is_some() || self.series.is_faulty(),
            level,
            comparison,
            clear,
            duration_seconds: duration.map_or(0, seconds),
            has_target: target.is_some(),
            has_states: states.is_some(),
        };
        all.0.extend(parts.faults().0);
        let (Some(reach), Some(metric), Some(threshold_value), Some(comparison), []) =
            (reach, metric, level, comparison, faults.0.as_slice())
        else {
            return Err(faults);
        };
        Ok(ThresholdTerms {
            reach,
            metric_type: metric.word().to_owned(),
            series,
            threshold_value,
            clear_value: clear,
            comparison: comparison.word().to_owned(),
            duration_seconds: duration.map_or(0, seconds),
            target,
            states,
            severity: severity.word().to_owned(),
            enabled,
        })
    }
}

impl ThresholdPatchIn {
    /// The terms after the change, or all faults of it.
    pub fn applied_to(self, found: ThresholdTerms) -> Result<ThresholdTerms, Faults> {
        let word = |old: String, new: Option<&'static str>| new.map_or(old, str::to_owned);
        let mut faults = Faults::default();
        let reach = reach_after(found.reach.clone(), self.server_id, self.tag, self.all).unwrap_or_else(|wrong| {
            faults = wrong;
            found.reach
        });
        let terms = ThresholdTerms {
            reach,
            metric_type: word(found.metric_type, self.metric_type.map(|MetricTypeIn(metric)| metric.word())),
            series: self.series.change(|SeriesIn(name)| Some(name)).unwrap_or(found.series),
            threshold_value: self.threshold_value.map_or(found.threshold_value, |Level(level)| level),
            clear_value: self.clear_value.change(|Level(level)| Some(level)).unwrap_or(found.clear_value),
            comparison: word(found.comparison, self.comparison.map(|ComparisonIn(comparison)| comparison.word())),
            duration_seconds: self.duration_seconds.map_or(found.duration_seconds, seconds),
            target: self.target.change(|Target(target)| Some(target)).unwrap_or(found.target),
            states: self.states.change(|states| Some(states.joined())).unwrap_or(found.states),
            severity: word(found.severity, self.severity.map(|SeverityIn(severity)| severity.word())),
            enabled: self.enabled.unwrap_or(found.enabled),
        };
        faults.0.extend(Parts::of(&terms).faults().0);
        if faults.0.is_empty() { Ok(terms) } else { Err(faults) }
    }
}

fn seconds(Number(seconds): DurationSeconds) -> i32 {
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// The default value for metrics that are events and have no value to compare.
fn usual_level(metric: MetricType) -> Option<f64> {
    match metric {
        MetricType::ContainerState => Some(USUAL_DEATHS),
        MetricType::Reboot => Some(USUAL_STAY),
        _ => None,
    }
}

/// The fields of a threshold that must fit together, as far as each is valid.
struct Parts {
    metric: Option<MetricType>,
    has_series: bool,
    level: Option<f64>,
    comparison: Option<Comparison>,
    clear: Option<f64>,
    duration_seconds: i32,
    has_target: bool,
    has_states: bool,
}

impl Parts {
    fn of(terms: &ThresholdTerms) -> Self {
        Self {
            metric: MetricType::of(&terms.metric_type),
            has_series: terms.series.is_some(),
            level: Some(terms.threshold_value),
            comparison: Comparison::of(&terms.comparison),
            clear: terms.clear_value,
            duration_seconds: terms.duration_seconds,
            has_target: terms.target.is_some(),
            has_states: terms.states.is_some(),
        }
    }

    fn faults(&self) -> Faults {
        let mut faults = Vec::new();
        let mut add = |field, kind, msg: &str| faults.extend(fault_of(field, kind, msg).0);
        let is_of_containers = self.metric == Some(MetricType::ContainerState);
        if self.has_target && self.metric.is_some_and(|metric| !metric.has_targets()) {
            add("target", "value_error.target", "this metric has no targets");
        }
        match self.metric {
            Some(MetricType::Series) if !self.has_series => add("series", "value_error.missing", "field required"),
            Some(metric) if metric != MetricType::Series && self.has_series => {
                add("series", "value_error.series", "only thresholds with metric_type series have a series");
            }
            _ => {}
        }
        if self.has_states && self.metric.is_some() && !is_of_containers {
            add("states", "value_error.states", "only container_state has states");
        }
        let (least, most) = match self.metric {
            Some(MetricType::ContainerState) => (1.0, MAX_DEATHS),
            Some(MetricType::Reboot) => (0.0, LONGEST_STAY),
            Some(MetricType::Offline) => (0.0, MAX_LEVEL),
            _ => (-MAX_LEVEL, MAX_LEVEL),
        };
        if self.level.is_some_and(|level| level < least) {
            let msg = format!("ensure this value is greater than or equal to {least}");
            add("threshold_value", "value_error.number.not_ge", &msg);
        }
        if self.level.is_some_and(|level| level > most) {
            let msg = format!("ensure this value is less than or equal to {most}");
            add("threshold_value", "value_error.number.not_le", &msg);
        }
        let eventful = self.metric.filter(|metric| usual_level(*metric).is_some());
        if let (Some(metric), true) = (eventful, self.clear.is_some()) {
            add("clear_value", "value_error.clear", &format!("{} has no clear_value", metric.word()));
        } else if let (Some(level), Some(comparison), Some(clear)) = (self.level, self.comparison, self.clear)
            && comparison.is_worse(clear, level)
        {
            let msg = "ensure that clear_value is not on the bad side of threshold_value";
            add("clear_value", "value_error.range", msg);
        }
        if self.metric == Some(MetricType::Reboot) && self.duration_seconds != 0 {
            add("duration_seconds", "value_error.duration", "reboot has no duration_seconds");
        }
        if eventful.is_some() && self.comparison.is_some_and(|comparison| comparison != Comparison::Gte) {
            let location = ValuePointerRef::Origin;
            faults.extend(not_a_member(&[Comparison::Gte.word()], location.push_key("comparison")).0);
        }
        Faults(faults)
    }
}
