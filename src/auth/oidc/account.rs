//! The account of a person whom the identity provider has identified.

use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{Identity, Oidc};
use crate::audit::Actor;
use crate::auth::account::{AccountError, Accounts, Origin, TokenPair};
use crate::store::{FirstSignIn, IdentityLink, Means, NewLogin, NewUser, ProviderLogin, StoreError, TeamsChange};

/// How often a sign-in begins again because another one of the same person, or of the same name, came first.
const MAX_ATTEMPTS: usize = 5;

/// A sign-in.
pub struct SignedIn {
    pub pair: TokenPair,
    /// Whether the person is in other teams now.
    pub teams: TeamsChange,
}

/// Why a person does not get in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    #[error("--oidc-allow does not name their domain or one of their groups, or their account is disabled")]
    NotAllowed,
    #[error("there is no account yet; the first one is created on this service")]
    SetupRequired,
    #[error("the provider names no e-mail address")]
    NoEmail,
    #[error("the provider has not verified their e-mail address")]
    EmailUnverified,
    #[error("an account that is not linked to the provider has their e-mail address")]
    EmailTaken,
    #[error(transparent)]
    Account(#[from] AccountError),
}

impl From<StoreError> for SignInError {
    fn from(error: StoreError) -> Self {
        Self::Account(error.into())
    }
}

/// Why a person is not linked to an account.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("--oidc-allow does not name their domain or one of their groups")]
    NotAllowed,
    #[error("the person is linked to another account")]
    TakenByAnother,
    #[error("the session that wanted the link has ended")]
    SessionEnded,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Accounts {
    /// Signs in a person, and creates their account the first time.
    pub async fn sign_in_by_identity(
        &self,
        oidc: &Oidc,
        person: &Identity,
        origin: Origin,
    ) -> Result<SignedIn, SignInError> {
        if !oidc.config().admits(person) {
            return Err(SignInError::NotAllowed);
        }
        for _ in 0..MAX_ATTEMPTS {
            let known = self.store.find_identity(&person.issuer, &person.subject).await?;
            if let Some(known) = &known
                && self.store.find_user(known.user_id).await?.is_some_and(|user| user.disabled_at.is_some())
            {
                return Err(SignInError::NotAllowed);
            }
            let signed_in = match known {
                Some(known) => self.return_of(known.id, known.user_id, person, origin.clone()).await?,
                None => self.first_visit(person, origin.clone()).await?,
            };
            if let Some(signed_in) = signed_in {
                return Ok(signed_in);
            }
        }
        Err(SignInError::Account(AccountError::SessionEnded))
    }

    /// Returns none if the link has been removed by now.
    async fn return_of(
        &self,
        identity_id: Uuid,
        user_id: Uuid,
        person: &Identity,
        origin: Origin,
    ) -> Result<Option<SignedIn>, SignInError> {
        let (login, pair) = self.begin_login(user_id, "", Means::Provider, origin)?;
        let login = self.provider_login(login, person);
        let signed_in = self.store.sign_in_by_identity(identity_id, &person.to_store(), &login).await?;
        Ok(signed_in.map(|(_, teams)| SignedIn { pair, teams }))
    }

    /// Returns none if the person has an account by now.
    async fn first_visit(&self, person: &Identity, origin: Origin) -> Result<Option<SignedIn>, SignInError> {
        if self.needs_setup().await? {
            return Err(SignInError::SetupRequired);
        }
        let email = person.email.as_ref().ok_or(SignInError::NoEmail)?;
        let email = person.verified_email().filter(|verified| verified == email).ok_or(SignInError::EmailUnverified)?;
        let new = NewUser {
            id: Uuid::now_v7(),
            email: email.to_owned(),
            username: person.username.clone(),
            full_name: person.full_name.clone(),
            // No password has this hash: see `Accounts::login`.
            password_hash: String::new(),
        };
        let (login, pair) = self.begin_login(new.id, &new.username, Means::Provider, origin)?;
        let login = self.provider_login(login, person);
        match self.store.join_by_identity(&new, &person.to_store(), &login).await? {
            FirstSignIn::Created(_, teams) => Ok(Some(SignedIn { pair, teams })),
            FirstSignIn::EmailTaken => Err(SignInError::EmailTaken),
            FirstSignIn::Exists => Ok(None),
        }
    }

    /// The login of a person. With `--step-up` it counts as proved when the provider last asked them who they are: a provider
    /// that remembers a browser sends it back without asking anybody. One that does not say when has proved nothing.
    fn provider_login(&self, login: NewLogin, person: &Identity) -> ProviderLogin {
        let proved_at = match (self.factors.step_up(), person.auth_time) {
            (None, _) => login.now,
            (Some(_), Some(seconds)) => login.now.min(Timestamp::from_millis(seconds.saturating_mul(1_000))),
            (Some(_), None) => Timestamp::from_millis(0),
        };
        ProviderLogin { login: NewLogin { proved_at, ..login }, sid: person.sid.clone() }
    }

    /// Links a person to the account of a login. Returns whether the account is in other teams now.
    pub async fn link_identity(
        &self,
        oidc: &Oidc,
        login_id: Uuid,
        person: &Identity,
        address: String,
        now: Timestamp,
    ) -> Result<TeamsChange, LinkError> {
        if !oidc.config().admits(person) {
            return Err(LinkError::NotAllowed);
        }
        let caller = self.logins.caller(login_id).await?.ok_or(LinkError::SessionEnded)?;
        let actor: Actor = caller.at(address);
        match self.store.link_identity(login_id, &person.to_store(), &actor, now).await? {
            IdentityLink::Linked(change) => Ok(change),
            IdentityLink::TakenByAnother => Err(LinkError::TakenByAnother),
            IdentityLink::Gone => Err(LinkError::SessionEnded),
        }
    }
}
