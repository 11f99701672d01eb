//! For whom something is done.

// The addresses alone, which are all that `core` has of networks.
use core::net::IpAddr;
use std::hash::{DefaultHasher, Hash, Hasher};

use uuid::Uuid;

/// Those that count as one when something is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Share {
    /// The service itself, and those who are known and bounded elsewhere.
    Service,
    /// A host: an address of IPv4, or the /64 of one of IPv6, which is what one host usually gets.
    Host(u64),
    /// Those at a host who have shown who they are, as far as can be told at once: they take turns with all others.
    Known(u64),
    Account(Uuid),
}

impl Share {
    /// The share of an address; that of the service where there is none.
    pub fn of_address(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Service,
            Some(IpAddr::V4(address)) => Self::Host(u64::from(address.to_bits())),
            // No network of IPv6 that is in use begins with 64 zeros less those of an IPv4 address.
            Some(IpAddr::V6(address)) => Self::Host(u64::try_from(address.to_bits() >> 64).unwrap_or(u64::MAX)),
        }
    }

    /// The share of those at the same host who have shown who they are.
    pub fn known(self) -> Self {
        match self {
            Self::Host(host) => Self::Known(host),
            other => other,
        }
    }

    /// The share of an address that is written down; that of the service where there is none.
    pub fn of_written(address: &str) -> Self {
        Self::of_address(address.parse().ok())
    }
}

/// A part of a share, and a part of that: each takes turns with its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Part {
    pub part: u64,
    pub within: u64,
}

/// What is as good as a name or a number to tell parts apart.
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
