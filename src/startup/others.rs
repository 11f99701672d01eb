//! How a start deals with other instances: the only place that checks whether there may be any.

mod alone;
mod several;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::StartupError;
use crate::alerts::{self, Alerts};
use crate::clock::{Clock, Lead};
use crate::cluster::Cluster;
use crate::commands::{self, Jobs};
use crate::config::Config;
use crate::feeds::Feeds;
use crate::fleet::Fleet;
use crate::notify::senders::Senders;
use crate::registry::RemoteRouter;
use crate::state::State;
use crate::store::Store;
use alone::Alone;
use several::Several;

/// Creates the components that depend on whether there are other instances.
pub(super) trait Wiring {
    fn cluster(&self) -> &Cluster;

    /// The clock that defines the present.
    fn lead(&self) -> Lead;

    /// The live state of servers, and its subscribers.
    fn live(&self, clock: &Clock) -> (Fleet, Feeds);

    /// The other senders of the outbox.
    fn senders(&self) -> Box<dyn Senders>;

    fn alerts(&self, parts: alerts::Parts) -> Alerts;

    /// Where the registry sends orders for servers without a session here.
    fn elsewhere(&self) -> Arc<dyn RemoteRouter>;

    fn jobs(&self, parts: commands::Parts) -> Jobs;

    /// How long the service announces its end before it stops, by default.
    fn usual_drain(&self) -> Duration;

    /// Starts the tasks that instances owe each other. Those that use the database join `work`.
    fn keep(&self, state: &State, work: &mut JoinSet<()>);
}

/// Checks whether several instances can work with this configuration.
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

/// Joins the other instances, or makes sure that there are none, and brings the schema up to date. Another instance that keeps
/// this one out may be of an older version, so the schema is not changed before that is known. `mark` identifies the secrets
/// that all instances must share.
pub(super) async fn join(config: &Config, store: &Store, mark: String) -> Result<Box<dyn Wiring>, StartupError> {
    Ok(match &config.nats {
        Some(nats) => Box::new(Several::join(nats, &config.nats_prefix, store, mark).await?),
        None => Box::new(Alone::begin(store).await?),
    })
}

/// Brings the schema up to date, except that of an unfinished import.
async fn migrate(store: &Store) -> Result<(), StartupError> {
    if store.has_unfinished_import().await? {
        return Err(StartupError::UnfinishedImport);
    }
    store.migrate().await?;
    Ok(())
}
