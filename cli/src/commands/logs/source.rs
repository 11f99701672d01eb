//! A log of a server.

use serde_json::{Value, json};

use crate::api::types::{LogLine, Server};
use crate::commands::refused::{Action, explained};
use crate::error::Failure;
use crate::output::text::clean;

/// One log.
#[derive(Debug, Clone)]
pub struct Source {
    pub server: Server,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    System,
    Container(String),
    File(String),
}

impl Source {
    /// What the API calls it.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        match &self.kind {
            Kind::System => vec![("source", "system".to_owned())],
            Kind::Container(id) => vec![("source", "container".to_owned()), ("container_id", id.clone())],
            Kind::File(path) => vec![("source", "file".to_owned()), ("path", path.clone())],
        }
    }

    /// What stands before its lines.
    pub fn label(&self) -> String {
        let name = clean(&self.server.name);
        match &self.kind {
            Kind::System => name,
            Kind::Container(id) => format!("{name}/{}", clean(id)),
            Kind::File(path) => format!("{name}:{}", clean(path)),
        }
    }

    /// A line of it for programs.
    pub fn line(&self, line: &LogLine) -> Value {
        let (container, path) = match &self.kind {
            Kind::System => (None, None),
            Kind::Container(id) => (Some(id), None),
            Kind::File(path) => (None, Some(path)),
        };
        json!({"server": self.server.name, "server_id": self.server.id, "container": container, "path": path,
            "timestamp": line.timestamp, "stream": line.stream, "message": line.message})
    }

    pub fn explained(&self, failure: Failure, service: &str) -> Failure {
        let action = match &self.kind {
            Kind::System => Action::Log,
            Kind::Container(_) => Action::SeeContainers,
            Kind::File(path) => Action::LogFile(path),
        };
        explained(failure, &self.server, action, service, &[])
    }
}
