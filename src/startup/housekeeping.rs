//! What the service does by itself, for as long as it runs. Removes expired data now and each hour: at a start, everything that
//! expired while the service was stopped. Also compacts the service's own metrics.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::clock::{self, Clock};
use crate::observe::Exporter;
use crate::periodic::every;
use crate::state::State;
use crate::store::Store;
use crate::updates::Updates;

/// An hour's delay is invisible: every read checks expiry itself.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// By then a service that answers 50,000 requests per second holds 4 MB of durations.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// Starts the work, which lasts until it is shut down or dropped.
pub(super) fn keep(state: &State) -> JoinSet<()> {
    let mut work = JoinSet::new();
    let fleet = state.fleet.clone();
    work.spawn_local(clock::keep(state.clock.clone(), move || fleet.clock_offsets(), state.store.clone()));
    let (shards, patience) = (state.cluster.shards.clone(), state.config.timing.offline_patience);
    work.spawn_local(state.events.clone().keep(shards, patience));
    let (store, clock) = (state.store.clone(), state.clock.clone());
    work.spawn_local(every(TIDY_EVERY, async move || forget_logins(&store, &clock).await));
    let (jobs, kept_days) = (state.jobs.clone(), state.config.command_days);
    work.spawn_local(every(TIDY_EVERY, async move || jobs.tidy(kept_days).await));
    let approvals = state.jobs.approvals().clone();
    work.spawn_local(async move { approvals.keep().await });
    let (schedules, alerts) = (state.jobs.schedules().clone(), state.alerts.clone());
    work.spawn_local(async move { schedules.keep(&alerts).await });
    let (alerts, kept_days) = (state.alerts.clone(), state.config.alert_days);
    work.spawn_local(every(TIDY_EVERY, async move || alerts.tidy(kept_days).await));
    let notifier = state.notifier.clone();
    work.spawn_local(every(TIDY_EVERY, async move || notifier.tidy().await));
    let updates = Updates {
        clock: state.clock.clone(),
        store: state.store.clone(),
        registry: state.registry.clone(),
        cluster: state.cluster.clone(),
        programs: state.programs.clone(),
        pace: state.config.timing.updates.clone(),
    };
    work.spawn_local(async move { updates.keep().await });
    let exporter = Exporter::install();
    work.spawn_local(every(COUNT_EVERY, async move || exporter.tidy()));
    work
}

async fn forget_logins(store: &Store, clock: &Clock) {
    match store.forget_expired_logins(clock.certain()).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(count, "removed expired sessions"),
        Err(error) => tracing::warn!(%error, "cannot remove expired sessions, will retry"),
    }
}
