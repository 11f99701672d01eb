//! Keeps the agent connected: dials, authenticates, serves the session, and reconnects after whatever ended it, with growing
//! pauses, until the service says that it should not.

mod ack_watchdog;
mod delivery;
mod dial;
mod ended;
mod handshake;
mod session;
mod tls;
mod tunnel;
mod window;
mod words;

use std::pin::{Pin, pin};
use std::time::Duration;

use signalbox_protocol::agent::{AgentInfo, Auth};
use signalbox_protocol::{PROTOCOL_VERSION, Timestamp, close};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backlog::Backlog;
use crate::backoff::{self, Backoff};
use crate::config::{Config, Interval};
use crate::controls::Controls;
use crate::docker::Docker;
use crate::events::Events;
use crate::exit::Exit;
use crate::logs::Logs;
use crate::requests::AgentMethods;
use crate::suspend::{Clocks, SuspendWatch};
use crate::updates::Updates;
pub use dial::{DialError, Endpoint};
use ended::Ended;
use handshake::{Authenticated, Connecting};
use tls::{TlsError, TrustStore};

/// What all connections share.
pub struct Connector {
    config: Config,
    info: AgentInfo,
    tls: Option<TrustStore>,
    interval: watch::Sender<Interval>,
    logs: Logs,
    docker: Docker,
    events: Events,
    updates: Updates,
}

impl Connector {
    /// Reads the trusted certificates, if the address needs any or a file with them is named.
    pub fn new(
        config: Config,
        info: AgentInfo,
        interval: watch::Sender<Interval>,
        docker: Docker,
        events: Events,
        updates: Updates,
    ) -> Result<Self, TlsError> {
        let needed = config.url.secure || config.ca_file.is_some();
        let tls = needed.then(|| TrustStore::read(config.ca_file.clone())).transpose()?;
        // The agent reports an unusable file now, and not when the address becomes https://.
        let tls = tls.filter(|_| config.url.secure);
        if !config.url.secure && !config.url.is_loopback() {
            tracing::warn!(url = %config.url, "the connection is not encrypted: anybody on the way can read the key");
        }
        if let Some(proxy) = &config.proxy {
            tracing::info!("the service is reached through the proxy {proxy}");
        }
        let logs = Logs::new(config.policy.clone(), docker.clone(), config.roots.clone());
        Ok(Self { config, info, tls, interval, logs, docker, events, updates })
    }

    async fn authenticate(&self, controls: &Controls) -> Result<Authenticated, Ended> {
        let socket = self.endpoint().open().await?;
        Connecting::new(socket).authenticate(self.auth(controls), self.config.timing.handshake_step).await
    }

    /// The path to the service.
    pub fn endpoint(&self) -> Endpoint<'_> {
        let Config { url, proxy, .. } = &self.config;
        Endpoint { url, proxy: proxy.as_ref(), tls: self.tls.as_ref(), timing: &self.config.timing }
    }

    /// The first message of each connection.
    fn auth(&self, controls: &Controls) -> Auth {
        Auth {
            api_key: self.config.key.expose().to_owned(),
            protocol: PROTOCOL_VERSION,
            agent: self.info.clone(),
            sent_at: Some(Timestamp::now()),
            sample_interval_seconds: Some(self.config.interval.duration().as_secs_f64()),
            live_interval_seconds: controls.live.shortest().map(|shortest| shortest.as_secs_f64()),
            commands: controls.commands.ids(),
        }
    }

    /// Applies the interval that the service asks for.
    fn follow_interval(&self, seconds: Option<f64>) {
        let Some(asked) = seconds.and_then(|seconds| Interval::from_seconds(seconds).ok()) else { return };
        self.interval.send_if_modified(|interval| std::mem::replace(interval, asked) != asked);
    }

    /// One connection from its first packet to its end.
    async fn connect_once(
        &self,
        backlog: &Backlog,
        controls: &Controls,
        backoff: &mut Backoff,
        mut shutdown: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Ended {
        let authenticated = tokio::select! {
            () = shutdown.as_mut() => return Ended::ForGood(Exit::Stopped),
            authenticated = self.authenticate(controls) => authenticated,
        };
        let Authenticated { socket, response } = match authenticated {
            Ok(authenticated) => authenticated,
            Err(ended) => return ended,
        };
        tracing::info!(
            server.id = response.server_id.map(tracing::field::display),
            session.id = response.session_id.map(tracing::field::display),
            clock_offset_ms = response.clock_offset_ms,
            "connected to {}",
            self.config.url
        );
        self.follow_interval(response.sample_interval_seconds);
        // The number that the service says it has (`ack_seq`) frees nothing here, because another machine with the same key may
        // have reached it. What is sent again is at most two batches, and after an interrupted backlog the live samples of
        // that time; the service stores a sample once.
        let methods = AgentMethods {
            info: self.info.clone(),
            policy: self.config.policy.clone(),
            logs: self.logs.clone(),
            docker: self.docker.clone(),
            recordings: controls.recordings.clone(),
            updates: self.updates.clone(),
        };
        let _connected = self.updates.connected();
        let began = Instant::now();
        let events = self.events.connect();
        let ended = session::serve(socket, backlog, methods, events, controls, self.endpoint(), shutdown).await;
        controls.live.end();
        if began.elapsed() >= self.config.timing.stable {
            backoff.reset();
        }
        ended
    }
}

/// Connects repeatedly, until there is a reason not to.
pub async fn stay_connected(
    connector: &Connector,
    backlog: &Backlog,
    controls: &Controls,
    shutdown: impl Future<Output = ()> + Send,
) -> Exit {
    let mut shutdown = pin!(shutdown);
    let timing = &connector.config.timing;
    let mut backoff = Backoff::new(timing.backoff_first, timing.backoff_most);
    loop {
        let ended = connector.connect_once(backlog, controls, &mut backoff, shutdown.as_mut()).await;
        match &ended {
            Ended::ForGood(exit) => return exit.clone(),
            Ended::Replaced => {
                let delay = timing.replaced + timing.backoff_most.mul_f64(backoff::random());
                tracing::error!(retry_in_seconds = delay.as_secs(), "not connected: {ended}");
                backoff.reset();
                tokio::select! {
                    () = shutdown.as_mut() => return Exit::Stopped,
                    () = tokio::time::sleep(delay) => continue,
                }
            }
            Ended::Busy(_) => backoff.widen(timing.backoff_busy),
            Ended::Suspended(_) => backoff.reset(),
            Ended::Dial(_)
            | Ended::NoAuthResponse(_)
            | Ended::Refused(_)
            | Ended::Closed { .. }
            | Ended::Broken(_)
            | Ended::Silent(_)
            | Ended::Unacknowledged(_)
            | Ended::Unread => {}
        }
        let delay = backoff.delay(Instant::now(), backoff::random());
        log_end(&ended, delay);
        let is_untrusted = matches!(&ended, Ended::Dial(error) if error.is_untrusted());
        let pause = async {
            // Another authority may have taken the place of those that were read.
            if let Some(trusted) = connector.tls.as_ref().filter(|_| is_untrusted) {
                trusted.read_again().await;
            }
            sleep_awake(delay, timing.watch).await;
        };
        tokio::select! {
            () = shutdown.as_mut() => return Exit::Stopped,
            () = pause => {}
        }
    }
}

/// Logs the end. A message that the service could not read is a bug of one of the two, and may happen again at each attempt.
fn log_end(ended: &Ended, delay: Duration) {
    let retry_in_ms = delay.as_millis();
    if matches!(ended, Ended::Closed { code: close::MALFORMED, .. }) {
        tracing::error!(reason = %ended, retry_in_ms, "not connected: the service does not understand this agent");
    } else {
        tracing::warn!(reason = %ended, retry_in_ms, "not connected");
    }
}

/// Sleeps, but at most until the machine wakes up from a suspend.
async fn sleep_awake(delay: Duration, look_every: Duration) {
    let end = Instant::now() + delay;
    let mut suspend = SuspendWatch::new(Clocks::now());
    while Instant::now() < end && suspend.observe(Clocks::now()).is_none() {
        tokio::time::sleep_until(end.min(Instant::now() + look_every)).await;
    }
}
