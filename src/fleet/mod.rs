//! The current state of every server, readable without a message or a query.
//!
//! A single instance has it for all servers. One of several has it only for the servers whose sessions it holds, and drops
//! it with the session; the database has the others. What other instances publish about servers that are watched here is
//! in [`remote_cache`]. [`reach`] makes this distinction.

mod reach;
pub mod remote_cache;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use signalbox_history::network::{PreviousSample, Traffic};
use signalbox_history::open::{Measured, Open};
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

pub use reach::Kept;
use reach::{Reach, Servers, SoleReach};
use remote_cache::{RemoteCache, RemoteStatus};

/// A sample and the server it belongs to, with its JSON, encoded at most once.
#[derive(Debug)]
pub struct Snapshot {
    pub server_id: Uuid,
    pub sample: Sample,
    pub open: Open,
    json: OnceLock<Bytes>,
}

impl Snapshot {
    /// A snapshot without open series.
    pub fn new(server_id: Uuid, sample: Sample) -> Self {
        Self::of(server_id, Measured { sample, open: Open::default() })
    }

    pub fn of(server_id: Uuid, Measured { sample, open }: Measured) -> Self {
        Self { server_id, sample, open, json: OnceLock::new() }
    }

    /// Returns the API's metrics snapshot: the sample with `server_id` first, and `extra` last if there are open series.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| snapshot_json(self.server_id, &self.sample, &self.open)).clone()
    }

    /// Returns about how much memory it takes. Names of open series belong to their connection.
    pub fn bytes(&self) -> usize {
        let Sample { cpu_per_core, disk_usage, disk_io, network, temperatures, containers, .. } = &self.sample;
        let disks = size_of_val(disk_usage.as_slice()) + size_of_val(disk_io.as_slice());
        let devices = size_of_val(network.as_slice()) + size_of_val(temperatures.as_slice());
        let lists = size_of_val(cpu_per_core.as_slice()) + disks + devices + size_of_val(containers.as_slice());
        let disk_names = disk_usage.iter().map(|disk| &disk.path).chain(disk_io.iter().map(|io| &io.device));
        let device_names =
            network.iter().map(|net| &net.interface).chain(temperatures.iter().map(|sensor| &sensor.label));
        let container_names = containers.iter().flat_map(|container| [&container.id, &container.name]);
        let names: usize = disk_names.chain(device_names).chain(container_names).map(String::len).sum();
        let open = self.open.len() * size_of::<(usize, f64)>();
        size_of::<Self>() + lists + names + open + self.json.get().map_or(0, Bytes::len)
    }
}

/// Returns the JSON of a metrics snapshot, written without building a map: the sample's own object with one more field.
pub fn snapshot_json(server_id: Uuid, sample: &Sample, open: &Open) -> Bytes {
    let mut json = Vec::with_capacity(1024);
    json.extend_from_slice(b"{\"server_id\":\"");
    json.extend_from_slice(server_id.as_hyphenated().encode_lower(&mut Uuid::encode_buffer()).as_bytes());
    json.extend_from_slice(b"\",");
    let start = json.len();
    match serde_json::to_writer(&mut json, sample) {
        // Removes the sample's opening brace, because the object is open already.
        Ok(()) => _ = json.remove(start),
        Err(error) => tracing::error!(%error, "a sample could not be encoded as JSON"),
    }
    if !open.is_empty() {
        // Replaces the closing brace.
        json.truncate(json.len() - 1);
        json.extend_from_slice(b",\"extra\":");
        if let Err(error) = serde_json::to_writer(&mut json, open) {
            tracing::error!(%error, "open series could not be encoded as JSON");
        }
        json.push(b'}');
    }
    Bytes::from(json)
}

/// How old a current sample may be, by the clocks of two machines.
pub const OF_NOW_MS: i64 = 60_000;

/// A latest sample further ahead than this is in the future. Less can be the delay of a message and a small clock error.
const AHEAD_FROM_MS: i64 = 5_000;

/// The state of every server; cheap to clone.
#[derive(Clone)]
pub struct Fleet {
    servers: Arc<Servers>,
    reach: Arc<dyn Reach>,
}

impl Default for Fleet {
    /// The fleet of a single instance.
    fn default() -> Self {
        Self { servers: Arc::default(), reach: Arc::new(SoleReach) }
    }
}

#[derive(Debug, Clone, Default)]
struct Server {
    session_id: Option<Uuid>,
    owner_id: Uuid,
    newest: Newest,
    last_seen_at: Option<Timestamp>,
    /// The same by the monotonic clock.
    seen: Option<Instant>,
    /// How far its agent's clock is ahead, if known.
    clock_offset_ms: Option<i64>,
    acknowledged: Acknowledged,
    /// The database was asked for the latest sample, and has none.
    lacks_samples: bool,
}

/// The latest sample, and what follows from it and the one before it.
#[derive(Debug, Clone, Default)]
struct Newest {
    latest: Option<Arc<Snapshot>>,
    traffic: Traffic,
    /// The milliseconds between those two.
    elapsed_ms: i64,
}

/// The last durable batch of an agent. Its number is valid only for the boot of the machine that counted it.
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

/// The state of a server at one moment.
#[derive(Debug, Clone, Default)]
pub struct ServerView {
    /// `None` if no agent has connected since the process started; for one of several instances, if none is connected here.
    pub presence: Option<Presence>,
    /// The last status of its agent that other instances published.
    pub heard: Option<RemoteStatus>,
    /// The last time at which its agent was seen, as they published.
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

/// How a sample compares with the latest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
    /// It is the latest now.
    Newest,
    /// The latest has its time, and stays, as in the history.
    Same,
    Older,
}

impl Newest {
    /// Returns the traffic between the latest sample and this one, and the milliseconds between them. Returns `None` if both
    /// have the same time.
    fn tells(self, snapshot: &Snapshot) -> Option<(Traffic, i64)> {
        let Some(latest) = self.latest else { return Some((Traffic::default(), 0)) };
        let (now, before) = (&snapshot.sample, PreviousSample { sample: &latest.sample, elapsed_ms: self.elapsed_ms });
        let elapsed_ms = now.timestamp.millis_since(latest.sample.timestamp);
        (elapsed_ms != 0).then(|| (before.traffic(now), elapsed_ms))
    }

    /// Makes a sample the latest, unless there is a newer one. `now` is the time of the machine that measured it.
    fn take(&mut self, snapshot: Arc<Snapshot>, told: Option<(Traffic, i64)>, now: Timestamp) -> Recency {
        let taken_at = snapshot.sample.timestamp;
        let latest_at = self.latest.as_ref().map(|latest| latest.sample.timestamp);
        if latest_at == Some(taken_at) {
            return Recency::Same;
        }
        if latest_at < Some(taken_at) {
            if let Some((traffic, elapsed_ms)) = told {
                (self.traffic, self.elapsed_ms) = (traffic, elapsed_ms);
            }
        } else if self.is_of_the_future(now) && now.millis_since(taken_at) <= OF_NOW_MS {
            // The machine's clock was ahead and has been corrected: its old time must not block newer samples.
            (self.traffic, self.elapsed_ms) = (Traffic::default(), 0);
        } else {
            return Recency::Older;
        }
        self.latest = Some(snapshot);
        Recency::Newest
    }

    fn is_of_the_future(&self, now: Timestamp) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.sample.timestamp.millis_since(now) > AHEAD_FROM_MS)
    }
}

impl Fleet {
    /// Returns the fleet of one of several instances, and the cache for what others publish.
    pub fn among_others() -> (Self, RemoteCache) {
        let remote_cache = RemoteCache::default();
        (Self { servers: Arc::default(), reach: Arc::new(remote_cache.clone()) }, remote_cache)
    }

    /// Takes in that a session holds a server.
    pub fn online(&self, server_id: Uuid, session_id: Uuid, owner_id: Uuid, now: Timestamp) {
        let mut server = self.servers.entry(server_id).or_default();
        (server.session_id, server.owner_id) = (Some(session_id), owner_id);
        (server.last_seen_at, server.seen) = (Some(now), Some(Instant::now()));
    }

    /// Takes in that a session replaces another one, before its handshake is complete.
    pub fn hand_over(&self, server_id: Uuid, from: Uuid, to: Uuid) {
        if let Some(mut server) = self.servers.get_mut(&server_id)
            && server.session_id == Some(from)
        {
            server.session_id = Some(to);
        }
    }

    /// Takes in that a session has left a server. Returns whether it was the one that held it. With several instances the
    /// server may connect to another one next, so its state is dropped.
    pub fn offline(&self, server_id: Uuid, session_id: Uuid) -> bool {
        self.reach.offline(&self.servers, server_id, session_id)
    }

    /// Takes in that the agent has sent a message.
    pub fn seen(&self, server_id: Uuid, now: Timestamp) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            (server.last_seen_at, server.seen) = (Some(now), Some(Instant::now()));
        }
    }

    /// Returns how long ago the agent sent a message, by the monotonic clock; `None` if it has not since this process started.
    pub fn unseen_for(&self, server_id: Uuid) -> Option<Duration> {
        Some(self.servers.get(&server_id)?.seen?.elapsed())
    }

    /// Records how far an agent's clock is ahead.
    pub fn set_clock_offset(&self, server_id: Uuid, offset_ms: Option<i64>) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            server.clock_offset_ms = offset_ms;
        }
    }

    /// Returns how far an agent's clock is ahead; `None` if not known here.
    pub fn clock_offset(&self, server_id: Uuid) -> Option<i64> {
        self.servers.get(&server_id)?.clock_offset_ms
    }

    /// Returns how far the clocks of the agents connected to this instance are ahead.
    pub fn clock_offsets(&self) -> Vec<i64> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some());
        online.filter_map(|entry| entry.clock_offset_ms).collect()
    }

    /// Makes a sample the latest, unless there is a newer one that is not in the future. `now` is the time of the machine that
    /// measured it. One of several instances does so only for servers whose sessions it holds; for others it is older.
    pub fn record(&self, snapshot: Arc<Snapshot>, now: Timestamp) -> Recency {
        // Computed before anything is locked: a sample may have a thousand interfaces.
        let before = self.servers.get(&snapshot.server_id).map(|server| server.newest.clone());
        let told = before.unwrap_or_default().tells(&snapshot);
        self.reach.record(&self.servers, snapshot, told, now)
    }

    /// Returns the latest sample, and its distance in milliseconds from the one before it; 0 where that is not known.
    pub fn latest_and_distance(&self, server_id: Uuid) -> Option<(Arc<Snapshot>, i64)> {
        let server = self.servers.get(&server_id)?;
        Some((server.newest.latest.clone()?, server.newest.elapsed_ms))
    }

    pub fn latest(&self, server_id: Uuid) -> Option<Arc<Snapshot>> {
        self.servers.get(&server_id)?.newest.latest.clone()
    }

    /// Takes in what the database has of a server, for subscribers to its owner's servers.
    pub fn recall(&self, kept: Kept) {
        self.reach.recall(&self.servers, kept);
    }

    /// Returns whether the database may have a newer sample of a server than this instance. `seen_at` is when the server was
    /// last seen according to the database.
    pub fn lacks_sample(&self, server_id: Uuid, seen_at: Option<Timestamp>) -> bool {
        self.reach.lacks_sample(&self.view(server_id), seen_at)
    }

    /// Returns whether this process alone decides on a server's presence, because no other instance can hold it.
    pub fn is_sure_of(&self, presence: Option<Presence>) -> bool {
        self.reach.is_sure_of(presence)
    }

    /// Returns whether a server is known to have no stored sample, and has sent none since.
    pub fn is_known_to_lack_samples(&self, server_id: Uuid) -> bool {
        self.servers.get(&server_id).is_some_and(|server| server.lacks_samples && server.newest.latest.is_none())
    }

    /// Returns the presence of a server; `None` if no agent has connected since this process started, and for one of several
    /// instances if none is connected here.
    pub fn presence(&self, server_id: Uuid) -> Option<Presence> {
        self.servers.get(&server_id)?.presence()
    }

    /// Returns whether a session of this process holds a server.
    pub fn is_here(&self, server_id: Uuid) -> bool {
        self.servers.get(&server_id).is_some_and(|server| server.session_id.is_some())
    }

    /// Returns all that is known of a server.
    pub fn view(&self, server_id: Uuid) -> ServerView {
        let here = self.servers.get(&server_id).map(|server| (server.presence(), server.newest.clone()));
        let (presence, mut newest) = here.unwrap_or_default();
        let told = self.reach.remote_state(server_id);
        if newest.latest.is_none() {
            // A server that has just connected has sent nothing yet.
            newest = told.newest;
        }
        let (heard, heard_of_at) = (told.heard, told.last_seen_at);
        ServerView { presence, heard, heard_of_at, latest: newest.latest, traffic: newest.traffic }
    }

    /// Records the last durable batch.
    pub fn acknowledge(&self, server_id: Uuid, acknowledged: Acknowledged) {
        if let Some(mut server) = self.servers.get_mut(&server_id) {
            server.acknowledged = acknowledged;
        }
    }

    /// Returns the number of the agent's last durable batch in this boot; 0 if none is known.
    pub fn acknowledged(&self, server_id: Uuid, boot_id: &str) -> u64 {
        let Some(server) = self.servers.get(&server_id) else { return 0 };
        if server.acknowledged.boot_id == boot_id { server.acknowledged.seq } else { 0 }
    }

    /// Returns every server that is online, and when it was last seen.
    pub fn online_servers(&self) -> Vec<(Uuid, Timestamp)> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some());
        online.filter_map(|entry| Some((*entry.key(), entry.last_seen_at?))).collect()
    }

    /// Returns the servers of an owner that are online on this instance, each with its latest sample.
    pub fn of_owner(&self, owner_id: Uuid) -> Vec<(Uuid, Option<Arc<Snapshot>>)> {
        let online = self.servers.iter().filter(|entry| entry.session_id.is_some() && entry.owner_id == owner_id);
        online.map(|entry| (*entry.key(), entry.newest.latest.clone())).collect()
    }

    /// Removes a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
        self.reach.forget(server_id);
    }
}

#[cfg(test)]
mod tests;
