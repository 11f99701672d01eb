//! Counts answers and their times in the service's own metrics.
//!
//! Looking up a metric by its name and labels costs more than counting, so each worker keeps the metrics that it has
//! looked up: at most as many as there are routes and statuses.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use actix_web::http::StatusCode;
use metrics::{Counter, Histogram};

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

#[derive(Default)]
struct Kept {
    by_route: HashMap<String, Histogram>,
    by_status: HashMap<StatusCode, Counter>,
}

impl Kept {
    fn time(&mut self, route: &str, seconds: f64) {
        if let Some(histogram) = self.by_route.get(route) {
            return histogram.record(seconds);
        }
        let histogram = metrics::histogram!("signalbox_http_request_seconds", "route" => route.to_owned());
        histogram.record(seconds);
        self.by_route.insert(route.to_owned(), histogram);
    }

    fn count(&mut self, status: StatusCode) {
        let new = || metrics::counter!("signalbox_http_requests_total", "status" => status.as_str().to_owned());
        self.by_status.entry(status).or_insert_with(new).increment(1);
    }
}

/// Counts an answer. `route` is the pattern of its path, so the number of labels is bounded.
pub fn count(route: &str, status: StatusCode, elapsed: Duration) {
    KEPT.with_borrow_mut(|kept| {
        kept.time(route, elapsed.as_secs_f64());
        kept.count(status);
    });
}
