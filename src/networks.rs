//! Networks as people write them: `10.0.0.0/8`, or a single address.

// Only the address types: `core` has nothing else of networks.
use core::net::IpAddr;

use ipnet::IpNet;

/// Parses a network. A single address is a network of one.
pub fn network(text: &str) -> Result<IpNet, &'static str> {
    let text = text.trim();
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| alone()).map_err(|_| "write a network such as 10.0.0.0/8 or fd00::/8, or a single address")
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
    fn text_that_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "balancer.internal", "fd00::/129", "10.0.0.1:80"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
