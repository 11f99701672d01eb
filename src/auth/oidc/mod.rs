//! Sign-in at an identity provider (OpenID Connect): authorization code with PKCE, and logout that the provider begins.
//!
//! [`Oidc::begin`] sends the browser to the provider, [`Oidc::finish`] turns what it brings back into an [`Identity`], and
//! `account` signs its user in. `openidconnect` checks the tokens; what it leaves to its callers is checked here: who
//! answered (RFC 9207), which algorithms count, who asked for a token with several audiences, and how old it is. No token,
//! code or secret is logged, and what a provider writes is not either.

mod account;
mod attempt;
mod check;
mod http;
mod identity;
mod logout_token;
mod provider;
mod settings;
mod spent;

use std::sync::Arc;
use std::time::Duration;

use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreTokenResponse};
use openidconnect::{
    AuthType, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    TokenResponse,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

pub use account::{LinkError, SignInError, SignedIn};
pub use attempt::{Attempt, LIFETIME_SECONDS};
pub use identity::Identity;
pub use logout_token::LogoutError;
pub use settings::{Allowed, GROUPS_CLAIM, OidcConfig, OidcSetupError, PasswordLogin, issuer};

use crate::address::{authority_of, host_of, is_loopback};
use crate::shares::{Full, Gate, Permit, Share, Shares};
use crate::store::LogoutNotice;
use crate::tls;
use attempt::AttemptSealer;
use check::{check, payload_of};
use http::{AskError, Http};
use logout_token::Expected;
use provider::{Known, Provider, ProviderError};
use spent::Spent;

/// The longest code that is sent on, and the longest answer that is read from an address.
const MAX_CODE: usize = 4_000;

/// What tokens are asked about. A provider ignores what it does not know.
const SCOPES: [&str; 2] = ["profile", "email"];

/// A client of the provider, with the endpoints that its document names.
type Client =
    CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointMaybeSet, EndpointMaybeSet>;

/// Why a sign-in at the provider did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    #[error("the identity provider gave no usable answer: {0}")]
    Unavailable(ProviderError),
    #[error("too many sign-ins wait for the identity provider")]
    Busy,
    /// The browser brings nothing back that it began here and in time.
    #[error("this browser began no such sign-in, or too long ago")]
    Unknown,
    /// The person or the provider said no.
    #[error("the identity provider refused the sign-in")]
    Denied,
    /// Something does not fit: an attack, or a provider that is set up in another way.
    #[error("the answer of the identity provider does not fit: {0}")]
    Untrusted(String),
}

impl From<ProviderError> for OidcError {
    fn from(error: ProviderError) -> Self {
        Self::Unavailable(error)
    }
}

impl From<AskError> for OidcError {
    fn from(error: AskError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<Full> for OidcError {
    fn from(_: Full) -> Self {
        Self::Busy
    }
}

fn untrusted(reason: impl Into<String>) -> OidcError {
    OidcError::Untrusted(reason.into())
}

/// What a browser brings back from the provider.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    pub code: Option<String>,
    pub error: Option<String>,
    /// The issuer that sent it (RFC 9207).
    pub iss: Option<String>,
}

/// Where a sign-in begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The provider's page.
    pub location: String,
    /// Names the cookie.
    pub state: String,
    /// The value of the cookie.
    pub sealed: String,
}

/// Signs people in at one identity provider; cheap to clone.
#[derive(Clone)]
pub struct Oidc(Arc<Inner>);

struct Inner {
    config: OidcConfig,
    issuer: IssuerUrl,
    secret: Option<SecretString>,
    http: Arc<Http>,
    provider: Provider,
    sealer: AttemptSealer,
    spent: Spent,
    sign_ins: Gate,
    logouts: Gate,
}

impl Oidc {
    /// Reads the files that the settings name. `secret` is one that all instances share. `remembered` is the most finished sign-ins that
    /// are remembered.
    pub fn new(
        config: OidcConfig,
        secret: &SecretString,
        shares: &Shares,
        remembered: usize,
    ) -> Result<Self, OidcSetupError> {
        let client_secret = config.client_secret()?;
        let roots = match &config.ca_file {
            Some(path) => Some(
                tls::extra_roots(path)
                    .map_err(|detail| OidcSetupError::CaFile { path: path.display().to_string(), detail })?,
            ),
            None => None,
        };
        let failed = |error: &dyn std::fmt::Display| OidcSetupError::Client(error.to_string());
        let tls = tls::client_config(roots.as_deref()).map_err(|error| failed(&error))?;
        let may_be_plain = config.issuer.starts_with("http://") && is_loopback(host_of(authority_of(&config.issuer)));
        let http = Http::new(tls, config.answer_within, may_be_plain)?;
        let issuer = IssuerUrl::new(config.issuer.clone()).map_err(|error| failed(&error))?;
        Ok(Self(Arc::new(Inner {
            provider: Provider::new(issuer.clone(), http.clone()),
            issuer,
            secret: client_secret,
            http,
            sealer: AttemptSealer::new(secret)?,
            spent: Spent::new(remembered),
            sign_ins: shares.sign_ins.clone(),
            logouts: shares.logouts.clone(),
            config,
        })))
    }

    /// What the sign-in page calls the provider: as the operator has named it, or its host.
    pub fn name(&self) -> &str {
        let config = &self.0.config;
        config.name.as_deref().unwrap_or_else(|| host_of(authority_of(&config.issuer)))
    }

    fn config(&self) -> &OidcConfig {
        &self.0.config
    }

    /// Waits for the turn of a share: no longer than for the provider's answer.
    async fn turn(&self, places: &Gate, share: Share) -> Result<Permit, OidcError> {
        Ok(places.enter_within(share, self.config().answer_within).await?)
    }

    /// Begins a sign-in for an address, or the link to the account of a login. The provider should ask people again whom it asked
    /// longer than `max_age` ago.
    pub async fn begin(
        &self,
        redirect_uri: String,
        return_to: String,
        link: Option<Uuid>,
        max_age: Option<Duration>,
        share: Share,
        now: Timestamp,
    ) -> Result<Beginning, OidcError> {
        let _turn = self.turn(&self.0.sign_ins, share).await?;
        let known = self.0.provider.known().await?;
        let client = self.client(&known, redirect_uri.clone())?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let mut request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, CsrfToken::new_random, Nonce::new_random)
            .set_pkce_challenge(challenge);
        if let Some(max_age) = max_age {
            request = request.set_max_age(max_age);
        }
        for scope in self.scopes(&known) {
            request = request.add_scope(scope);
        }
        let (location, state, nonce) = request.url();
        let attempt = Attempt {
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            pkce_verifier: verifier.secret().clone(),
            redirect_uri,
            return_to,
            link,
            expires_at: now.as_seconds().saturating_add(LIFETIME_SECONDS),
        };
        let sealed = self.0.sealer.seal(&attempt).ok_or_else(|| untrusted("the sign-in does not fit in a cookie"))?;
        Ok(Beginning { location: location.to_string(), state: attempt.state, sealed })
    }

    /// The attempt that a browser carries in one of these cookies and that `state` belongs to.
    pub fn attempt<'a>(
        &self,
        sealed: impl IntoIterator<Item = &'a str>,
        state: &str,
        now: Timestamp,
    ) -> Result<Attempt, OidcError> {
        let mut opened = sealed.into_iter().filter_map(|sealed| self.0.sealer.open(sealed, state, now));
        opened.next().ok_or(OidcError::Unknown)
    }

    /// Finishes a sign-in for an address: redeems the code and checks everything that comes of it.
    pub async fn finish(
        &self,
        attempt: &Attempt,
        returned: Returned,
        share: Share,
        now: Timestamp,
    ) -> Result<Identity, OidcError> {
        let _turn = self.turn(&self.0.sign_ins, share).await?;
        let known = self.0.provider.known().await?;
        // Before anything is sent to anybody: the code may be from another provider, which wants it redeemed here.
        let is_from_it = match &returned.iss {
            Some(iss) => *iss == self.0.config.issuer,
            None => !known.names_itself(),
        };
        if !is_from_it {
            return Err(untrusted("another issuer sent the browser back"));
        }
        if returned.error.is_some() {
            return Err(OidcError::Denied);
        }
        let code = returned.code.filter(|code| !code.is_empty() && code.len() <= MAX_CODE);
        let code = code.ok_or_else(|| untrusted("the browser brings no code"))?;
        if !self.0.spent.take(&attempt.state, share, now) {
            return Err(OidcError::Unknown);
        }
        let client = self.client(&known, attempt.redirect_uri.clone())?;
        let tokens = self.redeem(&client, code, attempt).await?;
        let nonce = Nonce::new(attempt.nonce.clone());
        let (known, subject) = self.verified(known, &tokens, &nonce, now).await?;
        let claims = tokens.id_token().and_then(payload_of).ok_or_else(|| untrusted("the token cannot be read"))?;
        let asked = match self.is_complete(&claims) {
            true => Map::new(),
            false => self.ask_about(&known, &subject, tokens.access_token().secret()).await?,
        };
        Ok(Identity::of(&self.0.config.issuer, &subject, &claims, &asked, &self.0.config.groups_claim))
    }

    /// Checks a message about the end of a session, from an address.
    pub async fn read_logout(
        &self,
        token: &str,
        share: Share,
        now: Timestamp,
    ) -> Result<Result<LogoutNotice, LogoutError>, OidcError> {
        let _turn = self.turn(&self.0.logouts, share).await?;
        let known = self.0.provider.known().await?;
        let read = |known: &Known| {
            let expected = Expected {
                issuer: &self.0.config.issuer,
                client_id: &self.0.config.client_id,
                algorithms: &known.algorithms(),
                keys: known.metadata.jwks(),
                now,
            };
            logout_token::verify(token, &expected)
        };
        match read(&known) {
            Err(LogoutError::UnknownKey) => match self.0.provider.with_newer_keys(&known).await {
                Some(newer) => Ok(read(&newer)),
                None => Ok(Err(LogoutError::UnknownKey)),
            },
            other => Ok(other),
        }
    }

    fn client(&self, known: &Known, redirect_uri: String) -> Result<Client, OidcError> {
        let redirect_uri = RedirectUrl::new(redirect_uri).map_err(|_| untrusted("this service's address is none"))?;
        let secret = self.0.secret.as_ref().map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let client_id = ClientId::new(self.0.config.client_id.clone());
        let client = CoreClient::from_provider_metadata(known.metadata.clone(), client_id, secret);
        let methods = known.metadata.token_endpoint_auth_methods_supported();
        let needs_body = methods.is_some_and(|methods| {
            !methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
                && methods.contains(&CoreClientAuthMethod::ClientSecretPost)
        });
        let auth_type = if needs_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        Ok(client.set_redirect_uri(redirect_uri).set_auth_type(auth_type))
    }

    /// The usual scopes, and one of the groups' name where the provider offers it.
    fn scopes(&self, known: &Known) -> Vec<Scope> {
        let groups = self.0.config.groups_claim.as_str();
        let offered = known.metadata.scopes_supported();
        let has_groups = offered.is_some_and(|offered| offered.iter().any(|scope| scope.as_str() == groups));
        let usual = SCOPES.iter().copied();
        usual.chain(has_groups.then_some(groups)).map(|scope| Scope::new(scope.to_owned())).collect()
    }

    async fn redeem(&self, client: &Client, code: String, attempt: &Attempt) -> Result<CoreTokenResponse, OidcError> {
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|_| untrusted("the provider names no token endpoint"))?
            .set_pkce_verifier(PkceCodeVerifier::new(attempt.pkce_verifier.clone()));
        request.request_async(&*self.0.http).await.map_err(|error| match error {
            RequestTokenError::Request(error) => error.into(),
            RequestTokenError::ServerResponse(answer) => {
                untrusted(format!("it did not redeem the code ({})", answer.error().as_ref()))
            }
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => untrusted("the tokens cannot be read"),
        })
    }

    /// Checks the ID token, with newer keys if its key is not known. Returns what was used for that, and who it is about.
    async fn verified(
        &self,
        known: Arc<Known>,
        tokens: &CoreTokenResponse,
        nonce: &Nonce,
        now: Timestamp,
    ) -> Result<(Arc<Known>, String), OidcError> {
        let expected = check::Expected { issuer: &self.0.issuer, client_id: &self.0.config.client_id, nonce, now };
        let mut used = known;
        let mut checked = check(&used, tokens, &expected);
        if matches!(&checked, Err(wrong) if wrong.is_unknown_key())
            && let Some(newer) = self.0.provider.with_newer_keys(&used).await
        {
            checked = check(&newer, tokens, &expected);
            used = newer;
        }
        let subject = checked.map_err(|wrong| untrusted(wrong.reason()))?;
        Ok((used, subject))
    }

    /// Whether the token itself says what has to be known.
    fn is_complete(&self, claims: &Map<String, Value>) -> bool {
        let is_given = |name: &str| claims.get(name).is_some_and(|claim| !claim.is_null());
        is_given("email") && is_given(&self.0.config.groups_claim)
    }

    /// What the provider says about a person when it is asked; nothing where it cannot be asked.
    async fn ask_about(&self, known: &Known, subject: &str, token: &str) -> Result<Map<String, Value>, OidcError> {
        let Some(url) = known.metadata.userinfo_endpoint() else { return Ok(Map::new()) };
        let (status, body) = self.0.http.get_with_token(url.url(), token).await?;
        if !status.is_success() {
            return Err(untrusted(format!("it does not say who it is (status {})", status.as_u16())));
        }
        let claims: Map<String, Value> =
            serde_json::from_slice(&body).map_err(|_| untrusted("what it says about the person cannot be read"))?;
        // Without this check a provider's mistake would mix up two people (OpenID Connect Core, 5.3.2).
        if claims.get("sub").and_then(Value::as_str) != Some(subject) {
            return Err(untrusted("it speaks of another person than the token"));
        }
        Ok(claims)
    }
}
