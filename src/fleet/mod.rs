//! What is known of every server at this moment. Read without asking anyone.
//!
//! Of several instances each knows this only of the servers whose sessions it holds, and forgets it with the session; of
//! others the database tells. What others tell besides, of servers that somebody watches here, lies [`abroad`]. Which of the
//! two it is, [`reach`] says.

pub mod abroad;
mod reach;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use signalbox_history::network::{Before, Traffic};
use signalbox_history::open::{Measured, Open};
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use abroad::{Abroad, Heard};
pub use reach::Kept;
use reach::{Reach, Servers, Whole};

/// A sample and the server it belongs to, with its JSON written at most once.
#[derive(Debug)]
pub struct Snapshot {
    pub server_id: Uuid,
    pub sample: Sample,
    pub open: Open,
    json: OnceLock<Bytes>,
}

impl Snapshot {
    /// Of a sample without open series.
    pub fn new(server_id: Uuid, sample: Sample) -> Self {
        Self::of(server_id, Measured { sample, open: Open::default() })
    }

    pub fn of(server_id: Uuid, Measured { sample, open }: Measured) -> Self {
        Self { server_id, sample, open, json: OnceLock::new() }
    }

    /// The API's metrics snapshot: the sample with `server_id` in front, and `extra` behind it where there are open series.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| snapshot_json(self.server_id, &self.sample, &self.open)).clone()
    }
}

/// Writes a metrics snapshot without building a map: the sample's own object with one more field.
pub fn snapshot_json(server_id: Uuid, sample: &Sample, open: &Open) -> Bytes {
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
    if !open.is_empty() {
        // In the place of the closing brace.
        json.truncate(json.len() - 1);
        json.extend_from_slice(b",\"extra\":");
        if let Err(error) = serde_json::to_writer(&mut json, open) {
            tracing::error!(%error, "open series could not be written as JSON");
        }
        json.push(b'}');
    }
    Bytes::from(json)
}

/// How old a sample of now may be, by the clocks of two machines.
pub const OF_NOW_MS: i64 = 60_000;

/// A latest sample that is further ahead than this is of the future: less is what a message takes, and a clock is off by.
const AHEAD_FROM_MS: i64 = 5_000;

/// The newest of every server, behind cheap clones.
#[derive(Clone)]
pub struct Fleet {
    servers: Arc<Servers>,
    reach: Arc<dyn Reach>,
}

impl Default for Fleet {
    /// That of the only instance.
    fn default() -> Self {
        Self { servers: Arc::default(), reach: Arc::new(Whole) }
    }
}

#[derive(Debug, Clone, Default)]
struct Server {
    session_id: Option<Uuid>,
    owner_id: Uuid,
    newest: Newest,
    last_seen_at: Option<Timestamp>,
    /// The same by a clock that nobody sets.
    seen: Option<Instant>,
    /// How far its agent's clock is ahead, as far as is known.
    clock_offset_ms: Option<i64>,
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

    /// Takes a sample as the latest, unless a newer one is there. Gives whether it is the latest now. `now` is the time of
    /// the machine that took it.
    fn take(&mut self, snapshot: Arc<Snapshot>, told: Option<(Traffic, i64)>, now: Timestamp) -> bool {
        let taken_at = snapshot.sample.timestamp;
        let is_newer = self.latest.as_ref().is_none_or(|old| old.sample.timestamp <= taken_at);
        if is_newer {
            if let Some((traffic, elapsed_ms)) = told {
                (self.traffic, self.elapsed_ms) = (traffic, elapsed_ms);
            }
        } else if self.is_of_the_future(now) && now.millis_since(taken_at) <= OF_NOW_MS {
            // The machine's clock was ahead and was put right: it must not stand still until its old time has come.
            (self.traffic, self.elapsed_ms) = (Traffic::default(), 0);
        } else {
            return false;
        }
        self.latest = Some(snapshot);
        true
    }

    fn is_of_the_future(&self, now: Timestamp) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.sample.timestamp.millis_since(now) > AHEAD_FROM_MS)
    }
}

impl Fleet {
    /// That of one instance of several, and where to put what others tell.
    pub fn among_others() -> (Self, Abroad) {
        let abroad = Abroad::default();
        (Self { servers: Arc::default(), reach: Arc::new(abroad.clone()) }, abroad)
    }

    /// A session took hold of a server.
    pub fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid, now: Timestamp) {
        let mut server = self.servers.entry(server_id).or_default();
        (server.session_id, server.owner_id) = (Some(session_id), owner_id);
        (server.last_seen_at, server.seen) = (Some(now), Some(Instant::now()));
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
        self.reach.offline(&self.servers, server_id, session_id)
    }

    /// The agent said something.
    pub fn seen(&self, server_id: Uuid, now: Timestamp) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            (server.last_seen_at, server.seen) = (Some(now), Some(Instant::now()));
        }
    }

    /// How long ago the agent said something, by a clock that nobody sets; none where it did not since this process began.
    pub fn unseen_for(&self, server_id: Uuid) -> Option<Duration> {
        Some(self.servers.get(&server_id)?.seen?.elapsed())
    }

    /// How far an agent's clock is ahead now.
    pub fn set_clock_offset(&self, server_id: Uuid, offset_ms: Option<i64>) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            server.clock_offset_ms = offset_ms;
        }
    }

    /// How far an agent's clock is ahead, as far as is known here.
    pub fn clock_offset(&self, server_id: Uuid) -> Option<i64> {
        self.servers.get(&server_id)?.clock_offset_ms
    }

    /// How far the clocks of all agents that are here are ahead.
    pub fn clock_offsets(&self) -> Vec<i64> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some());
        online.filter_map(|entry| entry.clock_offset_ms).collect()
    }

    /// Takes a sample as the latest, unless a newer one is there, or what is there is of the future. Gives whether it is the
    /// latest now. `now` is the time of the machine that took it. Where there are other instances, only that of a server
    /// whose session is here.
    pub fn record(&self, snapshot: Arc<Snapshot>, now: Timestamp) -> bool {
        // Before anything is locked: a sample may have a thousand interfaces.
        let before = self.servers.get(&snapshot.server_id).map(|server| server.newest.clone());
        let told = before.unwrap_or_default().tells(&snapshot);
        self.reach.record(&self.servers, snapshot, told, now)
    }

    pub fn latest(&self, server_id: Uuid) -> Option<Arc<Snapshot>> {
        self.servers.get(&server_id)?.newest.latest.clone()
    }

    /// Takes what is kept of a server, for those who watch its owner's servers here.
    pub fn recall(&self, kept: Kept) {
        self.reach.recall(&self.servers, kept);
    }

    /// Whether a sample may be kept of a server though none is known here, or a later one. `seen_at` is when the database
    /// says that it was last seen.
    pub fn lacks_sample(&self, server_id: Uuid, seen_at: Option<Timestamp>) -> bool {
        self.reach.lacks_sample(&self.glance(server_id), seen_at)
    }

    /// Whether what this process has seen of a server is all that there is: no other one may hold it.
    pub fn is_sure_of(&self, presence: Option<Presence>) -> bool {
        self.reach.is_sure_of(presence)
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
        let told = self.reach.told(server_id);
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
        self.reach.forget(server_id);
    }
}

#[cfg(test)]
mod tests;
