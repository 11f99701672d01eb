//! Black-box tests: each starts the real service on a free port with a fresh database and talks to it like a client. One module
//! per resource; [`support`] has the common parts.

// The exceptions of clippy.toml only apply to test functions; here every function is part of a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr)]

mod support;

mod after_the_commit;
mod alerts_api;
mod api_keys;
mod audit;
mod auth;
mod cli;
mod combined_series;
mod containers;
mod contention;
mod data_directory;
mod database_away;
mod database_refused;
mod demo;
mod docker_api;
mod documents;
mod environment;
mod errors;
mod fleet_series;
mod fleet_socket;
mod fuzz_corpus;
mod health;
mod help;
mod host_names;
mod install;
mod login;
mod memory;
mod metrics_api;
mod notifications;
mod open_series;
mod openapi;
mod passwords;
mod plain_text;
mod profile;
mod proxy;
mod quotas;
mod refresh_cookie;
mod requests;
mod serve;
mod server_events;
mod server_filters;
mod servers;
mod service_info;
mod sessions;
mod setup_code;
mod store;
mod store_alert_buckets;
mod store_alert_counts;
mod store_alert_reads;
mod store_audit;
mod store_history;
mod store_once;
mod store_orphans;
mod store_postgres;
mod token_attacks;
mod tokens;
mod views;
mod web;

mod abuse;
mod agent_auth;
mod agent_hostile;
mod agent_metrics;
mod alerts;
mod backlog;
mod clocks;
mod commands;
mod durability;
mod history;
mod instances;
mod live;
mod live_hostile;
mod logs;
mod notify_mail;
mod notify_send;
mod prometheus;
mod prometheus_token;
mod python_agent;
mod real_agent;
mod real_commands;
mod registry_calls;
