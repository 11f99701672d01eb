//! Signs in to a service and remembers it.

use std::path::PathBuf;

use clap::Args;
use reqwest::Client;
use serde_json::json;

use super::interrupts::Interrupts;
use super::{browser, prompt};
use crate::api::renewal::TokenPair;
use crate::api::{Api, http};
use crate::cli::Options;
use crate::context::{Context, Contexts, Credential, ServiceUrl, Store, Target, Token};
use crate::error::Failure;
use crate::output::text::shell_word;
use crate::output::{self, Out};

/// Where the web interface makes tokens.
const TOKENS_PAGE: &str = "/account/tokens";

/// Sign in to a service and make it the current context
///
/// With a token for programs, or with user name and password: the program then keeps a login that it renews. Without an option it
/// asks. --web is for accounts without a password. Tokens are kept in a file that only you can read. A login that the context had
/// before stays valid for programs that use it.
#[derive(Debug, Args)]
pub struct Login {
    /// The address of the service, such as https://signalbox.example.com
    #[arg(value_name = "URL")]
    url: ServiceUrl,
    /// The name of the context, like --context; defaults to the host
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Open the page of the service that makes tokens, and ask for the token
    #[arg(long, conflicts_with_all = ["token_file", "username"])]
    web: bool,
    /// A file with a token; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "username")]
    token_file: Option<PathBuf>,
    /// Your user name or e-mail address
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// A file with the password; - is standard input
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
    /// A code of your authenticator app, or a recovery code
    #[arg(long, value_name = "CODE", requires = "username")]
    otp: Option<String>,
}

impl Login {
    pub async fn run(self, options: Options) -> Result<(), Failure> {
        let out = Out::new(options.output, options.color);
        let name = self.context_name(options.context)?;
        if self.url.is_readable_by_others() {
            output::complain(
                "anyone on the way can read what is sent over http://: use https:// if the service has it",
            );
        }
        // The file must be found from every directory.
        let ca_file = options.ca_file.map(std::path::absolute).transpose()?;
        let client = http::client(&self.url, ca_file.as_deref())?;
        let store = Store::of_user()?;
        // Before anybody signs in: nobody could end a login that is not kept. The lock is not held while the person is asked.
        expect_same_service(&store.lock().await?.read()?, &name, &self.url)?;
        let credential = self.credential(&client).await?;
        let context = Context { url: self.url, ca_file, credential };
        // Without the store, which does not have this login yet.
        let api = Api::over(client, Target { name: Some(name.clone()), context: context.clone() }, None);
        keep_or_end(&api, &store, &name, &context).await?;
        let sentence = format!("Signed in to {} as the context {name}.", context.url);
        let summary = json!({"name": name, "url": context.url, "credential": context.credential.words()});
        out.done(&sentence, &summary)
    }

    /// `--context` names the context of every command.
    fn context_name(&self, context: Option<String>) -> Result<String, Failure> {
        match (&self.name, context) {
            (Some(name), Some(context)) if *name != context => {
                Err(Failure::usage("--name and --context name two contexts: use one of them"))
            }
            (Some(name), _) => Ok(name.clone()),
            (None, Some(context)) => Ok(context),
            (None, None) => Ok(self.url.authority()),
        }
    }

    async fn credential(&self, client: &Client) -> Result<Credential, Failure> {
        if let Some(file) = &self.token_file {
            return Ok(Credential::Token { token: Token::parse(&prompt::read_secret(file)?)? });
        }
        if self.web {
            return self.token_of_page().await;
        }
        if self.username.is_none() && !prompt::is_possible() {
            return Err(Failure::usage(
                "nobody can be asked here: use --token-file, or --username with --password-file",
            ));
        }
        let username = match &self.username {
            Some(username) => username.clone(),
            None => prompt::ask("User name (empty if you have a token)").await?,
        };
        if username.trim().is_empty() {
            return Ok(Credential::Token { token: Token::parse(&prompt::ask_secret("Token").await?)? });
        }
        let password = match &self.password_file {
            Some(file) => prompt::read_secret(file)?,
            None if prompt::is_possible() => prompt::ask_secret("Password").await?,
            None => return Err(Failure::usage("nobody can be asked here: use --password-file")),
        };
        let pair = self.sign_in(client, &username, &password).await?;
        Ok(Credential::Login { username, access_token: pair.access_token, refresh_token: pair.refresh_token })
    }

    /// A token that the user makes in the web interface. Also for accounts that sign in at an identity provider or with a passkey.
    async fn token_of_page(&self) -> Result<Credential, Failure> {
        if !prompt::is_possible() {
            return Err(Failure::usage("nobody can be asked here: use --token-file"));
        }
        let address = format!("{}{TOKENS_PAGE}", self.url);
        output::note(&format!("Make a token for this machine on this page, and paste it here:\n  {address}"));
        if !browser::open(&address) {
            output::note("No browser could be opened: open the page yourself.");
        }
        Ok(Credential::Token { token: Token::parse(&prompt::ask_secret("Token").await?)? })
    }

    /// Asks for a code only if the account needs one.
    async fn sign_in(&self, client: &Client, username: &str, password: &str) -> Result<TokenPair, Failure> {
        match self.attempt(client, username, password, self.otp.as_deref()).await {
            Err(failure) if failure.code() == "otp_required" && prompt::is_possible() => {
                let otp = prompt::ask("Code of your authenticator app").await?;
                self.attempt(client, username, password, Some(otp.trim())).await
            }
            Err(failure) if failure.code() == "otp_required" => {
                Err(Failure::usage("this account needs a code of its authenticator app: add --otp"))
            }
            Err(failure) if failure.code() == "password_login_off" => Err(Failure::failed(
                "this service does not let you sign in with a password: make a token in the web interface with --web",
            )),
            outcome => outcome,
        }
    }

    async fn attempt(
        &self,
        client: &Client,
        username: &str,
        password: &str,
        otp: Option<&str>,
    ) -> Result<TokenPair, Failure> {
        let mut form = vec![("username", username), ("password", password)];
        form.extend(otp.map(|otp| ("otp", otp)));
        let request = client.post(self.url.api("/auth/login")).form(&form).timeout(http::ANSWER_TIMEOUT);
        let body = http::body(request.send().await.map_err(http::unreachable)?).await?;
        serde_json::from_slice(&body)
            .map_err(|_| Failure::failed("the answer is not one of Signalbox's API: check the address"))
    }
}

/// Refuses to replace the context of another service. The same one by https:// is none.
fn expect_same_service(contexts: &Contexts, name: &str, url: &ServiceUrl) -> Result<(), Failure> {
    let is_upgrade = |known: &ServiceUrl| known.authority() == url.authority() && !url.is_readable_by_others();
    match contexts.contexts.get(name) {
        Some(known) if known.url != *url && !is_upgrade(&known.url) => Err(Failure::usage(format!(
            "the context {name:?} is of {}: choose another name with --name, or remove it with `signalboxctl context rm {}`",
            known.url,
            shell_word(name)
        ))),
        _ => Ok(()),
    }
}

/// Keeps what the person has signed in with, or ends it, also if a signal comes first. A second signal does not wait for that.
async fn keep_or_end(api: &Api, store: &Store, name: &str, context: &Context) -> Result<(), Failure> {
    let mut interrupts = match Interrupts::listen() {
        Ok(interrupts) => interrupts,
        Err(failure) => return Err(given_up(api, failure).await),
    };
    // Writing is its last step and does not wait: what a signal ends has written nothing.
    let kept = interrupts.unless_pressed(keep(api, store, name, context)).await.flatten();
    let Err(failure) = kept else { return Ok(()) };
    match interrupts.unless_pressed(given_up(api, failure)).await {
        Ok(failure) => Err(failure),
        Err(interrupted) => Err(interrupted.and("the new login may not have ended at the service")),
    }
}

/// Tries what the person has signed in with, and keeps it. A login that it replaces does not end: programs that run may use it.
async fn keep(api: &Api, store: &Store, name: &str, context: &Context) -> Result<(), Failure> {
    // Every token may list servers.
    api.get("/servers", &[("limit", "1".to_owned())]).await?;
    let contexts = store.lock().await?;
    let mut all = contexts.read()?;
    expect_same_service(&all, name, &context.url)?;
    all.contexts.insert(name.to_owned(), context.clone());
    all.current = Some(name.to_owned());
    contexts.write(&all)
}

/// Ends a login that is not kept. Returns why it is not, and whether it may still work.
async fn given_up(api: &Api, failure: Failure) -> Failure {
    match api.end_login().await {
        Ok(()) => failure,
        Err(end) => failure.and(&format!("the new login may not have ended at the service: {end}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_replaced_by_one_of_its_own_service_also_where_that_has_https_now() {
        let url = |text: &str| text.parse::<ServiceUrl>().unwrap();
        let credential = Credential::Token { token: Token::parse("sbt_secret").unwrap() };
        let known = |text: &str| {
            let context = Context { url: url(text), ca_file: None, credential: credential.clone() };
            Contexts { current: None, contexts: [("home".to_owned(), context)].into() }
        };
        let may_replace = |before: &str, after: &str| expect_same_service(&known(before), "home", &url(after)).is_ok();

        assert!(may_replace("https://a.example", "https://a.example"));
        assert!(may_replace("http://a.example", "https://a.example"));
        assert!(!may_replace("https://a.example", "http://a.example"), "its tokens would be readable");
        assert!(!may_replace("https://a.example", "https://b.example"));
        assert!(!may_replace("https://a.example", "https://a.example:8443"));
    }
}
