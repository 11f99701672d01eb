//! The actor that decides which session holds a server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, MessageResult, Recipient, WrapFuture};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{
    Advertisement, Announce, CallError, End, Gone, Heartbeat, HeldSession, Holder, Join, JoinError, Leave, ListHeld,
    MAILBOX, Observer, Order, Reach, RegistryHandle, RemoteRouter, Route, SessionEnd, Written,
};
use crate::clock::Clock;
use crate::store::{Departure, Disconnected};

/// How long a revoked key or a deleted server is remembered: longer than any handshake that began before.
const REMEMBERED_FOR: Duration = Duration::from_secs(120);

/// How often the registry stores when the online servers were last seen.
const WRITE_SEEN_EVERY: Duration = Duration::from_secs(60);

/// Sessions of one server that may replace each other before the database knows of any: more handshakes than an agent
/// can begin while one of them lasts.
pub(super) const MAX_REPLACED: usize = 64;

/// The pause between the parts when all sessions end.
const END_EVERY: Duration = Duration::from_millis(100);

/// The registry's settings, fixed at the start.
#[derive(Debug, Clone)]
pub struct Settings {
    pub clock: Clock,
    /// A session that is silent for longer is ended.
    pub silence_limit: Duration,
}

/// Decides which session holds which server. There is one registry in a process.
pub struct Registry {
    settings: Settings,
    /// Stores and publishes what is decided here.
    observer: Arc<dyn Observer>,
    elsewhere: Arc<dyn RemoteRouter>,
    sessions: HashMap<Uuid, Session>,
    /// Keys, servers and owners that may not connect again, and since when.
    barred: HashMap<Uuid, Instant>,
    /// Departures that could not be written; the next sweep retries them.
    unwritten: HashMap<Uuid, Gone>,
    is_stopping: bool,
}

struct Session {
    id: Uuid,
    /// The owner of the server.
    owner_id: Uuid,
    /// Sessions that held the server before and may still be the one that the database knows, because handshakes in a
    /// row can end half-way. Empty once the database knows this session.
    replaced: Vec<Uuid>,
    key_id: Uuid,
    key_expires_at: Option<Timestamp>,
    /// One recipient, used by reference: each clone would add a slot to the session's mailbox.
    orders: Recipient<Order>,
    /// A second recipient, used only for the end. A recipient that has not been used has its own slot in the mailbox,
    /// so a burst of calls cannot crowd out a revocation.
    last_order: Recipient<Order>,
    heartbeat: Arc<Heartbeat>,
    /// How other instances reach it; `None` until the database knows of the session.
    place: Option<Advertisement>,
}

impl Session {
    /// The sessions of which one may be the session that the database knows.
    fn perhaps_written(&self) -> Vec<Uuid> {
        self.replaced.iter().copied().chain([self.id]).collect()
    }

    fn held(&self, server_id: Uuid) -> HeldSession {
        HeldSession { server_id, session_id: self.id, key_id: self.key_id }
    }

    fn end(&self, end: SessionEnd) {
        if self.last_order.try_send(Order::Close(end)).is_err() {
            tracing::debug!(session.id = %self.id, ?end, "the session has ended already");
        }
    }
}

impl RegistryHandle {
    /// Starts the registry on the arbiter of the calling thread.
    pub fn start(settings: Settings, observer: Arc<dyn Observer>, elsewhere: Arc<dyn RemoteRouter>) -> Self {
        let registry = Registry {
            settings,
            observer,
            elsewhere: elsewhere.clone(),
            sessions: HashMap::new(),
            barred: HashMap::new(),
            unwritten: HashMap::new(),
            is_stopping: false,
        };
        Self { address: Arc::new(registry.start()), elsewhere, reach: Reach::Anywhere }
    }
}

impl Registry {
    fn join(&mut self, join: Join) -> Result<(), JoinError> {
        if self.is_stopping {
            return Err(JoinError::Stopping);
        }
        if self.barred.contains_key(&join.key_id) || self.barred.contains_key(&join.server_id) {
            return Err(JoinError::Revoked);
        }
        if self.barred.contains_key(&join.owner_id) {
            return Err(JoinError::Moved);
        }
        // Its handshake took so long that a later one has already finished.
        if self.sessions.get(&join.server_id).is_some_and(|held| held.id > join.session_id) {
            return Err(JoinError::Late);
        }
        let replaced = self.sessions.get(&join.server_id).map(Session::perhaps_written).unwrap_or_default();
        if replaced.len() > MAX_REPLACED {
            return Err(JoinError::TooMany);
        }
        let session = Session {
            id: join.session_id,
            owner_id: join.owner_id,
            replaced,
            key_id: join.key_id,
            key_expires_at: join.key_expires_at,
            last_order: join.orders.clone(),
            orders: join.orders,
            heartbeat: join.heartbeat,
            place: None,
        };
        if let Some(older) = self.sessions.insert(join.server_id, session) {
            tracing::info!(server.id = %join.server_id, session.id = %older.id, "a newer session took over");
            older.end(SessionEnd::Replaced);
            self.observer.replaced(join.server_id, older.id, join.session_id);
        }
        metrics::gauge!("signalbox_agents_connected").set(self.sessions.len() as f64);
        Ok(())
    }

    /// Notes that a session holds its server in the database too.
    fn announce(&mut self, Announce { server_id, session_id, place }: Announce) {
        let Some(session) = self.sessions.get_mut(&server_id).filter(|session| session.id == session_id) else {
            return;
        };
        session.place = Some(place);
        session.replaced.clear();
        let owner_id = session.owner_id;
        self.observer.online(server_id, session_id, owner_id);
    }

    /// Removes a session, if it still holds the server, and shows the server as offline once that is written.
    fn release(&mut self, server_id: Uuid, session_id: Uuid, why: Departure, ctx: &mut Context<Self>) {
        if self.sessions.get(&server_id).is_none_or(|session| session.id != session_id) {
            return;
        }
        let Some(Session { owner_id, replaced, .. }) = self.sessions.remove(&server_id) else { return };
        metrics::gauge!("signalbox_agents_connected").set(self.sessions.len() as f64);
        let last_seen_at = self.observer.last_seen_at(server_id);
        let disconnected = Disconnected { server_id, session_id, replaced, last_seen_at, why };
        self.write(Gone { owner_id, disconnected }, ctx);
    }

    fn write(&mut self, gone: Gone, ctx: &mut Context<Self>) {
        let written = self.observer.write(gone.disconnected.clone());
        ctx.spawn(written.into_actor(self).map(move |written, registry, _| {
            if written == Written::No {
                registry.unwritten.insert(gone.disconnected.server_id, gone.clone());
            }
            registry.observer.offline(&gone, written);
        }));
    }

    fn end_where(&mut self, end: SessionEnd, ctx: &mut Context<Self>, matches: impl Fn(&Uuid, &Session) -> bool) {
        let found: Vec<(Uuid, Uuid)> = self
            .sessions
            .iter()
            .filter(|(server_id, session)| matches(server_id, session))
            .map(|(server_id, session)| {
                session.end(end);
                (*server_id, session.id)
            })
            .collect();
        for (server_id, session_id) in found {
            self.release(server_id, session_id, end.departure(), ctx);
        }
    }

    /// Ends all sessions in parts, so that their agents do not all reach the other instances at once.
    fn end_rest(&mut self, over: Duration, ctx: &mut Context<Self>) {
        if over.is_zero() {
            return self.end_where(SessionEnd::Restarting, ctx, |_, _| true);
        }
        let pause = over.min(END_EVERY);
        let parts = over.as_millis().div_ceil(pause.as_millis().max(1));
        let part = self.sessions.len().div_ceil(usize::try_from(parts).unwrap_or(1).max(1));
        let some: HashSet<Uuid> = self.sessions.keys().copied().take(part).collect();
        self.end_where(SessionEnd::Restarting, ctx, |server_id, _| some.contains(server_id));
        ctx.run_later(pause, move |registry, ctx| registry.end_rest(over.saturating_sub(pause), ctx));
    }

    /// Ends sessions that are silent, dead or expired, and forgets what need not be remembered any more.
    fn sweep(&mut self, ctx: &mut Context<Self>) {
        let limit = self.settings.silence_limit;
        let resumed = self.settings.clock.resumed();
        self.end_where(SessionEnd::Silent, ctx, |_, session| {
            !session.orders.connected() || session.heartbeat.silence(resumed) > limit
        });
        // An expired key stops its agent for good, so no single clock may decide that.
        let now = self.settings.clock.certain();
        self.end_where(SessionEnd::KeyRevoked, ctx, |_, session| session.key_expires_at.is_some_and(|end| end <= now));
        self.barred.retain(|_, since| since.elapsed() < REMEMBERED_FOR);
        for gone in std::mem::take(&mut self.unwritten).into_values() {
            self.write(gone, ctx);
        }
    }
}

impl Actor for Registry {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // Four sweeps in the time after which a session counts as silent.
        ctx.run_interval(self.settings.silence_limit / 4, |registry, ctx| registry.sweep(ctx));
        ctx.run_interval(WRITE_SEEN_EVERY, |registry, _| {
            registry.observer.write_seen();
        });
    }
}

impl Handler<Join> for Registry {
    type Result = Result<(), JoinError>;

    fn handle(&mut self, join: Join, _: &mut Self::Context) -> Self::Result {
        self.join(join)
    }
}

impl Handler<Leave> for Registry {
    type Result = ();

    fn handle(&mut self, leave: Leave, ctx: &mut Self::Context) {
        self.release(leave.server_id, leave.session_id, Departure::Left, ctx);
    }
}

impl Handler<Announce> for Registry {
    type Result = ();

    fn handle(&mut self, announce: Announce, _: &mut Self::Context) {
        self.announce(announce);
    }
}

impl Handler<Route> for Registry {
    type Result = ();

    fn handle(&mut self, route: Route, _: &mut Self::Context) {
        let Some(session) = self.sessions.get(&route.server_id) else {
            return match route.reach {
                Reach::Anywhere => self.elsewhere.take(route.server_id, route.order),
                Reach::Here => route.order.fail(CallError::Offline),
            };
        };
        let Err(refused) = session.orders.try_send(route.order) else { return };
        let error = match &refused {
            actix::prelude::SendError::Full(_) => CallError::Busy,
            actix::prelude::SendError::Closed(_) => CallError::Offline,
        };
        refused.into_inner().fail(error);
    }
}

impl Handler<ListHeld> for Registry {
    type Result = MessageResult<ListHeld>;

    fn handle(&mut self, _: ListHeld, _: &mut Self::Context) -> Self::Result {
        let known = self.sessions.iter().filter(|(_, session)| session.place.is_some());
        MessageResult(known.map(|(server_id, session)| session.held(*server_id)).collect())
    }
}

impl Handler<Holder> for Registry {
    type Result = MessageResult<Holder>;

    fn handle(&mut self, Holder { server_id }: Holder, _: &mut Self::Context) -> Self::Result {
        let session = self.sessions.get(&server_id).filter(|session| session.place.is_some());
        MessageResult(session.map(|session| session.held(server_id)))
    }
}

impl Handler<End> for Registry {
    type Result = ();

    fn handle(&mut self, end: End, ctx: &mut Self::Context) {
        match end {
            End::Server(id) => {
                self.barred.insert(id, Instant::now());
                self.end_where(SessionEnd::ServerDeleted, ctx, |server_id, _| *server_id == id);
            }
            End::Owner(id) => {
                self.barred.insert(id, Instant::now());
                self.end_where(SessionEnd::Moved, ctx, |_, session| session.owner_id == id);
            }
            End::Key(id) => {
                self.barred.insert(id, Instant::now());
                self.end_where(SessionEnd::KeyRevoked, ctx, |_, session| session.key_id == id);
            }
            End::Session { server_id, session_id, why } => {
                self.end_where(why, ctx, |id, session| *id == server_id && session.id == session_id);
            }
            End::All { over } => {
                self.is_stopping = true;
                self.end_rest(over, ctx);
            }
        }
    }
}
