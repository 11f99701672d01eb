//! The open series of one moment: what an agent measured in addition to the fields of a sample. Pure.

use std::collections::HashSet;
use std::fmt::{self, Display};
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use signalbox_protocol::Sample;

use super::metric::Series;

/// A sample with its open series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// The sample.
    pub sample: Sample,
    /// Its open series.
    pub open: Open,
}

/// Values of open series. Serialized as `{"name:target": value}`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Open(Vec<(Arc<Series>, f64)>);

impl Open {
    /// These values, in this order.
    pub fn new(values: Vec<(Arc<Series>, f64)>) -> Self {
        Self(values)
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The series and value at this index.
    pub fn get(&self, place: usize) -> Option<(&Arc<Series>, f64)> {
        self.0.get(place).map(|(series, value)| (series, *value))
    }

    /// All series and values.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<Series>, f64)> {
        self.0.iter().map(|(series, value)| (series, *value))
    }

    /// The series without their values.
    pub fn series(&self) -> Vec<Arc<Series>> {
        self.0.iter().map(|(series, _)| series.clone()).collect()
    }

    /// Keeps the values of the series for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&Series) -> bool) {
        self.0.retain(|(series, _)| keep(series));
    }
}

impl Series {
    /// Name and target, by which the API identifies the series.
    pub fn key(&self) -> (&str, Option<&str>) {
        (&self.name, self.target.as_deref())
    }
}

/// `name` or `name:target`.
impl Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.target {
            Some(target) => write!(f, ":{target}"),
            None => Ok(()),
        }
    }
}

struct Key<'a>(&'a Series);

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl Serialize for Open {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut seen = HashSet::with_capacity(self.0.len());
        // Within a time range a series may have had two units; the later one comes after the earlier one.
        for (series, value) in self.0.iter().rev() {
            if seen.insert(series.key()) {
                map.serialize_entry(&Key(series), value)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Kind;

    fn series(name: &str, unit: &str, target: Option<&str>) -> Arc<Series> {
        let target = target.map(str::to_owned);
        Arc::new(Series { name: name.to_owned(), unit: unit.to_owned(), kind: Kind::Gauge, target })
    }

    #[test]
    fn names_and_targets_are_the_keys_and_of_two_units_the_later_counts() {
        let open = Open::new(vec![
            (series("fan", "rpm", Some("a:b")), 1.5),
            (series("left", "seconds", None), 2.0),
            (series("left", "days", None), 3.0),
        ]);

        let written: serde_json::Value = serde_json::to_value(&open).unwrap();

        assert_eq!(written, serde_json::json!({ "fan:a:b": 1.5, "left": 3.0 }));
    }
}
