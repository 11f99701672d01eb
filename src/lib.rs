//! Signalbox: see and run all your servers from one self-hosted service.
//!
//! # The map
//!
//! The modules lie in layers, and each names only those below its own: ARCHITECTURE.md shows them, `tests/tidy.rs` holds
//! them.
//!
//! - [`startup`] knows who knows whom; [`config`] what can be set; [`state`] what handlers and sockets may use
//! - [`auth`] says who somebody is and what they may do; [`auth::access`] is the one place that decides about a server
//! - [`audit`] says what an entry of the audit log is, and whether its chain of hashes is whole
//! - [`store`] keeps everything and is the only part that names the database
//! - [`registry`] knows which agent session holds which server, and routes calls to it; [`presence`] is what follows
//! - [`fleet`] holds the latest of every server, [`feeds`] who watches what: both are read without asking anyone
//! - [`clock`] says what may be believed of the time, here and on every agent
//! - [`cluster`] is what several instances on one database know of each other; [`peer_server`] answers the others, and
//!   [`vigil`] compares what is held here with the database
//! - [`docker`] asks agents for containers
//! - [`ingest`] says where a sample goes, [`metrics`] makes it durable and reads it again; what that is made of is
//!   [`signalbox_history`]
//! - [`logs`] are followed, one stream of the agent however many watch, and searched
//! - [`shares`] gives everybody a fair part of what is scarce
//! - [`install`] holds the agents' programs that machines install from here
//! - [`alerts`] watches thresholds, [`notify`] tells people
//! - [`ws`] are the sockets' actors, [`http`] the REST API and its document
//!
//! # The way of a sample
//!
//! An agent's frame passes the gate (`ws::gate`) and is parsed once by its session ([`ws::agent_session`]).
//! [`ingest`] checks it, makes it the latest in the [`fleet`], shows it to those who watch ([`feeds`]) and hands it to the
//! [`metrics::recorder`], which commits it with others and only then lets the session acknowledge it.

pub mod address;
pub mod admin;
pub mod alert_words;
pub mod alerts;
pub mod auth;
pub mod bus;
pub mod change;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod demo;
pub mod disk;
pub mod docker;
pub mod effects;
pub mod events;
pub mod feeds;
pub mod fleet;
pub mod health;
pub mod http;
pub mod ingest;
pub mod install;
pub mod ledger;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod networks;
pub mod notify;
pub mod observe;
pub mod peer_server;
pub mod periodic;
pub mod presence;
pub mod random;
pub mod registry;
pub mod shards;
pub mod shares;
pub mod startup;
pub mod state;
pub mod tls;
pub mod vigil;
pub mod ws;

// What is kept is a crate of its own, and known here by these names.
pub use signalbox_store as store;
pub use signalbox_store::audit;
