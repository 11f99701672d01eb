//! `/auth/totp`, `/auth/step-up` and `/auth/passkeys`: second factors, and proofs of identity in a session.

mod credential;
mod passkeys;

use actix_web::web::Json;
use deserr::{Deserr, ValuePointerRef};
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use serde::Serialize;

pub use self::credential::FormOtp;
use self::credential::{AssertionIn, Otp};
use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::field::Shown;
use super::extract::given::Given;
use super::extract::{self, Checked, Fresh, NoQuery, SignedIn, Unproved};
use super::path::at;
use super::reply::{Done, fault_of};
use super::task::run_detached;
use crate::auth::account::AccountError;
use crate::auth::factors::FactorError;
use crate::auth::proof;
use crate::store::SecondFactors;

/// Your second factors.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct SecondFactorOut {
    /// Whether an authenticator app is set up.
    totp: bool,
    /// The number of your passkeys.
    passkeys: u64,
    /// The number of recovery codes that you have not used.
    recovery_codes_left: u64,
}

impl From<SecondFactors> for SecondFactorOut {
    fn from(factors: SecondFactors) -> Self {
        let SecondFactors { totp, passkeys, recovery_codes_left } = factors;
        Self { totp, passkeys, recovery_codes_left }
    }
}

/// The secret of an authenticator app.
#[derive(Serialize, Apiv2Schema)]
pub struct TotpOut {
    /// The secret in base 32, to type it into the app. Only this response contains it.
    secret: String,
    /// The same as an address, which apps read from a QR code.
    otpauth_url: String,
}

/// Set up an authenticator app
///
/// Returns a secret for the app (TOTP, RFC 6238: SHA-1, 6 digits, 30 s). Codes are asked for once you have confirmed one;
/// until then, another request replaces the secret. Answers 400 `bad_request` if an app is set up, and 403
/// `step_up_required` if this session has not proved the second factor that the account has.
#[api_v2_operation(tags(Authentication), operation_id = "begin_totp")]
pub async fn begin_totp(ask: Checked<Fresh<Unproved<SignedIn>>>) -> Result<Json<TotpOut>, ApiError> {
    let Fresh(Unproved(SignedIn { caller, .. })) = ask.subject;
    let factors = &ask.state.accounts.factors;
    factors.check_may_change(&caller).await?;
    let setup = factors.begin_totp(&caller).await?;
    Ok(Json(TotpOut { secret: setup.secret, otpauth_url: setup.url }))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ConfirmIn {
    /// The code that the app shows.
    otp: Otp,
}

/// The recovery codes of an account.
#[derive(Serialize, Apiv2Schema)]
pub struct RecoveryCodesOut {
    /// Ten codes, each of which replaces a code of the app once. Only this response contains them.
    recovery_codes: Vec<String>,
}

/// Confirm an authenticator app
///
/// From now on, signing in with the password takes a code too. A wrong code is 400 `invalid_credentials`.
#[api_v2_operation(tags(Authentication), operation_id = "confirm_totp")]
pub async fn confirm_totp(
    ask: Checked<Fresh<Unproved<SignedIn>>, NoQuery, extract::Json<ConfirmIn>>,
) -> Result<Json<RecoveryCodesOut>, ApiError> {
    let Fresh(Unproved(SignedIn { caller, actor })) = ask.subject;
    let extract::Json(ConfirmIn { otp: Otp(code) }) = ask.body;
    let accounts = &ask.state.accounts;
    accounts.factors.check_may_change(&caller).await?;
    let recovery_codes = accounts.factors.confirm_totp(&caller, &code, actor).await?;
    accounts.logins.forget(caller.user_id);
    Ok(Json(RecoveryCodesOut { recovery_codes }))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct RemoveTotpIn {
    /// Required if the account has one.
    #[deserr(default)]
    password: Option<Shown>,
    /// A code of the app, or a recovery code.
    otp: Otp,
}

/// Remove your authenticator app
///
/// Also removes the recovery codes. A wrong password or code is 400 `invalid_credentials`.
#[api_v2_operation(tags(Authentication), operation_id = "remove_totp")]
pub async fn remove_totp(ask: Checked<SignedIn, NoQuery, extract::Json<RemoveTotpIn>>) -> Result<Done, ApiError> {
    let SignedIn { caller, actor } = ask.subject;
    let extract::Json(RemoveTotpIn { password, otp: Otp(code) }) = ask.body;
    let password = password.map(|Shown(password)| password);
    let removed = run_detached(async move { Ok(ask.state.accounts.remove_totp(&caller, password, code, actor).await) });
    removed.await?.map_err(refusal)?;
    Ok(Done("Authenticator app removed"))
}

/// Exactly one of the fields.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults, validate = one_proof -> Faults)]
pub struct StepUpIn {
    #[deserr(default)]
    password: Given<Option<Shown>>,
    /// A code of your authenticator app, or a recovery code.
    #[deserr(default)]
    otp: Given<Option<Otp>>,
    /// The answer of one of your passkeys to `POST /auth/passkeys/challenge`.
    #[deserr(default)]
    passkey: Given<Option<AssertionIn>>,
}

/// [`StepUpIn`] with the one field that it has.
fn one_proof(input: StepUpIn, _: ValuePointerRef<'_>) -> Result<StepUpIn, Faults> {
    let mut faults = Faults::default();
    let StepUpIn { password, otp, passkey } = &input;
    let given = [
        ("password", password.maybe(&mut faults).is_some() || password.is_faulty()),
        ("otp", otp.maybe(&mut faults).is_some() || otp.is_faulty()),
        ("passkey", passkey.maybe(&mut faults).is_some() || passkey.is_faulty()),
    ];
    let mut named = given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
    if named.next().is_none() {
        faults.0.extend(fault_of("password", "value_error.missing", "field required").0);
    }
    for name in named {
        faults.0.extend(fault_of(name, "value_error.proof", "give exactly one of password, otp and passkey").0);
    }
    if faults.0.is_empty() { Ok(input) } else { Err(faults) }
}

impl StepUpIn {
    /// The only field that is there.
    fn proof(self) -> Option<proof::Given> {
        match (self.password, self.otp, self.passkey) {
            (Given::Sound(Some(Shown(password))), _, _) => Some(proof::Given::Password(password)),
            (_, Given::Sound(Some(Otp(code))), _) => Some(proof::Given::Otp(code)),
            (_, _, Given::Sound(Some(passkey))) => Some(proof::Given::Passkey(Box::new(passkey.into()))),
            _ => None,
        }
    }
}

/// Prove again who you are
///
/// Renews the proof that commands, terminals, API keys, grants, teams, accounts and invitations need where the service runs
/// with `--step-up`. An account without a password (400 `no_password`) proves it with a code or a passkey. A code or a passkey
/// also proves the session's second factor. A wrong one is 400 `invalid_credentials`.
#[api_v2_operation(tags(Authentication), operation_id = "step_up")]
pub async fn step_up(ask: Checked<Unproved<SignedIn>, NoQuery, extract::Json<StepUpIn>>) -> Result<Done, ApiError> {
    let Unproved(SignedIn { caller, actor }) = ask.subject;
    let extract::Json(input) = ask.body;
    let given = input.proof().ok_or_else(|| ApiError::internal("a checked body has no proof"))?;
    ask.state.accounts.step_up(&caller, given, actor).await.map_err(refusal)?;
    Ok(Done("Identity proved"))
}

/// The error of a proof in a session. It is not 401, because the session continues.
fn refusal(error: AccountError) -> ApiError {
    match error {
        AccountError::InvalidCredentials => {
            ApiError::Refused { code: ErrorCode::InvalidCredentials, detail: "The password is wrong".into() }
        }
        AccountError::Factor(FactorError::Passkey(reason)) => ApiError::Refused {
            code: ErrorCode::InvalidCredentials,
            detail: format!("The passkey was not accepted: {reason}").into(),
        },
        AccountError::Factor(error) => error.into(),
        other => other.into(),
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/auth/totp").route(post().to(begin_totp)).route(delete().to(remove_totp)),
        at("/auth/totp/confirm").route(post().to(confirm_totp)),
        at("/auth/step-up").route(post().to(step_up)),
        at("/auth/passkeys").route(get().to(passkeys::list)).route(post().to(passkeys::register)),
        at("/auth/passkeys/registration").route(post().to(passkeys::begin_registration)),
        at("/auth/passkeys/challenge").route(post().to(passkeys::challenge)),
        at("/auth/passkeys/login").route(post().to(passkeys::login)),
        at("/auth/passkeys/{id}").route(delete().to(passkeys::remove)),
    ]
}
