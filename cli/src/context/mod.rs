//! Which service a call is for, and with which token.

pub mod service_url;
pub mod store;
pub mod token;

use std::env;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use service_url::ServiceUrl;
pub use store::{Contexts, Store};
pub use token::Token;

use crate::error::Failure;
use crate::output::text::shell_word;

/// Replace the contexts, for scripts and containers.
pub const URL_VARIABLE: &str = "SIGNALBOX_URL";
pub const TOKEN_VARIABLE: &str = "SIGNALBOX_TOKEN";

/// A service that the user signed in to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    pub url: ServiceUrl,
    /// Trusted in addition to the system's authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    pub credential: Credential,
}

/// What proves who calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Credential {
    /// A token that somebody made, which is never renewed.
    Token { token: Token },
    /// A login of this program's own: the access token is renewed with the refresh token, which works once.
    Login { username: String, access_token: Token, refresh_token: Token },
}

impl Credential {
    /// What requests carry.
    pub fn bearer(&self) -> &Token {
        match self {
            Self::Token { token } => token,
            Self::Login { access_token, .. } => access_token,
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Token { .. } => "token".to_owned(),
            Self::Login { username, .. } => format!("login of {username}"),
        }
    }
}

/// The service of a call.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name of the context; none where the environment says it all.
    pub name: Option<String>,
    pub context: Context,
}

impl Target {
    /// The command line that signs in to the same context again.
    pub fn login_call(&self) -> String {
        let call = self.plain_login_call();
        match &self.name {
            Some(name) if *name != self.context.url.authority() => format!("{call} --name {}", shell_word(name)),
            _ => call,
        }
    }

    /// The command line that signs in to the same service as another context, whose name the user chooses. The default is the
    /// host of the service, which may be the name of this context.
    pub fn new_login_call(&self) -> String {
        format!("{} --name NAME", self.plain_login_call())
    }

    fn plain_login_call(&self) -> String {
        let call = format!("signalboxctl login {}", self.context.url);
        match &self.context.ca_file {
            Some(file) => format!("{call} --ca-file {}", shell_word(&file.display().to_string())),
            None => call,
        }
    }
}

/// What the environment and the flags say about the service.
#[derive(Debug, Default)]
pub struct Wishes {
    pub context: Option<String>,
    pub ca_file: Option<PathBuf>,
    pub url: Option<String>,
    pub token: Option<String>,
}

impl Wishes {
    /// With what the environment says.
    pub fn new(context: Option<String>, ca_file: Option<PathBuf>) -> Self {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self { context, ca_file, url: variable(URL_VARIABLE), token: variable(TOKEN_VARIABLE) }
    }

    /// The service: of `--context`, else of the environment, else of the current context.
    pub fn target(self, read: impl FnOnce() -> Result<Contexts, Failure>) -> Result<Target, Failure> {
        let mut target = match (&self.context, self.url, self.token) {
            (None, Some(url), Some(token)) => of_environment(&url, &token)?,
            (None, Some(_), None) => return Err(lacking(URL_VARIABLE, TOKEN_VARIABLE)),
            (None, None, Some(_)) => return Err(lacking(TOKEN_VARIABLE, URL_VARIABLE)),
            (name, _, _) => of_contexts(read()?, name.as_deref())?,
        };
        if self.ca_file.is_some() {
            target.context.ca_file = self.ca_file;
        }
        Ok(target)
    }
}

fn lacking(set: &str, missing: &str) -> Failure {
    Failure::usage(format!("{set} is set and {missing} is not: set both, or choose a context with --context"))
}

fn of_environment(url: &str, token: &str) -> Result<Target, Failure> {
    let url = url.parse().map_err(|error| Failure::usage(format!("{URL_VARIABLE}: {error}")))?;
    let token = Token::parse(token).map_err(|error| Failure::usage(format!("{TOKEN_VARIABLE}: {error}")))?;
    Ok(Target { name: None, context: Context { url, ca_file: None, credential: Credential::Token { token } } })
}

fn of_contexts(mut contexts: Contexts, name: Option<&str>) -> Result<Target, Failure> {
    let Some(name) = name.map(str::to_owned).or_else(|| contexts.current.clone()) else {
        return Err(Failure::usage(
            "not signed in: run `signalboxctl login URL`, or set SIGNALBOX_URL and SIGNALBOX_TOKEN",
        ));
    };
    match contexts.contexts.remove(&name) {
        Some(context) => Ok(Target { name: Some(name), context }),
        None => Err(no_context(&name, &contexts)),
    }
}

/// Names those that there are.
pub fn no_context(name: &str, contexts: &Contexts) -> Failure {
    let known: Vec<&str> = contexts.contexts.keys().map(String::as_str).collect();
    let others = if known.is_empty() { "there is none".to_owned() } else { format!("there is {}", known.join(", ")) };
    Failure::usage(format!("no context {name:?}: {others}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Contexts {
        let credential = Credential::Token { token: Token::parse("sbt_a").unwrap() };
        let context = Context { url: "https://a.example".parse().unwrap(), ca_file: None, credential };
        Contexts {
            current: Some("a".to_owned()),
            contexts: [("a".to_owned(), context.clone()), ("b".to_owned(), context)].into(),
        }
    }

    fn target(wishes: Wishes) -> Result<Target, Failure> {
        wishes.target(|| Ok(contexts()))
    }

    #[test]
    fn a_named_context_precedes_the_environment_and_that_the_current_one() {
        let environment = || Wishes {
            url: Some("https://e.example".to_owned()),
            token: Some("sbt_e".to_owned()),
            ..Wishes::default()
        };

        let named = target(Wishes { context: Some("b".to_owned()), ..environment() }).unwrap();
        let of_environment = target(environment()).unwrap();
        let current = target(Wishes::default()).unwrap();

        assert_eq!(named.name.as_deref(), Some("b"));
        assert_eq!((of_environment.name, of_environment.context.url.authority()), (None, "e.example".to_owned()));
        assert_eq!(current.name.as_deref(), Some("a"));
    }

    #[test]
    fn the_advice_to_sign_in_again_is_for_the_same_context() {
        let call = |name: Option<&str>, ca_file: Option<&str>| {
            let credential = Credential::Token { token: Token::parse("sbt_a").unwrap() };
            let url = "https://a.example".parse().unwrap();
            let context = Context { url, ca_file: ca_file.map(PathBuf::from), credential };
            Target { name: name.map(str::to_owned), context }.login_call()
        };

        assert_eq!(call(None, None), "signalboxctl login https://a.example");
        assert_eq!(call(Some("a.example"), None), "signalboxctl login https://a.example");
        assert_eq!(
            call(Some("my home"), Some("/etc/ca.pem")),
            "signalboxctl login https://a.example --ca-file /etc/ca.pem --name 'my home'"
        );
    }

    #[test]
    fn the_advice_to_sign_in_with_an_account_does_not_replace_the_context_of_a_token() {
        let context = contexts().contexts.remove("a").unwrap();
        let call =
            |name: Option<&str>| Target { name: name.map(str::to_owned), context: context.clone() }.new_login_call();

        for name in [None, Some("a.example"), Some("ci")] {
            assert_eq!(call(name), "signalboxctl login https://a.example --name NAME", "{name:?}");
        }
    }

    #[test]
    fn half_an_environment_and_unknown_names_say_what_is_missing() {
        let url_alone = target(Wishes { url: Some("https://e.example".to_owned()), ..Wishes::default() });
        let unknown = target(Wishes { context: Some("c".to_owned()), ..Wishes::default() });
        let nothing = Wishes::default().target(|| Ok(Contexts::default()));

        assert!(url_alone.unwrap_err().to_string().contains("SIGNALBOX_TOKEN is not"));
        assert!(unknown.unwrap_err().to_string().contains("there is a, b"));
        assert!(nothing.unwrap_err().to_string().contains("signalboxctl login URL"));
    }
}
