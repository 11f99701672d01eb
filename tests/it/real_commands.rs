//! Commands and terminals with the real agent's program.

mod altered;
mod breaks;
mod hostile;
mod live;
mod passkeys;
mod people;
mod runs;
mod seized;
mod signed;
mod terminal;

use serde_json::Value;

use crate::support::command_line::Launched;
use crate::support::commands::answered;
use crate::support::machine::Machine;
use crate::support::site::Site;

/// The flags of an agent whose owner trusts the service with everything.
const WILLING: [&str; 4] = ["--commands", "on", "--terminal", "on"];

/// A service, and the real agent on its server.
struct Scene {
    site: Site,
    machine: Machine,
    agent: Launched,
}

impl Scene {
    async fn start() -> Self {
        Self::with_flags(&WILLING).await
    }

    /// With an agent that permits what these flags say.
    async fn with_flags(flags: &[&str]) -> Self {
        let (site, machine) = (Site::start().await, Machine::new());
        let agent = machine.agent(site.service.address, &site.key, flags);
        site.until_status("online").await;
        Self { site, machine, agent }
    }

    /// The result of a command that is waited for.
    async fn run(&self, command: &str) -> Value {
        let answer = answered(self.site.run(command)).await;
        assert_eq!(answer.status, 200, "{command}: {answer}");
        answer.json()
    }
}
