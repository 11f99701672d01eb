//! Addresses as people and browsers write them: a scheme, a host, and optionally a port and a path. Anything that a
//! shell or a header could interpret is refused.

// Only the address types: `core` has nothing else of networks.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest possible host name (RFC 1035, 2.3.4).
const LONGEST_HOST: usize = 253;

/// Whether a text is `http(s)://host:port/path` with only the usual characters.
pub fn is_address(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else { return false };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    is_authority(authority) && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._~%-".contains(&byte))
}

/// Whether a text is `name`, `name:port`, `[address]` or `[address]:port`.
pub fn is_authority(text: &str) -> bool {
    let (is_host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port),
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (is_name(name), port)
        }
    };
    is_host && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

/// Whether a text is an e-mail address with the syntax of RFC 5321, without a name or quotes.
pub fn is_email(text: &str) -> bool {
    let has_form = text.len() <= 254 && text.is_ascii() && text.parse::<email_address::EmailAddress>().is_ok();
    has_form
        && !text.contains(['<', '"', ' '])
        && text.rsplit_once('@').is_some_and(|(_, domain)| is_mail_domain(domain))
}

/// Whether the domain of an e-mail address is one of RFC 5321 (4.1.2, 4.1.3): a name, or an address in brackets. The parser has
/// checked the lengths and ends of its labels, but allows the characters of RFC 5322.
fn is_mail_domain(domain: &str) -> bool {
    let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    };
    match literal.split_once(':') {
        Some((tag, address)) => tag.eq_ignore_ascii_case("IPv6") && address.parse::<Ipv6Addr>().is_ok(),
        None => literal.parse::<Ipv4Addr>().is_ok(),
    }
}

/// A host name or an IPv4 address. Underscores are not allowed in host names, but containers have them.
fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    (1..=LONGEST_HOST).contains(&text.len()) && text.bytes().all(fits)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Whether a text is an origin (RFC 6454) as browsers write it: a scheme, a host and optionally a port.
pub fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(fits) && is_authority(authority)
}

/// The host of `host:port`; an IPv6 address without its brackets.
pub fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    }
}

/// The authority of an address such as `https://host:port/path`.
pub fn authority_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split_once('/').map_or(rest, |(authority, _)| authority)
}

/// Whether a host name means this machine without a query to a name server, which could be manipulated.
pub fn is_loopback(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_named = host.eq_ignore_ascii_case("localhost");
    is_named || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_an_optional_port_and_path() {
        let addresses = [
            "http://localhost",
            "https://box.example.com:8443",
            "http://192.0.2.10:8000",
            "http://[2001:db8::1]:8000",
            "http://signal_box",
            "https://example.com/ops/~box",
        ];
        for address in addresses {
            assert!(is_address(address), "{address}");
        }
    }

    #[test]
    fn text_that_a_shell_could_interpret_is_no_address() {
        let hosts = [
            "",
            "a'; id; '",
            "a$(id)",
            "a`id`",
            "a\"b",
            "a b",
            "a\nb",
            "a;b",
            "a&b",
            "a|b",
            "a\\b",
            "a@b",
            "a?b",
            "a#b",
            "é",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a:80:80",
            "[::1",
            "[a]",
            "[::1]x",
            "::1",
            "/path",
            "a/'",
        ];
        for host in hosts {
            assert!(!is_address(&format!("http://{host}")), "{host}");
        }
        assert!(!is_address("ftp://a"));
        assert!(!is_address("a"));
        assert!(!is_address(&format!("http://{}", "a".repeat(254))));
    }

    #[test]
    fn an_origin_has_no_path() {
        for origin in ["https://box.example.com", "http://[::1]:8000", "tauri://localhost", "chrome-extension://abc"] {
            assert!(is_origin(origin), "{origin}");
        }
        for text in ["foo", "", "*", "null", "https://", "https://a/x", "https://a?b", "://a", "1x://a", "a b://c"] {
            assert!(!is_origin(text), "{text}");
        }
    }

    #[test]
    fn the_domain_of_an_email_is_a_name_or_an_address_in_brackets() {
        let label = "a".repeat(63);
        let emails = [
            "ada@example.com",
            "ada@localhost",
            "o'hara+x_1!@mail-1.example.co.uk",
            "ada@1.example",
            "ada@xn--bcher-kva.example",
            "ada@[192.0.2.10]",
            "ada@[IPv6:2001:db8::1]",
            "ada@[ipv6:::1]",
            &format!("ada@{label}.example"),
        ];
        for email in emails {
            assert!(is_email(email), "{email}");
        }
        let others = [
            "ada@exa!mple.com",
            "ada@exa_mple.com",
            "ada@-example.com",
            "ada@example-.com",
            "ada@example..com",
            "ada@example.com.",
            "ada@bücher.example",
            "ada@[x]",
            "ada@[]",
            "ada@[256.0.2.10]",
            "ada@[2001:db8::1]",
            "ada@[IPv6:192.0.2.10]",
            "ada@[192.0.2.10",
            "ada@[a@192.0.2.10]",
            "\"ada\"@example.com",
            "Ada <ada@example.com>",
            &format!("ada@{label}a.example"),
        ];
        for text in others {
            assert!(!is_email(text), "{text}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        let own = ["localhost", "LocalHost:8000", "localhost.", "127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "[::1]"];
        let others =
            ["", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "[::2]", "::1"];

        for authority in own {
            assert!(is_loopback(host_of(authority)), "{authority}");
        }
        for authority in others {
            assert!(!is_loopback(host_of(authority)), "{authority}");
        }
    }

    #[test]
    fn an_authority_ends_before_the_path() {
        assert_eq!(authority_of("https://box.example.com:8443/ops/"), "box.example.com:8443");
        assert_eq!(authority_of("http://[::1]"), "[::1]");
    }
}
