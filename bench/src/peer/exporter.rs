//! An exporter for Prometheus whose series cross a limit, each at a moment of its own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use actix_web::web::{self, Data};
use actix_web::{HttpResponse, Responder};

use crate::loopback::Loopback;

/// The exported metric; a label distinguishes its series.
pub const METRIC: &str = "bench_value";
pub const LABEL: &str = "series";
/// The limit that series cross.
pub const LIMIT: u32 = 90;

const LOW: u32 = 5;
const HIGH: u32 = 95;

/// A running exporter.
#[derive(Debug)]
pub struct Exporter(Loopback);

impl Exporter {
    /// Series from 0 on, high from these moments on.
    pub fn start(crossings: Arc<[Instant]>) -> anyhow::Result<Self> {
        let server = Loopback::start(move |config| {
            config.app_data(Data::new(crossings.clone())).route("/metrics", web::get().to(scraped));
        })?;
        Ok(Self(server))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

async fn scraped(crossings: Data<Arc<[Instant]>>) -> impl Responder {
    HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(exposition(&crossings, Instant::now()))
}

fn exposition(crossings: &[Instant], now: Instant) -> String {
    let mut text = format!("# TYPE {METRIC} gauge\n");
    for (number, crossing) in crossings.iter().enumerate() {
        let value = if now < *crossing { LOW } else { HIGH };
        // A string takes everything.
        writeln!(text, "{METRIC}{{{LABEL}=\"{number}\"}} {value}").ok();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_series_is_high_from_its_moment_on() {
        let start = Instant::now();
        let crossings = [start + Duration::from_secs(1), start + Duration::from_secs(2)];

        let text = exposition(&crossings, start + Duration::from_secs(1));

        assert_eq!(text, "# TYPE bench_value gauge\nbench_value{series=\"0\"} 95\nbench_value{series=\"1\"} 5\n");
    }
}
