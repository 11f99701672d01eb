//! The latest samples of servers in Prometheus' text exposition format, version 0.0.4.
//!
//! Pure: targets in, text out. The format wants all samples of a family together, whatever server they are of. So the
//! text is made family by family over all targets, a chunk at a time: a whole fleet is never held as text.

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

/// A chunk is sent when it is as long as this: few chunks for one server, and little memory for many.
const CHUNK_BYTES: usize = 32 * 1024;

/// A connected server whose latest sample is older than this is not shown as alive. Network and disks may well hold up
/// an agent for some seconds, and after a minute of silence the service takes a peer for gone anyway.
const FRESH_MS: i64 = 60_000;

/// Samples that may fail to come until a slower agent is no longer shown as alive.
const FRESH_INTERVALS: f64 = 3.0;

/// What is known of a server besides its samples.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    pub server_id: Uuid,
    pub name: &'a str,
    /// What the last agent said of itself, as it is stored: JSON.
    pub agent: Option<&'a str>,
    /// How far its clock is ahead now, where that is known better.
    pub clock_offset_ms: Option<i64>,
    pub is_online: bool,
    /// When its agent was last heard of; none when it never was.
    pub last_seen_at: Option<Timestamp>,
}

/// A server to tell of.
#[derive(Debug, Clone)]
pub struct Target {
    /// The labels that each of its samples has, escaped: `instance="web-1",server_id="..."`.
    labels: String,
    agent: Agent,
    latest: Option<Arc<Snapshot>>,
    last_seen_at: Option<Timestamp>,
    is_up: bool,
}

/// What is used of an agent's description.
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
        // Without a readable description its metrics are still worth telling.
        let mut agent: Agent = server.agent.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
        agent.clock_offset_ms = server.clock_offset_ms.or(agent.clock_offset_ms);
        let is_fresh = latest.as_ref().is_some_and(|latest| agent.is_fresh(latest.sample.timestamp, now));
        let mut labels = String::new();
        write_labels(&mut labels, &[("instance", server.name), ("server_id", &server.server_id.to_string())]);
        let last_seen_at = server.last_seen_at.filter(|_| server.agent.is_some() && !server.is_online);
        Self { labels, agent, latest, last_seen_at, is_up: server.is_online && is_fresh }
    }

    /// When the latest sample was taken; of one whose agent is away, when that was last heard of.
    fn last_sample_at(&self) -> Option<Timestamp> {
        self.latest.as_ref().map(|latest| latest.sample.timestamp).or(self.last_seen_at)
    }

    /// The sample to tell; none when it says how the server was, not how it is.
    fn sample(&self) -> Option<&Sample> {
        self.snapshot().map(|snapshot| &snapshot.sample)
    }

    /// The same with its open series.
    fn snapshot(&self) -> Option<&Snapshot> {
        self.latest.as_deref().filter(|_| self.is_up)
    }
}

impl Agent {
    /// Whether a sample of that moment, by the agent's clock, tells how the server is now, by ours.
    fn is_fresh(&self, at: Timestamp, now: Timestamp) -> bool {
        let slow_ms = self.sample_interval_seconds.unwrap_or_default() * FRESH_INTERVALS * 1000.0;
        let limit_ms = FRESH_MS.max(slow_ms as i64);
        // How far off its clock is may be a moment old, and of another instance some seconds.
        let is_near = |offset_ms: i64| now.plus_millis(offset_ms).millis_since(at).abs() <= limit_ms;
        is_near(0) || self.clock_offset_ms.is_some_and(is_near)
    }
}

/// The text, a chunk at a time.
#[derive(Debug)]
pub struct Exposition {
    targets: Vec<Target>,
    open: Vec<OpenFamily>,
    /// Where the next chunk goes on: in a family at a target, or at a sample of an open one.
    family: usize,
    target: usize,
    has_head: bool,
}

impl Exposition {
    /// Tells of the targets in their order, each of a server of its own.
    pub fn new(targets: Vec<Target>) -> Self {
        let open = open::families(&targets);
        Self { targets, open, family: 0, target: 0, has_head: false }
    }

    /// Whose help open series have: servers and names.
    pub fn described_by(&self) -> impl Iterator<Item = &(Uuid, String)> {
        self.open.iter().map(OpenFamily::described_by)
    }

    /// Says what open series are, by what [`Self::described_by`] gives.
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

/// Writes samples that one target has of one family.
struct Lines<'a> {
    text: &'a mut String,
    name: &'a str,
    kind: Kind,
    /// Escaped.
    help: &'a str,
    labels: &'a str,
    has_head: &'a mut bool,
}

impl Lines<'_> {
    /// A sample with more labels than its target's.
    fn add(&mut self, more: &[(&str, &str)], value: impl Display) {
        let Self { name, kind, help, .. } = self;
        if !std::mem::replace(self.has_head, true) {
            // A family that nobody has samples of is not named at all.
            _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        _ = write!(self.text, "{name}{{{}", self.labels);
        if !more.is_empty() {
            self.text.push(',');
            write_labels(self.text, more);
        }
        _ = writeln!(self.text, "}} {value}");
    }

    /// The one sample of a target, if it has one.
    fn add_one(&mut self, value: Option<impl Display>) {
        self.add_some(&[], value);
    }

    /// A sample with more labels, if there is one.
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

/// The format escapes these three in the values of labels, and takes everything else as it is.
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
