//! `/auth/passkeys`: how passkeys are made, listed, used and removed.

use actix_web::web::Json;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use deserr::Deserr;
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use serde::Serialize;

use super::credential::{AssertionIn, CredentialIn};
use crate::auth::factors::FactorError;
use crate::auth::webauthn::{ALGORITHMS, CHALLENGE_SECONDS, Purpose};
use crate::http::auth::{TokenPairOut, shown};
use crate::http::error::ApiError;
use crate::http::extract::fault::Faults;
use crate::http::extract::field::Name;
use crate::http::extract::param::PageQuery;
use crate::http::extract::{self, Anyone, CallerAt, Checked, Fresh, IdPath, NoQuery, SignedIn, Unproved};
use crate::http::field_out::{Id, TimeOut};
use crate::http::refresh_cookie::{Browser, WithCookie};
use crate::http::reply::{Done, Listed};
use crate::store::{MAX_PASSKEYS, PageRequest, Passkey};

/// What authenticators show as the name of the service.
const NAME: &str = "Signalbox";

const KIND: &str = "public-key";

/// All passkeys of a user.
const ALL: PageRequest = PageRequest { limit: MAX_PASSKEYS, offset: 0 };

/// A passkey must be found without a name, and check who uses it.
const REQUIRED: &str = "required";

/// How long a browser waits, in milliseconds: as long as the challenge holds.
const TIMEOUT_MS: i64 = CHALLENGE_SECONDS * 1_000;

/// Options for `navigator.credentials.create`, for `PublicKeyCredential.parseCreationOptionsFromJSON`.
#[derive(Debug, Serialize, Apiv2Schema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationOptionsOut {
    challenge: String,
    rp: RelyingPartyOut,
    user: PasskeyUserOut,
    pub_key_cred_params: Vec<AlgorithmOut>,
    /// Milliseconds.
    timeout: i64,
    exclude_credentials: Vec<CredentialOut>,
    authenticator_selection: SelectionOut,
    attestation: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RelyingPartyOut {
    /// The host name that passkeys are bound to.
    id: String,
    name: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
#[serde(rename_all = "camelCase")]
pub struct PasskeyUserOut {
    /// Your id, in base64url.
    id: String,
    name: String,
    display_name: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct AlgorithmOut {
    #[serde(rename = "type")]
    kind: String,
    alg: i64,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct CredentialOut {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionOut {
    resident_key: String,
    require_resident_key: bool,
    user_verification: String,
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Begin to make a passkey
///
/// Returns what the browser needs. The challenge holds for five minutes. Answers 400 `bad_request` if the service has no
/// host name that passkeys could be bound to (`--public-url`), and 403 `step_up_required` if this session has not proved the
/// second factor that the account has.
#[api_v2_operation(tags(Authentication), operation_id = "begin_passkey")]
pub async fn begin_registration(
    ask: Checked<Fresh<Unproved<SignedIn>>>,
) -> Result<Json<RegistrationOptionsOut>, ApiError> {
    let Fresh(Unproved(SignedIn { caller, .. })) = ask.subject;
    let factors = &ask.state.accounts.factors;
    let rp_id = factors.verifier().map_err(FactorError::from)?.relying_party.id.clone();
    factors.check_may_change(&caller).await?;
    let known = ask.state.store.list_passkeys(caller.user_id, ALL).await?.items;
    let challenge = factors.challenge(Purpose::Register(caller.user_id))?;
    let algorithm = |alg| AlgorithmOut { kind: KIND.to_owned(), alg };
    let credential = |known: Passkey| CredentialOut { kind: KIND.to_owned(), id: base64url(&known.credential_id) };
    Ok(Json(RegistrationOptionsOut {
        challenge: base64url(&challenge),
        rp: RelyingPartyOut { id: rp_id, name: NAME.to_owned() },
        user: PasskeyUserOut {
            id: base64url(caller.user_id.as_bytes()),
            name: caller.username.to_string(),
            display_name: caller.username.to_string(),
        },
        pub_key_cred_params: ALGORITHMS.into_iter().map(algorithm).collect(),
        timeout: TIMEOUT_MS,
        exclude_credentials: known.into_iter().map(credential).collect(),
        authenticator_selection: SelectionOut {
            resident_key: REQUIRED.to_owned(),
            require_resident_key: true,
            user_verification: REQUIRED.to_owned(),
        },
        attestation: "none".to_owned(),
    }))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct PasskeyIn {
    /// A name by which you recognise the passkey later.
    name: Name,
    credential: CredentialIn,
}

/// A passkey.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct PasskeyOut {
    id: Id,
    name: String,
    created_at: TimeOut,
    last_used_at: Option<TimeOut>,
}

impl From<Passkey> for PasskeyOut {
    fn from(passkey: Passkey) -> Self {
        Self {
            id: Id(passkey.id),
            name: passkey.name,
            created_at: TimeOut(passkey.created_at.into()),
            last_used_at: passkey.last_used_at.map(|at| TimeOut(at.into())),
        }
    }
}

/// Add a passkey
///
/// Takes what `navigator.credentials.create` returned. A passkey signs you in without the password, and is a second factor.
#[api_v2_operation(tags(Authentication), operation_id = "create_passkey")]
pub async fn register(
    ask: Checked<Fresh<Unproved<SignedIn>>, NoQuery, extract::Json<PasskeyIn>>,
) -> Result<CreatedJson<PasskeyOut>, ApiError> {
    let Fresh(Unproved(SignedIn { caller, actor })) = ask.subject;
    let extract::Json(PasskeyIn { name: Name(name), credential }) = ask.body;
    let accounts = &ask.state.accounts;
    accounts.factors.check_may_change(&caller).await?;
    let passkey = accounts.factors.register_passkey(&caller, name, &credential.into(), actor).await?;
    accounts.logins.forget(caller.user_id);
    Ok(CreatedJson(passkey.into()))
}

/// List your passkeys
#[api_v2_operation(tags(Authentication), operation_id = "list_passkeys")]
pub async fn list(ask: Checked<Unproved<SignedIn>, PageQuery>) -> Result<Listed<PasskeyOut>, ApiError> {
    let Unproved(SignedIn { caller, .. }) = ask.subject;
    let page = ask.state.store.list_passkeys(caller.user_id, ask.query.into()).await?;
    Ok(Listed { items: page.items.into_iter().map(PasskeyOut::from).collect(), total: page.total })
}

/// Remove a passkey
///
/// Answers 403 `step_up_required` if this session has not proved the second factor that the account has.
#[api_v2_operation(tags(Authentication), operation_id = "delete_passkey")]
pub async fn remove(ask: Checked<Fresh<CallerAt<IdPath>>>) -> Result<Done, ApiError> {
    let Fresh(CallerAt { caller, actor, path }) = ask.subject;
    let accounts = &ask.state.accounts;
    accounts.factors.check_may_change(&caller).await?;
    let is_removed = ask.state.store.remove_passkey(caller.user_id, path.id.0, actor).await?;
    accounts.logins.forget(caller.user_id);
    if is_removed { Ok(Done("Passkey removed")) } else { Err(ApiError::not_found("Passkey not found")) }
}

/// Options for `navigator.credentials.get`, for `PublicKeyCredential.parseRequestOptionsFromJSON`.
#[derive(Debug, Serialize, Apiv2Schema)]
#[serde(rename_all = "camelCase")]
pub struct ChallengeOut {
    challenge: String,
    rp_id: String,
    /// Milliseconds.
    timeout: i64,
    user_verification: String,
}

/// Get a challenge for a passkey
///
/// For signing in and for `POST /auth/step-up`. Requires no token. The challenge holds for five minutes, and once.
#[api_v2_operation(tags(Authentication), operation_id = "challenge_passkey")]
pub async fn challenge(ask: Checked<Anyone>) -> Result<Json<ChallengeOut>, ApiError> {
    let factors = &ask.state.accounts.factors;
    let rp_id = factors.verifier().map_err(FactorError::from)?.relying_party.id.clone();
    let challenge = base64url(&factors.challenge(Purpose::Prove)?);
    let user_verification = REQUIRED.to_owned();
    Ok(Json(ChallengeOut { challenge, rp_id, timeout: TIMEOUT_MS, user_verification }))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct PasskeyLoginIn {
    credential: AssertionIn,
}

/// Sign in with a passkey
///
/// Takes what `navigator.credentials.get` returned, and no name. It proves both factors. Anything that is wrong with it gets
/// the same answer (401 `invalid_credentials`).
#[api_v2_operation(tags(Authentication), operation_id = "login_with_passkey")]
pub async fn login(
    ask: Checked<Browser<Anyone>, NoQuery, extract::Json<PasskeyLoginIn>>,
) -> Result<WithCookie<Json<TokenPairOut>>, ApiError> {
    let extract::Json(PasskeyLoginIn { credential }) = ask.body;
    let Browser { who, jar } = ask.subject;
    let pair = ask.state.accounts.login_with_passkey(&credential.into(), who.into()).await?;
    Ok(shown(pair, jar.as_ref()))
}
