//! What a socket has sent of each server, and so what it still has to send.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::{FleetServer, ServerStatus};
use uuid::Uuid;

use crate::fleet::{Fleet, ServerView};
use crate::store::{Store, StoreError, Visibility, VisibleServer};

/// Servers in one message: some 150 kB. More servers take several messages.
pub const AT_ONCE: usize = 500;

/// The list of the visible servers, and when it was queried: anything heard later is newer.
pub struct VisibleServers {
    pub records: Vec<VisibleServer>,
    pub asked_at: Instant,
}

impl VisibleServers {
    pub async fn read(store: &Store, visible: &Visibility) -> Result<Self, StoreError> {
        let asked_at = Instant::now();
        Ok(Self { records: store.visible_servers(visible).await?, asked_at })
    }
}

/// A server that has no sample in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    /// The time in the database.
    pub last_seen_at: Option<Timestamp>,
}

/// All visible servers, and which of them have news to send.
#[derive(Default)]
pub struct View {
    /// By id.
    servers: Vec<ViewedServer>,
    /// When the list was queried.
    asked_at: Option<Instant>,
    /// Indices of the servers with news, each once.
    due: VecDeque<usize>,
}

struct ViewedServer {
    record: VisibleServer,
    /// `None` if nothing was sent about it yet.
    told: Option<SentState>,
    is_due: bool,
}

/// The values that show whether a server has news.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SentState {
    status: ServerStatus,
    last_seen_at: Option<Timestamp>,
    sample_at: Option<Timestamp>,
}

/// Which changes count as news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeFilter {
    Anything,
    /// That the server exists, and whether its agent is online.
    Status,
}

impl View {
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Takes a newly read list. Returns whether it differs from the previous one.
    pub fn replace(&mut self, VisibleServers { records, asked_at }: VisibleServers) -> bool {
        self.asked_at = Some(asked_at);
        let marks = |it: &VisibleServer| (it.id, it.updated_at);
        let is_other = !self.servers.iter().map(|it| marks(&it.record)).eq(records.iter().map(marks));
        let mut told: HashMap<Uuid, Option<SentState>> =
            self.servers.drain(..).map(|it| (it.record.id, it.told)).collect();
        let watched =
            |record: VisibleServer| ViewedServer { record, told: told.remove(&record.id).flatten(), is_due: false };
        self.servers = records.into_iter().map(watched).collect();
        // The indices have changed. Servers that were due are found again, because nothing was sent about them.
        self.due.clear();
        is_other
    }

    /// Marks servers that have news.
    pub fn look(&mut self, fleet: &Fleet, news: ChangeFilter) {
        for (place, server) in self.servers.iter_mut().enumerate().filter(|(_, server)| !server.is_due) {
            let now = server.now(&fleet.view(server.record.id), self.asked_at);
            let is_new = match (news, server.told) {
                (_, None) => true,
                (ChangeFilter::Anything, Some(told)) => told != now,
                (ChangeFilter::Status, Some(told)) => told.status != now.status,
            };
            if is_new {
                server.is_due = true;
                self.due.push_back(place);
            }
        }
    }

    /// The next servers to send, in their present state.
    pub fn next(&mut self, fleet: &Fleet) -> Vec<FleetServer> {
        let count = self.due.len().min(AT_ONCE);
        let mut next = Vec::with_capacity(count);
        for place in self.due.drain(..count) {
            let Some(server) = self.servers.get_mut(place) else { continue };
            let view = fleet.view(server.record.id);
            let now = server.now(&view, self.asked_at);
            (server.told, server.is_due) = (Some(now), false);
            next.push(shown(server.record.id, now, &view));
        }
        next
    }

    /// Whether more servers wait to be sent.
    pub fn has_more(&self) -> bool {
        !self.due.is_empty()
    }

    /// Servers whose agents were connected before, but that have no sample in memory since the service started. With
    /// several instances also those that the database saw later than this instance.
    pub fn without_sample(&self, fleet: &Fleet) -> Vec<Missing> {
        let were_there = self.servers.iter().filter(|server| server.record.status != ServerStatus::Pending);
        let missing = were_there.map(|server| &server.record);
        let missing = missing.filter(|record| fleet.lacks_sample(record.id, record.last_seen_at));
        let of = |record: &VisibleServer| Missing {
            server_id: record.id,
            owner_id: record.owner_id,
            last_seen_at: record.last_seen_at,
        };
        missing.map(of).collect()
    }
}

impl ViewedServer {
    /// This instance knows better than the database if it holds the session, or if it heard of the server after the
    /// query.
    fn now(&self, view: &ServerView, asked_at: Option<Instant>) -> SentState {
        let presence = view.presence;
        let heard = view.heard.filter(|heard| asked_at.is_none_or(|asked_at| heard.at > asked_at));
        let status = presence.map(|presence| presence.status).or(heard.map(|heard| heard.status));
        let seen_here = presence.and_then(|presence| presence.last_seen_at);
        SentState {
            status: status.unwrap_or(self.record.status),
            last_seen_at: seen_here.or(self.record.last_seen_at.max(view.heard_of_at)),
            sample_at: view.latest.as_ref().map(|latest| latest.sample.timestamp),
        }
    }
}

fn shown(server_id: Uuid, now: SentState, view: &ServerView) -> FleetServer {
    let sample = view.latest.as_ref().map(|latest| &latest.sample);
    let disks = sample.into_iter().flat_map(|sample| &sample.disk_usage).filter(|disk| disk.total > 0);
    FleetServer {
        server_id,
        status: now.status,
        last_seen_at: now.last_seen_at,
        timestamp: now.sample_at,
        cpu_percent: sample.map(|sample| sample.cpu_percent),
        memory_percent: sample.map(|sample| sample.memory_percent),
        disk_percent: disks.map(|disk| disk.percent).reduce(f64::max),
        load_1: sample.and_then(|sample| sample.load_average.first().copied()),
        network_in: view.traffic.received,
        network_out: view.traffic.sent,
        uptime_seconds: sample.map(|sample| sample.uptime_seconds),
        containers: sample.map(|sample| sample.containers.len() as u64),
    }
}

#[cfg(test)]
mod tests;
