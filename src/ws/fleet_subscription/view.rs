//! What a socket has told of each server, and so what it still has to tell.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use signalbox_protocol::Timestamp;
use signalbox_protocol::frontend::{FleetServer, ServerStatus};
use uuid::Uuid;

use crate::fleet::{Fleet, Glance};
use crate::store::{OwnServer, Store, StoreError};

/// Servers that one message tells: some 150 kB. Of more it takes several.
pub const AT_ONCE: usize = 500;

/// The list of an owner's servers, and when it was asked for: what was heard since is newer.
pub struct OwnServers {
    pub records: Vec<OwnServer>,
    pub asked_at: Instant,
}

impl OwnServers {
    pub async fn read(store: &Store, owner_id: Uuid) -> Result<Self, StoreError> {
        let asked_at = Instant::now();
        Ok(Self { records: store.own_servers(owner_id).await?, asked_at })
    }
}

/// A server of which no sample is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    pub server_id: Uuid,
    /// As the database tells it.
    pub last_seen_at: Option<Timestamp>,
}

/// All servers of an owner, and which of them are to be told.
#[derive(Default)]
pub struct View {
    /// By id.
    servers: Vec<Watched>,
    /// When the list was asked for.
    asked_at: Option<Instant>,
    /// Places of those that are to be told, each once.
    due: VecDeque<usize>,
}

struct Watched {
    record: OwnServer,
    /// None when nothing was told of it.
    told: Option<Told>,
    is_due: bool,
}

/// By what it is seen that there is something new.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    status: ServerStatus,
    last_seen_at: Option<Timestamp>,
    sample_at: Option<Timestamp>,
}

/// What counts as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    Anything,
    /// That it is there, and whether its agent is.
    Status,
}

impl View {
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Takes a newly read list. Gives whether another one was there before.
    pub fn replace(&mut self, OwnServers { records, asked_at }: OwnServers) -> bool {
        self.asked_at = Some(asked_at);
        let marks = |it: &OwnServer| (it.id, it.updated_at);
        let is_other = !self.servers.iter().map(|it| marks(&it.record)).eq(records.iter().map(marks));
        let mut told: HashMap<Uuid, Option<Told>> = self.servers.drain(..).map(|it| (it.record.id, it.told)).collect();
        let watched = |record: OwnServer| Watched { record, told: told.remove(&record.id).flatten(), is_due: false };
        self.servers = records.into_iter().map(watched).collect();
        // Their places are others now. What was due is found again, because it was not told.
        self.due.clear();
        is_other
    }

    /// Looks for servers that have news.
    pub fn look(&mut self, fleet: &Fleet, news: News) {
        for (place, server) in self.servers.iter_mut().enumerate().filter(|(_, server)| !server.is_due) {
            let now = server.now(&fleet.glance(server.record.id), self.asked_at);
            let is_new = match (news, server.told) {
                (_, None) => true,
                (News::Anything, Some(told)) => told != now,
                (News::Status, Some(told)) => told.status != now.status,
            };
            if is_new {
                server.is_due = true;
                self.due.push_back(place);
            }
        }
    }

    /// The next ones to tell, as they are at this moment.
    pub fn next(&mut self, fleet: &Fleet) -> Vec<FleetServer> {
        let count = self.due.len().min(AT_ONCE);
        let mut next = Vec::with_capacity(count);
        for place in self.due.drain(..count) {
            let Some(server) = self.servers.get_mut(place) else { continue };
            let glance = fleet.glance(server.record.id);
            let now = server.now(&glance, self.asked_at);
            (server.told, server.is_due) = (Some(now), false);
            next.push(shown(server.record.id, now, &glance));
        }
        next
    }

    /// Whether there is more to tell.
    pub fn has_more(&self) -> bool {
        !self.due.is_empty()
    }

    /// Those whose agents were there once, and of which no sample is known since the service started; of several instances
    /// also those that the database saw since anything was heard of them here.
    pub fn without_sample(&self, fleet: &Fleet) -> Vec<Missing> {
        let were_there = self.servers.iter().filter(|server| server.record.status != ServerStatus::Pending);
        let missing = were_there.map(|server| &server.record);
        let missing = missing.filter(|record| fleet.lacks_sample(record.id, record.last_seen_at));
        missing.map(|record| Missing { server_id: record.id, last_seen_at: record.last_seen_at }).collect()
    }
}

impl Watched {
    /// Whoever holds the session knows better than the database, and who heard of it after the database was asked.
    fn now(&self, glance: &Glance, asked_at: Option<Instant>) -> Told {
        let presence = glance.presence;
        let heard = glance.heard.filter(|heard| asked_at.is_none_or(|asked_at| heard.at > asked_at));
        let status = presence.map(|presence| presence.status).or(heard.map(|heard| heard.status));
        let seen_here = presence.and_then(|presence| presence.last_seen_at);
        Told {
            status: status.unwrap_or(self.record.status),
            last_seen_at: seen_here.or(self.record.last_seen_at.max(glance.heard_of_at)),
            sample_at: glance.latest.as_ref().map(|latest| latest.sample.timestamp),
        }
    }
}

fn shown(server_id: Uuid, now: Told, glance: &Glance) -> FleetServer {
    let sample = glance.latest.as_ref().map(|latest| &latest.sample);
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
        network_in: glance.traffic.received,
        network_out: glance.traffic.sent,
        uptime_seconds: sample.map(|sample| sample.uptime_seconds),
        containers: sample.map(|sample| sample.containers.len() as u64),
    }
}

#[cfg(test)]
mod tests;
