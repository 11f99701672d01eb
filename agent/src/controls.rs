//! What the service may ask of the machine, as far as its owner permits.

use crate::commands::Commands;
use crate::config::Config;
use crate::live::Live;
use crate::recordings::Recordings;
use crate::signed::Gate;
use crate::state::StateDir;
use crate::terminal::Terminals;

/// Shared by an agent's successive connections. What runs ends with it.
pub struct Controls {
    pub commands: Commands,
    pub terminals: Terminals,
    pub recordings: Recordings,
    pub live: Live,
}

impl Controls {
    /// Adds what an earlier run of the agent left.
    pub fn open(config: &Config, state: Option<StateDir>, gate: Gate) -> Self {
        let recordings = Recordings::open(config, state.clone());
        Self {
            commands: Commands::open(config, state, gate.clone()),
            terminals: Terminals::new(config, gate, recordings.clone()),
            recordings,
            live: Live::new(config.live.shortest(config.interval)),
        }
    }
}

impl Controls {
    /// Whether nothing would be cut off if the agent ended now.
    pub fn are_idle(&self) -> bool {
        self.commands.are_idle() && self.terminals.are_closed()
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        self.commands.abandon();
    }
}
