//! Decides which addresses a channel may reach. A user who creates a channel must not reach what only the service can:
//! its own host, its network, its cloud's metadata service.

#[cfg(test)]
mod tests;

// Only address types, which do no input or output.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::networks;

/// IPv4 networks that are not public, from IANA's registry of special-purpose addresses.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    // Shared by the customers of a provider.
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Link-local, with the metadata of clouds.
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    // Relays of 6to4.
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    // Benchmarking.
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast.
    v4(224, 0, 0, 0, 4),
    // Reserved, with the broadcast address.
    v4(240, 0, 0, 0, 4),
];

/// The only part of IPv6 that is routed globally. Outside it are loopback, link-local, site-local, unique-local, multicast
/// and the forms that embed an IPv4 address.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Networks within [`GLOBAL_V6`] that are not public.
const SPECIAL_V6: [Ipv6Net; 3] = [
    // Protocols, among them Teredo and benchmarking.
    v6(0x2001, 0, 0, 23),
    // Documentation.
    v6(0x2001, 0xdb8, 0, 32),
    v6(0x3fff, 0, 0, 20),
];

/// A translator to IPv4 (RFC 6052): it reaches the IPv4 address in the last 32 bits. The prefix of RFC 8215,
/// `64:ff9b:1::/48`, is for use within one network and stays refused.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// Tunnels to the IPv4 address in the second and third group (RFC 3056).
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

/// Decides which addresses may be reached.
#[derive(Debug, Clone)]
pub struct Guard {
    networks: Vec<IpNet>,
}

impl Guard {
    /// Allows public addresses, and all addresses of `networks`.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self { networks }
    }

    pub fn allows(&self, address: IpAddr) -> bool {
        // `::ffff:10.0.0.1` is 10.0.0.1 in another notation.
        let address = address.to_canonical();
        if networks::any_has(&self.networks, address) {
            return true;
        }
        match address {
            IpAddr::V4(address) => !SPECIAL_V4.iter().any(|special| special.contains(&address)),
            IpAddr::V6(address) => match embedded(address) {
                Some(behind) => self.allows(IpAddr::V4(behind)),
                None => GLOBAL_V6.contains(&address) && !SPECIAL_V6.iter().any(|special| special.contains(&address)),
            },
        }
    }
}

/// Returns the IPv4 address that a packet to `address` reaches, if it is one of a translator or a tunnel.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [_, _, a, b, c, d, .., w, x, y, z] = address.octets();
    if NAT64.contains(&address) {
        Some(Ipv4Addr::new(w, x, y, z))
    } else if SIX_TO_FOUR.contains(&address) {
        Some(Ipv4Addr::new(a, b, c, d))
    } else {
        None
    }
}
