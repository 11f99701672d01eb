//! Fair shares of scarce resources: no pool here can be filled by one address or one account.
//!
//! Everybody uses a bounded pool on behalf of a [`Share`]: an address, or an account. There are two kinds of pools. A
//! [`Gate`] admits a fixed number of callers at the same time and has a line in front of it: every other turn goes to
//! the newest of the shares that had none recently ([`turns`]), so a flood waits behind itself and behind all
//! newcomers. If the line is full, the longest share in it gives way. [`Seats`] are for clients that have not
//! identified themselves. They have no line: when all seats are taken, a newcomer takes the seat of the client that has
//! been silent for longest, in the share that has the most seats.
//!
//! What a client keeps as long as it reads is [`Revocable`]: a client that stops to read loses it, and with it its place.
//!
//! There are no rate limits: a well-behaved client is never refused for asking often, only for being one of too many at
//! the same time. [`mod@line`], [`turns`] and [`seating`] decide and know neither clock nor task; [`gate`] and
//! [`seats`] act.

mod connection;
pub mod gate;
pub mod line;
mod revocable;
pub mod seating;
pub mod seats;
pub mod share;
pub mod sizes;
pub mod turns;

pub use connection::Connection;
pub use gate::{Full, Gate, Permit};
pub use revocable::Revocable;
pub use seats::{Seat, Seats};
pub use share::{Part, Share};
pub use sizes::Sizes;

/// The pools of the service. Clones are cheap. Passwords have their own pool where they are checked.
#[derive(Clone)]
pub struct Shares {
    /// Connections of unidentified clients, by address.
    pub connections: Gate,
    /// Sockets of agents that have sent nothing yet, by address.
    pub silent_agents: Seats,
    /// Lookups of agents' keys, by address.
    pub keys: Gate,
    /// Handshakes of agents with a valid key, by account.
    pub arrivals: Gate,
    /// Open sockets of dashboards, by account.
    pub dashboards: Gate,
    /// Parts of the lists that sockets of all servers hold, by account.
    pub fleet_views: Gate,
    /// Large bodies that are being read, by address.
    pub bodies: Gate,
    /// Reads that unpack or search a lot of history, by account.
    pub reads: Gate,
    /// Answers of the history that are small for sure, until their clients have them, by account.
    pub answers: Gate,
    /// All other answers of the history, by account.
    pub exports: Gate,
    /// Reads of one server each for answers about many, by account.
    pub overviews: Gate,
    /// Parts of the output of running commands, by account.
    pub outputs: Gate,
    /// Listings of the available series, by account.
    pub listings: Gate,
    /// Searches of logs, by account.
    pub searches: Gate,
    /// Machines that become servers, by account.
    pub enrolments: Gate,
    /// Downloads of the agents' programs, by address.
    pub downloads: Gate,
    /// Sign-ins that ask the identity provider, by address.
    pub sign_ins: Gate,
    /// Checks of the identity provider's logout messages, by address.
    pub logouts: Gate,
}

impl Shares {
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            connections: Gate::new("connections", sizes.connections),
            silent_agents: Seats::new("silent_agents", sizes.silent_agents),
            keys: Gate::new("keys", sizes.keys),
            arrivals: Gate::new("arrivals", sizes.arrivals),
            dashboards: Gate::new("dashboards", sizes.dashboards),
            fleet_views: Gate::new("fleet_views", sizes.fleet_views),
            bodies: Gate::new("bodies", sizes.bodies),
            reads: Gate::new("reads", sizes.reads),
            answers: Gate::new("answers", sizes.answers),
            exports: Gate::new("exports", sizes.exports),
            overviews: Gate::new("overviews", sizes.overviews),
            outputs: Gate::new("outputs", sizes.outputs),
            listings: Gate::new("listings", sizes.listings),
            searches: Gate::new("searches", sizes.searches),
            enrolments: Gate::new("enrolments", sizes.enrolments),
            downloads: Gate::new("downloads", sizes.downloads),
            sign_ins: Gate::new("sign_ins", sizes.sign_ins),
            logouts: Gate::new("logouts", sizes.logouts),
        }
    }
}
