//! What requests have in common that run a command on servers, now or later: one command, batches, approvals and schedules.

use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::Signed;
use signalbox_signing::{Asked, Payload, payload};

use crate::auth::access::{Action, Right, ServerAccess};
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::field::{Number, References, Tag};
use crate::http::selection::{Selection, select};
use crate::http::signed_in::checked_signing;
use crate::state::State;
use crate::store::Caller;

/// What it does to each server.
pub(in crate::http) const RUN: Action = Action::Use(Right::Commands);

/// An agent with it checks signatures of commands.
pub(in crate::http) const SIGNED_COMMANDS: &str = "commands_signed";

/// The time limit of a command, in seconds.
pub(in crate::http) type TimeoutSeconds = Number<1, 3_600>;

/// How many servers run a command at the same time.
pub(in crate::http) type Concurrency = Number<1, 1_000>;

const DEFAULT_TIMEOUT_SECONDS: u64 = 60;

const DEFAULT_CONCURRENCY: u64 = 50;

/// Bytes of command, input and what was signed for all servers together that one request may store until they are sent.
const MAX_BYTES: usize = 16 * 1024 * 1024;

pub(in crate::http) fn seconds(asked: Option<TimeoutSeconds>) -> u32 {
    u32::try_from(asked.map_or(DEFAULT_TIMEOUT_SECONDS, |Number(seconds)| seconds)).unwrap_or(u32::MAX)
}

pub(in crate::http) fn concurrency(asked: Option<Concurrency>) -> u16 {
    u16::try_from(asked.map_or(DEFAULT_CONCURRENCY, |Number(count)| count)).unwrap_or(1)
}

/// The servers that a request names.
pub(in crate::http) fn selection(server_ids: Option<References>, tag: Option<Tag>) -> Selection {
    Selection {
        named: server_ids.map(|References(ids)| ids).unwrap_or_default(),
        tag: tag.map(|Tag(tag)| tag),
        is_all: false,
    }
}

/// Those of the selected servers on which the caller may run commands; at least one.
pub(in crate::http) async fn runnable(
    state: &State,
    caller: &Caller,
    selection: Selection,
) -> Result<Vec<ServerAccess>, ApiError> {
    let none = "No server is selected: set server_ids, or a tag that at least one server has";
    select(state, caller, selection, RUN, none).await
}

/// Refuses what is too much for so many servers.
pub(super) fn expect_room(
    command: &str,
    stdin: Option<&str>,
    signed: Option<&Signed>,
    servers: usize,
) -> Result<(), ApiError> {
    let each = command.len() + stdin.map_or(0, str::len) + signed.map_or(0, Signed::bytes);
    if each.saturating_mul(servers) <= MAX_BYTES {
        return Ok(());
    }
    Err(refused(match signed {
        // The payload names all servers, and is stored for each one.
        Some(_) => {
            "Command, stdin, payload and signatures are too long for so many servers: at most 16 MiB in total, and each server \
             has its own copy. Sign and run several batches of fewer servers"
        }
        None => "Command and stdin are too long for so many servers: at most 16 MiB in total",
    }))
}

/// Reads what is signed, and refuses what no agent would run.
pub(in crate::http) fn readable(
    signed: &Signed,
    asked: Asked<'_>,
    now: Timestamp,
) -> Result<(Payload, Vec<u8>), ApiError> {
    let unreadable = |error: payload::PayloadError| refused(error.to_string());
    let bytes = payload::decode(&signed.payload).map_err(unreadable)?;
    let payload = Payload::parse(&bytes).map_err(unreadable)?;
    if let Some(difference) = payload.difference(asked) {
        return Err(refused(difference));
    }
    if payload.expires_at <= now {
        let detail = format!("the payload held until {}, and it is {now}: sign another one", payload.expires_at);
        return Err(refused(detail));
    }
    Ok((payload, bytes))
}

/// How many people have to sign for a server, as far as its agent has said so. Refuses a payload that does not name the server, and
/// any for an agent that does not check signatures.
pub(in crate::http) async fn approvals_for(
    state: &State,
    payload: &Payload,
    server: &ServerAccess,
) -> Result<Option<(String, u32)>, ApiError> {
    let signing = checked_signing(state, server.owner_id(), server.server_id(), SIGNED_COMMANDS).await?;
    let Some(signing) = signing else { return Ok(None) };
    if !payload.servers.contains(&signing.name) {
        let detail = format!("the payload does not name `{}`: add every server to its `servers`", signing.name);
        return Err(refused(detail));
    }
    Ok(Some((signing.name, signing.approvals)))
}

/// 400 with this sentence.
pub(in crate::http) fn refused(detail: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use signalbox_protocol::signed::Signature;

    use super::*;

    #[test]
    fn a_batch_that_is_too_large_for_its_signatures_says_what_to_do() {
        let room = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("server-{number:04}")).collect();
            let payload = BASE64_STANDARD.encode(serde_json::json!({ "servers": names }).to_string());
            let signature = Signature::Sshsig { signature: "s".repeat(300) };
            expect_room("uptime", None, Some(&Signed { payload, signatures: vec![signature] }), count)
        };

        assert!(room(800).is_ok());
        let refusal = room(1_200).unwrap_err().to_string();
        assert!(refusal.contains("several batches"), "{refusal}");
        let unsigned = expect_room(&"x".repeat(2_000), None, None, 10_000).unwrap_err().to_string();
        assert!(!unsigned.contains("signatures"), "{unsigned}");
    }
}
