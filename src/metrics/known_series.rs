//! The series that agents describe, shared by all connections.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use signalbox_history::metric::Series;

/// The series that agents describe at present, each stored once: most agents of a fleet describe the same.
#[derive(Debug, Default)]
pub struct KnownSeries(Mutex<Shared>);

#[derive(Debug, Default)]
struct Shared {
    series: HashSet<Arc<Series>>,
    /// How many were in use when unused ones were last removed.
    alive: usize,
}

/// Up to this many series, removing unused ones is not worthwhile.
const FEW: usize = 4_096;

impl KnownSeries {
    pub(super) fn share(&self, series: Series) -> Arc<Series> {
        let mut shared = self.0.lock();
        if let Some(known) = shared.series.get(&series) {
            return known.clone();
        }
        if shared.series.len() >= FEW.max(2 * shared.alive) {
            shared.series.retain(|series| Arc::strong_count(series) > 1);
            shared.alive = shared.series.len();
        }
        let series = Arc::new(series);
        shared.series.insert(series.clone());
        series
    }
}
