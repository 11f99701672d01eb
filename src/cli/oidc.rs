//! The identity provider that people may sign in at.

use std::path::PathBuf;

use clap::Args;

use super::heading::SIGN_IN;
use crate::auth::oidc::{self, Allowed, GROUPS_CLAIM, OidcConfig, PasswordLogin};

/// The longest text on the button of the sign-in page.
const MAX_NAME: usize = 40;

/// The identity provider that people may sign in at (OpenID Connect).
#[derive(Debug, Args)]
pub struct OidcArgs {
    /// Address of the identity provider (OpenID Connect), exactly as it names itself, such as
    /// https://sso.example.com/realms/main [default: none, people sign in with a password]
    #[arg(long, env = "SIGNALBOX_OIDC_ISSUER", value_name = "URL", help_heading = SIGN_IN, value_parser = oidc::issuer,
          requires = "oidc_client_id")]
    pub oidc_issuer: Option<String>,
    /// Name of this service at the provider [default: none]
    #[arg(long, env = "SIGNALBOX_OIDC_CLIENT_ID", value_name = "ID", help_heading = SIGN_IN, value_parser = filled,
          requires = "oidc_issuer")]
    pub oidc_client_id: Option<String>,
    /// File with the client secret from the provider [default: none, a public client]
    #[arg(long, env = "SIGNALBOX_OIDC_CLIENT_SECRET_FILE", value_name = "FILE", help_heading = SIGN_IN,
          requires = "oidc_issuer")]
    pub oidc_client_secret_file: Option<PathBuf>,
    /// Claim with the groups of a person
    #[arg(long, env = "SIGNALBOX_OIDC_GROUPS_CLAIM", value_name = "CLAIM", help_heading = SIGN_IN,
          default_value = GROUPS_CLAIM, value_parser = filled)]
    pub oidc_groups_claim: String,
    /// Who may sign in, separated by commas: entries with a dot or @ are e-mail domains, such as example.com, others are
    /// groups. One that fits is enough [default: everybody whom the provider lets in]
    #[arg(long, env = "SIGNALBOX_OIDC_ALLOW", value_name = "ENTRY", help_heading = SIGN_IN, value_delimiter = ',',
          requires = "oidc_issuer")]
    pub oidc_allow: Vec<Allowed>,
    /// Name of the provider on the sign-in page [default: its host]
    #[arg(long, env = "SIGNALBOX_OIDC_NAME", value_name = "NAME", help_heading = SIGN_IN, value_parser = name,
          requires = "oidc_issuer")]
    pub oidc_name: Option<String>,
    /// CA certificates (PEM) to trust in addition to the system's for connections to the provider [default: none]
    #[arg(long, env = "SIGNALBOX_OIDC_CA_FILE", value_name = "FILE", help_heading = SIGN_IN, requires = "oidc_issuer")]
    pub oidc_ca_file: Option<PathBuf>,
    /// Who may sign in with a password; admins: administrators only; off: only the oldest administrator with a password,
    /// in case the provider is away. Others than on need --oidc-issuer
    #[arg(long, env = "SIGNALBOX_PASSWORD_LOGIN", value_name = "MODE", help_heading = SIGN_IN, value_enum,
          default_value = "on")]
    pub password_login: PasswordLogin,
}

impl OidcArgs {
    pub fn config(self) -> Option<OidcConfig> {
        let (issuer, client_id) = self.oidc_issuer.zip(self.oidc_client_id)?;
        Some(OidcConfig {
            client_secret_file: self.oidc_client_secret_file,
            groups_claim: self.oidc_groups_claim,
            allow: self.oidc_allow,
            name: self.oidc_name,
            ca_file: self.oidc_ca_file,
            ..OidcConfig::new(issuer, client_id)
        })
    }
}

/// Takes any text but an empty one.
fn filled(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.is_empty() { Err("a name is needed") } else { Ok(text.to_owned()) }
}

/// Takes a name that fits on a button.
fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    let fits = (1..=MAX_NAME).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err(format!("a name of at most {MAX_NAME} characters is needed")) }
}
