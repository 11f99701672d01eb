//! Constructors for the rows of the tables.

use signalbox_protocol::series::Unit;

use super::{Access, Exposed, ExpositionValue, Field, Key, Metric, MetricOf, Threshold};

/// The position of a value: its key, and how it is read and written.
macro_rules! at {
    ($kind:ident $key:ident) => {
        (
            $crate::metric::Key::of(stringify!($key)),
            $crate::metric::Access::$kind(|it| it.$key, |it, value| it.$key = value),
        )
    };
    ($kind:ident $key:ident[$place:literal]) => {
        (
            $crate::metric::Key::within(stringify!($key), $place),
            $crate::metric::Access::$kind(|it| it.$key[$place], |it, value| it.$key[$place] = value),
        )
    };
}
pub(super) use at;

/// A metric whose series and column share one name.
pub(super) const fn series(
    field: Field,
    name: &'static str,
    unit: Unit,
    label: &'static str,
    help: &'static str,
) -> Metric {
    Metric { field, series: Some(name), column: name, unit, label, help, exposed: None, threshold: None }
}

/// A counter: its series is the rate, its column the reading.
pub(super) const fn counter(
    field: Field,
    name: &'static str,
    column: &'static str,
    unit: Unit,
    label: &'static str,
    help: &'static str,
) -> Metric {
    Metric { column, ..series(field, name, unit, label, help) }
}

/// A metric without a series.
pub(super) const fn fact(field: Field, column: &'static str, unit: Unit) -> Metric {
    Metric { field, series: None, column, unit, label: "", help: "", exposed: None, threshold: None }
}

impl Metric {
    /// Adds the metric to the exposition, under this name.
    pub(super) const fn exposed(self, name: &'static str, help: &'static str) -> Self {
        Self { exposed: Some(Exposed { name, help }), ..self }
    }

    /// Allows thresholds for the metric.
    pub(super) const fn watched(self, threshold: Threshold) -> Self {
        Self { threshold: Some(threshold), ..self }
    }
}

/// A metric and the position of its value.
pub(super) const fn row<T>(metric: Metric, (key, access): (Key, Access<T>)) -> MetricOf<T> {
    MetricOf { metric, key, access, told: None, watched: None }
}

/// A metric for which the exposition shows something else than the value.
pub(super) const fn told<T>(told: fn(&T) -> Option<ExpositionValue>, row: MetricOf<T>) -> MetricOf<T> {
    MetricOf { told: Some(told), ..row }
}

/// A metric for which thresholds compare something else than the value.
pub(super) const fn watching<T>(watched: fn(&T) -> Option<f64>, row: MetricOf<T>) -> MetricOf<T> {
    MetricOf { watched: Some(watched), ..row }
}
