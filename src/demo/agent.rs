//! The agents of simulated servers. They speak the agents' protocol over real WebSockets, and answer with what the pure modules
//! beside this one say. They run nothing and read nothing of this machine.

mod requests;
mod session;
mod streams;

use std::collections::HashSet;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentInfo, AuthResponse, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding, PROTOCOL_VERSION, Sample, Timestamp};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use self::session::{Memory, Session};
use super::cast::Machine;
use super::course::Course;
use super::gauges::values;
use super::noise::{between, mix};

/// How often an agent looks at what is due. Commands are answered at once.
const TICK: Duration = Duration::from_secs(1);

/// How long the service may take to accept the key.
const AUTH_WITHIN: Duration = Duration::from_secs(20);

/// The pause before another attempt, and how much longer it is for some agents, so that not all come at once.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const SPREAD_MS: u64 = 4_000;

/// How long a close frame may take at the end.
const GOODBYE: Duration = Duration::from_millis(500);

/// The default interval of samples, in seconds.
const INTERVAL: f64 = 5.0;

type Socket = WebSocketStream<TcpStream>;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    // Boxed, because it is large.
    #[error("the connection broke: {0}")]
    Socket(Box<WsError>),
    #[error("a message cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
    #[error("the service refused the key: {0}")]
    Refused(String),
    #[error("the service closed the connection")]
    Closed,
    #[error("the service did not answer in time")]
    Silent,
}

impl From<WsError> for AgentError {
    fn from(error: WsError) -> Self {
        Self::Socket(Box::new(error))
    }
}

/// A simulated server, and what people have done to it.
pub struct Site {
    pub course: Course,
    pub machine: Arc<Machine>,
    /// Containers that somebody stopped.
    pub stopped: HashSet<&'static str>,
}

impl Site {
    /// The sample of this time, as an agent would send it.
    fn sample(&self, at_ms: i64) -> Sample {
        let mut sample = self.course.sample(&self.machine, at_ms);
        sample.containers.retain(|container| !self.stopped.contains(container.name.as_str()));
        sample.values = values(self.course, &self.machine, at_ms);
        sample
    }

    /// What the agent says about its machine.
    pub fn info(&self) -> AgentInfo {
        let Machine { name, os, cores, seed, .. } = &*self.machine;
        let booted = self.course.last_boot_ms(&self.machine).cast_unsigned();
        let capabilities = ["metrics", "processes", "docker", "docker_control", "commands", "logs"];
        AgentInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: name.clone(),
            os: os.name.to_owned(),
            kernel: os.kernel.to_owned(),
            arch: os.arch.to_owned(),
            cpu_count: *cores,
            boot_id: format!("{:016x}", mix(*seed, booted)),
            capabilities: capabilities.map(str::to_owned).to_vec(),
            ..AgentInfo::default()
        }
    }
}

/// An agent and its way to the service.
pub struct SimulatedAgent {
    pub site: Site,
    pub address: SocketAddr,
    pub key: SecretString,
}

/// Runs an agent until `stop` resolves. It connects again whenever its connection ends.
pub async fn run(agent: SimulatedAgent, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let SimulatedAgent { site, address, key } = agent;
    let (name, seed) = (site.machine.name.clone(), site.machine.seed);
    let mut memory = Memory::new(site);
    for attempt in 0_u64.. {
        match connect(&mut memory, address, &key, stop.as_mut()).await {
            Ok(()) => return,
            Err(error @ AgentError::Refused(_)) => {
                tracing::error!(%error, server.name = %name, "a simulated agent has ended");
                return;
            }
            Err(error) => tracing::debug!(%error, server.name = %name, "a simulated agent connects again"),
        }
        let pause = AGAIN_AFTER + Duration::from_millis(between(seed, attempt, 0, SPREAD_MS));
        tokio::select! {
            () = stop.as_mut() => return,
            () = sleep(pause) => {}
        }
    }
}

/// Serves one connection. Returns `Ok` when the agent was asked to stop.
async fn connect(
    memory: &mut Memory,
    address: SocketAddr,
    key: &SecretString,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), AgentError> {
    let tcp = tokio::select! {
        () = stop.as_mut() => return Ok(()),
        connected = TcpStream::connect(address) => connected?,
    };
    // Samples are small, and should leave at once.
    _ = tcp.set_nodelay(true);
    let (mut socket, _) = client_async(format!("ws://{address}/api/v1/agents/ws"), tcp).await?;
    let accepted = timeout(AUTH_WITHIN, authenticate(&mut socket, memory, key));
    let response = accepted.await.map_err(|_| AgentError::Silent)??;
    let interval = Duration::from_secs_f64(response.sample_interval_seconds.unwrap_or(INTERVAL).clamp(1.0, 3_600.0));
    let mut session = Session::begin(memory, interval)?;
    // Agents are started at any time; they must not all send in the same moment.
    let first = Instant::now() + Duration::from_millis(between(session.seed(), 5, 1, 1_000));
    let mut tick = interval_at(first, TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for text in session.take_outbox() {
            socket.send(Message::text(text)).await?;
        }
        tokio::select! {
            () = stop.as_mut() => {
                _ = timeout(GOODBYE, socket.close(None)).await;
                return Ok(());
            }
            frame = socket.next() => match frame.ok_or(AgentError::Closed)?? {
                Message::Close(_) => return Err(AgentError::Closed),
                Message::Text(text) => session.receive(&text)?,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            },
            _ = tick.tick() => session.tick()?,
        }
    }
}

/// Shows the key and waits for the answer.
async fn authenticate(socket: &mut Socket, memory: &Memory, key: &SecretString) -> Result<AuthResponse, AgentError> {
    let auth = json!({
        "api_key": key.expose_secret(),
        "protocol": PROTOCOL_VERSION,
        "agent": memory.site.info(),
        "sent_at": Timestamp::now(),
        "sample_interval_seconds": INTERVAL,
        "live_interval_seconds": TICK.as_secs_f64(),
        "commands": memory.held_commands(),
    });
    socket.send(Message::text(message("auth", &auth))).await?;
    loop {
        let frame = socket.next().await.ok_or(AgentError::Closed)??;
        let Message::Text(text) = frame else { continue };
        let Ok(Decoded::Known(ServiceMessage::AuthResponse(response))) = Encoding::Json.decode(text.as_bytes()) else {
            continue;
        };
        if response.success {
            return Ok(response);
        }
        return Err(match response.code.as_deref() {
            Some("unauthorized" | "revoked") => AgentError::Refused(response.detail.unwrap_or_default()),
            _ => AgentError::Closed,
        });
    }
}

/// The text of a message.
fn message(kind: &str, data: &Value) -> String {
    json!({ "type": kind, "data": data }).to_string()
}
