//! Connects all components and owns the order in which they end.

#[cfg(test)]
mod agent_session_tests;
pub(crate) mod directory;
mod ending;
mod housekeeping;
mod introduction;
mod others;
mod relief;
mod schedule_alerts;
mod sender;
mod serving;
mod sockets;
mod system;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_web::dev::Server;
use secrecy::SecretString;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::system::in_system;
use crate::alerts;
use crate::auth::access::Access;
use crate::auth::account::Accounts;
use crate::auth::bearer::ProgramTokens;
use crate::auth::factors::{self, Factors};
use crate::auth::logins::Logins;
use crate::auth::oidc::{Oidc, OidcSetupError};
use crate::auth::password::{PasswordError, Passwords};
use crate::auth::refusals::Refusals;
use crate::auth::secret::{self, ENCRYPTION, SIGNING, SecretError};
use crate::auth::setup::Setup;
use crate::auth::token::Tokens;
use crate::auth::webauthn::RelyingParty;
use crate::bus::BusError;
use crate::bus::nats::NatsError;
use crate::clock::{self, Clock, Lead};
use crate::cluster::members::EnterError;
use crate::commands;
use crate::config::Config;
use crate::disk::DiskGuard;
use crate::events::ServerEvents;
use crate::ingest::Pipeline;
use crate::install::Programs;
use crate::live;
use crate::logs::Logs;
use crate::memory::{self, Memory};
use crate::metrics::archive::{ArchiveHandle, ReplayError, RetentionPolicy};
use crate::metrics::query::History;
use crate::metrics::recorder::RecorderHandle;
use crate::metrics::tail::Tail;
use crate::notify::seal::{SealError, Sealer};
use crate::notify::sender::SenderError;
use crate::notify::{Notifier, Parts};
use crate::presence::Presence;
use crate::registry::{RegistryHandle, Settings};
use crate::shares::Shares;
use crate::state::{self, Counter, Limits, Metrics, Requests, State};
use crate::store::{self, Store, StoreError};
use directory::{DataDirectories, DirectoryError};
use ending::{DRAIN, Deadline, LEAST_DRAIN, Step, stop_when};
use others::Wiring;

/// A service that is ready to run.
pub struct Application {
    server: Server,
    address: SocketAddr,
    state: State,
    directories: DataDirectories,
    housekeeping: JoinSet<()>,
    /// How long the service announces its end before it stops.
    drain: Duration,
}

/// Why the service could not start, each in one clear line.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("cannot open the database: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Oidc(#[from] OidcSetupError),
    #[error(transparent)]
    Sender(#[from] SenderError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "the retention of a coarser tier is shorter than that of a finer one: from raw to 1m, 15m and 1h it must not decrease"
    )]
    Retention,
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Enter(#[from] EnterError),
    #[error("several instances (--nats-url) need a shared PostgreSQL database: --database-url postgres://...")]
    NeedsPostgres,
    #[error(
        "several instances (--nats-url) need the same secrets: give all of them --jwt-secret-file and --encryption-key-file"
    )]
    NeedsSecrets,
    #[error("another instance has taken over the database, because this one did not respond for some seconds")]
    Displaced,
    #[error(
        "the database has an unfinished import: run `signalbox import sqlite-to-postgres` again to finish it, or use another database"
    )]
    UnfinishedImport,
    #[error("the server failed: {0}")]
    Server(#[source] io::Error),
}

impl Application {
    /// Opens the database, starts the actors and binds the port. Must be called in an actix system.
    pub async fn build(config: Config) -> Result<Self, StartupError> {
        // Checked before any directory or file is created.
        store::check(&config.database_url())?;
        others::check(&config)?;
        config.check_oidc()?;
        if !config.retention.is_ordered() {
            return Err(StartupError::Retention);
        }
        let directories = directory::take(&config)?;
        let asked = config.listen;
        let listener = sockets::listen(asked).map_err(|source| StartupError::Listen { address: asked, source })?;
        let address = listener.local_addr().map_err(StartupError::Server)?;
        let workers = config.workers;
        let (state, wiring) = wire(config).await?;
        let drain = state.config.drain.unwrap_or(wiring.usual_drain());
        // Connections from before the drain have had that time already.
        let shutdown = DRAIN.saturating_sub(drain).max(LEAST_DRAIN);
        let server = serving::serve(&state, listener, workers, shutdown)?;
        let mut housekeeping = housekeeping::keep(&state);
        wiring.keep(&state, &mut housekeeping);
        let (feeds, registry) = (state.feeds.clone(), state.registry.clone());
        actix_web::rt::spawn(live::keep_asking(feeds, state.fleet.clone(), registry));
        actix_web::rt::spawn(state.limits.disk.clone().watch(state.config.timing.disk_look));
        let look = state.config.timing.memory_look;
        actix_web::rt::spawn(state.limits.memory.clone().watch(look, relief::tighten(&state)));
        Ok(Self { server, address, state, directories, housekeeping, drain })
    }

    /// The address that the service listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Serves until `stop` resolves, then ends in order: accepts no new connections, lets running requests end, closes agents and
    /// dashboards, answers the requests that are left, writes samples and events, closes the database.
    pub async fn run_until_stopped(mut self, stop: impl Future<Output = ()> + 'static) -> Result<(), StartupError> {
        let handle = self.server.handle();
        let (company, displaced) = (&self.state.cluster.company, self.state.cluster.company.clone());
        let asked = Arc::new(OnceLock::new());
        let is_asked = asked.clone();
        let stop = async move {
            tokio::select! {
                () = stop => {}
                () = displaced.displaced() => {}
            }
            *is_asked.get_or_init(Deadline::from_now)
        };
        let (ending, is_ending) = oneshot::channel();
        actix_web::rt::spawn(stop_when(stop, handle, self.state.clone(), self.drain, ending));
        tokio::select! {
            // Polled first, so that the server has got its stop command before the last connection closes.
            biased;
            ended = self.server => ended.map_err(StartupError::Server)?,
            () = sockets::all_closed_at_the_end(is_ending, &self.state.limits.connections) => {}
        }
        let is_displaced = company.is_displaced();
        let deadline = *asked.get_or_init(Deadline::from_now);
        let limit = deadline.limit(Step::Commit);
        let recorded = timeout(limit, self.state.metrics.recorder.flush());
        let (samples, events) = tokio::join!(recorded, timeout(limit, self.state.events.flush()));
        if samples.is_err() {
            tracing::error!("some samples could not be written; their agents keep them");
        }
        if events.is_err() {
            tracing::error!("some events of servers could not be written");
        }
        if timeout(deadline.limit(Step::Message), self.state.notifier.stop()).await.is_err() {
            tracing::warn!("a notification was still being sent; the next start sends it again");
        }
        // What still worked with the database would report it closed.
        _ = timeout(deadline.limit(Step::Housekeeping), self.housekeeping.shutdown()).await;
        _ = timeout(deadline.limit(Step::Archive), self.state.metrics.archive.stop()).await;
        _ = timeout(deadline.limit(Step::Leave), company.leave()).await;
        // A statement that hangs on an unreachable database must not keep the process alive.
        _ = timeout(deadline.limit(Step::Close), self.state.store.clone().close()).await;
        tracing::info!("stopped");
        if is_displaced { Err(StartupError::Displaced) } else { Ok(()) }
    }
}

/// Creates all components and gives each the ones it needs.
async fn wire(config: Config) -> Result<(State, Box<dyn Wiring>), StartupError> {
    let secret = secret::obtain(SIGNING, config.jwt_secret_file.as_deref(), &config.data_dir)?;
    let encryption = secret::obtain(ENCRYPTION, config.encryption_key_file.as_deref(), &config.data_dir)?;
    // Checks everything first that may be wrong with the flags: nothing has started by then that would have to end.
    let push_secret = sender::push_secret(&config)?;
    let sender = sender::sender(&config, push_secret.as_ref())?;
    let budget = config.memory_budget.unwrap_or_else(memory::usual_budget);
    let shares = Shares::new(&sockets::sizes(&config).within(budget));
    let remembered = config.shares.finished_sign_ins;
    let oidc = config.oidc.clone().map(|oidc| Oidc::new(oidc, &secret, &shares, remembered)).transpose()?;
    let store = Store::connect(&config.database_url(), config.database).await?.with_quotas(config.quotas);
    // A key from a file is one that all instances share.
    let shared_push = push_secret.as_ref().filter(|_| config.push_key_file.is_some());
    let secrets: Vec<&SecretString> = [&secret, &encryption].into_iter().chain(shared_push).collect();
    let wiring = others::join(&config, &store, secret::mark(&secrets)).await?;
    let cluster = wiring.cluster();
    // After the place is taken: no import can begin from here on.
    if store.has_unfinished_import().await? {
        cluster.company.leave().await;
        store.close().await;
        return Err(StartupError::UnfinishedImport);
    }
    let clock = clock(&store, wiring.lead()).await?;
    let (fleet, feeds) = wiring.live(&clock);
    let timing = config.timing.clone();
    let (tail, writer) = (Tail::default(), Uuid::now_v7());
    let disk = DiskGuard::new(config.database_directory(), config.min_free_bytes);
    disk.look();
    let memory = Memory::new(budget).patient_for(timing.memory_patience);
    let (policy, interval) = (RetentionPolicy::new(config.retention, clock.clone()), timing.commit_interval);
    let recorder = RecorderHandle::start(store.clone(), tail.clone(), disk.clone(), writer, policy.clone(), interval);
    let (shards, schedule) = (cluster.shards.clone(), timing.archive.clone());
    let archive = ArchiveHandle::start(store.clone(), tail.clone(), writer, shards, policy.clone(), schedule).await?;
    let history = History::new(store.clone(), fleet.clone(), tail.clone(), clock.clone(), policy, shares.clone())
        .within(memory.clone());
    let access = Access::start(store.clone(), feeds.clone()).await?;
    let notifier = Notifier::start(Parts {
        store: store.clone(),
        access: access.clone(),
        sealer: Sealer::new(&encryption)?,
        deliver: Arc::new(sender),
        silences: Arc::new(store.clone()),
        pace: timing.notify.clone(),
        clock: clock.clone(),
        shards: cluster.shards.clone(),
        senders: wiring.senders(),
    });
    let watched = alerts::Parts {
        clock: clock.clone(),
        store: store.clone(),
        fleet: fleet.clone(),
        feeds: feeds.clone(),
        history: history.clone(),
        notifier: notifier.clone(),
        access: access.clone(),
        patience: timing.offline_patience,
        gone_after: timing.target_gone,
    };
    let alerts = wiring.alerts(watched);
    alerts.start().await?;
    let settings = Settings { clock: clock.clone(), silence_limit: timing.silence_limit };
    let presence = Presence {
        clock: clock.clone(),
        fleet: fleet.clone(),
        feeds: feeds.clone(),
        recorder: recorder.clone(),
        alerts: alerts.clone(),
        company: cluster.company.clone(),
    };
    let registry = RegistryHandle::start(settings, Arc::new(presence), wiring.elsewhere());
    let jobs = wiring.jobs(commands::Parts {
        clock: clock.clone(),
        store: store.clone(),
        access: access.clone(),
        registry: registry.clone(),
        fleet: fleet.clone(),
        cluster: cluster.clone(),
        outputs: shares.outputs.clone(),
    });
    jobs.batches().resume_all().await?;
    let logs = Logs::new(registry.clone(), feeds.clone(), fleet.clone(), cluster.company.clone());

    let accounts = Arc::new(Accounts {
        access,
        store: store.clone(),
        tokens: Tokens::new(&secret, timing.access_token, timing.refresh_token, clock.clone()),
        passwords: Passwords::new(config.password_iterations)?,
        logins: Logins::new(store.clone(), feeds.clone()),
        programs: ProgramTokens::new(store.clone()),
        factors: factors(&config, &encryption, &store, &clock)?,
        refusals: Refusals::default(),
        registration: config.registration,
        password_login: config.password_login,
        setup: if config.is_local() { Setup::local(&secret) } else { Setup::guarded(&secret) },
        refresh_grace: timing.refresh_grace,
        has_users: Arc::default(),
    });
    let state = State::new(state::Parts {
        metrics: Metrics {
            pipeline: Pipeline::new(
                clock.clone(),
                fleet.clone(),
                feeds.clone(),
                recorder.clone(),
                tail.clone(),
                alerts.clone(),
            ),
            recorder,
            tail,
            archive,
            history,
        },
        started_at: clock.now(),
        clock: clock.clone(),
        logs,
        alerts,
        events: ServerEvents::start(store.clone(), clock.clone(), config.event_days),
        notifier,
        programs: Programs::new(config.install_dir.clone(), config.timing.downloads.clone()),
        limits: Limits {
            disk,
            memory,
            shares,
            requests: Requests::default(),
            sockets: Counter::default(),
            connections: Counter::default(),
        },
        config: Arc::new(config),
        cluster: cluster.clone(),
        store,
        accounts,
        oidc,
        fleet,
        feeds,
        registry,
        jobs,
    });
    Ok((state, wiring))
}

/// The service's clock, with what earlier processes stored about the time.
async fn clock(store: &Store, lead: Lead) -> Result<Clock, StoreError> {
    let saved = store.saved_clock().await?;
    let newest = if saved.is_none() { store.newest_stored_at().await? } else { None };
    let clock = Clock::start(&clock::Start { saved, newest, lead });
    clock.ask(store).await?;
    Ok(clock)
}

fn factors(config: &Config, encryption: &SecretString, store: &Store, clock: &Clock) -> Result<Factors, SealError> {
    let relying_party = RelyingParty::of(config.public_url.as_deref(), config.is_on_loopback());
    let (policy, step_up) = (config.second_factor, config.step_up);
    Factors::new(store.clone(), clock.clone(), factors::Settings { encryption, relying_party, policy, step_up })
}
