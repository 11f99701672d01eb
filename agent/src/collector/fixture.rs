//! Helpers for the tests of collectors.

use std::path::Path;

use super::Collector;
use crate::catalog::{Catalog, Values};
use crate::config::Roots;

/// All roots below one directory.
pub fn roots(dir: &Path) -> Roots {
    Roots { proc: dir.join("proc"), sys: dir.join("sys"), etc: dir.join("etc"), ..Roots::default() }
}

/// Writes a file and creates its directories.
pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The pushed values, as `name` or `name:target`.
pub fn values_of(push: impl FnOnce(&mut Values<'_>)) -> Vec<(String, f64)> {
    let catalog = Catalog::default();
    let mut values = Values::new(&catalog);
    push(&mut values);
    let named = |(id, value): (u16, f64)| {
        let [series] = catalog.describe(&[id]).try_into().unwrap();
        assert_eq!(series.validate(), Ok(()));
        assert!(series.help.ends_with('.') && series.help.len() > 20, "{} is explained", series.name);
        (series.target.map_or(series.name.clone(), |target| format!("{}:{target}", series.name)), value)
    };
    values.finish().into_iter().map(named).collect()
}

/// The values of a collector after a reading.
pub fn read(collector: &mut impl Collector) -> Vec<(String, f64)> {
    collector.read().unwrap();
    values_of(|values| collector.values(values))
}

/// The same with names that are easy to write.
pub fn named<const N: usize>(expected: [(&str, f64); N]) -> Vec<(String, f64)> {
    expected.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
