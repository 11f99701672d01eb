//! `/auth/oidc`: sign-in at an identity provider, links to it, and logout that it begins.
//!
//! The first two routes are for browsers, not for programs: each answers with a redirect, also when something went wrong.
//! The page at its end gets a short word in its address, and shows it as a sentence. No token is ever in an address.

mod identities;
mod navigation;
mod parameters;

use deserr::Deserr;
use paperclip::actix::web::{Resource, delete, get, post};
use paperclip::actix::{Apiv2Schema, api_v2_operation};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::client_address::client_address;
use super::error::{ApiError, ErrorCode};
use super::extract::fault::Faults;
use super::extract::param::Flag;
use super::extract::{Anyone, Checked, Form, NoQuery, check_change_of_ways_in};
use super::path::{API, at};
use super::refresh_cookie::{Jar, kept_by};
use super::reply::Done;
use super::task::run_detached;
use crate::auth::Caller;
use crate::auth::account::{AccountError, Origin};
use crate::auth::oidc::{Attempt, LIFETIME_SECONDS, LinkError, Oidc, OidcError, Returned, SignInError, SignedIn};
use crate::change::Change;
use crate::effects;
use crate::shares::Share;
use crate::state::State;
use crate::store::{StoreError, TeamsChange};
use navigation::{Navigation, Redirect};
use parameters::{LocalPage, Parameter, SignedMessage};

/// The pages at which a sign-in and a link end when something went wrong.
const SIGN_IN_PAGE: &str = "/sign-in";
const LINK_PAGE: &str = "/account/security";

/// How a sign-in or a link ended, as the page's address says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Linked,
    Unavailable,
    Busy,
    Expired,
    Denied,
    Failed,
    NotAllowed,
    SetupRequired,
    NoEmail,
    EmailUnverified,
    EmailTaken,
    LinkedElsewhere,
    SessionEnded,
    StepUpRequired,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Linked => "linked",
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::Expired => "expired",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::NotAllowed => "not_allowed",
            Self::SetupRequired => "setup_required",
            Self::NoEmail => "no_email",
            Self::EmailUnverified => "email_unverified",
            Self::EmailTaken => "email_taken",
            Self::LinkedElsewhere => "linked_elsewhere",
            Self::SessionEnded => "session_ended",
            Self::StepUpRequired => "step_up_required",
        }
    }
}

/// The page that shows how it ended.
fn ended(page: &str, outcome: Outcome) -> Redirect {
    Redirect::to(format!("{page}?oidc={}", outcome.word()))
}

impl From<OidcError> for Outcome {
    fn from(error: OidcError) -> Self {
        match error {
            OidcError::Unavailable(_) => {
                tracing::warn!(%error, "a sign-in at the identity provider failed");
                Self::Unavailable
            }
            OidcError::Busy => Self::Busy,
            OidcError::Unknown => Self::Expired,
            OidcError::Denied => Self::Denied,
            OidcError::Untrusted(_) => {
                tracing::warn!(%error, "a sign-in at the identity provider was refused");
                Self::Failed
            }
        }
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct StartQuery {
    /// Links the account at the provider to the account that is signed in, instead of signing in.
    #[deserr(default)]
    link: Option<Flag>,
    /// The page to show afterwards: a path of this service. Defaults to the first page.
    #[deserr(default)]
    return_to: Option<LocalPage>,
}

fn provider(state: &State) -> Result<Oidc, ApiError> {
    state.oidc.clone().ok_or(ApiError::not_found("This service has no identity provider (--oidc-issuer)"))
}

/// Sign in at the identity provider
///
/// For browsers: redirects to the provider, which redirects to `/auth/oidc/callback`. With `link` the request needs the
/// session's cookie or its token. If something goes wrong, the browser is redirected to the sign-in page (with `link` to
/// the account's) with the reason in the parameter `oidc`.
#[api_v2_operation(tags(Authentication), operation_id = "start_oidc")]
pub async fn start(ask: Checked<Navigation, StartQuery>) -> Result<Redirect, ApiError> {
    let (state, navigation) = (ask.state, ask.subject);
    let oidc = provider(&state)?;
    let wants_link = Flag::or(ask.query.link, false);
    let link = match wants_link {
        false => None,
        true => match linking(&state, &navigation).await? {
            Ok(login_id) => Some(login_id),
            Err(refused) => return Ok(refused),
        },
    };
    let redirect_uri = format!("{}{API}/auth/oidc/callback", navigation.base(&state)?);
    let return_to = ask.query.return_to.map_or_else(|| "/".to_owned(), |LocalPage(page)| page);
    let now = state.accounts.tokens.now();
    let max_age = state.accounts.factors.step_up();
    Ok(match oidc.begin(redirect_uri, return_to, link, max_age, navigation.share(), now).await {
        Ok(begun) => {
            let name = navigation.cookie_name(&state, &begun.state);
            let cookie = navigation.cookie(&state, name, begun.sealed, LIFETIME_SECONDS);
            Redirect::to(begun.location).with(cookie)
        }
        Err(error) => ended(if wants_link { LINK_PAGE } else { SIGN_IN_PAGE }, error.into()),
    })
}

/// The login to whose account a link leads, if it may add a way to sign in; otherwise where the browser goes.
async fn linking(state: &State, navigation: &Navigation) -> Result<Result<Uuid, Redirect>, ApiError> {
    let caller = match navigation.login(state).await? {
        Some(login_id) => state.accounts.logins.caller(login_id).await?,
        None => None,
    };
    let Some(caller) = caller else { return Ok(Err(ended(SIGN_IN_PAGE, Outcome::SessionEnded))) };
    Ok(refused_link(state, &caller).await?.map_or(Ok(caller.login_id), Err))
}

/// Where a browser goes whose login may not add a way to sign in: it lacks a recent proof, or its second factor.
async fn refused_link(state: &State, caller: &Caller) -> Result<Option<Redirect>, ApiError> {
    match check_change_of_ways_in(state, caller).await {
        Ok(()) => Ok(None),
        Err(ApiError::Refused { code: ErrorCode::StepUpRequired | ErrorCode::SecondFactorRequired, .. }) => {
            Ok(Some(ended(LINK_PAGE, Outcome::StepUpRequired)))
        }
        Err(error) => Err(error),
    }
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct CallbackQuery {
    #[deserr(default)]
    state: Option<Parameter>,
    #[deserr(default)]
    code: Option<Parameter>,
    /// The issuer that sent the browser here (RFC 9207).
    #[deserr(default)]
    iss: Option<Parameter>,
    #[deserr(default)]
    error: Option<Parameter>,
}

/// Return from the identity provider
///
/// For browsers: the provider redirects here. Signs in as `/auth/login` does for the interface, with the refresh token in
/// its cookie, and redirects to the page that was wanted.
#[api_v2_operation(tags(Authentication), operation_id = "finish_oidc")]
pub async fn callback(ask: Checked<Navigation, CallbackQuery>) -> Result<Redirect, ApiError> {
    let (state, navigation, query) = (ask.state, ask.subject, ask.query);
    let oidc = provider(&state)?;
    let text = |parameter: Option<Parameter>| parameter.map(|Parameter(text)| text);
    let returned = Returned { code: text(query.code), error: text(query.error), iss: text(query.iss) };
    let given = text(query.state).unwrap_or_default();
    let name = navigation.cookie_name(&state, &given);
    let kept = kept_by(&navigation.request, &name);
    let now = state.accounts.tokens.now();
    let attempt = match oidc.attempt(kept.iter().map(|sealed| sealed.expose_secret()), &given, now) {
        Ok(attempt) => attempt,
        Err(error) => return Ok(ended(SIGN_IN_PAGE, error.into())),
    };
    let spent = navigation.cookie(&state, name, String::new(), 0);
    let redirect = match attempt.link {
        Some(login_id) => link(&state, &oidc, &navigation, &attempt, login_id, returned).await?,
        None => sign_in(&state, &oidc, navigation, &attempt, returned).await?,
    };
    Ok(redirect.with(spent))
}

async fn sign_in(
    state: &State,
    oidc: &Oidc,
    navigation: Navigation,
    attempt: &Attempt,
    returned: Returned,
) -> Result<Redirect, ApiError> {
    let person = match oidc.finish(attempt, returned, navigation.share(), state.accounts.tokens.now()).await {
        Ok(person) => person,
        Err(error) => return Ok(ended(SIGN_IN_PAGE, error.into())),
    };
    let jar = Jar::of(&navigation.request, state);
    let (state, oidc, origin) = (state.clone(), oidc.clone(), Origin::from(navigation.anyone));
    let signed_in = run_detached(async move {
        let signed_in = state.accounts.sign_in_by_identity(&oidc, &person, origin).await;
        match &signed_in {
            Ok(SignedIn { teams, .. }) => apply(&state, *teams).await,
            Err(SignInError::Account(AccountError::Store(error))) => apply_if_stored(&state, error).await,
            Err(_) => {}
        }
        Ok(signed_in)
    });
    let refused = match signed_in.await? {
        Ok(SignedIn { mut pair, .. }) => {
            return Ok(Redirect::to(attempt.return_to.clone()).with(jar.keep(&mut pair)));
        }
        Err(SignInError::NotAllowed) => Outcome::NotAllowed,
        Err(SignInError::SetupRequired) => Outcome::SetupRequired,
        Err(SignInError::NoEmail) => Outcome::NoEmail,
        Err(SignInError::EmailUnverified) => Outcome::EmailUnverified,
        Err(SignInError::EmailTaken) => Outcome::EmailTaken,
        Err(SignInError::Account(error)) => return Err(error.into()),
    };
    tracing::info!(reason = refused.word(), "somebody whom the identity provider knows was not let in");
    Ok(ended(SIGN_IN_PAGE, refused))
}

/// Makes what the teams of somebody are granted theirs, before the answer, and also if the browser disconnects.
async fn apply(state: &State, teams: TeamsChange) {
    if teams == TeamsChange::Changed {
        effects::commit(state, Change::AccessChanged).await;
    }
}

/// The same after an error of the database: the teams may be stored although the answer was lost.
async fn apply_if_stored(state: &State, error: &StoreError) {
    if let StoreError::Database(_) = error {
        effects::commit(state, Change::AccessChanged).await;
    }
}

async fn link(
    state: &State,
    oidc: &Oidc,
    navigation: &Navigation,
    attempt: &Attempt,
    login_id: Uuid,
    returned: Returned,
) -> Result<Redirect, ApiError> {
    let now = state.accounts.tokens.now();
    let person = match oidc.finish(attempt, returned, navigation.share(), now).await {
        Ok(person) => person,
        Err(error) => return Ok(ended(LINK_PAGE, error.into())),
    };
    // Ten minutes may have passed since the link began.
    let Some(caller) = state.accounts.logins.caller(login_id).await? else {
        return Ok(ended(SIGN_IN_PAGE, Outcome::SessionEnded));
    };
    if let Some(refused) = refused_link(state, &caller).await? {
        return Ok(refused);
    }
    let address = client_address(&navigation.request, state);
    let (state, oidc) = (state.clone(), oidc.clone());
    let linked = run_detached(async move {
        let linked = state.accounts.link_identity(&oidc, login_id, &person, address, now).await;
        match &linked {
            Ok(teams) => apply(&state, *teams).await,
            Err(LinkError::Store(error)) => apply_if_stored(&state, error).await,
            Err(_) => {}
        }
        Ok(linked)
    });
    let outcome = match linked.await? {
        Ok(_) => Outcome::Linked,
        Err(LinkError::NotAllowed) => Outcome::NotAllowed,
        Err(LinkError::TakenByAnother) => Outcome::LinkedElsewhere,
        Err(LinkError::SessionEnded) => return Ok(ended(SIGN_IN_PAGE, Outcome::SessionEnded)),
        Err(LinkError::Store(error)) => return Err(error.into()),
    };
    Ok(ended(LINK_PAGE, outcome))
}

#[derive(Debug, Deserr, Apiv2Schema)]
#[deserr(error = Faults)]
pub struct ProviderLogoutIn {
    /// The provider's signed message (OpenID Connect Back-Channel Logout 1.0).
    logout_token: SignedMessage,
}

/// End sessions for the identity provider
///
/// For the provider: ends the sessions that its message names, on every instance at once. Each message counts once.
#[api_v2_operation(tags(Authentication), operation_id = "logout_by_oidc")]
pub async fn logout(ask: Checked<Anyone, NoQuery, Form<ProviderLogoutIn>>) -> Result<Done, ApiError> {
    let oidc = provider(&ask.state)?;
    let Form(ProviderLogoutIn { logout_token: SignedMessage(token) }) = ask.body;
    let refused = |reason: String| {
        tracing::warn!(reason, "a logout message was refused");
        ApiError::Refused {
            code: ErrorCode::BadRequest,
            detail: format!("The logout token was refused: {reason}").into(),
        }
    };
    let now = ask.state.accounts.tokens.now();
    let share = Share::of_written(&ask.subject.address);
    let notice = match oidc.read_logout(token.expose_secret(), share, now).await {
        Ok(read) => read.map_err(|error| refused(error.to_string()))?,
        Err(error) => {
            tracing::warn!(%error, "a logout message cannot be checked");
            return Err(ApiError::code(ErrorCode::Busy));
        }
    };
    let (state, address) = (ask.state, ask.subject.address);
    let ended = run_detached(async move {
        let ended = state.store.end_external_logins(&notice, &address, now).await?;
        for login_id in ended.iter().flatten() {
            effects::commit(&state, Change::LoginEnded { login_id: *login_id }).await;
        }
        Ok(ended)
    });
    match ended.await? {
        Some(_) => Ok(Done("Sessions ended")),
        None => Err(refused("it was used before".to_owned())),
    }
}

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/auth/oidc/start").route(get().to(start)),
        at("/auth/oidc/callback").route(get().to(callback)),
        at("/auth/oidc/logout").route(post().to(logout)),
        at("/auth/oidc/identities").route(get().to(identities::list)),
        at("/auth/oidc/identities/{id}").route(delete().to(identities::unlink)),
    ]
}
