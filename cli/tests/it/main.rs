//! The program as people run it, against a real service and real agents.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../../signing/tests/support/mod.rs"]
mod keygen;

mod alerts;
mod approvals;
mod containers;
mod exec;
mod exec_outages;
mod login;
mod login_again;
mod logs;
mod mcp;
mod metrics;
mod pages;
mod proxy;
mod recordings;
mod relay;
mod restart;
mod servers;
mod shell;
mod sign;
mod signals;
mod ssh_agent;
mod support;
mod terminal;
mod tokens;
mod top;
