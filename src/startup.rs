//! The one place that knows who knows whom, and in which order everything ends.

mod others;

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::{Compress, from_fn};
use actix_web::{App, HttpServer, web};
use signalbox_protocol::Timestamp;
use tokio::sync::Semaphore;
use tracing_actix_web::TracingLogger;
use uuid::Uuid;

use crate::alerts::{self, Alerts};
use crate::auth::access::Access;
use crate::auth::account::Accounts;
use crate::auth::logins::Logins;
use crate::auth::password::{PasswordError, Passwords};
use crate::auth::refusals::Refusals;
use crate::auth::secret::{self, ENCRYPTION, SIGNING, SecretError};
use crate::auth::token::Tokens;
use crate::bus::BusError;
use crate::bus::nats::NatsError;
use crate::cluster::members::EnterError;
use crate::commands::Jobs;
use crate::config::Config;
use crate::disk::DiskGuard;
use crate::http;
use crate::http::openapi::Document;
use crate::install::Programs;
use crate::logs::Logs;
use crate::metrics::archive::{ArchiveHandle, ReplayError};
use crate::metrics::pipeline::Pipeline;
use crate::metrics::query::History;
use crate::metrics::recorder::RecorderHandle;
use crate::metrics::tail::Tail;
use crate::notify::mail::SmtpConfig;
use crate::notify::seal::{SealError, Sealer};
use crate::notify::sender::{Sender, SenderConfig, SenderError};
use crate::notify::{Notifier, Parts};
use crate::observe::Exporter;
use crate::registry::{RegistryHandle, Settings};
use crate::state::{Sockets, State};
use crate::store::{Store, StoreError};

/// Agents that may authenticate at a time: enough for a whole fleet that comes back, too few to hurt.
const MAX_HANDSHAKES: usize = 1_024;

/// How long requests that run may go on when the service is told to stop. It has 10 s for everything.
const DRAIN: Duration = Duration::from_secs(4);
const LEAST_DRAIN: Duration = Duration::from_secs(1);

/// How long sockets may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long samples that wait may take to be written at the end.
const LAST_COMMIT: Duration = Duration::from_secs(2);

/// How long a notification that is on its way may take at the end.
const LAST_MESSAGE: Duration = Duration::from_secs(2);

/// How long the database's connections may take to close.
const LAST_GOODBYE: Duration = Duration::from_secs(1);

/// How often logins that have expired are forgotten.
const FORGET_LOGINS_EVERY: Duration = Duration::from_secs(3_600);

/// A service that is ready to run.
pub struct Application {
    server: Server,
    address: SocketAddr,
    state: State,
}

/// Why the service could not start. One clear line each.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error("cannot use the data directory {path}: {source}")]
    DataDirectory { path: String, source: io::Error },
    #[error("cannot open the database: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Sender(#[from] SenderError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the retention of a coarser tier is shorter than that of a finer one: raw, 1m, 15m and 1h must not fall")]
    Retention,
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Enter(#[from] EnterError),
    #[error("several instances (--nats-url) need a PostgreSQL that all of them use: --database-url postgres://...")]
    NeedsPostgres,
    #[error(
        "several instances (--nats-url) need the same secrets: give all of them --jwt-secret-file and --encryption-key-file"
    )]
    NeedsSecrets,
    #[error(
        "other instances use this database: give this one --nats-url too, or wait some seconds if they have just ended"
    )]
    NotAlone,
    #[error("the server failed: {0}")]
    Server(#[source] io::Error),
}

impl Application {
    /// Opens the database, starts the actors and takes the port. Must be called in an actix system.
    pub async fn build(config: Config) -> Result<Self, StartupError> {
        others::check(&config)?;
        if !config.retention.is_ordered() {
            return Err(StartupError::Retention);
        }
        prepare_data_directory(&config)?;
        let listener = listen(config.listen)?;
        let address = listener.local_addr().map_err(StartupError::Server)?;
        let workers = config.workers;
        let state = wire(config).await?;
        let server = serve(&state, listener, workers)?;
        others::keep(&state);
        actix_web::rt::spawn(keep_tidy(state.store.clone()));
        actix_web::rt::spawn(state.jobs.clone().keep_company());
        actix_web::rt::spawn(state.jobs.clone().keep_tidy(state.config.command_days));
        actix_web::rt::spawn(state.alerts.clone().keep_tidy(state.config.alert_days));
        actix_web::rt::spawn(state.disk.clone().watch(state.config.timing.disk_look));
        Ok(Self { server, address, state })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn state(&self) -> State {
        self.state.clone()
    }

    /// Serves until `stop` is done, then ends in order: no new connections, agents and dashboards told, running
    /// requests answered, samples written, the database closed.
    pub async fn run_until_stopped(self, stop: impl Future<Output = ()> + 'static) -> Result<(), StartupError> {
        let handle = self.server.handle();
        actix_web::rt::spawn(stop_when(stop, handle, self.state.clone()));
        self.server.await.map_err(StartupError::Server)?;
        if tokio::time::timeout(LAST_COMMIT, self.state.recorder.flush()).await.is_err() {
            tracing::error!("samples were left unwritten; their agents keep them");
        }
        if tokio::time::timeout(LAST_MESSAGE, self.state.notifier.stop()).await.is_err() {
            tracing::warn!("a notification was on its way; it is sent again at the next start");
        }
        if let Some(members) = self.state.cluster.members() {
            _ = tokio::time::timeout(LAST_GOODBYE, members.leave()).await;
        }
        // A statement that hangs on a database that is away must not keep the process.
        _ = tokio::time::timeout(LAST_GOODBYE, self.state.store.close()).await;
        tracing::info!("stopped");
        Ok(())
    }
}

fn prepare_data_directory(config: &Config) -> Result<(), StartupError> {
    if !config.needs_data_directory() {
        return Ok(());
    }
    // Hashes, e-mail addresses and the service's own secrets lie in here.
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|source| StartupError::DataDirectory { path: config.data_dir.display().to_string(), source })
}

fn listen(address: SocketAddr) -> Result<TcpListener, StartupError> {
    let failed = |source| StartupError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// Makes every part and tells it of those it needs.
async fn wire(config: Config) -> Result<State, StartupError> {
    let secret = secret::obtain(SIGNING, config.jwt_secret_file.as_deref(), &config.data_dir)?;
    let encryption = secret::obtain(ENCRYPTION, config.encryption_key_file.as_deref(), &config.data_dir)?;
    // What may be wrong with the flags first: nothing has begun by then that would have to be ended.
    let sender = sender(&config)?;
    let store = Store::open(&config.database_url(), config.database).await?;
    let cluster = others::join(&config, &store, secret::mark(&[&secret, &encryption])).await?;
    let (fleet, feeds) = others::live(&cluster);
    let timing = config.timing.clone();
    let (tail, writer) = (Tail::default(), Uuid::now_v7());
    let disk = DiskGuard::new(config.database_directory(), config.min_free_bytes);
    disk.look();
    let (retention, interval) = (config.retention, timing.commit_interval);
    let recorder = RecorderHandle::start(store.clone(), tail.clone(), disk.clone(), writer, retention, interval);
    let (shards, schedule) = (cluster.shards.clone(), timing.archive.clone());
    let archive = ArchiveHandle::start(store.clone(), tail.clone(), writer, shards, retention, schedule).await?;
    let history = History::new(store.clone(), fleet.clone(), tail.clone(), config.retention);
    let notifier = Notifier::start(Parts {
        store: store.clone(),
        sealer: Sealer::new(&encryption)?,
        deliver: Arc::new(sender),
        silences: Arc::new(store.clone()),
        pace: timing.notify.clone(),
        shards: cluster.shards.clone(),
        is_alone: cluster.is_alone(),
    });
    let watched = alerts::Parts {
        store: store.clone(),
        fleet: fleet.clone(),
        feeds: feeds.clone(),
        history: history.clone(),
        notifier: notifier.clone(),
        patience: timing.offline_patience,
    };
    let alerts = Alerts::start(watched, &cluster).await?;
    let settings = Settings { silence_limit: timing.silence_limit };
    let registry = RegistryHandle::start(
        settings,
        fleet.clone(),
        feeds.clone(),
        recorder.clone(),
        alerts.clone(),
        cluster.elsewhere(),
        store.clone(),
    );
    let jobs = Jobs::new(store.clone(), registry.clone(), fleet.clone(), cluster.clone());
    jobs.resume_batches().await?;
    let logs = Logs::new(registry.clone(), feeds.clone(), fleet.clone(), cluster.clone());

    let accounts = Accounts {
        store: store.clone(),
        tokens: Tokens::new(&secret, timing.access_token, timing.refresh_token),
        passwords: Passwords::new(config.password_iterations)?,
        logins: Logins::new(store.clone(), feeds.clone()),
        refusals: Refusals::default(),
        registration: config.registration,
        refresh_grace: timing.refresh_grace,
        has_users: Arc::default(),
    };
    Ok(State {
        access: Access::new(store.clone()),
        pipeline: Pipeline::new(fleet.clone(), feeds.clone(), recorder.clone(), tail.clone(), alerts.clone()),
        tail,
        logs,
        alerts,
        notifier,
        history,
        archive,
        disk,
        programs: Programs::new(config.install_dir.clone(), config.timing.downloads.clone()),
        handshakes: Arc::new(Semaphore::new(MAX_HANDSHAKES)),
        sockets: Sockets::default(),
        has_told_origin: Arc::default(),
        config: Arc::new(config),
        cluster,
        store,
        accounts,
        fleet,
        feeds,
        registry,
        jobs,
        recorder,
    })
}

/// What sends notifications.
fn sender(config: &Config) -> Result<Sender, SenderError> {
    let smtp = config.smtp_url.clone().zip(config.smtp_from.clone()).map(|(url, from)| SmtpConfig { url, from });
    Sender::new(SenderConfig {
        networks: config.notification_networks.clone(),
        ca_file: config.notification_ca_file.clone(),
        smtp,
        public_url: config.public_url.clone(),
        // Well before the attempt counts as failed.
        timeout: config.timing.notify.attempt * 2 / 3,
    })
}

fn serve(state: &State, listener: TcpListener, workers: Option<usize>) -> Result<Server, StartupError> {
    let data = web::Data::new(state.clone());
    let document = web::Data::new(Document::new());
    let exporter = web::Data::new(Exporter::install());
    // A peer that acknowledges nothing for as long as a silent one is gone, even if its actor stands still.
    let user_timeout = state.config.timing.silence_limit;
    let mut server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .app_data(document.clone())
            .app_data(exporter.clone())
            .wrap(Compress::default())
            .wrap(from_fn(http::middleware::around))
            .wrap(TracingLogger::<http::middleware::QuietSpan>::new())
            .configure(http::configure)
    })
    .on_connect(move |connection, _| {
        if let Some(stream) = connection.downcast_ref::<tokio::net::TcpStream>() {
            let socket = socket2::SockRef::from(stream);
            // Both only make it better: a socket without them still works.
            _ = socket.set_tcp_nodelay(true);
            _ = socket.set_tcp_user_timeout(Some(user_timeout));
        }
    })
    // Whoever hangs up wants no answer: what is asked of an agent for them is taken back at once, and not after half a
    // minute. What is not to be left half done has a task of its own.
    .h1_allow_half_closed(false)
    .disable_signals()
    // Those that came before the drain have had that time already.
    .shutdown_timeout(DRAIN.saturating_sub(others::drain(&state.config)).max(LEAST_DRAIN).as_secs());
    if let Some(workers) = workers {
        server = server.workers(workers);
    }
    Ok(server.listen(listener).map_err(StartupError::Server)?.run())
}

async fn stop_when(stop: impl Future<Output = ()>, server: ServerHandle, state: State) {
    stop.await;
    tracing::info!("stopping");
    let drain = others::drain(&state.config);
    state.cluster.drain().await;
    state.alerts.stop();
    if drain.is_zero() {
        // Pages go first: they would show every server as offline, because its agent is sent away.
        server.pause().await;
        state.feeds.close_all();
    }
    state.registry.end_all(drain).await;
    // Who asks in the meantime is answered: whatever stands in front has not noticed yet.
    tokio::time::sleep(drain).await;
    server.pause().await;
    state.jobs.stop();
    state.feeds.close_all();
    // The goodbyes are written by the sockets' own tasks, which end with the workers.
    let all_gone = async {
        while state.sockets.count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(GOODBYE, all_gone).await.is_err() {
        tracing::debug!(sockets = state.sockets.count(), "some sockets did not take their goodbye");
    }
    server.stop(true).await;
}

/// Removes what has expired, now and then.
async fn keep_tidy(store: Store) {
    loop {
        match store.forget_expired_logins(Timestamp::now()).await {
            Ok(0) => {}
            Ok(count) => tracing::debug!(count, "expired sessions were forgotten"),
            Err(error) => tracing::warn!(%error, "expired sessions could not be forgotten"),
        }
        tokio::time::sleep(FORGET_LOGINS_EVERY).await;
    }
}
