//! The logs of this machine, as far as its owner permits the service to read them.
//!
//! A log has a [`Source`]: the system's (the journal, or the syslog file where there is none), a file below a path that the
//! policy names, or a container. A followed source puts lines into a short channel, from which [`batch`] sends them as far as
//! the service grants credit. Without credit nothing is taken from the channel and the source is read no further, so that a
//! busy log waits where it is stored. [`query`] searches instead of following.
//!
//! Files are read on threads of their own: a mount that hangs holds one of them and nothing else.

mod backwards;
mod batch;
mod container;
mod error;
mod follow;
mod journal;
mod lines;
mod location;
mod query;
mod search;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use signalbox_protocol::agent::{LogLine, LogsStart, RequestError};
use tokio::sync::{Semaphore, mpsc};

use crate::config::Roots;
use crate::docker::Docker;
use crate::policy::{DockerAccess, Policy, Switch};
use crate::streams::StreamPort;
use error::LogError;
use journal::Journal;
use location::Location;

/// Lines that wait between a source and the connection. A line has at most 64 KiB, so this is at worst 2 MiB.
const WAITING: usize = 32;
/// Threads that read files: each stream and each query has one, and some may hang.
const MAX_THREADS: usize = 48;
/// The number of first lines where the service names none, and the most that it may request.
const TAIL: u32 = 100;
const MAX_TAIL: u32 = 10_000;

/// What a source yields.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    Line(LogLine),
    /// This many lines were lost here.
    Dropped(u64),
}

/// Where lines come from.
enum Source {
    Journal(Journal),
    File(Location),
    Container(Docker, String),
}

impl Source {
    /// Sends the last lines, then each new one, until nobody receives them any more.
    async fn follow(self, tail: u32, threads: Arc<Semaphore>, items: mpsc::Sender<Item>) -> Result<(), RequestError> {
        match self {
            Self::Journal(journal) => Ok(journal.follow(tail, items).await?),
            Self::File(place) => Ok(follow::follow(place, tail, threads, items).await?),
            Self::Container(docker, id) => container::follow(docker, id, tail, items).await,
        }
    }
}

/// What may be read on this machine; cheap to clone.
#[derive(Clone)]
pub struct Logs {
    policy: Arc<Policy>,
    docker: Docker,
    roots: Arc<Roots>,
    threads: Arc<Semaphore>,
}

impl Logs {
    pub fn new(policy: Policy, docker: Docker, roots: Roots) -> Self {
        let threads = Arc::new(Semaphore::new(MAX_THREADS));
        Self { policy: Arc::new(policy), docker, roots: Arc::new(roots), threads }
    }

    /// Streams a log while the service wants it.
    pub async fn stream(self, start: LogsStart, port: StreamPort) -> Result<Value, RequestError> {
        let LogsStart { stream_id, source, container_id, path, tail, credit, by } = start;
        let found = self.find(&source, path.as_deref(), container_id.as_deref()).await;
        // Names of files and people are quoted, because they may contain anything, even line breaks.
        let (path, container_id, by) = (path.as_deref(), container_id.as_deref(), by.as_deref());
        match &found {
            Ok(_) => tracing::info!(stream.id = %stream_id, source, path, container_id, by, "a log is read"),
            Err(error) => {
                tracing::warn!(stream.id = %stream_id, source, path, container_id, by, %error, "a log was refused");
            }
        }
        let (items, waiting) = mpsc::channel(WAITING);
        let followed = found?.follow(tail.unwrap_or(TAIL).min(MAX_TAIL), self.threads, items);
        // What was read before a source broke is sent before the error; a connection that ended ends the source.
        let (outcome, ()) = tokio::try_join!(async { Ok(followed.await) }, batch::send(waiting, &port, credit))?;
        outcome?;
        Ok(json!({}))
    }

    /// Searches a log, from its newest line back.
    pub async fn query(self, params: Value, by: Option<String>) -> Result<Value, RequestError> {
        let query = query::Query::parse(params)?;
        let source = self.find(&query.source, query.path.as_deref(), query.container_id.as_deref()).await;
        let (source_name, path, container_id) =
            (query.source.as_str(), query.path.as_deref(), query.container_id.as_deref());
        let by = by.as_deref();
        match &source {
            Ok(_) => tracing::info!(source = source_name, path, container_id, by, "a log is searched"),
            Err(error) => {
                tracing::warn!(source = source_name, path, container_id, by, %error, "a search of a log was refused");
            }
        }
        let found = match source? {
            Source::Journal(journal) => query::in_journal(&journal, &query, self.threads).await?,
            Source::File(place) => query::in_file(place, query, self.threads).await?,
            Source::Container(docker, id) => query::in_container(&docker, id, &query, self.threads).await?,
        };
        serde_json::to_value(found).map_err(|error| RequestError::new("agent_error", &error.to_string()))
    }

    /// The only place that decides whether a log may be read. Containers' logs follow the permission for containers.
    async fn find(&self, source: &str, path: Option<&str>, container_id: Option<&str>) -> Result<Source, LogError> {
        if source != "container" && self.policy.logs == Switch::Off {
            return Err(LogError::Off);
        }
        match (source, path, container_id) {
            ("system", _, _) => self.system().await,
            ("file", Some(path), _) => Location::find(path, &self.policy.log_paths).map(Source::File),
            ("file", None, _) => Err(LogError::Missing("path")),
            ("container", _, None) => Err(LogError::Missing("container_id")),
            ("container", _, Some(_)) if self.policy.docker.grade == DockerAccess::Off => Err(LogError::DockerOff),
            ("container", _, Some(id)) => Ok(Source::Container(self.docker.clone(), id.to_owned())),
            (other, _, _) => Err(LogError::Unsupported(other.to_owned())),
        }
    }

    /// Looks for the system's log on a thread, because a directory may hang.
    async fn system(&self) -> Result<Source, LogError> {
        let permit = self.threads.clone().try_acquire_owned().map_err(|_| LogError::Busy)?;
        let roots = self.roots.clone();
        follow::on_a_thread(permit, move || system_log(&roots)).await
    }
}

fn system_log(roots: &Roots) -> Result<Source, LogError> {
    let syslog = ["log/syslog", "log/messages"].map(|name| roots.var.join(name));
    let file = || syslog.into_iter().find(|path| path.is_file()).map(|path| Source::File(Location::Named(path)));
    journal(roots).map(Source::Journal).or_else(file).ok_or(LogError::NoSystemLog)
}

/// The journal, where it exists with a program to read it.
fn journal(roots: &Roots) -> Option<Journal> {
    let program = roots.bin.join("journalctl");
    let directories = [roots.var.join("log/journal"), roots.run.join("log/journal")];
    let has_entries = |path: PathBuf| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    (program.is_file() && directories.into_iter().any(has_entries)).then_some(Journal { program })
}
