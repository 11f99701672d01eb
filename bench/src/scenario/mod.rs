//! The scenarios, one file each.

pub mod abuse;
pub mod across;
pub mod alert;
pub mod alert_burst;
pub mod alert_lists;
pub mod burst;
pub mod command;
pub mod containers;
pub mod fanout;
pub mod fleet_command;
pub mod history;
pub mod idle;
pub mod ingest;
pub mod inserts;
pub mod instances;
pub mod kill;
pub mod logs;
pub mod machine;
pub mod rest;
pub mod shared;
pub mod signed;
pub mod soak;
pub mod steady;
pub mod storm;
pub mod thresholds;

use std::time::Duration;

use tokio::task::JoinSet;

/// Parses a number of seconds, such as `2.5`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// The results of all tasks. Fails when one of them panicked.
async fn join_all<T: 'static>(mut tasks: JoinSet<T>) -> anyhow::Result<Vec<T>> {
    let mut results = Vec::with_capacity(tasks.len());
    while let Some(result) = tasks.join_next().await {
        results.push(result?);
    }
    Ok(results)
}
