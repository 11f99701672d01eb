//! The service's address, as a person writes it.

use std::fmt;
use std::str::FromStr;

use tokio_tungstenite::tungstenite::http::Uri;

/// The path to which agents connect, after any prefix that a proxy in front of the service adds.
const AGENT_PATH: &str = "/api/v1/agents/ws";

/// A parsed `http(s)://` or `ws(s)://` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl {
    /// Whether the connection uses TLS.
    pub secure: bool,
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// The path of the agents' WebSocket, prefix included.
    pub path: String,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("`{0}` is not an address such as https://signalbox.example.com")]
    Malformed(String),
    #[error("`{0}` must start with http://, https://, ws:// or wss://")]
    Scheme(String),
    #[error("the address must not carry a user name or password: the agent's key is given by --key or --key-file")]
    Credentials,
    #[error("`{0}` must not have a query")]
    Query(String),
}

impl FromStr for ServiceUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if !text.contains("://") {
            return Err(UrlError::Scheme(text.to_owned()));
        }
        let malformed = || UrlError::Malformed(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let secure = match uri.scheme_str() {
            Some("https" | "wss") => true,
            Some("http" | "ws") => false,
            _ => return Err(UrlError::Scheme(text.to_owned())),
        };
        let authority = uri.authority().ok_or_else(malformed)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        if uri.query().is_some() {
            return Err(UrlError::Query(text.to_owned()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        // `host:` and `host:99999` leave no port although one was written.
        let port_written = authority.as_str().len() > authority.host().len();
        let port = match authority.port_u16() {
            Some(port) if port > 0 => port,
            None if !port_written => default_port(secure),
            _ => return Err(malformed()),
        };
        if host.is_empty() {
            return Err(malformed());
        }
        Ok(Self { secure, host, port, path: agent_path(uri.path()) })
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// Accepts the service's own address as well as the base of its API, which ends in `/api/v1`.
fn agent_path(path: &str) -> String {
    let prefix = path.trim_end_matches('/');
    let prefix = prefix.strip_suffix(AGENT_PATH).or_else(|| prefix.strip_suffix("/api/v1")).unwrap_or(prefix);
    format!("{prefix}{AGENT_PATH}")
}

impl ServiceUrl {
    /// The value of the `Host` header: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.secure) { host } else { format!("{host}:{}", self.port) }
    }

    /// The path at which the service says whether it can store samples.
    pub fn readiness_path(&self) -> String {
        format!("{}/readyz", self.path.strip_suffix(AGENT_PATH).unwrap_or_default())
    }

    /// The path of a program that the service offers.
    pub fn install_path(&self, program: &str) -> String {
        format!("{}/install/{program}", self.path.strip_suffix(AGENT_PATH).unwrap_or_default())
    }

    /// Whether the connection stays on this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "wss" } else { "ws" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

impl Default for ServiceUrl {
    /// The address of a service that was started without any flag.
    fn default() -> Self {
        Self { secure: false, host: "127.0.0.1".to_owned(), port: 8000, path: AGENT_PATH.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_address_leads_to_the_same_socket() {
        let cases = [
            ("http://127.0.0.1:8000", "ws://127.0.0.1:8000/api/v1/agents/ws"),
            ("ws://127.0.0.1:8000/", "ws://127.0.0.1:8000/api/v1/agents/ws"),
            ("https://box.example.com", "wss://box.example.com/api/v1/agents/ws"),
            ("wss://box.example.com:443/api/v1/", "wss://box.example.com/api/v1/agents/ws"),
            ("https://example.com/ops/box/", "wss://example.com/ops/box/api/v1/agents/ws"),
            ("https://example.com/ops/api/v1/agents/ws", "wss://example.com/ops/api/v1/agents/ws"),
            ("http://[::1]:8000", "ws://[::1]:8000/api/v1/agents/ws"),
            (" http://box:8000 ", "ws://box:8000/api/v1/agents/ws"),
        ];

        for (text, expected) in cases {
            assert_eq!(text.parse::<ServiceUrl>().map(|url| url.to_string()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn malformed_service_addresses_are_refused() {
        let malformed = |text: &str| UrlError::Malformed(text.to_owned());
        let cases = [
            ("box:8000", UrlError::Scheme("box:8000".to_owned())),
            ("ftp://box", UrlError::Scheme("ftp://box".to_owned())),
            ("", UrlError::Scheme(String::new())),
            ("http://", malformed("http://")),
            ("http://box:99999", malformed("http://box:99999")),
            ("http://box:0", malformed("http://box:0")),
            ("http://me:secret@box", UrlError::Credentials),
            ("http://box/?token=1", UrlError::Query("http://box/?token=1".to_owned())),
        ];

        for (text, expected) in cases {
            assert_eq!(text.parse::<ServiceUrl>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn readiness_is_asked_for_below_the_same_prefix() {
        for (text, expected) in [("http://box:8000/api/v1", "/readyz"), ("https://example.com/ops/", "/ops/readyz")] {
            assert_eq!(text.parse::<ServiceUrl>().map(|url| url.readiness_path()), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn programs_lie_below_the_same_prefix() {
        for (text, expected) in
            [("http://box:8000/api/v1", "/install/x"), ("https://example.com/ops", "/ops/install/x")]
        {
            assert_eq!(text.parse::<ServiceUrl>().map(|url| url.install_path("x")), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (text, expected) in [("http://localhost", true), ("http://[::1]", true), ("http://10.0.0.1", false)] {
            assert_eq!(text.parse::<ServiceUrl>().map(|url| url.is_loopback()), Ok(expected), "{text}");
        }
    }
}
