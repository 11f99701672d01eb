//! The handshake of an agent: from its key to a session that holds its server.

use std::sync::Arc;

use actix::Recipient;
use bytestring::ByteString;
use secrecy::SecretString;
use serde_json::{Value, json};
use signalbox_protocol::agent::{Auth, AuthResponse, Event};
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::{Encoding, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, Timestamp, close};
use uuid::Uuid;

use crate::alerts::Alerts;
use crate::auth::api_key::{self, KeyError, Opened};
use crate::auth::machines::{Conflict, Machine};
use crate::clock::Clock;
use crate::clock::agent::{AgentClock, is_wrong};
use crate::cluster::company::Company;
use crate::commands::reports::AgentReports;
use crate::feeds::{FeedFrame, Feeds, Topic};
use crate::fleet::Fleet;
use crate::metrics::recorder::{RecorderHandle, SessionCheck};
use crate::registry::{Heartbeat, Join, JoinError, Order, RegistryHandle};
use crate::shares::{Gate, Part, Share, share};
use crate::state::State;
use crate::store::{CLOCK_IS_WRONG, Connected, Store};

/// An admitted agent.
pub struct Admitted {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    pub boot_id: String,
    pub clock: AgentClock,
    pub clock_offset_ms: Option<i64>,
    pub clock_is_wrong: bool,
    /// The agent's description of itself as it is stored: a JSON object.
    pub description: Box<str>,
}

/// Why an agent was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub close: u16,
    pub code: &'static str,
    pub detail: &'static str,
}

/// The sample intervals that an agent's owner may choose.
const INTERVAL_SECONDS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

const UNAUTHORIZED: Refusal =
    Refusal { close: close::UNAUTHORIZED, code: "unauthorized", detail: "the key is wrong, expired or revoked" };
const UNSUPPORTED: Refusal = Refusal {
    close: close::UNAUTHORIZED,
    code: "unsupported_protocol",
    detail: "this service does not speak the agent's protocol version",
};
const UNSOUND: Refusal =
    Refusal { close: close::MALFORMED, code: "malformed", detail: "a field of the auth message is out of range" };
const STOPPING: Refusal =
    Refusal { close: close::RESTARTING, code: "restarting", detail: "the service restarts, reconnect soon" };
pub const OVERLOADED: Refusal =
    Refusal { close: close::OVERLOADED, code: "overloaded", detail: "the service is overloaded, reconnect later" };

impl Refusal {
    pub fn response(self) -> AuthResponse {
        AuthResponse::refused(self.code, self.detail)
    }
}

/// What a handshake uses to admit an agent.
#[derive(Clone)]
pub struct Handshake {
    pub clock: Clock,
    pub store: Store,
    /// Limits key lookups, by address.
    pub keys: Gate,
    /// Limits agents with a valid key, by account.
    pub arrivals: Gate,
    pub registry: RegistryHandle,
    pub reports: Arc<AgentReports>,
    pub recorder: RecorderHandle,
    pub alerts: Alerts,
    pub fleet: Fleet,
    pub feeds: Feeds,
    pub company: Arc<dyn Company>,
}

impl Handshake {
    pub fn of(state: &State) -> Self {
        Self {
            clock: state.clock.clone(),
            store: state.store.clone(),
            keys: state.limits.shares.keys.clone(),
            arrivals: state.limits.shares.arrivals.clone(),
            registry: state.registry.clone(),
            reports: state.jobs.reports().clone(),
            recorder: state.metrics.recorder.clone(),
            alerts: state.alerts.clone(),
            fleet: state.fleet.clone(),
            feeds: state.feeds.clone(),
            company: state.cluster.company.clone(),
        }
    }
}

/// A session that an agent asks for.
pub struct SessionRequest {
    /// The share that it counts for, as far as is known.
    pub share: Share,
    /// The address that it connects from.
    pub address: String,
    pub session_id: Uuid,
    pub orders: Recipient<Order>,
    pub heartbeat: Arc<Heartbeat>,
}

/// Checks the key, takes the server, and writes that it is online; only then does the agent get its answer.
pub async fn authenticate(handshake: Handshake, mut auth: Auth, arriving: SessionRequest) -> Result<Admitted, Refusal> {
    if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&auth.protocol) {
        return Err(UNSUPPORTED);
    }
    let has_sound_interval = auth.sample_interval_seconds.is_none_or(|seconds| INTERVAL_SECONDS.contains(&seconds));
    if !auth.agent.is_bounded() || !has_sound_interval {
        return Err(UNSOUND);
    }
    auth.agent.clean();
    let (now, boot_ms) = (handshake.clock.now(), handshake.clock.boot_ms());
    let clock = AgentClock::new(auth.sent_at.map(Timestamp::as_millis), now.as_millis(), boot_ms);
    let clock_offset_ms = clock.offset_ms(now.as_millis(), boot_ms);
    let SessionRequest { share, address, session_id, orders, heartbeat } = arriving;
    let opened = look_up(&handshake, share, auth.api_key).await?;
    let _permit = handshake.arrivals.enter(Share::Account(opened.owner_id)).await.map_err(|_| OVERLOADED)?;
    // While writes fail, refuse new sessions: they could not be stored, and must not replace one that is still shown
    // online.
    if handshake.recorder.is_failing() {
        return Err(OVERLOADED);
    }
    let server_id = opened.server_id;
    let join = Join {
        server_id,
        owner_id: opened.owner_id,
        session_id,
        key_id: opened.key_id,
        key_expires_at: opened.expires_at,
        orders,
        heartbeat,
    };
    handshake.registry.join(join).await.map_err(|error| match error {
        JoinError::Revoked => UNAUTHORIZED,
        JoinError::Stopping | JoinError::Moved => STOPPING,
        JoinError::Late | JoinError::TooMany => OVERLOADED,
    })?;
    let mut joined = Joined { registry: &handshake.registry, server_id, session_id, is_kept: false };

    let before = Machine::kept(opened.last_agent.as_deref());
    // While our own clock is in doubt, no agent's clock is called wrong.
    let is_certain = handshake.clock.doubt().is_none();
    let clock_is_wrong = match clock_offset_ms.filter(|_| is_certain) {
        Some(offset_ms) => is_wrong(before.clock_is_wrong, offset_ms),
        None => before.clock_is_wrong,
    };
    let machine = before.followed_by(&auth.agent, address, opened.is_held, now);
    let mut agent = json!(auth.agent);
    if let (Some(fields), Value::Object(machine)) = (agent.as_object_mut(), json!(machine)) {
        fields.extend(machine);
        fields.insert("connected_at".to_owned(), json!(now));
        fields.insert("clock_offset_ms".to_owned(), json!(clock_offset_ms));
        fields.insert(CLOCK_IS_WRONG.to_owned(), json!(clock_is_wrong));
        fields.insert("sample_interval_seconds".to_owned(), json!(auth.sample_interval_seconds));
    }
    let description = agent.to_string().into_boxed_str();
    let claim = handshake.company.claim(opened.session_epoch);
    let connected =
        Connected { server_id, session_id, key_id: opened.key_id, agent: description.to_string(), at: now, claim };
    // Kept until the server is known to be here, or the handshake has failed.
    let _arriving = handshake.reports.reconcile(server_id, auth.commands.as_deref()).await.map_err(|error| {
        tracing::error!(server.id = %server_id, %error, "cannot look up the commands of a server");
        OVERLOADED
    })?;
    let SessionCheck::Yes { has_rebooted } = handshake.recorder.connected(connected).await.map_err(|_| OVERLOADED)?
    else {
        return Err(OVERLOADED);
    };
    // The previous home ends its session before other instances are routed here, so there are never two homes.
    handshake.company.took_over(server_id).await;
    let place = handshake.registry.place(server_id).await;
    // Another instance may have taken over the server before the others were routed here.
    if !handshake.company.still_holds(server_id, session_id).await {
        return Err(OVERLOADED);
    }
    handshake.registry.announce(server_id, session_id, place).await.map_err(|_| STOPPING)?;
    joined.is_kept = true;
    if let Some(conflict) = machine.conflict.filter(|conflict| conflict.last_at == now) {
        tell_of(&handshake, server_id, &conflict);
    }
    if has_rebooted {
        tracing::info!(server.id = %server_id, "the machine was rebooted");
        handshake.alerts.rebooted(server_id, now);
    }
    handshake.fleet.set_clock_offset(server_id, clock_offset_ms);
    handshake.clock.tally_if_due(|| handshake.fleet.clock_offsets());
    let (owner_id, boot_id) = (opened.owner_id, auth.agent.boot_id);
    Ok(Admitted { server_id, owner_id, boot_id, clock, clock_offset_ms, clock_is_wrong, description })
}

/// Looks up the server that a key belongs to. Unknown keys queue behind others of their own address, and equal keys
/// behind each other.
async fn look_up(handshake: &Handshake, share: Share, shown: String) -> Result<Opened, Refusal> {
    let part = Part { part: share::digest(&shown), within: 0 };
    let _permit = handshake.keys.enter_part(share, part).await.map_err(|_| OVERLOADED)?;
    api_key::open(&handshake.store, &SecretString::from(shown), &handshake.clock).await.map_err(refusal)
}

/// Reports that two machines use one key: to dashboards once, to the log each time.
fn tell_of(handshake: &Handshake, server_id: Uuid, conflict: &Conflict) {
    let Conflict { since, last_at, hostname, address } = conflict;
    tracing::warn!(
        server.id = %server_id, agent.hostname = hostname, agent.address = address,
        "another machine with a key of the same server was refused: each machine needs its own server"
    );
    if since != last_at {
        return;
    }
    let fields = [("hostname", json!(hostname)), ("address", json!(address)), ("at", json!(last_at))];
    let fields = fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    let message = FeedMessage::Event(Event { kind: "conflict".to_owned(), fields });
    match Encoding::Json.encode(&message).ok().and_then(|json| ByteString::try_from(json).ok()) {
        Some(json) => handshake.feeds.publish(Topic::Server(server_id), FeedFrame::Event(json.into())),
        None => tracing::error!(server.id = %server_id, "cannot encode an event"),
    }
}

fn refusal(error: KeyError) -> Refusal {
    match error {
        KeyError::Refused => UNAUTHORIZED,
        KeyError::Doubtful => OVERLOADED,
        KeyError::Store(error) => {
            tracing::error!(%error, "cannot look up a key");
            OVERLOADED
        }
    }
}

/// Gives up the server if the handshake ends half-way, by an error or because the socket has closed.
struct Joined<'a> {
    registry: &'a RegistryHandle,
    server_id: Uuid,
    session_id: Uuid,
    is_kept: bool,
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.registry.leave(self.server_id, self.session_id);
        }
    }
}
