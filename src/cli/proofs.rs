//! Flags about how people prove who they are.

use std::time::Duration;

use clap::Args;

use super::values::whole;
use crate::config::SecondFactorPolicy;

/// A week, as long as a session lasts that nobody uses.
const MAX_STEP_UP_MINUTES: u64 = 7 * 24 * 60;

#[derive(Debug, Args)]
pub struct ProofArgs {
    /// Who must use a second factor: an authenticator app or a passkey
    #[arg(long, env = "SIGNALBOX_SECOND_FACTOR", value_name = "WHO", value_enum, default_value = "off")]
    pub second_factor: SecondFactorPolicy,
    /// Minutes after which commands, terminals, API keys, sharing and accounts need a new proof of identity; 0: never
    #[arg(long, env = "SIGNALBOX_STEP_UP", value_name = "MINUTES", default_value_t = 0,
          value_parser = whole::<u64>(0, MAX_STEP_UP_MINUTES))]
    pub step_up: u64,
}

impl ProofArgs {
    /// How long a proof of identity counts; none if it counts as long as its session.
    pub fn step_up(&self) -> Option<Duration> {
        Some(self.step_up).filter(|minutes| *minutes > 0).map(|minutes| Duration::from_secs(minutes * 60))
    }
}
