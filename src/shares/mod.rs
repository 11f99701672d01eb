//! Fair shares of what is scarce: no pool here can be filled by one address or one account.
//!
//! All that want something of a bounded pool want it for a [`Share`]: an address, or an account. There are two kinds of
//! pools. A [`Gate`] lets so many in at a time and has a line in front of it: every other turn goes to the newest of the
//! shares that had none lately ([`turns`]), so a flood waits behind itself and behind all that come after it. Where the line
//! is full the share that has most in it gives way. [`Seats`] are for those who have not said who they are: there is no line, and when all seats are
//! taken the one that has been silent for longest, of the share that has most, gives way to the next that comes.
//!
//! Nobody is counted by time: who behaves is never refused for asking often, only for being one of too many at once.
//! [`mod@line`], [`turns`] and [`seating`] decide and know neither clock nor task; [`gate`] and [`seats`] act.

mod connection;
pub mod gate;
pub mod line;
pub mod seating;
pub mod seats;
pub mod share;
pub mod sizes;
pub mod turns;

pub use connection::Connection;
pub use gate::{Full, Gate, Permit};
pub use seats::{Seat, Seats};
pub use share::{Part, Share};
pub use sizes::Sizes;

/// The pools of the service, behind cheap clones. Passwords have theirs where they are checked.
#[derive(Clone)]
pub struct Shares {
    /// Connections that have not shown who they are, by address.
    pub connections: Gate,
    /// Sockets of agents that have said nothing yet, by address.
    pub silent_agents: Seats,
    /// Keys of agents that are looked up, by address.
    pub keys: Gate,
    /// Agents with a good key that are being let in, by account.
    pub arrivals: Gate,
    /// Open sockets of dashboards, by account.
    pub dashboards: Gate,
    /// Large bodies that are being read, by address.
    pub bodies: Gate,
    /// Reads that unpack or look through much, by account.
    pub reads: Gate,
    /// Reads of what there is at all, by account.
    pub listings: Gate,
    /// Searches of logs, by account.
    pub searches: Gate,
}

impl Shares {
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            connections: Gate::new("connections", sizes.connections),
            silent_agents: Seats::new("silent_agents", sizes.silent_agents),
            keys: Gate::new("keys", sizes.keys),
            arrivals: Gate::new("arrivals", sizes.arrivals),
            dashboards: Gate::new("dashboards", sizes.dashboards),
            bodies: Gate::new("bodies", sizes.bodies),
            reads: Gate::new("reads", sizes.reads),
            listings: Gate::new("listings", sizes.listings),
            searches: Gate::new("searches", sizes.searches),
        }
    }
}
