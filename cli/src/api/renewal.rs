//! Renews a login. A refresh token works once, and using a spent one ends the login: processes that run at the same time take
//! turns, and each first checks if another one has renewed it.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Api, http};
use crate::context::{Context, Contexts, Credential, Token};
use crate::error::{Failure, Refusal};

/// What signing in and refreshing answer.
#[derive(Deserialize)]
pub struct TokenPair {
    pub access_token: Token,
    pub refresh_token: Token,
}

impl Api {
    /// Whether this is a login of the program's own.
    pub fn can_renew(&self) -> bool {
        matches!(self.target.context.credential, Credential::Login { .. }) && self.target.name.is_some()
    }

    /// A newer access token than `spent`.
    pub async fn renew(&self, spent: &Token) -> Result<Token, Failure> {
        let Some(name) = &self.target.name else { return Err(Failure::failed("the token has expired")) };
        let contexts = self.store.lock().await?;
        let mut all = contexts.read()?;
        let (access_token, refresh_token) = tokens_of(&all, name, &self.target.context)?;
        if access_token != *spent {
            return Ok(self.remember(access_token));
        }
        let pair = self.refresh(&refresh_token).await?;
        if let Some(Credential::Login { access_token, refresh_token, .. }) =
            all.contexts.get_mut(name).map(|context| &mut context.credential)
        {
            *access_token = pair.access_token.clone();
            *refresh_token = pair.refresh_token;
        }
        contexts.write(&all)?;
        Ok(self.remember(pair.access_token))
    }

    async fn refresh(&self, refresh_token: &Token) -> Result<TokenPair, Failure> {
        let url = self.target.context.url.api("/auth/refresh");
        let request = self.http.request(Method::POST, url).timeout(http::ANSWER_TIMEOUT);
        let request = request.json(&json!({"refresh_token": refresh_token.reveal()}));
        let body = http::body(request.send().await.map_err(http::unreachable)?).await;
        let body = body.map_err(|failure| self.with_advice(failure))?;
        serde_json::from_slice(&body).map_err(|_| Failure::failed("the answer is not one of Signalbox's API"))
    }

    fn remember(&self, token: Token) -> Token {
        self.bearer.lock().clone_from(&token);
        token
    }

    /// What to do about a refusal that concerns the token.
    pub fn with_advice(&self, failure: Failure) -> Failure {
        let Failure::Refused(refusal) = failure else { return failure };
        let url = &self.target.context.url;
        let advice = match (refusal.status, refusal.code.as_str()) {
            (401, _) if self.target.name.is_none() => "check SIGNALBOX_TOKEN".to_owned(),
            (401, _) => format!("sign in again with `signalboxctl login {url}`"),
            (403, "token_not_allowed") => format!("`signalboxctl login {url}` signs in with your account"),
            (403, "step_up_required" | "second_factor_required") => {
                format!("prove who you are with `signalboxctl login {url}`")
            }
            (421, _) => "use the address of the service's --public-url".to_owned(),
            _ => return Failure::Refused(refusal),
        };
        let detail = format!("{}: {advice}", refusal.detail.trim_end_matches('.'));
        Failure::Refused(Refusal { detail, ..refusal })
    }
}

/// The tokens as the file has them now; none if the context is another one by now.
fn tokens_of(contexts: &Contexts, name: &str, ours: &Context) -> Result<(Token, Token), Failure> {
    match contexts.contexts.get(name) {
        Some(Context { url, credential: Credential::Login { access_token, refresh_token, .. }, .. })
            if *url == ours.url =>
        {
            Ok((access_token.clone(), refresh_token.clone()))
        }
        _ => Err(Failure::failed(format!("the context {name:?} has changed since this call began: try again"))),
    }
}
