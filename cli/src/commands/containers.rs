//! Containers of a server.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Call;
use super::refused::{Action, explained};
use crate::api::types::{Acted, Container, Server};
use crate::api::{parsed, segment};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::clean;
use crate::output::{self, Format};

/// List, start, stop and restart containers
#[derive(Debug, Args)]
pub struct Containers {
    /// Name or id of the server
    #[arg(value_name = "SERVER")]
    server: String,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the containers (the default)
    Ls {
        /// Leave out those that do not run
        #[arg(long)]
        running: bool,
    },
    /// Start containers
    Start {
        /// Names or ids
        #[arg(value_name = "CONTAINER", required = true)]
        containers: Vec<String>,
    },
    /// Stop containers
    Stop(Ending),
    /// Restart containers
    Restart(Ending),
}

#[derive(Debug, Args)]
struct Ending {
    /// Names or ids
    #[arg(value_name = "CONTAINER", required = true)]
    containers: Vec<String>,
    /// Seconds that a container may take before it is killed
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(0..=300))]
    timeout: Option<u32>,
}

/// Docker shows as much of an id.
const SHORT_ID: usize = 12;

impl Containers {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        let server = call.api.server(&self.server).await?;
        match self.verb.unwrap_or(Verb::Ls { running: false }) {
            Verb::Ls { running } => list(call, &server, running).await,
            Verb::Start { containers } => act(call, &server, "start", &containers, None).await,
            Verb::Stop(ending) => act(call, &server, "stop", &ending.containers, ending.timeout).await,
            Verb::Restart(ending) => act(call, &server, "restart", &ending.containers, ending.timeout).await,
        }
    }
}

async fn list(call: &Call, server: &Server, only_running: bool) -> Result<(), Failure> {
    let query = [("all", (!only_running).to_string())];
    let answer = call.api.get(&format!("/docker/{}/containers", server.id), &query).await;
    let answer = answer.map_err(|failure| explained(failure, server, Action::SeeContainers, &call.api.service()))?;
    let values: Vec<Value> = parsed(answer)?;
    let mut table = Table::new(["NAME", "STATE", "STATUS", "IMAGE", "ID"]);
    for value in &values {
        let container: Container = parsed(value.clone())?;
        let id: String = container.id.chars().take(SHORT_ID).collect();
        table.row([
            container.name.into(),
            Cell::word(container.state),
            container.status.into(),
            container.image.into(),
            id.into(),
        ]);
    }
    call.out.list(&table, &values)
}

/// One after the other: the first that fails is named, and the others still have their turn.
async fn act(
    call: &Call,
    server: &Server,
    verb: &str,
    containers: &[String],
    timeout: Option<u32>,
) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let query: Vec<_> = timeout.map(|seconds| ("timeout_seconds", seconds.to_string())).into_iter().collect();
    let mut last = Ok(());
    for name in containers {
        let path = format!("/docker/{}/containers/{}/{verb}", server.id, segment(name));
        match call.api.act(&path, &query).await {
            Ok(value) => {
                let acted: Acted = parsed(value.clone())?;
                match call.out.format {
                    Format::Json => call.out.json_line(&value)?,
                    Format::Table | Format::Csv => {
                        let id: String = acted.container_id.chars().take(SHORT_ID).collect();
                        call.out.line(&format!("{} ({id}) is {}.", clean(name), clean(&acted.state)))?;
                    }
                }
            }
            Err(failure) => {
                let failure = explained(failure, server, Action::ControlContainers, &call.api.service());
                if let Err(earlier) = std::mem::replace(&mut last, Err(failure)) {
                    output::complain(&earlier.to_string());
                }
            }
        }
    }
    last
}
