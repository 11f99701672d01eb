//! The address of a service, as people write it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Scheme, host and port of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServiceUrl(Url);

impl ServiceUrl {
    /// Whether the service is on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || host.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    /// Whether others on the way can read what is sent.
    pub fn is_readable_by_others(&self) -> bool {
        !self.is_secure() && !self.is_loopback()
    }

    pub fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// `host` or `host:port`, which names a context that has no name of its own.
    pub fn authority(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// An address of the API: `path` begins with `/`, and its parts are encoded.
    pub fn api(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.0.as_str().trim_end_matches('/'))
    }
}

impl FromStr for ServiceUrl {
    type Err = String;

    /// Without a scheme it is HTTPS, and on this machine HTTP. The address of the interface or the API will do.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let fault = |what: &str| format!("{what}: write an address such as https://signalbox.example.com");
        let mut url = Url::parse(&with_scheme).map_err(|error| fault(&error.to_string()))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(fault(&format!("{}:// is no scheme of the service", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault("the address holds a user name or a password"));
        }
        if !["", "/", "/api/v1", "/api/v1/"].contains(&url.path()) {
            return Err(fault("the service has no path"));
        }
        url.set_path("");
        url.set_query(None);
        url.set_fragment(None);
        let parsed = Self(url);
        if !text.contains("://") && parsed.is_loopback() {
            return format!("http://{text}").parse();
        }
        Ok(parsed)
    }
}

impl TryFrom<String> for ServiceUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ServiceUrl> for String {
    fn from(url: ServiceUrl) -> Self {
        url.to_string()
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_people_write_them() {
        for (text, url, authority) in [
            ("https://signalbox.example.com/", "https://signalbox.example.com", "signalbox.example.com"),
            ("signalbox.example.com", "https://signalbox.example.com", "signalbox.example.com"),
            ("127.0.0.1:8000", "http://127.0.0.1:8000", "127.0.0.1:8000"),
            ("http://[::1]:8000/api/v1", "http://[::1]:8000", "[::1]:8000"),
            ("localhost:8000", "http://localhost:8000", "localhost:8000"),
        ] {
            let parsed: ServiceUrl = text.parse().unwrap();

            assert_eq!((parsed.to_string().as_str(), parsed.authority().as_str()), (url, authority), "{text}");
        }
    }

    #[test]
    fn other_addresses_are_refused_without_their_password() {
        for text in ["", "ftp://a", "https://ada:secret@a.example", "https://a.example/servers", "https://"] {
            let refusal = text.parse::<ServiceUrl>().unwrap_err();

            assert!(!refusal.contains("secret"), "{refusal}");
        }
    }

    #[test]
    fn only_plain_http_to_other_machines_is_readable() {
        let is_readable = |text: &str| text.parse::<ServiceUrl>().unwrap().is_readable_by_others();

        assert!(is_readable("http://signalbox.example.com"));
        assert!(!is_readable("https://signalbox.example.com"));
        assert!(!is_readable("http://127.0.0.1:8000"));
    }
}
