//! Determines the client's address behind proxies.
//!
//! A proxy appends the address of its own client to the list that it received. So the list is reliable from its end, as
//! far as the proxies that wrote it are trusted; everything before that may be invented.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{FORWARDED, HeaderMap, HeaderName, X_FORWARDED_FOR};
use ipnet::IpNet;

use crate::auth::setup::Via;
use crate::networks;
use crate::state::State;

/// The client's address, for the audit log and other records: the peer of the connection, or if that is a trusted
/// proxy, the address that it names.
pub fn client_address(request: &HttpRequest, state: &State) -> String {
    let Some(peer) = request.peer_addr() else { return String::new() };
    behind(peer.ip().to_canonical(), request.headers(), &state.config.trusted_proxies).to_string()
}

/// Headers that proxies add, in addition to those that begin with [`X_FORWARDED`]. A proxy that adds none of them looks
/// like a client on this machine: `--public-url` and `--trusted-proxies` are for that case.
const OF_PROXIES: [&str; 7] =
    ["forwarded", "via", "x-real-ip", "x-client-ip", "x-original-forwarded-for", "cf-connecting-ip", "true-client-ip"];
const X_FORWARDED: &str = "x-forwarded";

/// Whether a proxy forwarded the request, judged by its headers. A client gains nothing by forging them.
pub fn via(request: &HttpRequest) -> Via {
    let is_of_proxy = |name: &HeaderName| OF_PROXIES.contains(&name.as_str()) || name.as_str().starts_with(X_FORWARDED);
    if request.headers().keys().any(is_of_proxy) { Via::Proxy } else { Via::Direct }
}

/// The first address on the way back from `peer` that is not a trusted proxy, or the last one that is known.
fn behind(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    if !networks::any_has(trusted, peer) {
        return peer;
    }
    let mut known = peer;
    for hop in hops(headers).into_iter().rev() {
        // Hidden or malformed: the addresses before it cannot be known.
        let Some(before) = hop else { break };
        known = before;
        if !networks::any_has(trusted, before) {
            break;
        }
    }
    known
}

/// The addresses of all hops, the first client first; `None` for text that is no address. Only one of the two headers
/// counts: a proxy that writes one of them leaves the other as the client sent it, and hardly any writes only
/// `Forwarded`.
fn hops(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    if headers.contains_key(X_FORWARDED_FOR) {
        // This header has no quoted strings: a quote that a client opened must not swallow what a proxy appended.
        return lines(headers, &X_FORWARDED_FOR).iter().flat_map(|line| said(line.split(','), address)).collect();
    }
    lines(headers, &FORWARDED).iter().flat_map(|line| said(split(line, ','), asked_by)).collect()
}

fn lines<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<Cow<'a, str>> {
    headers.get_all(name).map(|line| String::from_utf8_lossy(line.as_bytes())).collect()
}

/// The addresses of a list's elements. Empty elements do not count (RFC 9110, 5.6.1).
fn said<'a>(elements: impl IntoIterator<Item = &'a str>, read: fn(&str) -> Option<IpAddr>) -> Vec<Option<IpAddr>> {
    elements.into_iter().map(str::trim).filter(|element| !element.is_empty()).map(read).collect()
}

/// The client's address in an element of `Forwarded` (RFC 7239).
fn asked_by(element: &str) -> Option<IpAddr> {
    let mut pairs = split(element, ';').into_iter().filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// The parts of a text between separators outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|character| {
        let escapes = is_quoted && !is_escaped && character == '\\';
        let was_escaped = std::mem::replace(&mut is_escaped, escapes);
        if character == '"' && !was_escaped {
            is_quoted = !is_quoted;
        }
        character == separator && !is_quoted
    });
    parts.collect()
}

/// Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711`.
fn address(text: &str) -> Option<IpAddr> {
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let found: IpAddr = text.parse().ok().or_else(with_port).or_else(in_brackets)?;
    Some(found.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const PROXY: &str = "10.0.0.2";

    /// The client's address of a request with these headers, if 10.0.0.0/8 and fd00::/8 are trusted.
    fn found(peer: &str, lines: &[(HeaderName, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| networks::network(text).unwrap());
        behind(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn headers_of_an_untrusted_peer_do_not_count() {
        let lie = [(X_FORWARDED_FOR, "192.0.2.1"), (FORWARDED, "for=192.0.2.1")];

        assert_eq!(found("203.0.113.9", &lie), "203.0.113.9");
        assert_eq!(found("2001:db8::9", &lie), "2001:db8::9");
    }

    #[test]
    fn a_list_counts_from_its_end_as_far_as_proxies_are_trusted() {
        let cases = [
            ("203.0.113.9", "203.0.113.9"),
            ("192.0.2.1, 203.0.113.9", "203.0.113.9"),
            ("192.0.2.1, 203.0.113.9, 10.0.0.3", "203.0.113.9"),
            ("192.0.2.1,203.0.113.9 ,\t10.0.0.3,, 10.1.2.3,", "203.0.113.9"),
            ("10.0.0.4, 10.0.0.3", "10.0.0.4"),
            ("2001:db8::9, fd00::3", "2001:db8::9"),
            ("203.0.113.9:4711", "203.0.113.9"),
            ("[2001:db8::9]:4711, [fd00::3]", "2001:db8::9"),
            ("::ffff:203.0.113.9, ::ffff:10.0.0.3", "203.0.113.9"),
            ("\", 203.0.113.9", "203.0.113.9"),
            ("\u{e9}, 203.0.113.9", "203.0.113.9"),
        ];

        for (list, expected) in cases {
            assert_eq!(found(PROXY, &[(X_FORWARDED_FOR, list)]), expected, "{list}");
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let lines = ["192.0.2.1", "203.0.113.9, 10.0.0.4", "10.0.0.3"].map(|line| (X_FORWARDED_FOR, line));

        assert_eq!(found(PROXY, &lines), "203.0.113.9");
    }

    #[test]
    fn malformed_elements_end_the_way_back_at_the_last_known_proxy() {
        let cases = [
            ("", PROXY),
            (" , ,", PROXY),
            ("unknown", PROXY),
            ("203.0.113.9, unknown", PROXY),
            ("203.0.113.9, _hidden, 10.0.0.3", "10.0.0.3"),
            ("203.0.113.9, 10.0.0.3.4", PROXY),
            ("fe80::1%eth0", PROXY),
            ("203.0.113.9, \u{e9}", PROXY),
            ("203.0.113.9, [10.0.0.3]", PROXY),
        ];

        for (list, expected) in cases {
            assert_eq!(found(PROXY, &[(X_FORWARDED_FOR, list)]), expected, "{list}");
        }
    }

    #[test]
    fn forwarded_counts_where_no_other_header_does() {
        let cases = [
            ("for=203.0.113.9", "203.0.113.9"),
            ("For=\"203.0.113.9:4711\";proto=https;host=box", "203.0.113.9"),
            ("for=192.0.2.1, proto=https; for=\"[2001:db8::9]:4711\", for=\"[fd00::3]\"", "2001:db8::9"),
            ("for=192.0.2.1, for=203.0.113.9;host=\"a, for=192.0.2.2;b\"", "203.0.113.9"),
            ("for=203.0.113.9, by=10.0.0.3", PROXY),
            ("for=203.0.113.9, for=unknown", PROXY),
            ("for=192.0.2.1, x=\", for=203.0.113.9", PROXY),
            ("for=192.0.2.1, x=\"\\\", for=203.0.113.9", PROXY),
            ("for", PROXY),
        ];

        for (list, expected) in cases {
            assert_eq!(found(PROXY, &[(FORWARDED, list)]), expected, "{list}");
        }
        let both = [(FORWARDED, "for=192.0.2.1"), (X_FORWARDED_FOR, "203.0.113.9")];
        assert_eq!(found(PROXY, &both), "203.0.113.9", "a header that the client may have sent does not count");
    }
}
