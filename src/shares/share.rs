//! On whose behalf something is done.

// Only the address types: `core` has nothing else of networks.
use core::net::IpAddr;
use std::hash::{DefaultHasher, Hash, Hasher};

use uuid::Uuid;

/// Clients that count as one when a resource is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Share {
    /// The service itself, and clients that are identified and limited elsewhere.
    Service,
    /// A host: an IPv4 address, or the /64 of an IPv6 address, which is what one host usually gets.
    Host(u64),
    /// The identified clients of a host, as far as is known immediately: they take turns with all others.
    Known(u64),
    Account(Uuid),
}

impl Share {
    /// The share of an address; that of the service if there is none.
    pub fn of_address(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Service,
            Some(IpAddr::V4(address)) => Self::Host(u64::from(address.to_bits())),
            // No IPv6 network in use begins with 64 zero bits, apart from mapped IPv4 addresses.
            Some(IpAddr::V6(address)) => Self::Host(u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX)),
        }
    }

    /// The share of the identified clients at the same host.
    pub fn known(self) -> Self {
        match self {
            Self::Host(host) => Self::Known(host),
            other => other,
        }
    }

    /// The share of an address in text form; that of the service if it is none.
    pub fn of_written(address: &str) -> Self {
        Self::of_address(address.parse().ok())
    }
}

/// A part of a share, and a part of that: each takes turns with the others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Part {
    pub part: u64,
    pub within: u64,
}

/// A hash that stands for a name or a number, to distinguish parts.
pub fn digest(name: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(address: &str) -> Share {
        Share::of_address(Some(address.parse().unwrap()))
    }

    #[test]
    fn an_address_of_ipv4_is_a_host_in_either_notation() {
        assert_eq!(share("192.0.2.1"), share("::ffff:192.0.2.1"));
        assert_ne!(share("192.0.2.1"), share("192.0.2.2"));
    }

    #[test]
    fn a_network_of_64_bits_is_a_host_of_ipv6() {
        assert_eq!(share("2001:db8:1:2::1"), share("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(share("2001:db8:1:2::1"), share("2001:db8:1:3::1"));
        assert_ne!(share("2001:db8:1:2::1"), share("192.0.2.1"));
    }
}
