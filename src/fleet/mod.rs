//! What is known of every server at this moment. Read without asking anyone.
//!
//! Of several instances each knows this only of the servers whose sessions it holds, and forgets it with the session; of
//! others the database tells. What others tell besides, of servers that somebody watches here, lies [`abroad`].

pub mod abroad;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dashmap::DashMap;
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::metrics::network::{Before, Traffic};
use abroad::{Abroad, Heard};

/// A sample and the server it belongs to, with its JSON written at most once.
#[derive(Debug)]
pub struct Snapshot {
    pub server_id: Uuid,
    pub sample: Sample,
    json: OnceLock<Bytes>,
}

impl Snapshot {
    pub fn new(server_id: Uuid, sample: Sample) -> Self {
        Self { server_id, sample, json: OnceLock::new() }
    }

    /// The API's metrics snapshot: the sample with `server_id` in front.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| snapshot_json(self.server_id, &self.sample)).clone()
    }
}

/// Writes a metrics snapshot without building a map: the sample's own object with one more field.
pub fn snapshot_json(server_id: Uuid, sample: &Sample) -> Bytes {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(b"{\"server_id\":\"");
    json.extend_from_slice(server_id.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    json.extend_from_slice(b"\",");
    let start = json.len();
    match serde_json::to_writer(&mut json, sample) {
        // The sample's opening brace, which became a field's beginning.
        Ok(()) => _ = json.remove(start),
        Err(error) => tracing::error!(%error, "a sample could not be written as JSON"),
    }
    Bytes::from(json)
}

/// The newest of every server, behind cheap clones.
#[derive(Clone, Default)]
pub struct Fleet {
    servers: Arc<DashMap<Uuid, Server>>,
    /// What other instances tell; none where there are none.
    abroad: Option<Abroad>,
}

#[derive(Debug, Clone, Default)]
struct Server {
    session_id: Option<Uuid>,
    owner_id: Uuid,
    newest: Newest,
    last_seen_at: Option<Timestamp>,
    acknowledged: Acknowledged,
    /// It was looked for the latest sample among what is kept, and there is none.
    lacks_samples: bool,
}

/// The latest sample, and what it tells together with the one before it.
#[derive(Debug, Clone, Default)]
struct Newest {
    latest: Option<Arc<Snapshot>>,
    traffic: Traffic,
    /// How far apart those two are.
    elapsed_ms: i64,
}

/// The last batch of an agent that is durable. A number means something only for the boot and start that counted it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    pub boot_id: String,
    pub seq: u64,
}

/// Whether and when a server was seen by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    pub status: ServerStatus,
    pub last_seen_at: Option<Timestamp>,
}

/// What is known of a server at one moment.
#[derive(Debug, Clone, Default)]
pub struct Glance {
    /// None when no agent has connected since the process started; of several instances, when none is connected here.
    pub presence: Option<Presence>,
    /// What other instances told of its agent last.
    pub heard: Option<Heard>,
    /// The agent's last sign of life that they told.
    pub heard_of_at: Option<Timestamp>,
    pub latest: Option<Arc<Snapshot>>,
    /// Between the latest sample and the one before it.
    pub traffic: Traffic,
}

impl Server {
    fn presence(&self) -> Option<Presence> {
        let last_seen_at = self.last_seen_at?;
        let status = if self.session_id.is_some() { ServerStatus::Online } else { ServerStatus::Offline };
        Some(Presence { status, last_seen_at: Some(last_seen_at) })
    }
}

impl Newest {
    /// What a sample tells together with the latest so far, and how far apart the two are. None when it is the same once
    /// more.
    fn tells(self, snapshot: &Snapshot) -> Option<(Traffic, i64)> {
        let Some(latest) = self.latest else { return Some((Traffic::default(), 0)) };
        let (now, before) = (&snapshot.sample, Before { sample: &latest.sample, elapsed_ms: self.elapsed_ms });
        let elapsed_ms = now.timestamp.millis_since(latest.sample.timestamp);
        (elapsed_ms != 0).then(|| (before.traffic(now), elapsed_ms))
    }

    /// Takes a sample as the latest, unless a newer one is there. Gives whether it is the latest now.
    fn take(&mut self, snapshot: Arc<Snapshot>, told: Option<(Traffic, i64)>) -> bool {
        let is_newer = self.latest.as_ref().is_none_or(|old| old.sample.timestamp <= snapshot.sample.timestamp);
        if is_newer {
            if let Some((traffic, elapsed_ms)) = told {
                (self.traffic, self.elapsed_ms) = (traffic, elapsed_ms);
            }
            self.latest = Some(snapshot);
        }
        is_newer
    }
}

impl Fleet {
    /// That of one instance of several.
    pub fn among_others() -> Self {
        Self { servers: Arc::default(), abroad: Some(Abroad::default()) }
    }

    /// What other instances tell; none where there are none.
    pub fn abroad(&self) -> Option<&Abroad> {
        self.abroad.as_ref()
    }

    /// A session took hold of a server.
    pub fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid, now: Timestamp) {
        let mut server = self.servers.entry(server_id).or_default();
        (server.session_id, server.owner_id) = (Some(session_id), owner_id);
        server.last_seen_at = Some(now);
    }

    /// A session took a server over from another, and is not known to be sound yet.
    pub fn hand_over(&self, server_id: Uuid, from: Uuid, to: Uuid) {
        if let Some(mut server) = self.servers.get_mut(&server_id)
            && server.session_id == Some(from)
        {
            server.session_id = Some(to);
        }
    }

    /// A session let go of a server. Gives whether it was the one that held it. Where there are other instances the server
    /// may be with one of them next, so nothing that is known of it is known for long: it is forgotten.
    pub fn offline(&self, server_id: Uuid, session_id: Uuid) -> bool {
        if let Some(abroad) = &self.abroad {
            let left = self.servers.remove_if(&server_id, |_, server| server.session_id == Some(session_id));
            let Some((_, server)) = left else { return false };
            abroad.inherit(server_id, server);
            return true;
        }
        let Some(mut server) = self.servers.get_mut(&server_id) else { return false };
        let held = server.session_id == Some(session_id);
        if held {
            server.session_id = None;
        }
        held
    }

    /// The agent said something.
    pub fn seen(&self, server_id: Uuid, now: Timestamp) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            server.last_seen_at = Some(now);
        }
    }

    /// Takes a sample as the latest, unless a newer one is there. Gives whether it is the latest now. Where there are other
    /// instances, only that of a server whose session is here.
    pub fn record(&self, snapshot: Arc<Snapshot>) -> bool {
        // Before anything is locked: a sample may have a thousand interfaces.
        let before = self.servers.get(&snapshot.server_id).map(|server| server.newest.clone());
        let told = before.unwrap_or_default().tells(&snapshot);
        if self.abroad.is_some() {
            let server = self.servers.get_mut(&snapshot.server_id).filter(|server| server.session_id.is_some());
            return server.is_some_and(|mut server| server.newest.take(snapshot, told));
        }
        self.servers.entry(snapshot.server_id).or_default().newest.take(snapshot, told)
    }

    pub fn latest(&self, server_id: Uuid) -> Option<Arc<Snapshot>> {
        self.servers.get(&server_id)?.newest.latest.clone()
    }

    /// Nothing is kept of a server.
    pub fn lacks_samples(&self, server_id: Uuid) {
        // Somewhere else it may send one at any time.
        if self.abroad.is_none() {
            self.servers.entry(server_id).or_default().lacks_samples = true;
        }
    }

    /// Whether it is known that nothing is kept of a server that has sent nothing since.
    pub fn is_known_to_lack_samples(&self, server_id: Uuid) -> bool {
        self.servers.get(&server_id).is_some_and(|server| server.lacks_samples && server.newest.latest.is_none())
    }

    /// What this process has seen of a server; none when no agent has connected since it started, and of several instances
    /// when none is connected here.
    pub fn presence(&self, server_id: Uuid) -> Option<Presence> {
        self.servers.get(&server_id)?.presence()
    }

    /// Whether a session of this process holds a server.
    pub fn is_here(&self, server_id: Uuid) -> bool {
        self.servers.get(&server_id).is_some_and(|server| server.session_id.is_some())
    }

    /// All that is known of a server.
    pub fn glance(&self, server_id: Uuid) -> Glance {
        let here = self.servers.get(&server_id).map(|server| (server.presence(), server.newest.clone()));
        let (presence, mut newest) = here.unwrap_or_default();
        let told = self.abroad.as_ref().map(|abroad| abroad.glance(server_id)).unwrap_or_default();
        if newest.latest.is_none() {
            // One that has come here a moment ago has sent nothing yet.
            newest = told.newest;
        }
        let (heard, heard_of_at) = (told.heard, told.last_seen_at);
        Glance { presence, heard, heard_of_at, latest: newest.latest, traffic: newest.traffic }
    }

    /// A batch became durable.
    pub fn acknowledge(&self, server_id: Uuid, acknowledged: Acknowledged) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            server.acknowledged = acknowledged;
        }
    }

    /// The last durable batch of the agent that runs since this boot; 0 when none is remembered.
    pub fn acknowledged(&self, server_id: Uuid, boot_id: &str) -> u64 {
        let Some(server) = self.servers.get(&server_id) else { return 0 };
        if server.acknowledged.boot_id == boot_id { server.acknowledged.seq } else { 0 }
    }

    /// Every server that is online, and when it was last seen.
    pub fn online_servers(&self) -> Vec<(Uuid, Timestamp)> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some());
        online.filter_map(|entry| Some((*entry.key(), entry.last_seen_at?))).collect()
    }

    /// The servers of an owner that are online here, and the latest of each.
    pub fn of_owner(&self, owner_id: Uuid) -> Vec<(Uuid, Option<Arc<Snapshot>>)> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some() && entry.owner_id == owner_id);
        online.map(|entry| (*entry.key(), entry.newest.latest.clone())).collect()
    }

    /// Forgets a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
        if let Some(abroad) = &self.abroad {
            abroad.forget_server(server_id);
        }
    }
}

#[cfg(test)]
mod tests;
