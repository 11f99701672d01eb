//! A server of the Model Context Protocol, so that an assistant can look at servers and, where its token allows it, act.
//!
//! What servers say (names, logs, the output of commands) can be written by anyone who controls one of them, and an assistant might
//! take it for instructions: [`answer`] bounds and marks it. Tools are [`tool`]s; [`read`] and [`act`] do what they say, through the
//! same API as every command.

mod act;
mod answer;
mod arguments;
mod read;
mod server;
mod tool;

use std::sync::Arc;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;

use super::Call;
use crate::api::parsed;
use crate::api::types::Server;
use crate::error::Failure;
use server::Assistant;
use tool::Allowed;

/// Serve an assistant over standard input and output (Model Context Protocol)
///
/// Tools read servers, metrics, alerts, logs, containers and processes. Where the token allows it, there are also tools to acknowledge
/// an alert, to restart a container and to run a command. Give the assistant a token of its own, with as few rights as it needs.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Offer only tools that change nothing, whatever the token may do
    #[arg(long)]
    read_only: bool,
}

impl Mcp {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        let allowed = if self.read_only { Allowed::default() } else { allowed(call).await? };
        let assistant = Assistant::new(Arc::clone(&call.api), allowed);
        let running = match assistant.serve(rmcp::transport::stdio()).await {
            Ok(running) => running,
            // Nobody asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(Failure::failed(error.to_string())),
        };
        running.waiting().await.map_err(|ended| Failure::failed(ended.to_string()))?;
        Ok(())
    }
}

/// What the token may do on any server; the service decides each call.
async fn allowed(call: &Call) -> Result<Allowed, Failure> {
    let mut allowed = Allowed::default();
    for value in call.api.list("/servers", &[]).await? {
        let server: Server = parsed(value)?;
        let has = |right: &str| server.rights.iter().any(|name| name == right);
        allowed.commands |= has("commands");
        allowed.containers |= has("containers");
        allowed.alerts |= server.role.as_deref().is_some_and(|role| role != "viewer");
    }
    Ok(allowed)
}
