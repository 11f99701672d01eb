//! The proxy on the way to the service, as `HTTPS_PROXY` and similar variables name it.
//!
//! The names and their meaning are those of curl: the variable in lower case precedes that in upper case, the one for the
//! scheme precedes `ALL_PROXY`, and hosts in `NO_PROXY` are reached directly. So is the machine itself.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use percent_encoding::percent_decode_str;
use tokio_tungstenite::tungstenite::http::Uri;

use crate::url::ServiceUrl;

/// The port of a proxy whose address has none, as in curl.
const DEFAULT_PORT: u16 = 1080;

/// An HTTP proxy. Neither its `Debug` nor its `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// User name and password, not encoded.
    credentials: Option<String>,
}

/// Why a proxy's address is refused. It is not repeated, because it may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("{variable} is not an address such as http://proxy.example.com:3128")]
    Malformed { variable: String },
    #[error("{variable}: a proxy of the kind {scheme}:// is not supported, only http://")]
    Scheme { variable: String, scheme: String },
}

impl Proxy {
    /// The proxy that the environment selects for `url`; none where the service is reached directly.
    pub fn of_environment(
        url: &ServiceUrl,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ProxyError> {
        let either = |name: &str| {
            let names = [name.to_ascii_lowercase(), name.to_owned()];
            names.into_iter().find_map(|name| Some((variable(&name)?.trim().to_owned(), name)))
        };
        let by_scheme = if url.secure { "HTTPS_PROXY" } else { "HTTP_PROXY" };
        let Some((value, name)) = either(by_scheme).or_else(|| either("ALL_PROXY")) else { return Ok(None) };
        let is_direct = url.is_loopback() || either("NO_PROXY").is_some_and(|(list, _)| is_listed(&list, url));
        // An empty value means that there is no proxy.
        if value.is_empty() || is_direct {
            return Ok(None);
        }
        value.parse().map(Some).map_err(|fault| match fault {
            Fault::Malformed => ProxyError::Malformed { variable: name },
            Fault::Scheme(scheme) => ProxyError::Scheme { variable: name, scheme },
        })
    }

    /// The value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<String> {
        self.credentials.as_ref().map(|credentials| format!("Basic {}", BASE64_STANDARD.encode(credentials)))
    }
}

/// Why an address is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Malformed,
    Scheme(String),
}

impl FromStr for Proxy {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = with_scheme.parse().map_err(|_| Fault::Malformed)?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(other) => return Err(Fault::Scheme(other.to_owned())),
            None => return Err(Fault::Malformed),
        }
        let authority = uri.authority().ok_or(Fault::Malformed)?;
        let (user_info, address) = match authority.as_str().rsplit_once('@') {
            Some((user_info, address)) => (Some(user_info), address),
            None => (None, authority.as_str()),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.port_u16() {
            Some(port) if port > 0 => port,
            None if address == authority.host() => DEFAULT_PORT,
            _ => return Err(Fault::Malformed),
        };
        if host.is_empty() {
            return Err(Fault::Malformed);
        }
        let credentials = user_info.map(|user_info| {
            let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
            let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            format!("{}:{}", plain(user), plain(password))
        });
        Ok(Self { host, port, credentials })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Whether `NO_PROXY` contains the service: by its name or a domain above it, by its address or a network (`10.0.0.0/8`), each
/// with or without its port, or by `*`.
fn is_listed(list: &str, url: &ServiceUrl) -> bool {
    list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let (entry, port) = without_port(entry);
        entry == "*" || (port.is_none_or(|port| port == url.port) && is_meant(entry, &url.host))
    })
}

/// An entry, and its port if it has one. An IPv6 address has colons of its own.
fn without_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn is_meant(entry: &str, host: &str) -> bool {
    let plain = entry.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        let (network, bits) = plain.split_once('/').map_or((plain, None), |(network, bits)| (network, Some(bits)));
        let Ok(network) = network.parse::<IpAddr>() else { return false };
        return match bits.map(str::parse::<u32>) {
            None => network == address,
            Some(Ok(bits)) => is_in(address, network, bits),
            Some(Err(_)) => false,
        };
    }
    let domain = plain.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    !domain.is_empty() && host.strip_suffix(&domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_in(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (all, width) = match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (u128::from(one.to_bits() ^ other.to_bits()), 32),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    bits <= width && all.checked_shr(width - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, variables: &[(&str, &str)]) -> Result<Option<String>, ProxyError> {
        let variable =
            |name: &str| variables.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned());
        let proxy = Proxy::of_environment(&url.parse().unwrap(), variable)?;
        Ok(proxy.map(|proxy| proxy.to_string()))
    }

    #[test]
    fn the_variable_of_the_scheme_counts_then_the_one_for_all() {
        let all = [("HTTPS_PROXY", "s:1"), ("HTTP_PROXY", "h:2"), ("all_proxy", "a:3")];

        assert_eq!(found("https://box", &all).unwrap().as_deref(), Some("s:1"));
        assert_eq!(found("ws://box", &all).unwrap().as_deref(), Some("h:2"));
        assert_eq!(found("https://box", &all[1..]).unwrap().as_deref(), Some("a:3"));
        assert_eq!(
            found("https://box", &[("HTTPS_PROXY", "s:1"), ("https_proxy", "small:1")]).unwrap().unwrap(),
            "small:1"
        );
        assert_eq!(found("https://box", &[("https_proxy", ""), ("ALL_PROXY", "a:3")]), Ok(None));
        assert_eq!(found("https://box", &[]), Ok(None));
    }

    #[test]
    fn hosts_in_no_proxy_and_the_machine_itself_are_reached_directly() {
        let is_direct =
            |url: &str, list: &str| found(url, &[("ALL_PROXY", "p:1"), ("NO_PROXY", list)]).unwrap().is_none();
        let listed = [
            ("https://box.example.com", "other, example.com"),
            ("https://box.example.com", ".example.com"),
            ("https://Example.com", "example.com"),
            ("https://box:8443", "box:8443"),
            ("https://box", "*"),
            ("http://10.1.2.3:8000", "10.0.0.0/8"),
            ("http://10.1.2.3:8000", "10.1.2.3"),
            ("http://[2001:db8::1]", "2001:db8::/32"),
            ("http://[2001:db8::1]:8000", "[2001:db8::1]:8000"),
            ("http://127.0.0.1:8000", ""),
        ];
        let others = [
            ("https://notexample.com", "example.com"),
            ("https://box:8443", "box:443"),
            ("http://10.1.2.3:8000", "10.0.0.0/16, 10.1.2.3/33, ::/0"),
            ("https://box", ", ."),
        ];

        for (url, list) in listed {
            assert!(is_direct(url, list), "{url} {list}");
        }
        for (url, list) in others {
            assert!(!is_direct(url, list), "{url} {list}");
        }
    }

    #[test]
    fn other_proxies_are_refused_without_showing_the_password() {
        let refused = |value: &str| found("https://box", &[("https_proxy", value)]).unwrap_err().to_string();

        assert_eq!(
            refused("socks5://me:secret@p:1"),
            "https_proxy: a proxy of the kind socks5:// is not supported, only http://"
        );
        for value in ["http://", "http://me:secret@:1", "http://me:secret@p:99999", "http://p p"] {
            assert_eq!(refused(value), "https_proxy is not an address such as http://proxy.example.com:3128");
        }
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        let proxy: Proxy = "http://me:secret@[::1]:3128".parse().unwrap();

        assert_eq!(
            (format!("{proxy}"), format!("{proxy:?}")),
            ("[::1]:3128".to_owned(), "Proxy([::1]:3128)".to_owned())
        );
        assert_eq!(proxy.authorization().unwrap(), "Basic bWU6c2VjcmV0");
        assert_eq!("p".parse::<Proxy>().unwrap().port, DEFAULT_PORT);
    }
}
