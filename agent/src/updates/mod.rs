//! New builds of the agent, which it takes only with a signature by a key that the machine's owner has pinned.
//!
//! The path of a build: the service offers a signed release → [`build`] decides whether it is genuine and newer → [`download`]
//! fetches the program → the agent waits until no command runs and no terminal is open, and ends with [`Exit::Update`] →
//! [`program`] starts the new build as a child ([`trial`]), which connects with the server's own key and ends with
//! [`Exit::Works`] → the build is recorded as taken and replaces this process. A build that does not work is recorded as well,
//! and the old one continues.
//!
//! The installed program stays as it is. At each of its starts [`launch`] verifies what was taken, and runs that in its place,
//! through the very descriptor whose content it has hashed. Whatever is wrong there, the installed program runs itself.
//!
//! [`Exit::Update`]: crate::Exit::Update
//! [`Exit::Works`]: crate::Exit::Works

mod build;
mod download;
mod launch;
mod pauses;
pub mod program;
mod record;
mod release_signers;
mod running;
#[cfg(test)]
mod tests;
mod trial;
mod version;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{Event, FailedUpdate, RequestError, UpdateOffer, UpdateTaken};
use signalbox_signing::Signers;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::config::{Config, Timing};
use crate::connection::Endpoint;
use crate::controls::Controls;
use crate::events::Events;
use crate::state::Usage;
pub use build::Build;
use build::Refusal;
use pauses::Pauses;
use record::FailedBuild;
pub use release_signers::{ReleaseSignersError, check, file_of, read};
pub use running::{Role, Running};
use version::Version;

/// The kind of an event about a build that could not be fetched.
const EVENT_KIND: &str = "update";

/// What an agent knows of builds when it starts.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The pinned keys. Without them no build is taken.
    pub signers: Option<Arc<Signers>>,
    /// The build that runs.
    pub running: Running,
    /// Builds that did not work here.
    failed: Vec<FailedBuild>,
    /// What the start of the program still does in the state directory, on a disk that hangs.
    earlier: Usage,
    pauses: Pauses,
}

impl Settings {
    /// With these pinned keys.
    pub fn with(signers: Option<Signers>) -> Self {
        Self { signers: signers.map(Arc::new), ..Self::default() }
    }

    /// The last build that was given up, while an older one runs.
    pub fn failed_update(&self) -> Option<Box<FailedUpdate>> {
        let is_ahead = |failed: &&FailedBuild| {
            failed.version.parse::<Version>().is_ok_and(|version| version > self.running.version)
        };
        let is_given_up = |failed: &&FailedBuild| failed.is_given_up();
        let failed = self.failed.iter().rev().filter(is_given_up).find(is_ahead)?;
        Some(Box::new(FailedUpdate { version: failed.version.clone(), reason: failed.reason.clone() }))
    }
}

/// Why the agent of a process ends although nobody stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// To try this build.
    Update(Box<Build>),
    /// It is itself on trial, and works.
    Works,
}

/// Takes offers, and watches the build that is on trial; cheap to clone. An agent's successive connections share it.
#[derive(Clone)]
pub struct Updates(Arc<Inner>);

struct Inner {
    settings: Settings,
    /// The directory of builds.
    directory: Option<PathBuf>,
    timing: Timing,
    /// The build that is being fetched, or that waits for a quiet moment.
    current: Mutex<Option<Build>>,
    offered: Notify,
    /// Since when the service accepts the agent.
    connected: watch::Sender<Option<Instant>>,
    ending: Mutex<Option<Ending>>,
}

/// While it exists, the agent is connected.
pub struct Connected(Updates);

impl Drop for Connected {
    fn drop(&mut self) {
        let Updates(inner) = &self.0;
        inner.connected.send_replace(None);
    }
}

impl Updates {
    pub fn new(config: &Config) -> Self {
        Self(Arc::new(Inner {
            settings: config.updates.clone(),
            directory: config.state_dir.as_deref().map(record::directory),
            timing: config.timing.clone(),
            current: Mutex::default(),
            offered: Notify::new(),
            connected: watch::Sender::new(None),
            ending: Mutex::default(),
        }))
    }

    /// Decides about an offer. One that is taken is fetched later.
    pub fn offer(&self, params: Value, by: Option<String>) -> Result<Value, RequestError> {
        let by = by.unwrap_or_default();
        let taken = self.take(params, &by).map_err(|refusal| {
            tracing::warn!(by, reason = %refusal, "refused a build");
            RequestError::from(refusal)
        })?;
        serde_json::to_value(taken).map_err(|error| RequestError::new("agent_error", &error.to_string()))
    }

    fn take(&self, params: Value, by: &str) -> Result<UpdateTaken, Refusal> {
        let Self(inner) = self;
        let Settings { signers, running, failed, pauses, .. } = &inner.settings;
        let (Some(signers), Some(_)) = (signers, &inner.directory) else { return Err(Refusal::UpdatesOff) };
        let offer: UpdateOffer =
            serde_json::from_value(params).map_err(|error| Refusal::Malformed(error.to_string()))?;
        let build = Build::verify(offer, signers, Timestamp::now())?;
        build.expect_progress(&running.version, failed)?;
        if running.role == Role::Trial {
            return Err(Refusal::Busy);
        }
        if pauses.has(&build.sha256) {
            return Err(Refusal::Paused);
        }
        let taken = UpdateTaken { version: build.version.to_string() };
        let mut current = inner.current.lock();
        match current.as_ref() {
            Some(other) if (&other.version, &other.sha256) != (&build.version, &build.sha256) => Err(Refusal::Busy),
            Some(_) => Ok(taken),
            None => {
                tracing::info!(by, version = taken.version, "takes a build that is signed, and fetches it");
                *current = Some(build);
                drop(current);
                inner.offered.notify_one();
                Ok(taken)
            }
        }
    }

    /// Records that the service has accepted the agent.
    pub fn connected(&self) -> Connected {
        let Self(inner) = self;
        inner.connected.send_replace(Some(Instant::now()));
        Connected(self.clone())
    }

    /// Resolves when this process is to end: its build was found to work, or another one is to be tried.
    pub async fn ending(&self, endpoint: Endpoint<'_>, controls: &Controls, events: &Events) {
        let Self(inner) = self;
        let ending = match inner.settings.running.role {
            Role::Trial => {
                self.connected_for(inner.timing.trial_settle).await;
                Ending::Works
            }
            Role::Installed => self.prepared(endpoint, controls, events).await,
            Role::Taken => tokio::select! {
                ending = self.prepared(endpoint, controls, events) => ending,
                ending = self.noting_success() => ending,
            },
        };
        *inner.ending.lock() = Some(ending);
    }

    /// Why the process ends, if [`Updates::ending`] has resolved.
    pub fn chosen(&self) -> Option<Ending> {
        self.0.ending.lock().take()
    }

    /// Records once that this build works. Does not resolve.
    async fn noting_success(&self) -> Ending {
        let Self(inner) = self;
        // One that ends soon after it has connected does not work.
        self.connected_for(inner.timing.stable).await;
        if let Some(directory) = inner.directory.clone() {
            // Nobody waits for the disk: at worst the build counts as one that did not connect. Not one of the threads that look
            // names up, because the disk may hang.
            _ = thread::Builder::new().name("updates".to_owned()).spawn(move || launch::forget_starts(&directory));
        }
        std::future::pending().await
    }

    /// Waits until the service has accepted this build for this long without a break.
    async fn connected_for(&self, length: Duration) {
        let Self(inner) = self;
        let mut connected = inner.connected.subscribe();
        loop {
            let since = *connected.borrow_and_update();
            let stayed = async {
                match since {
                    Some(since) => sleep_until(since + length).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stayed => return,
                _ = connected.changed() => {}
            }
        }
    }

    /// Waits for an offer, fetches the build, and waits for a moment at which nobody uses the agent.
    async fn prepared(&self, endpoint: Endpoint<'_>, controls: &Controls, events: &Events) -> Ending {
        let Self(inner) = self;
        loop {
            inner.offered.notified().await;
            let (build, directory) = (inner.current.lock().clone(), inner.directory.clone());
            let (Some(build), Some(directory)) = (build, directory) else { continue };
            match download::fetch(endpoint, &build, &directory).await {
                Ok(()) => {
                    tracing::info!(version = %build.version, "fetched a build, and tries it when nothing runs");
                    // A service that is away would make a good build fail.
                    while !controls.are_idle() || inner.connected.borrow().is_none() {
                        sleep(inner.timing.update_idle).await;
                    }
                    return Ending::Update(Box::new(build));
                }
                Err(error) => {
                    tracing::warn!(version = %build.version, %error, "could not fetch a build");
                    events.tell(unfetched(&build, &error.to_string()));
                    inner.settings.pauses.begin(
                        &build.sha256,
                        inner.timing.update_pause,
                        inner.timing.update_pause_most,
                    );
                    *inner.current.lock() = None;
                }
            }
        }
    }
}

fn unfetched(build: &Build, reason: &str) -> Event {
    let fields = [("version", build.version.to_string()), ("reason", reason.to_owned())];
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
    Event { kind: EVENT_KIND.to_owned(), fields }
}
