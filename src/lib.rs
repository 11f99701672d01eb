//! Signalbox: see and run all your servers from one self-hosted service.
//!
//! # The map
//!
//! The modules form layers, and each names only modules of lower layers: ARCHITECTURE.md shows them, `tests/tidy.rs`
//! enforces them.
//!
//! - [`program`] does what the command line says, [`cli`] defines it
//! - [`startup`] connects all components and ends them in order; [`config`] defines every setting; [`state`] is what
//!   handlers and sockets may use
//! - [`auth`] identifies users and decides their rights; [`auth::access`] is the only place that decides about servers
//! - [`audit`] defines the entries of the audit log, and verifies its chain of hashes
//! - [`store`] stores everything and is the only crate that names the database
//! - [`registry`] knows which agent session holds which server, and routes calls to it; [`presence`] handles what
//!   follows when sessions begin or end
//! - [`fleet`] has the latest values of every server, [`feeds`] the subscribers of every topic: both are read without
//!   messages
//! - [`clock`] decides which time can be trusted, here and on every agent
//! - [`cluster`] connects several instances on one database; [`peer_server`] answers the other instances, and [`reconciler`]
//!   compares what this instance holds with the database
//! - [`commands`] runs commands, batches and schedules; [`events`] has the events of servers; [`updates`] rolls releases of
//!   the agent out
//! - [`docker`] asks agents about containers
//! - [`recordings`] asks agents for what terminals have shown
//! - [`ingest`] routes a sample to all its consumers, [`metrics`] stores it durably and reads it again;
//!   [`signalbox_history`] has the formats
//! - [`live`] asks agents for live samples while somebody watches their servers
//! - [`logs`] follows logs, with streams from the agent that readers share, and searches them
//! - [`shares`] divides scarce resources fairly
//! - [`install`] has the agent programs that machines install from here
//! - [`alerts`] evaluates thresholds, [`notify`] notifies people
//! - [`ws`] has the actors of WebSockets, [`http`] the REST API and its OpenAPI document
//!
//! # The path of a sample
//!
//! An agent's frame passes the gate (`ws::gate`), and its session parses it once ([`ws::agent_session`]). [`ingest`]
//! checks the sample, makes it the latest of its server in the [`fleet`], publishes it to subscribers ([`feeds`]) and
//! hands it to the [`metrics::recorder`], which commits it with others. Only then does the session acknowledge it.

pub mod address;
pub mod admin;
pub mod alert_words;
pub mod alerts;
pub mod auth;
pub mod batch_writer;
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
pub mod live;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod networks;
pub mod notify;
pub mod observe;
pub mod peer_server;
pub mod periodic;
pub mod presence;
pub mod program;
pub mod random;
pub mod reconciler;
pub mod recordings;
pub mod registry;
pub mod seal;
pub mod shards;
pub mod shares;
pub mod startup;
pub mod state;
pub mod tls;
pub mod updates;
pub mod ws;

// The store is a separate crate, available here under these names.
pub use signalbox_store as store;
pub use signalbox_store::audit;
