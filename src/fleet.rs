//! What is known of every server at this moment. Read without asking anyone.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use dashmap::DashMap;
use signalbox_protocol::frontend::ServerStatus;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

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
}

#[derive(Debug, Clone, Default)]
struct Server {
    session_id: Option<Uuid>,
    latest: Option<Arc<Snapshot>>,
    last_seen_at: Option<Timestamp>,
    acknowledged: Acknowledged,
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

impl Fleet {
    /// A session took hold of a server.
    pub fn online(&self, server_id: Uuid, session_id: Uuid, now: Timestamp) {
        let mut server = self.servers.entry(server_id).or_default();
        server.session_id = Some(session_id);
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

    /// A session let go of a server. Gives whether it was the one that held it.
    pub fn offline(&self, server_id: Uuid, session_id: Uuid) -> bool {
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

    /// Takes a sample as the latest, unless a newer one is there. Gives whether it is the latest now.
    pub fn record(&self, snapshot: Arc<Snapshot>) -> bool {
        let mut server = self.servers.entry(snapshot.server_id).or_default();
        let is_newer = server.latest.as_ref().is_none_or(|old| old.sample.timestamp <= snapshot.sample.timestamp);
        if is_newer {
            server.latest = Some(snapshot);
        }
        is_newer
    }

    pub fn latest(&self, server_id: Uuid) -> Option<Arc<Snapshot>> {
        self.servers.get(&server_id)?.latest.clone()
    }

    /// What this process has seen of a server; none when no agent has connected since it started.
    pub fn presence(&self, server_id: Uuid) -> Option<Presence> {
        let server = self.servers.get(&server_id)?;
        let last_seen_at = server.last_seen_at?;
        let status = if server.session_id.is_some() { ServerStatus::Online } else { ServerStatus::Offline };
        Some(Presence { status, last_seen_at: Some(last_seen_at) })
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

    /// Forgets a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.servers.remove(&server_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(millis: i64) -> Arc<Snapshot> {
        let sample = Sample { timestamp: Timestamp::from_millis(millis), ..Sample::default() };
        Arc::new(Snapshot::new(Uuid::nil(), sample))
    }

    #[test]
    fn an_older_sample_does_not_become_the_latest() {
        let fleet = Fleet::default();
        assert!(fleet.record(snapshot(2_000)));

        assert!(!fleet.record(snapshot(1_000)));

        assert_eq!(fleet.latest(Uuid::nil()).unwrap().sample.timestamp, Timestamp::from_millis(2_000));
    }

    #[test]
    fn late_disconnect_keeps_the_new_session() {
        let fleet = Fleet::default();
        let (server, old, new) = (Uuid::nil(), Uuid::from_u128(1), Uuid::from_u128(2));
        fleet.online(server, old, Timestamp::from_millis(1));
        fleet.online(server, new, Timestamp::from_millis(2));

        assert!(!fleet.offline(server, old));
        assert_eq!(fleet.presence(server).unwrap().status, ServerStatus::Online);
        assert!(fleet.offline(server, new));
        assert_eq!(fleet.presence(server).unwrap().status, ServerStatus::Offline);
    }

    #[test]
    fn a_snapshot_is_the_sample_with_its_server() {
        let id = Uuid::from_u128(7);
        let snapshot = Snapshot::new(id, Sample::default());

        let json: serde_json::Value = serde_json::from_slice(&snapshot.json()).unwrap();

        let mut expected = serde_json::to_value(Sample::default()).unwrap();
        expected["server_id"] = id.to_string().into();
        assert_eq!(json, expected);
    }
}
