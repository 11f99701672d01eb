//! Reads the value for a threshold on an open series.

use std::collections::HashMap;

use signalbox_history::metric::{Field, Kind, Series};
use signalbox_history::open::Open;
use signalbox_history::rollup;
use signalbox_protocol::Timestamp;
use signalbox_protocol::sample::Unread;
use signalbox_protocol::series::UNREAD_LIST;

use super::{Measurement, Unit};
use crate::alert_words::Comparison;

/// The series that a threshold is about.
#[derive(Debug, Clone, Copy)]
pub struct SeriesQuery<'t> {
    pub name: &'t str,
    /// `None` for the worst of all.
    pub target: Option<&'t str>,
    pub comparison: Comparison,
}

/// The open series of one sample.
#[derive(Debug, Clone, Copy)]
pub struct At<'o> {
    pub open: &'o Open,
    pub at: Timestamp,
    /// Milliseconds since the sample before; 0 if not known.
    pub elapsed_ms: i64,
}

/// Returns the value of the target or the worst of all; for a counter its rate. Returns `None` if there is no such series,
/// and for a rate also if the previous sample is missing, is before a gap, or is from before the counter was reset.
pub fn read<'a>(asked: SeriesQuery<'_>, now: At<'a>, before: Option<At<'_>>) -> Option<Measurement<'a>> {
    let (mut rates, mut worst) = (Rates { now, before, by_series: None }, None::<Measurement<'a>>);
    for (place, (series, value)) in now.open.iter().enumerate().filter(|(_, (series, _))| asked.is(series)) {
        let is_rate = series.kind == Kind::Counter;
        let value = if is_rate { rates.of(place, series, value) } else { Some(value) };
        let Some(value) = value else { continue };
        if worst.is_none_or(|worst| asked.comparison.is_worse(value, worst.value)) {
            let target = series.target.as_deref().filter(|_| asked.target.is_none());
            worst = Some(Measurement { value, worst: target, unit: Some(Unit { name: &series.unit, is_rate }) });
        }
    }
    worst
}

/// Returns whether a sample has no value of the series.
pub fn is_gone(asked: SeriesQuery<'_>, open: &Open) -> bool {
    !open.iter().any(|(series, _)| asked.is(series))
}

/// Returns whether the agent reports that it could not read the series, or without a target any series of this name.
pub fn is_unread(asked: SeriesQuery<'_>, unread: &[Unread]) -> bool {
    let is_asked = |name: &str| match name.strip_prefix(asked.name) {
        Some("") => true,
        Some(rest) => {
            let target = rest.strip_prefix(':');
            target.is_some_and(|target| asked.target.is_none_or(|asked| asked == target))
        }
        None => false,
    };
    unread.iter().any(|unread| unread.list == UNREAD_LIST && unread.name.as_deref().is_none_or(is_asked))
}

impl SeriesQuery<'_> {
    fn is(&self, series: &Series) -> bool {
        series.name == self.name && self.target.is_none_or(|target| series.target.as_deref() == Some(target))
    }
}

/// Computes the rates of counters.
struct Rates<'n, 'b> {
    now: At<'n>,
    before: Option<At<'b>>,
    /// The previous values by series, built only if a series is not at the same index as before.
    by_series: Option<HashMap<&'b Series, f64>>,
}

impl<'b> Rates<'_, 'b> {
    fn of(&mut self, place: usize, series: &Series, value: f64) -> Option<f64> {
        let before = self.before?;
        let same_place = before.open.get(place).filter(|(other, _)| ***other == *series);
        let value_before = match same_place {
            Some((_, value)) => value,
            None => *self.by_series.get_or_insert_with(|| all(before.open)).get(series)?,
        };
        // The same gap as in the history.
        let gap_ms = rollup::follows_within(rollup::gap_ms(rollup::DEFAULT_SPACING_MS), before.elapsed_ms);
        let [now, then] = [value, value_before].map(|value| value.to_bits().cast_signed());
        let field = Field::open(Kind::Counter);
        let rate = rollup::rate_of(field, now, then, self.now.at.millis_since(before.at), gap_ms)?;
        Some(field.rate(rate))
    }
}

fn all(open: &Open) -> HashMap<&Series, f64> {
    open.iter().map(|(series, value)| (series.as_ref(), value)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn open(series: &[(&str, Kind, Option<&str>, f64)]) -> Open {
        let one = |(name, kind, target, value): &(&str, Kind, Option<&str>, f64)| {
            let target = target.map(str::to_owned);
            (Arc::new(Series { name: (*name).to_owned(), unit: "rpm".to_owned(), kind: *kind, target }), *value)
        };
        Open::new(series.iter().map(one).collect())
    }

    fn at(seconds: i64, open: &Open) -> At<'_> {
        At { open, at: Timestamp::from_millis(seconds * 1_000), elapsed_ms: 5_000 }
    }

    fn asked(target: Option<&'static str>, comparison: Comparison) -> SeriesQuery<'static> {
        SeriesQuery { name: "fan", target, comparison }
    }

    fn told(reading: Option<Measurement<'_>>) -> Option<(f64, Option<&str>)> {
        reading.map(|reading| (reading.value, reading.worst))
    }

    #[test]
    fn an_unread_series_matches_by_name_and_target() {
        let unread = |list: &str, name: Option<&str>| Unread { list: list.into(), name: name.map(str::to_owned) };
        let is_unread = |target, of: &[Unread]| super::is_unread(asked(target, Comparison::Gt), of);

        let (one, all) = ([unread("series", Some("fan:1"))], [unread("series", Some("fan"))]);
        assert_eq!([Some("1"), Some("2"), None].map(|target| is_unread(target, &one)), [true, false, true]);
        assert_eq!([Some("1"), None].map(|target| is_unread(target, &all)), [true, true]);
        assert!(is_unread(Some("1"), &[unread("series", None)]));
        for other in [unread("series", Some("fans")), unread("series", Some("fa")), unread("network", Some("fan"))] {
            assert!(!is_unread(None, &[other]));
        }
    }

    #[test]
    fn only_the_target_is_read_and_without_one_the_worst() {
        let now = open(&[
            ("fan", Kind::Gauge, Some("1"), 900.0),
            ("fan", Kind::Gauge, Some("2"), 1_200.0),
            ("other", Kind::Gauge, Some("1"), 5.0),
        ]);

        let read = |target, comparison| told(read(asked(target, comparison), at(0, &now), None));

        assert_eq!(read(Some("1"), Comparison::Gt), Some((900.0, None)));
        assert_eq!(read(None, Comparison::Gt), Some((1_200.0, Some("2"))));
        assert_eq!(read(None, Comparison::Lt), Some((900.0, Some("1"))));
        assert_eq!(read(Some("3"), Comparison::Gt), None);
        assert!(is_gone(asked(Some("3"), Comparison::Gt), &now) && !is_gone(asked(None, Comparison::Gt), &now));
    }

    #[test]
    fn a_counter_is_read_as_its_rate() {
        let counter = |value: f64| ("fan", Kind::Counter, None, value);
        let (before, now) = (open(&[counter(10.0)]), open(&[("other", Kind::Gauge, None, 1.0), counter(25.0)]));
        let rate = |seconds: i64, before: Option<&Open>| {
            let before = before.map(|before| at(0, before));
            told(read(asked(None, Comparison::Gt), at(seconds, &now), before))
        };

        assert_eq!(rate(5, Some(&before)), Some((3.0, None)));
        assert_eq!(rate(5, None), None);
        assert_eq!(rate(50_000, Some(&before)), None, "over a gap");
        assert_eq!(rate(5, Some(&open(&[counter(26.0)]))), None, "it began again at 0");
    }
}
