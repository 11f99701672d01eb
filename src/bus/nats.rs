//! The bus over NATS. It uses only core messages and requests, which every version of the NATS server has.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, RequestError, ServerAddr, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};
use signalbox_agent::secret_file::{self, SecretFileError};
use signalbox_agent::tls_words;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::{Bus, BusError, BusFuture, Delivery, MAX_WAITING, Subscription};

/// The longest pause between two attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The client pings a server that was silent for this long. After two pings without an answer the server counts as
/// gone.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Commands that the client may queue: while the server is away, subscriptions of agents that come and go wait here.
const MAX_COMMANDS: usize = 65_536;

/// How long the first connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// How long the server may take to register a subscription.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// Where the NATS server is, and how the service signs in.
#[derive(Debug, Clone)]
pub struct NatsConfig {
    /// One or more addresses, separated by commas: `nats://` or `tls://`. They may contain a user and a password.
    pub url: SecretString,
    /// The credentials file (user token and key) that NATS' own tools write.
    pub credentials_file: Option<PathBuf>,
    /// Certificates of authorities to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
}

/// The advice in an error about an untrusted authority.
const TRUSTING: &str = "--nats-ca-file names one of your own";

/// Why the service could not connect at the start. Only host and port of an address appear, because it may contain a
/// password.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    #[error("the address of the message bus is invalid; it must be nats://host:port or tls://host:port")]
    Address,
    #[error("cannot use the credentials of the message bus {} (--nats-credentials-file): {source}", .path.display())]
    Credentials { path: PathBuf, source: SecretFileError },
    #[error("--nats-ca-file {}: {detail}", .path.display())]
    CaFile { path: PathBuf, detail: String },
    #[error("cannot reach the message bus at {place}: {detail}")]
    Connect { place: String, detail: String },
}

/// A connection to NATS, which reconnects automatically.
#[derive(Clone)]
pub struct NatsBus {
    client: Client,
    /// How many messages were lost, because their receivers were too slow.
    lost: Arc<AtomicU64>,
}

impl NatsBus {
    /// Connects. After an outage the client reconnects, however long it takes. `name` appears in NATS' own tools.
    pub async fn connect(config: &NatsConfig, name: &str) -> Result<Self, NatsError> {
        let addresses = config.url.expose_secret().split(',').map(|url| url.trim().parse::<ServerAddr>());
        let addresses: Vec<ServerAddr> = addresses.collect::<Result<_, _>>().map_err(|_| NatsError::Address)?;
        let lost = Arc::<AtomicU64>::default();
        let counter = lost.clone();
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_WITHIN)
            .ping_interval(PING_EVERY)
            .subscription_capacity(MAX_WAITING)
            .client_capacity(MAX_COMMANDS)
            .reconnect_delay_callback(|attempts| {
                let pause = Duration::from_millis(50).saturating_mul(1 << attempts.min(8));
                pause.min(LONGEST_PAUSE)
            })
            .event_callback(move |event| {
                let lost = counter.clone();
                async move { told(&event, &lost) }
            });
        // The client takes credentials only from its options, not from the addresses.
        if let Some((user, password)) = addresses.iter().find_map(named) {
            options = options.user_and_password(user, password);
        }
        if let Some(file) = &config.credentials_file {
            let unusable = |source| NatsError::Credentials { path: file.clone(), source };
            let text = secret_file::read(file).map_err(unusable)?;
            options = options.credentials(&text).map_err(|error| unusable(error.into()))?;
        }
        if let Some(file) = &config.ca_file {
            // The client reads the file only when it needs it, and then reports no error.
            check_certificates(file)?;
            options = options.add_root_certificates(file.clone());
        }
        let places: Vec<String> = addresses.iter().map(place).collect();
        let connected = options.connect(addresses).await;
        let client =
            connected.map_err(|error| NatsError::Connect { place: places.join(", "), detail: words(&error) })?;
        Ok(Self { client, lost })
    }
}

/// Fails unless the file contains certificates in PEM.
fn check_certificates(path: &Path) -> Result<(), NatsError> {
    let unusable = |detail: String| NatsError::CaFile { path: path.to_owned(), detail };
    let text = std::fs::read(path).map_err(|error| unusable(error.to_string().to_lowercase()))?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| unusable(error.to_string()))?;
    if certificates.is_empty() { Err(unusable("holds no certificate in PEM".to_owned())) } else { Ok(()) }
}

fn place(address: &ServerAddr) -> String {
    let (host, port) = (address.host(), address.port());
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Why there is no connection. The client's own message names only the kind of the error.
fn words(error: &ConnectError) -> String {
    let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if let Some(fault) = system.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref()) {
        return format!("TLS: {}", tls_words::of(fault, TRUSTING));
    }
    match error.kind() {
        ConnectErrorKind::Dns => "the name cannot be resolved".to_owned(),
        ConnectErrorKind::TimedOut => format!("it timed out, no answer within {} s", CONNECT_WITHIN.as_secs()),
        ConnectErrorKind::AuthorizationViolation => {
            "it refuses this user, or needs a user name and password".to_owned()
        }
        kind @ (ConnectErrorKind::ServerParse
        | ConnectErrorKind::Authentication
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects) => match (system, error.source()) {
            (Some(system), _) if system.kind() == io::ErrorKind::ConnectionRefused => {
                "the connection was refused; is a NATS server running there?".to_owned()
            }
            (Some(system), _) => system.to_string(),
            (None, Some(source)) => format!("{kind}: {source}"),
            (None, None) => kind.to_string(),
        },
    }
}

/// The user and the password of an address, percent-decoded.
fn named(address: &ServerAddr) -> Option<(String, String)> {
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(address.username()?), plain(address.password()?)))
}

/// Logs the events that an operator should know of, and counts lost messages.
fn told(event: &Event, lost: &AtomicU64) {
    match event {
        Event::Connected => tracing::info!("connected to the message bus"),
        Event::Disconnected => tracing::warn!("the connection to the message bus is lost, reconnecting"),
        Event::SlowConsumer(_) => count_lost(lost),
        Event::ServerError(error) => tracing::error!(%error, "the message bus reported an error"),
        Event::ClientError(error) => tracing::debug!(%error, "the client of the message bus reported an error"),
        Event::LameDuckMode | Event::Draining | Event::Closed => {
            tracing::info!(%event, "the connection to the message bus is closing")
        }
    }
}

fn count_lost(lost: &AtomicU64) {
    lost.fetch_add(1, Ordering::Relaxed);
    metrics::counter!("signalbox_bus_messages_lost_total").increment(1);
}

fn failed(error: &RequestError) -> BusError {
    match error.kind() {
        RequestErrorKind::NoResponders => BusError::NoResponder,
        // The client may have ended after it sent the question.
        RequestErrorKind::TimedOut | RequestErrorKind::Other => BusError::Timeout,
        _ => BusError::Away,
    }
}

impl Bus for NatsBus {
    fn publish(&self, subject: String, payload: Bytes) -> BusFuture<'_, ()> {
        Box::pin(async move {
            self.check(&payload)?;
            self.client.publish(subject, payload).await.map_err(|_| BusError::Away)
        })
    }

    fn request(&self, subject: String, payload: Bytes, deadline: Duration) -> BusFuture<'_, Bytes> {
        Box::pin(async move {
            self.check(&payload)?;
            let request = async_nats::Request::new().payload(payload).timeout(Some(deadline));
            let answer = self.client.send_request(subject, request).await.map_err(|error| failed(&error))?;
            Ok(answer.payload)
        })
    }

    fn subscribe(&self, subject: String) -> BusFuture<'_, Subscription> {
        Box::pin(async move {
            let subscriber = self.client.subscribe(subject).await.map_err(|_| BusError::Away)?;
            self.settle().await;
            let (sender, deliveries) = mpsc::channel(MAX_WAITING);
            let (ends, ended) = oneshot::channel();
            tokio::spawn(pass_on(self.clone(), subscriber, sender, ended));
            Ok(Subscription { deliveries, _ends: ends })
        })
    }

    fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn most_bytes(&self) -> usize {
        self.client.server_info().max_payload
    }
}

impl NatsBus {
    /// Returns once the server has registered everything sent before: it handles commands in order, and answers this
    /// request with "no responders". A server that is away gets the subscriptions when it is back.
    async fn settle(&self) {
        if self.is_up() {
            let nobody = async_nats::Request::new().timeout(Some(SETTLED_WITHIN));
            _ = self.client.send_request(self.client.new_inbox(), nobody).await;
        }
    }

    fn check(&self, payload: &Bytes) -> Result<(), BusError> {
        // While the server is away the client would queue messages for later, when no caller waits for them any more.
        if !self.is_up() {
            return Err(BusError::Away);
        }
        if payload.len() > self.most_bytes() { Err(BusError::TooLarge) } else { Ok(()) }
    }
}

/// Hands deliveries on until the receiver is dropped.
async fn pass_on(
    bus: NatsBus,
    mut subscriber: Subscriber,
    deliveries: mpsc::Sender<Delivery>,
    mut ended: oneshot::Receiver<()>,
) {
    loop {
        let message = tokio::select! {
            message = subscriber.next() => message,
            _ = &mut ended => None,
        };
        let Some(message) = message else { break };
        let client = bus.client.clone();
        let answer = message.reply.map(|reply| -> super::Answer {
            Box::new(move |payload| {
                tokio::spawn(async move { client.publish(reply, payload).await });
            })
        });
        // A slow receiver must not hold up the connection. What does not fit is lost, which receivers expect.
        if let Err(TrySendError::Full(_)) = deliveries.try_send(Delivery::new(message.payload, answer)) {
            count_lost(&bus.lost);
        }
    }
}
