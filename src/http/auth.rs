//! `/auth`: accounts and sign-ins.

use actix_web::ResponseError;
use actix_web::http::StatusCode;
use actix_web::web::Json;
use deserr::{Deserr, IntoValue, Value, ValuePointerRef};
use paperclip::actix::web::{Resource, delete, get, post, put};
use paperclip::actix::{Apiv2Schema, CreatedJson, api_v2_operation};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::error::{ApiError, ErrorCode};
use super::extract::cross_check::{CrossCheck, CrossChecked, Fields};
use super::extract::fault::{Faults, Part};
use super::extract::field::{Email, FullName, LoginName, NewPassword, Shown, Username, described};
use super::extract::given::Given;
use super::extract::{self, Anyone, Checked, Form, NoQuery, OptionalJson, SignedIn, Unproved};
use super::factors::{FormOtp, SecondFactorOut};
use super::field_out::{Id, TimeOut};
use super::own_account::delete_me;
use super::path::at;
use super::refresh_cookie::{Browser, Jar, WithCookie};
use super::reply::{Done, DoneOut, fault_of};
use super::task::run_detached;
use crate::auth::account::{AccountError, Credentials, Origin, TokenPair};
use crate::change::Change;
use crate::effects;
use crate::state::State;
use crate::store::{NewUser, StoreError, User, UserPatch};

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct RegisterIn {
    email: Email,
    username: Username,
    password: NewPassword,
    /// The password again.
    #[expect(dead_code, reason = "only compared")]
    password_confirm: Shown,
    full_name: FullName,
    /// Required for the first account if other machines can reach the service, which writes the code to its log at the
    /// start.
    #[deserr(default)]
    setup_code: Option<Shown>,
    /// The token of an invitation, with which an account can be created also if registration is closed.
    #[deserr(default)]
    invitation: Option<Shown>,
}

impl CrossCheck for RegisterIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_same(fields, "password", "password_confirm")
    }
}

/// Two texts that differ are a fault also where the password has one of its own.
fn check_same(fields: &Fields<'_>, password: &str, confirm: &str) -> Result<(), Faults> {
    let both = fields.sound(password).zip(fields.sound(confirm));
    let is_same = both.is_none_or(|(Shown(new), Shown(again))| new.expose_secret() == again.expose_secret());
    is_same.then_some(()).ok_or_else(|| fault_of(confirm, "value_error.password_mismatch", "passwords do not match"))
}

/// A new user.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct UserOut {
    id: Id,
    email: String,
    username: String,
    full_name: String,
}

/// Your account.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ProfileOut {
    id: Id,
    email: String,
    username: String,
    full_name: String,
    /// Whether you administer the service, as its first account does.
    is_admin: bool,
    created_at: TimeOut,
    updated_at: TimeOut,
    second_factor: SecondFactorOut,
}

impl ProfileOut {
    async fn of(user: User, state: &State) -> Result<Self, ApiError> {
        let second_factor = state.accounts.factors.of(user.id).await?.into();
        Ok(Self {
            id: Id(user.id),
            email: user.email,
            username: user.username,
            full_name: user.full_name,
            is_admin: user.is_admin,
            created_at: TimeOut(user.created_at.into()),
            updated_at: TimeOut(user.updated_at.into()),
            second_factor,
        })
    }
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RegisteredOut {
    user: UserOut,
    access_token: String,
    refresh_token: String,
    token_type: String,
}

#[derive(Debug, Serialize, Apiv2Schema)]
pub struct TokenPairOut {
    /// Valid for 30 minutes.
    access_token: String,
    /// Valid for 7 days, and only once.
    refresh_token: String,
    /// Always `bearer`.
    token_type: String,
}

impl From<TokenPair> for TokenPairOut {
    fn from(pair: TokenPair) -> Self {
        Self { access_token: pair.access_token, refresh_token: pair.refresh_token, token_type: BEARER.to_owned() }
    }
}

const BEARER: &str = "bearer";

impl From<Anyone> for Origin {
    fn from(anyone: Anyone) -> Self {
        let Anyone { user_agent, address, connection, via } = anyone;
        Self { user_agent, address, connection, via }
    }
}

/// Register a user
///
/// Creates an account and signs it in. The first account administers the service. If registration is closed, only the
/// first account and those with an `invitation` can be created (403 `registration_closed`). An invitation works once (403
/// `invitation_invalid`: unknown, used, expired, or for another e-mail address). If other machines can reach the service, directly or
/// through a proxy, the first account requires `setup_code` (403 `setup_required`); after ten wrong codes within a
/// minute, further ones are refused (503 `busy`).
#[api_v2_operation(tags(Authentication), operation_id = "register")]
pub async fn register(
    ask: Checked<Browser<Anyone>, NoQuery, extract::Json<CrossChecked<RegisterIn>>>,
) -> Result<WithCookie<CreatedJson<RegisteredOut>>, ApiError> {
    let extract::Json(CrossChecked(input)) = ask.body;
    let new = NewUser {
        id: Uuid::now_v7(),
        email: input.email.0,
        username: input.username.0,
        full_name: input.full_name.0,
        password_hash: String::new(),
    };
    let shown = Credentials {
        setup_code: input.setup_code.map(|code| code.0),
        invitation: input.invitation.map(|token| token.0),
    };
    let Browser { who, jar } = ask.subject;
    let is_invited = shown.invitation.is_some();
    let state = ask.state;
    let account = state.accounts.prepare(new, input.password.0, shown, who.into()).await?;
    // In a separate task: the invitation may have grants, which also count if the client disconnects.
    let registered = run_detached(async move {
        let registered = state.accounts.register(account).await;
        // Even after an error of the database: the account may be stored although the answer was lost.
        if is_invited && matches!(&registered, Ok(_) | Err(AccountError::Store(StoreError::Database(_)))) {
            effects::commit(&state, Change::AccessChanged).await;
        }
        Ok(registered?)
    });
    let (user, mut pair) = registered.await?;
    let cookie = jar.map(|jar| jar.keep(&mut pair));
    let answer = CreatedJson(RegisteredOut {
        user: UserOut { id: Id(user.id), email: user.email, username: user.username, full_name: user.full_name },
        access_token: pair.access_token,
        refresh_token: pair.refresh_token,
        token_type: BEARER.to_owned(),
    });
    Ok(WithCookie { answer, cookie })
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct LoginIn {
    /// The user name or the e-mail address.
    username: LoginName,
    password: Shown,
    /// A code of the account's authenticator app, or a recovery code. Needed only if the account has an app.
    #[deserr(default)]
    otp: Option<FormOtp>,
}

/// Sign in
///
/// Takes a form. A wrong name and a wrong password get the same answer (401 `invalid_credentials`). If the password is right
/// and the account has an authenticator app, a missing `otp` is 401 `otp_required`. Each code works once; after ten wrong
/// ones, the account's codes are refused for 15 minutes (503 `busy`).
#[api_v2_operation(tags(Authentication), operation_id = "login")]
pub async fn login(
    ask: Checked<Browser<Anyone>, NoQuery, Form<LoginIn>>,
) -> Result<WithCookie<Json<TokenPairOut>>, ApiError> {
    let Form(input) = ask.body;
    let otp = input.otp.and_then(|FormOtp(code)| code);
    let Browser { who, jar } = ask.subject;
    let pair = ask.state.accounts.login(&input.username.0, input.password.0, otp, who.into()).await?;
    Ok(shown(pair, jar.as_ref()))
}

/// The pair of tokens for the answer; the refresh token goes to the cookie if there is one.
pub fn shown(mut pair: TokenPair, jar: Option<&Jar>) -> WithCookie<Json<TokenPairOut>> {
    let cookie = jar.map(|jar| jar.keep(&mut pair));
    WithCookie { answer: Json(pair.into()), cookie }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct RefreshIn {
    // The header decides whether the field may be missing.
    #[deserr(default, from(Shown) = Given::Sound)]
    refresh_token: Given<Shown>,
}

/// What a refresh returns.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum RefreshOut {
    Pair(TokenPairOut),
    NoCookie(DoneOut),
}

described!(
    RefreshOut,
    json!({ "type": "object", "oneOf": [{ "$ref": "#/components/schemas/TokenPairOut" }, { "$ref": "#/components/schemas/DoneOut" }] })
);

/// Exchange a refresh token
///
/// Returns a new pair of tokens. Each refresh token works once; a client that lost the answer may repeat the same
/// request within 10 s. Using a spent token again ends the whole session (401 `token_reused`). The body may be omitted
/// if the token is in the cookie.
#[api_v2_operation(tags(Authentication), operation_id = "refresh")]
pub async fn refresh(
    ask: Checked<Browser<Anyone>, NoQuery, OptionalJson<RefreshIn>>,
) -> Result<WithCookie<Json<RefreshOut>>, ApiError> {
    let Browser { who, jar } = ask.subject;
    let in_body = token_in(ask.body, jar.is_some())?;
    if in_body.is_none() && jar.as_ref().is_some_and(Jar::is_empty_as_announced) {
        let answer = Json(RefreshOut::NoCookie(Done("The browser has no cookie").into()));
        return Ok(WithCookie { answer, cookie: None });
    }
    let in_cookies = jar.as_ref().map(Jar::tokens).unwrap_or_default();
    let tokens = in_body.as_ref().map_or(in_cookies, std::slice::from_ref);
    let mut pair = Err(ApiError::code(ErrorCode::TokenInvalid));
    for token in tokens {
        pair = ask.state.accounts.refresh(token.expose_secret(), who.address.clone()).await.map_err(ApiError::from);
        // Another cookie may have a valid token.
        if !matches!(&pair, Err(error) if error.status_code() == StatusCode::UNAUTHORIZED) {
            break;
        }
    }
    // A refusal keeps the cookie: its answer could arrive after that of a sign-in, and clear the new cookie.
    let WithCookie { answer: Json(next), cookie } = shown(pair?, jar.as_ref());
    Ok(WithCookie { answer: Json(RefreshOut::Pair(next)), cookie })
}

/// The token of the body, which may be missing only if the cookie may have it.
fn token_in(OptionalJson(body): OptionalJson<RefreshIn>, may_miss: bool) -> Result<Option<SecretString>, ApiError> {
    let missing = match body {
        Some(RefreshIn { refresh_token: Given::Sound(Shown(token)) }) => return Ok(Some(token)),
        _ if may_miss => return Ok(None),
        None => Faults::of(Part::Body, "value_error.missing", "field required"),
        Some(_) => fault_of("refresh_token", "value_error.missing", "field required").within(Part::Body),
    };
    Err(ApiError::Invalid(missing))
}

/// Get your profile
#[api_v2_operation(tags(Authentication), operation_id = "read_profile")]
pub async fn read_me(ask: Checked<Unproved<SignedIn>>) -> Result<Json<ProfileOut>, ApiError> {
    let Unproved(SignedIn { caller, .. }) = ask.subject;
    let user = ask.state.store.find_user(caller.user_id).await?.ok_or(ApiError::code(ErrorCode::TokenRevoked))?;
    Ok(Json(ProfileOut::of(user, &ask.state).await?))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ProfilePatch {
    #[deserr(default)]
    email: Option<Email>,
    #[deserr(default)]
    username: Option<Username>,
    #[deserr(default)]
    full_name: Option<FullName>,
}

/// Change your profile
///
/// Changes the given fields.
#[api_v2_operation(tags(Authentication), operation_id = "update_profile")]
pub async fn update_me(
    ask: Checked<SignedIn, NoQuery, extract::Json<ProfilePatch>>,
) -> Result<Json<ProfileOut>, ApiError> {
    let extract::Json(input) = ask.body;
    let patch = UserPatch {
        email: input.email.map(|Email(email)| email),
        username: input.username.map(|Username(username)| username),
        full_name: input.full_name.map(|FullName(name)| name),
    };
    let SignedIn { caller, actor } = ask.subject;
    let user = ask.state.store.update_user(caller.user_id, patch, actor).await?;
    effects::commit(&ask.state, Change::UserRenamed { user_id: caller.user_id }).await;
    let user = user.ok_or(ApiError::code(ErrorCode::TokenRevoked))?;
    Ok(Json(ProfileOut::of(user, &ask.state).await?))
}

/// Accepts `old_password` as another name for `current_password`.
#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ChangePasswordIn {
    /// Your present password. `old_password` is another name for this field.
    current_password: Shown,
    new_password: NewPassword,
    /// The new password again; may be omitted.
    #[deserr(default)]
    #[expect(dead_code, reason = "only compared")]
    new_password_confirm: Option<Shown>,
}

/// [`ChangePasswordIn`] with either name of its first field.
#[derive(Debug)]
pub struct PasswordChange(ChangePasswordIn);

impl CrossCheck for ChangePasswordIn {
    fn cross_check(fields: &Fields<'_>) -> Result<(), Faults> {
        check_same(fields, "new_password", "new_password_confirm")
    }
}

impl Deserr<Faults> for PasswordChange {
    fn deserialize_from_value<V: IntoValue>(value: Value<V>, location: ValuePointerRef<'_>) -> Result<Self, Faults> {
        let mut body = serde_json::Value::from(value);
        if let Some(fields) = body.as_object_mut()
            && !fields.contains_key("current_password")
            && let Some(old) = fields.remove("old_password")
        {
            fields.insert("current_password".to_owned(), old);
        }
        CrossChecked::deserialize_from_value(body.into_value(), location).map(|CrossChecked(input)| Self(input))
    }
}

impl paperclip::v2::schema::Apiv2Schema for PasswordChange {
    fn name() -> Option<String> {
        ChangePasswordIn::name()
    }

    fn raw_schema() -> paperclip::v2::models::DefaultSchemaRaw {
        ChangePasswordIn::raw_schema()
    }
}

/// Change your password
///
/// Ends all your other sessions. A wrong current password is 400 `invalid_credentials`.
#[api_v2_operation(tags(Authentication), operation_id = "change_password")]
pub async fn change_password(ask: Checked<SignedIn, NoQuery, extract::Json<PasswordChange>>) -> Result<Done, ApiError> {
    let extract::Json(PasswordChange(input)) = ask.body;
    let (current, new) = (input.current_password.0, input.new_password.0);
    let SignedIn { caller, actor } = ask.subject;
    let changed = run_detached(async move {
        let changed = ask.state.accounts.change_password(&caller, current, new, actor).await;
        let ended = match &changed {
            Ok(ended) => Some(ended.clone()),
            // The password may be changed although the answer was lost, so the user's logins are read again.
            Err(AccountError::Store(StoreError::Database(_))) => Some(Vec::new()),
            Err(_) => None,
        };
        if let Some(ended) = ended {
            effects::commit(&ask.state, Change::PasswordChanged { user_id: caller.user_id, ended }).await;
        }
        Ok(changed)
    });
    match changed.await? {
        Err(AccountError::InvalidCredentials) => Err(ApiError::code(ErrorCode::InvalidCredentials)),
        other => Ok(other.map(|_| Done("Password changed"))?),
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/auth/register").route(post().to(register)),
        at("/auth/login").route(post().to(login)),
        at("/auth/refresh").route(post().to(refresh)),
        at("/auth/me").route(get().to(read_me)).route(put().to(update_me)).route(delete().to(delete_me)),
        at("/auth/change-password").route(post().to(change_password)),
    ]
}
