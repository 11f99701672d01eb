//! `/enrol`: a machine makes itself a server, with the token of an enrolment and nothing else.

use actix_web::HttpRequest;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, post};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use paperclip::v2::models::DefaultOperationRaw;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::json;

use super::client_address::client_address;
use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::{Host, bounded, described, string, text_field};
use super::extract::{self, Checked, NoPath, NoQuery, Subject, bearer_token, needs_token};
use super::field_out::Id;
use super::path::at;
use super::task::run_detached;
use crate::audit::{Actor, ByToken};
use crate::auth::bearer::BearerError;
use crate::auth::token::TokenError;
use crate::auth::{api_key, enrolment};
use crate::change::Change;
use crate::effects;
use crate::feeds::{FeedFrame, Topic};
use crate::shares::Permit;
use crate::shares::share::{self, Part, Share};
use crate::state::State;
use crate::store::{Enrolling, KnownEnrolment, Newcomer, StoreError};

/// A machine that shows the token of an enrolment.
pub struct Machine {
    enrolment: KnownEnrolment,
    address: String,
}

impl Subject for Machine {
    type Identity = Self;
    type Path = NoPath;

    async fn identify(state: &State, request: &HttpRequest) -> Result<Self, ApiError> {
        let token = bearer_token(request).ok_or(ApiError::code(ErrorCode::NotAuthenticated))?;
        let address = client_address(request, state);
        // As unknown keys of agents: guesses wait behind others of their own address, and equal ones behind each other.
        let part = Part { part: share::digest(token), within: 0 };
        let _permit = state.limits.shares.keys.enter_part(Share::of_written(&address), part).await?;
        let enrolment = enrolment::open(&state.store, token, &address, state.clock.now()).await?;
        Ok(Self { enrolment, address })
    }

    async fn authorize(_: &State, machine: Self, _: NoPath, _: &HttpRequest) -> Result<Self, ApiError> {
        Ok(machine)
    }

    fn document(op: &mut DefaultOperationRaw) {
        needs_token(op);
    }
}

text_field!(
    /// A text that the machine made at random.
    RequestId(String),
    |text, location| {
        let text = bounded(text, 22, 64, location)?;
        let sound = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let msg = "string does not match regex \"^[A-Za-z0-9_-]+$\"";
        if sound { Ok(text) } else { Err(Faults::at(location, "value_error.str.regex", msg)) }
    },
    json!({ "type": "string", "minLength": 22, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$",
            "example": "6b1f0c5e9a3d4e7f8a2b1c0d9e8f7a6b" })
);

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct EnrolIn {
    /// The machine's host name, which becomes the name of the server. If you have a server with this name, a number is added.
    hostname: Host,
    /// At least 128 random bits that the machine keeps until it has an answer. The same request with the same id gets the
    /// same server, and a new key; the key of the earlier answer is revoked.
    #[deserr(default)]
    request_id: Option<RequestId>,
}

/// The server that the machine is now.
#[derive(Serialize, Apiv2Schema)]
pub struct EnrolledOut {
    server_id: Id,
    name: String,
    /// The agent's key. Only this response contains it.
    key: String,
    /// The policy file for a machine that has none; null if the enrolment has no policy.
    policy: Option<String>,
}

/// Make this machine a server
///
/// Takes the token of an enrolment in place of yours. Each request makes a server with a key of its own; 403 `enrolment_used_up` once
/// there are as many as the enrolment allows.
#[api_v2_operation(tags(Enrolments), operation_id = "enrol")]
pub async fn enrol(
    ask: Checked<Machine, NoQuery, extract::Json<EnrolIn>>,
) -> Result<CreatedJson<EnrolledOut>, ApiError> {
    let Machine { enrolment, address } = ask.subject;
    let extract::Json(input) = ask.body;
    let fresh = api_key::generate().map_err(ApiError::internal)?;
    let (state, owner_id) = (ask.state, enrolment.owner_id);
    // Before the time is read: the enrolment may end while the machine waits.
    let permit = state.limits.shares.enrolments.enter(Share::Account(owner_id)).await?;
    let actor = Actor {
        user_id: Some(owner_id),
        username: enrolment.owner.into(),
        login_id: None,
        token: Some(ByToken { id: enrolment.id, name: enrolment.name.into() }),
        address: address.clone(),
    };
    let newcomer = Newcomer {
        enrolment_id: enrolment.id,
        owner_id,
        hostname: input.hostname.0,
        request: input.request_id.map(|RequestId(id)| enrolment::request_digest(&id)),
        key_prefix: fresh.prefix,
        key_digest: fresh.digest.to_vec(),
        address,
        now: state.clock.now(),
    };
    match run_detached(async move { make(&state, newcomer, actor, permit).await }).await? {
        Enrolling::Done(enrolled) => Ok(CreatedJson(EnrolledOut {
            server_id: Id(enrolled.server_id),
            name: enrolled.name,
            key: fresh.token.expose_secret().to_owned(),
            policy: enrolled.policy,
        })),
        Enrolling::Expired => Err(BearerError::from(TokenError::Expired).into()),
        Enrolling::Ended => Err(BearerError::Revoked.into()),
        Enrolling::UsedUp => Err(ApiError::code(ErrorCode::EnrolmentUsedUp)),
        Enrolling::Answered => {
            let detail = "This request was answered, and its key was used or revoked: send another request_id";
            Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() })
        }
    }
}

/// Makes the machine a server, and applies what that changes.
async fn make(state: &State, newcomer: Newcomer, actor: Actor, permit: Permit) -> Result<Enrolling, ApiError> {
    let owner_id = newcomer.owner_id;
    let outcome = state.store.enrol(newcomer, actor).await;
    // The next one needs only the database.
    drop(permit);
    if let Ok(Enrolling::Done(enrolled)) = &outcome {
        if let Some(key_id) = enrolled.revoked_key {
            effects::commit(state, Change::KeyRevoked { key_id }).await;
        }
        if enrolled.is_shared {
            effects::commit(state, Change::AccessChanged).await;
        }
        effects::commit(state, Change::ServerChanged { server_id: enrolled.server_id, owner_id }).await;
    }
    if let Err(StoreError::Database(_)) = &outcome {
        // The server and its grants may be stored although the answer was lost, so both are read again.
        effects::commit(state, Change::AccessChanged).await;
        state.feeds.publish(Topic::Servers(owner_id), FeedFrame::Notice);
    }
    Ok(outcome?)
}

/// The routes.
pub fn routes() -> Vec<Resource> {
    vec![at("/enrol").route(post().to(enrol))]
}
