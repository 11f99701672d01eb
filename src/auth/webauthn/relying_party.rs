//! The name that passkeys are bound to, and the pages that may use them.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::address::{authority_of, host_of};

const LOCALHOST: &str = "localhost";

/// Why a service has no passkeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRelyingParty {
    #[error("Passkeys need the service's address: its operator has to set --public-url")]
    NoAddress,
    #[error("Passkeys need a host name, and --public-url has an IP address: its operator has to set one with a name")]
    NoName,
}

/// The service as authenticators know it.
#[derive(Debug, Clone)]
pub struct RelyingParty {
    /// The host name that passkeys are bound to.
    pub id: String,
    hash: [u8; 32],
    pages: Pages,
}

/// The pages that may use the passkeys.
#[derive(Debug, Clone)]
enum Pages {
    /// Those of the public address.
    Of(String),
    /// Those of this machine, at any port.
    Local,
}

impl RelyingParty {
    /// The relying party of a service with this public address; without one, that of a service for this machine.
    pub fn of(public_url: Option<&str>, is_on_loopback: bool) -> Result<Self, NoRelyingParty> {
        let Some(url) = public_url else {
            return if is_on_loopback {
                Ok(Self::new(LOCALHOST, Pages::Local))
            } else {
                Err(NoRelyingParty::NoAddress)
            };
        };
        let host = host_of(authority_of(url)).to_ascii_lowercase();
        if host.parse::<IpAddr>().is_ok() {
            return Err(NoRelyingParty::NoName);
        }
        Ok(Self::new(&host, Pages::Of(normal(url))))
    }

    fn new(id: &str, pages: Pages) -> Self {
        Self { id: id.to_owned(), hash: Sha256::digest(id.as_bytes()).into(), pages }
    }

    /// The hash of the id, which authenticators sign.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Whether pages of this origin may use the passkeys.
    pub fn has(&self, origin: &str) -> bool {
        match &self.pages {
            Pages::Of(own) => normal(origin) == *own,
            Pages::Local => {
                let is_web = origin.starts_with("http://") || origin.starts_with("https://");
                is_web && host_of(authority_of(origin)) == LOCALHOST
            }
        }
    }
}

/// The origin of an address as browsers write it: in lower case, without the usual port.
fn normal(url: &str) -> String {
    let url = url.to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    let usual = if scheme == "https" { ":443" } else { ":80" };
    format!("{scheme}://{}", authority.strip_suffix(usual).unwrap_or(authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_address_is_the_only_page() {
        let party = RelyingParty::of(Some("https://Box.Example.com:443/"), false).unwrap();

        assert_eq!(party.id, "box.example.com");
        assert!(party.has("https://box.example.com"));
        let others = [
            "http://box.example.com",
            "https://box.example.com:8443",
            "https://evil.box.example.com",
            "https://example.com",
            "https://box.example.com.evil.test",
            "",
        ];
        for other in others {
            assert!(!party.has(other), "{other}");
        }
    }

    #[test]
    fn a_service_on_loopback_is_localhost_at_any_port() {
        let party = RelyingParty::of(None, true).unwrap();

        assert_eq!(party.id, "localhost");
        assert!(party.has("http://localhost:8000"));
        assert!(party.has("https://localhost"));
        for other in ["http://127.0.0.1:8000", "http://localhost.evil.test", "app://localhost", "localhost"] {
            assert!(!party.has(other), "{other}");
        }
    }

    #[test]
    fn a_service_without_a_name_has_none() {
        assert_eq!(RelyingParty::of(None, false).unwrap_err(), NoRelyingParty::NoAddress);
        assert_eq!(RelyingParty::of(Some("https://192.0.2.7"), false).unwrap_err(), NoRelyingParty::NoName);
        assert_eq!(RelyingParty::of(Some("https://[2001:db8::1]:8443"), true).unwrap_err(), NoRelyingParty::NoName);
    }
}
