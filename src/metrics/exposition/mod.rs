//! Writes the latest samples of servers in Prometheus' text exposition format, version 0.0.4.
//!
//! Pure: targets in, text out. The format requires all samples of a family together, for all servers. So the text is
//! written family by family over all targets, and in chunks: the text of a whole fleet is never in memory.

mod families;
mod open;

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::fleet::Snapshot;
use families::{FAMILIES, Kind};
use open::OpenFamily;

/// A chunk is sent when it has this length: few chunks for one server, and little memory for many.
const CHUNK_BYTES: usize = 32 * 1024;

/// A connected server whose latest sample is older than this does not count as up. The network or disks may delay an agent
/// for some seconds, and after a minute of silence the service closes the connection anyway.
const FRESH_MS: i64 = 60_000;

/// How many samples of an agent with a longer interval may be missing before its server does not count as up.
const FRESH_INTERVALS: f64 = 3.0;

/// The description of a server, without its samples.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub server_id: Uuid,
    pub name: &'a str,
    /// The last agent's description of itself, as stored: JSON.
    pub agent: Option<&'a str>,
    /// How far its clock is ahead now, if a newer value than the description's is known.
    pub clock_offset_ms: Option<i64>,
    pub is_online: bool,
    /// When its agent was last seen; `None` if it never was.
    pub last_seen_at: Option<Timestamp>,
}

/// A server to write.
#[derive(Debug, Clone)]
pub struct Target {
    /// The labels of each of its samples, escaped: `instance="web-1",server_id="..."`.
    labels: String,
    agent: Agent,
    latest: Option<Arc<Snapshot>>,
    last_seen_at: Option<Timestamp>,
    is_up: bool,
}

/// The used part of an agent's description.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Agent {
    hostname: String,
    os: String,
    kernel: String,
    arch: String,
    clock_offset_ms: Option<i64>,
    sample_interval_seconds: Option<f64>,
}

impl Target {
    pub fn new(server: Described<'_>, latest: Option<Arc<Snapshot>>, now: Timestamp) -> Self {
        // If the description cannot be read, its metrics are still useful.
        let mut agent: Agent = server.agent.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        agent.clock_offset_ms = server.clock_offset_ms.or(agent.clock_offset_ms);
        let is_fresh = latest.as_ref().is_some_and(|latest| agent.is_fresh(latest.sample.timestamp, now));
        let mut labels = String::new();
        write_labels(&mut labels, &[("instance", server.name), ("server_id", &server.server_id.to_string())]);
        let last_seen_at = server.last_seen_at.filter(|_| server.agent.is_some() && !server.is_online);
        Self { labels, agent, latest, last_seen_at, is_up: server.is_online && is_fresh }
    }

    /// Returns when the latest sample was taken; without one, when the disconnected agent was last seen.
    fn last_sample_at(&self) -> Option<Timestamp> {
        self.latest.as_ref().map(|latest| latest.sample.timestamp).or(self.last_seen_at)
    }

    /// Returns the latest sample; `None` if it is not fresh.
    fn sample(&self) -> Option<&Sample> {
        self.snapshot().map(|snapshot| &snapshot.sample)
    }

    /// Returns the latest sample with its open series; `None` if it is not fresh.
    fn snapshot(&self) -> Option<&Snapshot> {
        self.latest.as_deref().filter(|_| self.is_up)
    }
}

impl Agent {
    /// Returns whether a sample taken at `at`, by the agent's clock, is current at `now`, by ours.
    fn is_fresh(&self, at: Timestamp, now: Timestamp) -> bool {
        let slow_ms = self.sample_interval_seconds.unwrap_or_default() * FRESH_INTERVALS * 1000.0;
        let limit_ms = FRESH_MS.max(slow_ms as i64);
        // The known offset may be a moment old, or some seconds if it is another instance's.
        let is_near = |offset_ms: i64| now.plus_millis(offset_ms).millis_since(at).abs() <= limit_ms;
        is_near(0) || self.clock_offset_ms.is_some_and(is_near)
    }
}

/// The text, as an iterator over chunks.
#[derive(Debug)]
pub struct Exposition {
    targets: Vec<Target>,
    open: Vec<OpenFamily>,
    /// The position of the next chunk: a family, and in it a target or, for open series, a sample.
    family: usize,
    target: usize,
    has_head: bool,
}

impl Exposition {
    /// Writes the targets in their order, each of a different server.
    pub fn new(targets: Vec<Target>) -> Self {
        let open = open::families(&targets);
        Self { targets, open, family: 0, target: 0, has_head: false }
    }

    /// Returns the server and the name from which each open family takes its help text.
    pub fn described_by(&self) -> impl Iterator<Item = &(Uuid, String)> {
        self.open.iter().map(OpenFamily::described_by)
    }

    /// Sets the help texts of open families, by the keys of [`Self::described_by`].
    pub fn describe(&mut self, help: &HashMap<(Uuid, String), String>) {
        for family in &mut self.open {
            if let Some(help) = help.get(family.described_by()) {
                family.set_help(help);
            }
        }
    }
}

impl Iterator for Exposition {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut text = String::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 4);
        while text.len() < CHUNK_BYTES
            && let Some(family) = FAMILIES.get(self.family)
        {
            if let Some(target) = self.targets.get(self.target) {
                let has_head = &mut self.has_head;
                let (name, kind, help, labels) = (family.name, family.kind, family.help, target.labels.as_str());
                family.write(target, &mut Lines { text: &mut text, name, kind, help, labels, has_head });
                self.target += 1;
            } else {
                (self.family, self.target, self.has_head) = (self.family + 1, 0, false);
            }
        }
        while text.len() < CHUNK_BYTES
            && let Some(family) = self.open.get(self.family.saturating_sub(FAMILIES.len()))
        {
            if family.write(&self.targets, self.target, &mut text) {
                self.target += 1;
            } else {
                (self.family, self.target) = (self.family + 1, 0);
            }
        }
        (!text.is_empty()).then(|| text.into())
    }
}

/// Writes one target's samples of one family.
struct Lines<'a> {
    text: &'a mut String,
    name: &'a str,
    kind: Kind,
    /// Already escaped.
    help: &'a str,
    labels: &'a str,
    has_head: &'a mut bool,
}

impl Lines<'_> {
    /// Writes a sample with additional labels.
    fn add(&mut self, more: &[(&str, &str)], value: impl Display) {
        let Self { name, kind, help, .. } = self;
        if !std::mem::replace(self.has_head, true) {
            // A family without samples is left out completely.
            _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        _ = write!(self.text, "{name}{{{}", self.labels);
        if !more.is_empty() {
            self.text.push(',');
            write_labels(self.text, more);
        }
        _ = writeln!(self.text, "}} {value}");
    }

    /// Writes the only sample of a target, if it has one.
    fn add_one(&mut self, value: Option<impl Display>) {
        self.add_some(&[], value);
    }

    /// Writes a sample with additional labels, if there is one.
    fn add_some(&mut self, more: &[(&str, &str)], value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(more, value);
        }
    }
}

/// Writes `name="value"` pairs with commas between them.
fn write_labels(text: &mut String, labels: &[(&str, &str)]) {
    for (position, (name, value)) in labels.iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        escape_into(text, value);
        text.push('"');
    }
}

/// Escapes the three characters that the format requires in the values of labels.
fn escape_into(text: &mut String, value: &str) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
