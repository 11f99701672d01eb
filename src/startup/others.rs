//! What a start does about other instances: the one place that looks whether there may be any.

mod alone;
mod several;

use std::sync::Arc;
use std::time::Duration;

use super::StartupError;
use crate::alerts::{self, Alerts};
use crate::clock::{Clock, Lead};
use crate::cluster::Cluster;
use crate::commands::{self, Jobs};
use crate::config::Config;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::notify::senders::Senders;
use crate::registry::Elsewhere;
use crate::state::State;
use crate::store::Store;
use alone::Alone;
use several::Several;

/// Makes the parts that are made otherwise where there are other instances.
pub(super) trait Wiring {
    fn cluster(&self) -> &Cluster;

    /// Whose clock tells the present.
    fn lead(&self) -> Lead;

    /// What is known of servers at the moment, and who watches it.
    fn live(&self, clock: &Clock) -> (Fleet, Feeds);

    /// Who else sends what lies in the outbox.
    fn senders(&self) -> Box<dyn Senders>;

    fn alerts(&self, parts: alerts::Parts) -> Alerts;

    /// Where the registry sends what no session here is for.
    fn elsewhere(&self) -> Arc<dyn Elsewhere>;

    fn jobs(&self, parts: commands::Parts) -> Jobs;

    /// How long the service says that it ends before it does.
    fn usual_drain(&self) -> Duration;

    /// Begins what instances owe each other.
    fn keep(&self, state: &State);
}

/// Whether several instances could use what this one is told to.
pub(super) fn check(config: &Config) -> Result<(), StartupError> {
    if config.nats.is_none() {
        return Ok(());
    }
    if config.is_embedded() {
        return Err(StartupError::NeedsPostgres);
    }
    if config.jwt_secret_file.is_none() || config.encryption_key_file.is_none() {
        return Err(StartupError::NeedsSecrets);
    }
    Ok(())
}

/// Joins the other instances, or makes sure that there are none. `mark` is of the secrets that all must have.
pub(super) async fn join(config: &Config, store: &Store, mark: String) -> Result<Box<dyn Wiring>, StartupError> {
    Ok(match &config.nats {
        Some(nats) => Box::new(Several::join(nats, &config.nats_prefix, store, mark).await?),
        None => Box::new(Alone::begin(store).await?),
    })
}
