//! Strangers, neighbours and agents that take all they can get, and honest people beside them: the attacks of a review, bounded.
//! Some come from addresses of their own of the loopback, some are against a service in a process of its own. Bounds are
//! generous, for slow machines and builds without optimisation.

mod bodies;
mod connections;
mod handshakes;
mod ids;
mod names;
mod passwords;
mod reads;

use std::net::Ipv4Addr;

/// Where honest people are who do not share an address with anybody.
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

/// The same two as the proxy names them that both of them come through.
const HONEST_BEHIND: &str = "198.51.100.7";

const STRANGER_BEHIND: &str = "203.0.113.66";

/// Where a proxy says whom it was asked by.
const FORWARDED_FOR: &str = "X-Forwarded-For";
