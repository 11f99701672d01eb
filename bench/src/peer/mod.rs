//! The programs that the service is compared with, from the system's packages.

mod alertmanager;
mod daemon;
mod exporter;
mod lines;
mod prometheus;
mod promql;
mod victoria;

pub use self::alertmanager::{Setting, Watch, from_alertmanager};
pub use self::daemon::{Daemon, free_address, fresh_folder, write_private};
pub use self::exporter::Exporter;
pub use self::prometheus::Prometheus;
pub use self::victoria::Victoria;
