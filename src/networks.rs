//! Networks as people write them: `10.0.0.0/8`, or a single address.

// Only the address types: `core` has nothing else of networks.
use core::net::IpAddr;

use ipnet::IpNet;

/// The length of the prefix `::ffff:0:0` that makes an IPv6 address of an IPv4 one (RFC 4291, 2.5.5.2).
const MAPPED_PREFIX: u8 = 96;

/// Parses a network. A single address is a network of one, and `::ffff:10.0.0.0/104` is 10.0.0.0/8.
pub fn network(text: &str) -> Result<IpNet, &'static str> {
    let text = text.trim();
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    let network = text.parse().or_else(|_| alone());
    network.map(canonical).map_err(|_| "write a network such as 10.0.0.0/8 or fd00::/8, or a single address")
}

/// The network of IPv4 addresses, where one of IPv6 has nothing else.
fn canonical(network: IpNet) -> IpNet {
    let prefix = network.prefix_len().checked_sub(MAPPED_PREFIX);
    let address = network.addr().to_canonical();
    let mapped = prefix.filter(|_| address.is_ipv4());
    mapped.and_then(|prefix| IpNet::new(address, prefix).ok()).unwrap_or(network)
}

/// Whether one of these networks contains the address; `::ffff:10.0.0.1` counts as 10.0.0.1.
pub fn any_has(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        let networks = ["10.0.0.0/8", " 192.0.2.7", "fd00::/8", "2001:db8::1"].map(|text| network(text).unwrap());
        let cases = [
            ("10.255.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("fd12::1", true),
            ("2001:db8::1", true),
            ("2001:db8::2", false),
        ];

        for (address, expected) in cases {
            assert_eq!(any_has(&networks, address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_mapped_network_is_that_of_ipv4() {
        let cases = [
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("::ffff:0:0/95", "::ffff:0:0/95"),
        ];

        for (text, expected) in cases {
            assert_eq!(network(text).unwrap(), expected.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "balancer.internal", "fd00::/129", "10.0.0.1:80"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
