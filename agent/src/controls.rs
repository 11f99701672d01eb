//! What the service may do with the machine, as far as its owner lets it.

use crate::commands::Commands;
use crate::config::Config;
use crate::terminal::Terminals;

/// Shared by an agent's connections, one after the other. What runs ends with it.
pub struct Controls {
    pub commands: Commands,
    pub terminals: Terminals,
}

impl Controls {
    /// The state directory has to be this agent's alone by now.
    pub fn open(config: &Config) -> Self {
        Self { commands: Commands::open(config), terminals: Terminals::new(config) }
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        self.commands.abandon();
    }
}
