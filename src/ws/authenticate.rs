//! The handshake of an agent: from a shown key to a session that holds its server.

use std::sync::Arc;

use actix::Recipient;
use secrecy::SecretString;
use serde_json::json;
use signalbox_protocol::agent::{Auth, AuthResponse};
use signalbox_protocol::{OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION, Timestamp, close};
use uuid::Uuid;

use crate::auth::api_key::{self, KeyError};
use crate::metrics::recorder::Held;
use crate::registry::{Join, JoinError, Order, Pulse, RegistryHandle};
use crate::state::State;
use crate::store::{Connected, SessionClaim};

/// A clock further off than this is worth a line in the log.
const NOTABLE_CLOCK_OFFSET_MS: u64 = 5_000;

/// An agent that was let in.
pub struct Admitted {
    pub server_id: Uuid,
    pub owner_id: Uuid,
    pub boot_id: String,
    pub clock_offset_ms: Option<i64>,
}

/// Why an agent was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub close: u16,
    pub code: &'static str,
    pub detail: &'static str,
}

/// Intervals that an agent's owner may choose.
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
    Refusal { close: close::RESTARTING, code: "restarting", detail: "the service restarts, come back soon" };
pub const OVERLOADED: Refusal =
    Refusal { close: close::OVERLOADED, code: "overloaded", detail: "the service is overloaded, come back later" };

impl Refusal {
    pub fn response(self) -> AuthResponse {
        AuthResponse::refused(self.code, self.detail)
    }
}

/// Checks the key, takes the server, and writes that it is online; the agent is told only after that.
pub async fn authenticate(
    state: State,
    auth: Auth,
    session_id: Uuid,
    orders: Recipient<Order>,
    pulse: Arc<Pulse>,
) -> Result<Admitted, Refusal> {
    if !(OLDEST_PROTOCOL_VERSION..=PROTOCOL_VERSION).contains(&auth.protocol) {
        return Err(UNSUPPORTED);
    }
    let has_sound_interval = auth.sample_interval_seconds.is_none_or(|seconds| INTERVAL_SECONDS.contains(&seconds));
    if !auth.agent.is_bounded() || !has_sound_interval {
        return Err(UNSOUND);
    }
    let now = Timestamp::now();
    let clock_offset_ms = auth.sent_at.map(|sent_at| sent_at.millis_since(now));
    let opened = api_key::open(&state.store, &SecretString::from(auth.api_key), now).await.map_err(refusal)?;
    // Who comes cannot be written down, and must not take the server from a session that is shown still.
    if state.recorder.is_failing() {
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
        pulse,
    };
    state.registry.join(join).await.map_err(|error| match error {
        JoinError::Revoked => UNAUTHORIZED,
        JoinError::Stopping => STOPPING,
        JoinError::Late | JoinError::TooMany => OVERLOADED,
    })?;
    let mut joined = Joined { registry: &state.registry, server_id, session_id, is_kept: false };

    let mut agent = json!(auth.agent);
    if let Some(fields) = agent.as_object_mut() {
        fields.insert("connected_at".to_owned(), json!(now));
        fields.insert("clock_offset_ms".to_owned(), json!(clock_offset_ms));
        fields.insert("sample_interval_seconds".to_owned(), json!(auth.sample_interval_seconds));
    }
    let (epoch, instance_id) = (opened.session_epoch, state.cluster.instance_id);
    let claim = (!state.cluster.is_alone()).then_some(SessionClaim { instance_id, epoch });
    let connected =
        Connected { server_id, session_id, key_id: opened.key_id, agent: agent.to_string(), at: now, claim };
    // Kept until the server is known to be here, or the handshake has failed.
    let _arriving = state.jobs.reconcile(server_id, auth.commands.as_deref()).await.map_err(|error| {
        tracing::error!(server.id = %server_id, %error, "the commands of a server could not be looked up");
        OVERLOADED
    })?;
    if state.recorder.connected(connected).await.map_err(|_| OVERLOADED)? == Held::No {
        return Err(OVERLOADED);
    }
    // The instance that held it before lets go, and only then the way leads here: there are never two.
    state.cluster.took_over(server_id).await;
    let place = state.registry.place(server_id).await;
    if claim.is_some() && !still_holds(&state, server_id, session_id).await {
        return Err(OVERLOADED);
    }
    state.registry.announce(server_id, session_id, place).await.map_err(|_| STOPPING)?;
    joined.is_kept = true;

    if clock_offset_ms.is_some_and(|offset| offset.unsigned_abs() > NOTABLE_CLOCK_OFFSET_MS) {
        tracing::warn!(server.id = %server_id, ?clock_offset_ms, "the agent's clock is off");
    }
    Ok(Admitted { server_id, owner_id: opened.owner_id, boot_id: auth.agent.boot_id, clock_offset_ms })
}

/// Whether no other instance took the server over before the way led here.
async fn still_holds(state: &State, server_id: Uuid, session_id: Uuid) -> bool {
    match state.store.session_rows(&[server_id]).await {
        Ok(rows) => rows.get(&server_id).is_some_and(|row| row.session_id == Some(session_id)),
        Err(error) => {
            tracing::error!(server.id = %server_id, %error, "a server's session could not be looked up");
            false
        }
    }
}

fn refusal(error: KeyError) -> Refusal {
    match error {
        KeyError::Refused => UNAUTHORIZED,
        KeyError::Store(error) => {
            tracing::error!(%error, "a key could not be looked up");
            OVERLOADED
        }
    }
}

/// Gives the server back if the handshake ends half-way, by an error or because the socket has gone.
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
