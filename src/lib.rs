//! Signalbox: see and run all your servers from one self-hosted service.
//!
//! # The map
//!
//! - [`startup`] knows who knows whom; [`config`] what can be set; [`state`] what handlers and sockets may use
//! - [`auth`] says who somebody is and what they may do; [`auth::access`] is the one place that decides about a server
//! - [`audit`] says what an entry of the audit log is, and whether its chain of hashes is whole
//! - [`store`] keeps everything and is the only module that names the database
//! - [`registry`] knows which agent session holds which server, and routes calls to it
//! - [`fleet`] holds the latest of every server, [`feeds`] who watches what: both are read without asking anyone
//! - [`cluster`] is what several instances on one database know of each other
//! - [`docker`] asks agents for containers
//! - [`metrics`] is the way of a sample: pipeline, recorder, history
//! - [`logs`] are followed, one stream of the agent however many watch, and searched
//! - [`install`] holds the agents' programs that machines install from here
//! - [`alerts`] watches thresholds, [`notify`] tells people
//! - [`ws`] are the sockets' actors, [`http`] the REST API and its document
//!
//! # The way of a sample
//!
//! An agent's frame passes the gate (`ws::gate`) and is parsed once by its session ([`ws::agent_session`]). The
//! [`metrics::pipeline`] checks it, makes it the latest in the [`fleet`], shows it to whoever watches ([`feeds`]) and
//! hands it to the [`metrics::recorder`], which commits it with others and only then lets the session acknowledge it.

pub mod admin;
pub mod alerts;
pub mod audit;
pub mod auth;
pub mod bus;
pub mod cli;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod demo;
pub mod disk;
pub mod docker;
pub mod feeds;
pub mod fleet;
pub mod health;
pub mod http;
pub mod install;
pub mod ledger;
pub mod logs;
pub mod metrics;
pub mod networks;
pub mod news;
pub mod notify;
pub mod observe;
pub mod registry;
pub mod startup;
pub mod state;
pub mod store;
pub mod ws;
