//! Networks as people name them: `10.0.0.0/8`, or one address.

// The addresses alone, which are all that `core` has of networks.
use core::net::IpAddr;

use ipnet::IpNet;

/// Reads a network. An address alone is a network of one.
pub fn network(text: &str) -> Result<IpNet, &'static str> {
    let text = text.trim();
    let alone = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse().or_else(|_| alone()).map_err(|_| "a network is such as 10.0.0.0/8 or fd00::/8, or one address")
}

/// Whether one of these networks has the address: `::ffff:10.0.0.1` is 10.0.0.1 in another notation.
pub fn any_has(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_below_its_prefix() {
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
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "10.0.0", "balancer.internal", "fd00::/129", "10.0.0.1:80"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
