//! Removes what has expired, now and each hour: at a start for all that came due while the service was away. And keeps the
//! service's own metrics small.

use std::time::Duration;

use actix_web::rt::spawn;

use crate::clock::Clock;
use crate::observe::Exporter;
use crate::periodic::every;
use crate::state::State;
use crate::store::Store;

/// Nobody sees that something has expired for an hour: all that is asked for goes by its own time.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// A service that answers 50,000 requests a second holds 4 MB of times by then.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// Tidies for as long as the service runs.
pub(super) fn keep(state: &State) {
    let (store, clock) = (state.store.clone(), state.clock.clone());
    spawn(every(TIDY_EVERY, async move || forget_logins(&store, &clock).await));
    let (jobs, kept_days) = (state.jobs.clone(), state.config.command_days);
    spawn(every(TIDY_EVERY, async move || jobs.tidy(kept_days).await));
    let (alerts, kept_days) = (state.alerts.clone(), state.config.alert_days);
    spawn(every(TIDY_EVERY, async move || alerts.tidy(kept_days).await));
    let notifier = state.notifier.clone();
    spawn(every(TIDY_EVERY, async move || notifier.tidy().await));
    let exporter = Exporter::install();
    spawn(every(COUNT_EVERY, async move || exporter.tidy()));
}

async fn forget_logins(store: &Store, clock: &Clock) {
    match store.forget_expired_logins(clock.certain()).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(count, "expired sessions were forgotten"),
        Err(error) => tracing::warn!(%error, "expired sessions could not be forgotten"),
    }
}
