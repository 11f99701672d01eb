//! The stores that the service is compared with: programs of other projects, from the system's packages.

mod daemon;
mod lines;
mod prometheus;
mod promql;
mod victoria;

pub use self::daemon::free_address;
pub use self::prometheus::Prometheus;
pub use self::victoria::Victoria;
