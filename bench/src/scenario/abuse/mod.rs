//! Attackers that use all they can get, and what honest users notice: silent agent sockets, wrong passwords, and an agent with
//! a huge number of names.

mod names;
mod passwords;
mod silent;

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Args;

use super::seconds;
use crate::fixture::Fixture;
use crate::limits::check_connections;
use crate::service::ServiceOptions;

/// The attackers' address; honest users have the first address of the loopback.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);

#[derive(Debug, Args)]
pub struct AbuseArgs {
    /// Sockets of one address that say nothing, more than there are seats for.
    #[arg(long, default_value_t = 5_000)]
    pub silent: usize,
    /// Agents that connect during that time.
    #[arg(long, default_value_t = 25)]
    pub agents: usize,
    /// Connections of one address that send wrong passwords.
    #[arg(long, default_value_t = 100)]
    pub guessers: usize,
    /// How long people sign in without and with them, in seconds.
    #[arg(long, default_value = "20", value_parser = seconds)]
    pub span: Duration,
    /// Who ask for all names at once.
    #[arg(long, default_value_t = 12)]
    pub readers: usize,
    /// Samples of 1,024 containers each, all of them new.
    #[arg(long, default_value_t = 120)]
    pub names: u64,
}

pub async fn run(options: &ServiceOptions, args: &AbuseArgs) -> anyhow::Result<()> {
    check_connections(args.silent + args.agents + args.guessers)?;
    let fixture = Fixture::start(options, args.agents.max(1)).await?;
    // A fault of one attack does not hide the figures of the others.
    let silent = silent::attack(&fixture, args).await?.finish();
    let mut passwords = Ok(());
    for guessed in passwords::Guessed::ALL {
        passwords = passwords.and(passwords::attack(&fixture, args, guessed).await?.finish());
    }
    drop(fixture);
    // A service of its own, because its memory is measured.
    let fixture = Fixture::start(options, 1).await?;
    let names = names::attack(&fixture, args).await?.finish();
    silent.and(passwords).and(names)
}
