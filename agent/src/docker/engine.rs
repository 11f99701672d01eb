//! The container engine, Docker or Podman: found when it is needed, and again after it was away.
//!
//! The agent first pings it, which shows the version of its API. It reads answers with types of its own
//! ([`model`](super::model)): those of a general client refuse a whole list for one unknown word (Podman has states of its
//! own), and buffer a log line without limit.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::address;
use super::error::EngineError;
use super::transport;

/// The most time for an answer. A list of a thousand containers takes a tenth of a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// How often, and how soon, a question is repeated that failed because a container ended: until the engine has noticed the end.
const MAX_STUMBLES: u32 = 5;
const AFTER_STUMBLE: Duration = Duration::from_millis(200);
/// The longest answer that is read whole: a list of some thousand containers.
const MAX_BYTES: usize = 16 << 20;
/// The longest error that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The newest version of the API that this build understands. A newer engine speaks it, too; an older one is asked in its own.
const NEWEST_VERSION: Version = Version { major: 1, minor: 53 };

/// A handle to the engine; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    named: Option<String>,
    connected: Arc<Mutex<Option<Connected>>>,
}

/// An engine that answered.
#[derive(Clone)]
struct Connected {
    socket: PathBuf,
    version: Version,
    kind: Kind,
}

/// A version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

/// The kind of engine. They differ in more than their API says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docker,
    Podman,
}

/// What to request for the last lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tails {
    /// That many records: Docker counts each piece of a long line, and both streams even if only one is asked for.
    Counted,
    /// All lines: Podman joins the pieces of a line to the wrong one when it counts from the end.
    Whole,
}

#[derive(Deserialize)]
struct Complaint {
    message: String,
}

impl Engine {
    /// The engine at an address, or, without one, the engine of this host. Does not connect yet.
    pub fn new(named: Option<String>) -> Self {
        Self { named, connected: Arc::default() }
    }

    /// Reads a whole answer. `path` is such as `/containers/json?all=1`.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, EngineError> {
        let reading = async {
            let response = self.open(path).await?;
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            let body = body.map_err(|error| EngineError::Unexpected(error.to_string()))?.to_bytes();
            serde_json::from_slice(&body).map_err(|error| EngineError::Unexpected(error.to_string()))
        };
        tokio::time::timeout(ANSWER_WITHIN, reading).await.unwrap_or(Err(EngineError::Silent))
    }

    /// Opens an answer that may be endless. The question is repeated once for an engine that was replaced by another since the
    /// last time, and several times for one that failed because a container ended.
    pub async fn open(&self, path: &str) -> Result<Response<Incoming>, EngineError> {
        let was_known = self.known().is_some();
        let mut stumbles = 0;
        loop {
            match self.open_once(path).await {
                Err(error) if self.forget_if_away(&error) && was_known => return self.open_once(path).await,
                Err(error) if error.is_of_an_ended_process() && stumbles < MAX_STUMBLES => {
                    stumbles += 1;
                    tokio::time::sleep(AFTER_STUMBLE).await;
                }
                other => return other,
            }
        }
    }

    async fn open_once(&self, path: &str) -> Result<Response<Incoming>, EngineError> {
        let connected = self.connect().await?;
        let answer = connected.ask(Method::GET, path);
        tokio::time::timeout(ANSWER_WITHIN, answer).await.map_err(|_| EngineError::Silent)?
    }

    /// How to request the end of a log.
    pub async fn tails(&self) -> Result<Tails, EngineError> {
        Ok(match self.kind().await? {
            Kind::Docker => Tails::Counted,
            Kind::Podman => Tails::Whole,
        })
    }

    pub async fn kind(&self) -> Result<Kind, EngineError> {
        self.connect().await.map(|connected| connected.kind)
    }

    /// Performs an action, within `limit`. `path` is such as `/containers/web/start`.
    pub async fn act(&self, limit: Duration, path: &str) -> Result<(), EngineError> {
        let connected = self.connect().await?;
        // Never repeated: a second time may be wrong.
        let done = tokio::time::timeout(limit, connected.ask(Method::POST, path)).await;
        let done = done.map_err(|_| EngineError::Silent)?;
        done.map(drop).inspect_err(|error| _ = self.forget_if_away(error))
    }

    fn known(&self) -> Option<Connected> {
        self.connected.lock().clone()
    }

    /// Forgets the engine if the error says that it is not the one that answered before. Returns whether it did.
    fn forget_if_away(&self, error: &EngineError) -> bool {
        let is_other = matches!(error, EngineError::Refused { status: 400, message } if message.contains("version"));
        let is_away = error.is_absence() || is_other;
        if is_away {
            *self.connected.lock() = None;
        }
        is_away
    }

    async fn connect(&self) -> Result<Connected, EngineError> {
        if let Some(connected) = self.known() {
            return Ok(connected);
        }
        let socket = address::find(self.named.as_deref())?;
        let connected = tokio::time::timeout(ANSWER_WITHIN, Connected::by_ping(socket)).await;
        let connected = connected.map_err(|_| EngineError::Silent)??;
        tracing::debug!(socket = %connected.socket.display(), version = %connected.version, "found the container engine");
        *self.connected.lock() = Some(connected.clone());
        Ok(connected)
    }
}

impl Connected {
    /// Finds out which API the engine at a socket speaks.
    async fn by_ping(socket: PathBuf) -> Result<Self, EngineError> {
        let pong = succeeded(transport::send(&socket, Method::GET, "/_ping").await?).await?;
        let version = pong.headers().get("api-version").and_then(|version| version.to_str().ok());
        let version = version.and_then(Version::parse);
        let version =
            version.ok_or_else(|| EngineError::Unexpected("it does not name its API's version".to_owned()))?;
        // Only Podman states the version of its own API.
        let is_podman = pong.headers().contains_key("libpod-api-version");
        let kind = if is_podman { Kind::Podman } else { Kind::Docker };
        Ok(Self { socket, version: version.min(NEWEST_VERSION), kind })
    }

    /// The beginning of a successful answer.
    async fn ask(&self, method: Method, path: &str) -> Result<Response<Incoming>, EngineError> {
        succeeded(transport::send(&self.socket, method, &format!("/v{}{path}", self.version)).await?).await
    }
}

impl Version {
    /// Parses a version such as `1.41`.
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Returns the answer, unless it is an error.
async fn succeeded(response: Response<Incoming>) -> Result<Response<Incoming>, EngineError> {
    // "Not modified": a container to start already runs, or one to stop does not run.
    if response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    Err(complaint(response).await)
}

async fn complaint(response: Response<Incoming>) -> EngineError {
    let status = response.status().as_u16();
    let body = tokio::time::timeout(ANSWER_WITHIN, Limited::new(response.into_body(), MAX_ERROR_BYTES).collect()).await;
    let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let message = serde_json::from_slice::<Complaint>(&body).map(|complaint| complaint.message);
    EngineError::of_status(status, &message.unwrap_or_else(|_| String::from_utf8_lossy(&body).trim().to_owned()))
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
