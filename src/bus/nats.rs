//! The bus over NATS: core requests and messages alone, which every version of its server has.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
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
use tokio::sync::{mpsc, oneshot};

use super::{Bus, BusError, BusFuture, Delivery, MOST_WAITING, Subscription};

/// How often at most it is tried to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A server that has said nothing for this long is asked whether it is there; twice without an answer, and it is not.
const PING_EVERY: Duration = Duration::from_secs(5);

/// What the client may have to do: while the server is away, subscriptions of agents that come and go wait here.
const MOST_TO_DO: usize = 65_536;

/// How long the server may take to answer the first time.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// How long the server may take to take note of a subscription.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// Where the server is and how to be let in.
#[derive(Debug, Clone)]
pub struct NatsConfig {
    /// One or more addresses with commas between them, which may have a user and a password: `nats://`, or `tls://`.
    pub url: SecretString,
    /// The file with the user's token and key that NATS' tools make.
    pub credentials_file: Option<PathBuf>,
    /// Certificates of authorities to trust besides the system's.
    pub ca_file: Option<PathBuf>,
}

/// How to trust an authority that the system does not.
const TRUSTING: &str = "--nats-ca-file names one of your own";

/// Why the server could not be reached at the start. Says of an address its host and port alone: there may be a password.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    #[error("the address of the message bus is not understood; it must be nats://host:port or tls://host:port")]
    Address,
    #[error("cannot use the credentials of the message bus {} (--nats-credentials-file): {source}", .path.display())]
    Credentials { path: PathBuf, source: SecretFileError },
    #[error("--nats-ca-file {}: {detail}", .path.display())]
    CaFile { path: PathBuf, detail: String },
    #[error("cannot reach the message bus at {place}: {detail}")]
    Connect { place: String, detail: String },
}

/// A connection to NATS, which comes back by itself.
#[derive(Clone)]
pub struct NatsBus {
    client: Client,
}

impl NatsBus {
    /// Connects; later on it connects again by itself, for as long as it takes. `name` is shown by NATS' own tools.
    pub async fn connect(config: &NatsConfig, name: &str) -> Result<Self, NatsError> {
        let addresses = config.url.expose_secret().split(',').map(|url| url.trim().parse::<ServerAddr>());
        let addresses: Vec<ServerAddr> = addresses.collect::<Result<_, _>>().map_err(|_| NatsError::Address)?;
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(CONNECT_WITHIN)
            .ping_interval(PING_EVERY)
            .subscription_capacity(MOST_WAITING)
            .client_capacity(MOST_TO_DO)
            .reconnect_delay_callback(|attempts| {
                let pause = Duration::from_millis(50).saturating_mul(1 << attempts.min(8));
                pause.min(LONGEST_PAUSE)
            })
            .event_callback(|event| async move { told(&event) });
        // The client takes them from here alone, and not from the addresses.
        if let Some((user, password)) = addresses.iter().find_map(named) {
            options = options.user_and_password(user, password);
        }
        if let Some(file) = &config.credentials_file {
            let unusable = |source| NatsError::Credentials { path: file.clone(), source };
            let text = secret_file::read(file).map_err(unusable)?;
            options = options.credentials(&text).map_err(|error| unusable(error.into()))?;
        }
        if let Some(file) = &config.ca_file {
            // The client reads it when it needs it, and then says nothing of it.
            check_certificates(file)?;
            options = options.add_root_certificates(file.clone());
        }
        let places: Vec<String> = addresses.iter().map(place).collect();
        let connected = options.connect(addresses).await;
        let client =
            connected.map_err(|error| NatsError::Connect { place: places.join(", "), detail: words(&error) })?;
        Ok(Self { client })
    }
}

/// Whether a file has certificates in it.
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

/// Why there is no connection: the client's own words are no more than the kind of it.
fn words(error: &ConnectError) -> String {
    let system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if let Some(fault) = system.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref()) {
        return format!("TLS: {}", tls_words::of(fault, TRUSTING));
    }
    match error.kind() {
        ConnectErrorKind::Dns => "the name cannot be resolved".to_owned(),
        ConnectErrorKind::TimedOut => format!("it timed out, no answer within {} s", CONNECT_WITHIN.as_secs()),
        ConnectErrorKind::AuthorizationViolation => "it does not let this user in, or needs one".to_owned(),
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

/// The user and the password of an address, as they are.
fn named(address: &ServerAddr) -> Option<(String, String)> {
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(address.username()?), plain(address.password()?)))
}

/// What is worth a line in the log.
fn told(event: &Event) {
    match event {
        Event::Connected => tracing::info!("the message bus is there"),
        Event::Disconnected => tracing::warn!("the message bus is away"),
        Event::SlowConsumer(_) => metrics::counter!("signalbox_bus_messages_lost_total").increment(1),
        Event::ServerError(error) => tracing::error!(%error, "the message bus complains"),
        Event::ClientError(error) => tracing::debug!(%error, "the message bus could not be used"),
        Event::LameDuckMode | Event::Draining | Event::Closed => tracing::info!(%event, "the message bus ends"),
    }
}

fn failed(error: &RequestError) -> BusError {
    match error.kind() {
        RequestErrorKind::NoResponders => BusError::NoResponder,
        RequestErrorKind::TimedOut => BusError::Timeout,
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
            let (sender, deliveries) = mpsc::channel(MOST_WAITING);
            let (ends, ended) = oneshot::channel();
            tokio::spawn(pass_on(self.client.clone(), subscriber, sender, ended));
            Ok(Subscription { deliveries, _ends: ends })
        })
    }

    fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    fn most_bytes(&self) -> usize {
        self.client.server_info().max_payload
    }
}

impl NatsBus {
    /// Comes back when the server has taken note of everything before: it answers in order, here that nobody listens. A
    /// server that is away is told when it is back.
    async fn settle(&self) {
        if self.is_up() {
            let nobody = async_nats::Request::new().timeout(Some(SETTLED_WITHIN));
            _ = self.client.send_request(self.client.new_inbox(), nobody).await;
        }
    }

    fn check(&self, payload: &Bytes) -> Result<(), BusError> {
        // While it is away the client would keep messages for later, when nobody waits for them any more.
        if !self.is_up() {
            return Err(BusError::Away);
        }
        if payload.len() > self.most_bytes() { Err(BusError::TooLarge) } else { Ok(()) }
    }
}

/// Hands deliveries on until nobody takes them any more.
async fn pass_on(
    client: Client,
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
        let client = client.clone();
        let answer = message.reply.map(|reply| -> super::Answer {
            Box::new(move |payload| {
                tokio::spawn(async move { client.publish(reply, payload).await });
            })
        });
        // Whoever takes them slowly is not to hold up the connection: what does not fit is lost, which they expect.
        if deliveries.try_send(Delivery::new(message.payload, answer)).is_err() {
            metrics::counter!("signalbox_bus_messages_lost_total").increment(1);
        }
    }
}
