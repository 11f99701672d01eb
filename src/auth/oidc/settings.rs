//! What the operator sets about an identity provider, and who may sign in by it.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;
use signalbox_agent::secret_file::{self, SecretFileError};

use super::identity::Identity;
use crate::address::{authority_of, host_of, is_address, is_loopback};

/// How long the provider may take for one answer: people wait for it, and some providers start cold.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The claim that most providers can be set to put groups in.
pub const GROUPS_CLAIM: &str = "groups";

/// An identity provider, as the flags describe it.
#[derive(Debug, Clone)]
pub struct OidcConfig {
    /// The provider's address, exactly as it names itself.
    pub issuer: String,
    pub client_id: String,
    /// None for a client without a secret.
    pub client_secret_file: Option<PathBuf>,
    /// The claim with the groups of a person.
    pub groups_claim: String,
    /// Who may sign in; empty means everybody whom the provider lets in.
    pub allow: Vec<Allowed>,
    /// What the sign-in page calls the provider.
    pub name: Option<String>,
    /// Authorities that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// How long the provider may take for one answer.
    pub answer_within: Duration,
}

impl OidcConfig {
    /// With the defaults of all other flags.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret_file: None,
            groups_claim: GROUPS_CLAIM.to_owned(),
            allow: Vec::new(),
            name: None,
            ca_file: None,
            answer_within: ANSWER_WITHIN,
        }
    }

    /// The client's secret, from its file.
    pub fn client_secret(&self) -> Result<Option<SecretString>, OidcSetupError> {
        let Some(path) = &self.client_secret_file else { return Ok(None) };
        let shown = path.display().to_string();
        let text =
            secret_file::read(path).map_err(|source| OidcSetupError::SecretFile { path: shown.clone(), source })?;
        let secret = text.trim();
        if secret.is_empty() { Err(OidcSetupError::NoSecret(shown)) } else { Ok(Some(secret.into())) }
    }

    /// Whether somebody may sign in.
    pub fn admits(&self, person: &Identity) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|allowed| allowed.admits(person))
    }
}

/// Why a provider cannot be used as it was set.
#[derive(Debug, thiserror::Error)]
pub enum OidcSetupError {
    #[error("cannot use the client secret {path} (--oidc-client-secret-file): {source}")]
    SecretFile { path: String, source: SecretFileError },
    #[error("the client secret {0} (--oidc-client-secret-file) is empty")]
    NoSecret(String),
    #[error("cannot use the certificates {path} (--oidc-ca-file): {detail}")]
    CaFile { path: String, detail: String },
    #[error("cannot connect to identity providers: {0}")]
    Client(String),
    #[error(
        "--oidc-issuer needs --public-url, unless the service listens on this machine alone: the provider sends people back there"
    )]
    NeedsPublicUrl,
    #[error("--password-login {0} needs --oidc-issuer: nobody else could sign in")]
    NeedsIssuer(&'static str),
}

/// One entry of `--oidc-allow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// People with a verified e-mail address of exactly this domain, in lower case.
    Domain(String),
    /// Members of this group.
    Group(String),
}

impl Allowed {
    fn admits(&self, person: &Identity) -> bool {
        match self {
            Self::Domain(domain) => person
                .verified_email()
                .is_some_and(|email| email.rsplit_once('@').is_some_and(|(_, of)| of.eq_ignore_ascii_case(domain))),
            Self::Group(group) => person.groups.iter().any(|of| of == group),
        }
    }
}

impl FromStr for Allowed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "an e-mail domain such as example.com or @example.com is needed, or a group without a dot";
        let text = text.trim();
        if !text.contains(['.', '@']) {
            return if text.is_empty() { Err(WRONG) } else { Ok(Self::Group(text.to_owned())) };
        }
        let domain = text.strip_prefix('@').unwrap_or(text);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        let is_domain = !domain.is_empty() && !domain.starts_with('.') && domain.bytes().all(fits);
        is_domain.then(|| Self::Domain(domain.to_ascii_lowercase())).ok_or(WRONG)
    }
}

/// Who may sign in with a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum PasswordLogin {
    /// Everybody who has one
    #[default]
    On,
    /// Administrators who have one
    Admins,
    /// The oldest administrator who has one, so that somebody can while the provider is away
    Off,
}

impl PasswordLogin {
    pub fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Admins => "admins",
            Self::Off => "off",
        }
    }
}

/// Takes the address of a provider. Only this machine's own may do without TLS: tokens and the client's secret pass there.
pub fn issuer(text: &str) -> Result<String, &'static str> {
    if !is_address(text) {
        return Err("the provider's address is needed, such as https://sso.example.com/realms/main");
    }
    let is_private = text.starts_with("https://") || is_loopback(host_of(authority_of(text)));
    is_private.then(|| text.to_owned()).ok_or("the provider's address must begin with https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(email: &str, is_verified: bool, groups: &[&str]) -> Identity {
        Identity {
            email: Some(email.to_owned()),
            is_email_verified: is_verified,
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Identity::default()
        }
    }

    #[test]
    fn an_entry_with_a_dot_or_an_at_sign_is_a_domain_and_any_other_a_group() {
        assert_eq!("Example.com".parse(), Ok(Allowed::Domain("example.com".to_owned())));
        assert_eq!("@localhost".parse(), Ok(Allowed::Domain("localhost".to_owned())));
        assert_eq!(" ops ".parse(), Ok(Allowed::Group("ops".to_owned())));
        assert_eq!("Site Admins".parse(), Ok(Allowed::Group("Site Admins".to_owned())));
        for wrong in ["", " ", "@", ".com", "ada@example.com", "*.example.com", "a b.com"] {
            assert!(wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_domain_admits_only_its_own_verified_addresses() {
        let config = OidcConfig {
            allow: vec![Allowed::Domain("example.com".to_owned())],
            ..OidcConfig::new("https://sso.example.com", "box")
        };

        assert!(config.admits(&person("ada@example.com", true, &[])));
        assert!(config.admits(&person("ada@EXAMPLE.COM", true, &[])));
        for outside in ["ada@sub.example.com", "ada@badexample.com", "ada@example.com.evil.test", "example.com"] {
            assert!(!config.admits(&person(outside, true, &[])), "{outside}");
        }
        assert!(!config.admits(&person("ada@example.com", false, &[])));
    }

    #[test]
    fn a_group_admits_its_members_by_exactly_its_name() {
        let config = OidcConfig {
            allow: vec![Allowed::Group("ops".to_owned())],
            ..OidcConfig::new("https://sso.example.com", "box")
        };

        assert!(config.admits(&person("ada@example.com", false, &["dev", "ops"])));
        assert!(!config.admits(&person("ada@example.com", true, &["Ops", "ops-extern"])));
        assert!(OidcConfig::new("https://sso.example.com", "box").admits(&person("a@b.c", false, &[])));
    }

    #[test]
    fn only_this_machine_may_be_a_provider_without_tls() {
        for sound in ["https://sso.example.com", "https://sso.example.com/realms/main/", "http://127.0.0.1:3000"] {
            assert_eq!(issuer(sound).as_deref(), Ok(sound));
        }
        for wrong in ["", "sso.example.com", "http://sso.example.com", "https://sso.example.com?x=1", "ftp://a.b"] {
            assert!(issuer(wrong).is_err(), "{wrong}");
        }
    }
}
