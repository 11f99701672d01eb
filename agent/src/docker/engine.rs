//! The container engine, Docker or Podman: found when it is needed, and found again after it was away.
//!
//! Verbs, and the version that both sides speak, are bollard's. Answers that are read go a way of their own over the same
//! transport: bollard's types refuse a whole list for one word that they do not know (Podman has states of its own), and
//! it would gather a log's line without an end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::{API_DEFAULT_VERSION, BollardRequest};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::address;
use super::error::EngineError;
use super::transport;

/// What the engine may take for a question. Its list of a thousand containers takes a tenth of a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// The longest answer that is read whole: a list of some thousand containers.
const MOST_BYTES: usize = 16 << 20;
/// The longest error that is read.
const MOST_ERROR_BYTES: usize = 64 << 10;
/// For bollard, which wants one: calls have deadlines of their own.
const LONGEST_SECONDS: u64 = 600;

/// A handle to the engine, behind cheap clones.
#[derive(Clone)]
pub struct Engine {
    named: Option<String>,
    connected: Arc<Mutex<Option<Connected>>>,
}

/// An engine that answered.
#[derive(Clone)]
struct Connected {
    socket: PathBuf,
    /// Such as `v1.41`.
    version: String,
    verbs: bollard::Docker,
    kind: Kind,
}

/// Who answers. They differ in more than their API says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Docker,
    Podman,
}

/// What to ask for when the last lines of a log are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tails {
    /// So many of them.
    Counted,
    /// All: Podman joins the pieces of a line to the wrong one when it counts from the end.
    Whole,
}

#[derive(Deserialize)]
struct Complaint {
    message: String,
}

impl Engine {
    /// The engine at an address, or, without one, the engine of this host. Nothing is asked of it yet.
    pub fn new(named: Option<String>) -> Self {
        Self { named, connected: Arc::default() }
    }

    /// Reads an answer whole. `path` such as `/containers/json?all=1`.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, EngineError> {
        let reading = async {
            let response = self.open(path).await?;
            let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
            let body = body.map_err(|error| EngineError::Unexpected(error.to_string()))?.to_bytes();
            serde_json::from_slice(&body).map_err(|error| EngineError::Unexpected(error.to_string()))
        };
        tokio::time::timeout(ANSWER_WITHIN, reading).await.unwrap_or(Err(EngineError::Silent))
    }

    /// Opens an answer that may go on for ever. An engine that was replaced by another since the last time is asked once
    /// more.
    pub async fn open(&self, path: &str) -> Result<Response<Incoming>, EngineError> {
        let was_known = self.known().is_some();
        match self.open_once(path).await {
            Err(error) if self.forget_if_away(&error) && was_known => self.open_once(path).await,
            other => other,
        }
    }

    async fn open_once(&self, path: &str) -> Result<Response<Incoming>, EngineError> {
        let connected = self.connect().await?;
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("/{}{path}", connected.version))
            .body(Empty::<Bytes>::new())
            .map_err(|error| EngineError::Unexpected(error.to_string()))?;
        let answer = transport::send(&connected.socket, request);
        let response = tokio::time::timeout(ANSWER_WITHIN, answer).await.map_err(|_| EngineError::Silent)??;
        if response.status().is_success() { Ok(response) } else { Err(complaint(response).await) }
    }

    /// How it is asked for the end of a log.
    pub async fn tails(&self) -> Result<Tails, EngineError> {
        Ok(match self.kind().await? {
            Kind::Docker => Tails::Counted,
            Kind::Podman => Tails::Whole,
        })
    }

    pub async fn kind(&self) -> Result<Kind, EngineError> {
        self.connect().await.map(|connected| connected.kind)
    }

    /// Has the engine do something, within `limit`.
    pub async fn act<F>(&self, limit: Duration, act: impl Fn(bollard::Docker) -> F) -> Result<(), EngineError>
    where
        F: Future<Output = Result<(), bollard::errors::Error>>,
    {
        let connected = self.connect().await?;
        // Not again: what was done once need not be right a second time.
        let done = tokio::time::timeout(limit, act(connected.verbs)).await.map_err(|_| EngineError::Silent)?;
        done.map_err(EngineError::from).inspect_err(|error| _ = self.forget_if_away(error))
    }

    fn known(&self) -> Option<Connected> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the error says that this is not the engine that answered before.
    fn forget_if_away(&self, error: &EngineError) -> bool {
        let is_other = matches!(error, EngineError::Refused { status: 400, message } if message.contains("version"));
        let is_away = error.is_absence() || is_other;
        if is_away {
            *self.connected.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        is_away
    }

    async fn connect(&self) -> Result<Connected, EngineError> {
        if let Some(connected) = self.known() {
            return Ok(connected);
        }
        let socket = address::find(self.named.as_deref())?;
        let connecting = async { Ok::<_, EngineError>((negotiate(socket.clone()).await?, kind(&socket).await?)) };
        let connecting = tokio::time::timeout(ANSWER_WITHIN, connecting).await;
        let (verbs, kind) = connecting.map_err(|_| EngineError::Silent)??;
        let version = verbs.client_version();
        let version = format!("v{}.{}", version.major_version, version.minor_version);
        tracing::debug!(socket = %socket.display(), version, "found the container engine");
        let connected = Connected { socket, version, verbs, kind };
        *self.connected.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected.clone());
        Ok(connected)
    }
}

async fn negotiate(socket: PathBuf) -> Result<bollard::Docker, EngineError> {
    let transport = move |request: BollardRequest| {
        let socket = socket.clone();
        async move { transport::send(&socket, request).await.map_err(to_bollard) }
    };
    let docker = bollard::Docker::connect_with_custom_transport(
        transport,
        Some("http://engine"),
        LONGEST_SECONDS,
        API_DEFAULT_VERSION,
    )?;
    Ok(docker.negotiate_version().await?)
}

/// Only Podman says which version of its own API it has.
async fn kind(socket: &Path) -> Result<Kind, EngineError> {
    let request = Request::get("/_ping").body(Empty::<Bytes>::new());
    let request = request.map_err(|error| EngineError::Unexpected(error.to_string()))?;
    let response = transport::send(socket, request).await?;
    let is_podman = response.headers().contains_key("libpod-api-version");
    Ok(if is_podman { Kind::Podman } else { Kind::Docker })
}

fn to_bollard(error: EngineError) -> bollard::errors::Error {
    match error {
        EngineError::Unreachable(err) => err.into(),
        EngineError::Broken(err) => err.into(),
        other => std::io::Error::other(other.to_string()).into(),
    }
}

async fn complaint(response: Response<Incoming>) -> EngineError {
    let status = response.status().as_u16();
    let body =
        tokio::time::timeout(ANSWER_WITHIN, Limited::new(response.into_body(), MOST_ERROR_BYTES).collect()).await;
    let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
    let message = serde_json::from_slice::<Complaint>(&body).map(|complaint| complaint.message);
    EngineError::of_status(status, &message.unwrap_or_else(|_| String::from_utf8_lossy(&body).trim().to_owned()))
}
