//! Strangers, neighbours and agents that use all they can get, and honest users at the same time: the attacks of a review,
//! bounded. Some come from addresses of their own on the loopback, some attack a service in a process of its own. Bounds are
//! generous, for slow machines and builds without optimisation.

mod answers;
mod bodies;
mod connections;
mod handshakes;
mod ids;
mod names;
mod passwords;
mod reads;

use std::net::Ipv4Addr;

/// The address of honest users, who share it with nobody.
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

/// The same two as the proxy names them that both of them come through.
const HONEST_BEHIND: &str = "198.51.100.7";

const STRANGER_BEHIND: &str = "203.0.113.66";

/// The header in which a proxy names its client.
const FORWARDED_FOR: &str = "X-Forwarded-For";
