//! Containers of a server.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Call;
use super::refused::{Action, explained, is_unknown};
use crate::api::http::ANSWER_TIMEOUT;
use crate::api::types::{Acted, Container, Server};
use crate::api::{Api, parsed, segment, text_of};
use crate::error::Failure;
use crate::output::table::{Cell, Table};
use crate::output::text::clean;
use crate::output::{self, Format};
use crate::signing::options::{Servers, Signing};
use crate::signing::order::Subject;

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
        #[command(flatten)]
        signing: Signing,
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
    #[command(flatten)]
    signing: Signing,
}

/// An action on a server's containers.
struct Acting<'a> {
    call: &'a Call,
    server: &'a Server,
    /// What the user called it.
    typed: &'a str,
    verb: &'static str,
    timeout: Option<u32>,
    signing: &'a Signing,
}

/// Docker shows as much of an id.
const SHORT_ID: usize = 12;
/// The service gives an agent and its engine 25 s beyond the time that a container may take.
const BEYOND_TIMEOUT: Duration = Duration::from_secs(30);

impl Containers {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        let server = call.api.server(&self.server).await?;
        let (verb, ending) = match self.verb.unwrap_or(Verb::Ls { running: false }) {
            Verb::Ls { running } => return list(call, &server, running).await,
            Verb::Start { containers, signing } => ("start", Ending { containers, timeout: None, signing }),
            Verb::Stop(ending) => ("stop", ending),
            Verb::Restart(ending) => ("restart", ending),
        };
        let Ending { containers, timeout, signing } = &ending;
        Acting { call, server: &server, typed: &self.server, verb, timeout: *timeout, signing }.all(containers).await
    }
}

/// All containers of a server. A new one moves the others on, so a page may begin with what is there already.
/// One that is removed during that time moves them back, and the one at the border may be missing this time.
pub async fn all(api: &Api, server: &Server, only_running: bool) -> Result<Vec<Value>, Failure> {
    let query = [("all", (!only_running).to_string())];
    let found = api.list(&format!("/docker/{}/containers", server.id), &query).await;
    let mut found = found.map_err(|failure| explained(failure, server, Action::SeeContainers, &api.service(), &[]))?;
    let mut seen = HashSet::new();
    found.retain(|container| seen.insert(text_of(container, "id").to_owned()));
    Ok(found)
}

async fn list(call: &Call, server: &Server, only_running: bool) -> Result<(), Failure> {
    let values = all(&call.api, server, only_running).await?;
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

impl Acting<'_> {
    /// One after the other: each that fails is named, and the others still have their turn, also where nobody reads the output.
    async fn all(&self, containers: &[String]) -> Result<(), Failure> {
        self.call.out.expect_no_csv()?;
        self.signing.check(false)?;
        let (mut last, mut printed) = (Ok(()), Ok(()));
        for name in containers {
            match self.one(name).await {
                Ok((value, acted)) => printed = printed.and_then(|()| self.print(name, &value, &acted)),
                Err(failure) => {
                    if let Err(earlier) = std::mem::replace(&mut last, Err(failure)) {
                        output::complain(&earlier.to_string());
                    }
                }
            }
        }
        last.and(printed)
    }

    fn print(&self, name: &str, value: &Value, acted: &Acted) -> Result<(), Failure> {
        match self.call.out.format {
            Format::Json => self.call.out.json_line(value),
            Format::Table | Format::Csv => {
                let id: String = acted.container_id.chars().take(SHORT_ID).collect();
                self.call.out.line(&format!("{} ({}) is {}.", clean(name), clean(&id), clean(&acted.state)))
            }
        }
    }

    async fn one(&self, name: &str) -> Result<(Value, Acted), Failure> {
        let Self { call, server, verb, timeout, .. } = self;
        let action = format!("{verb} {name}");
        let servers = Servers { servers: std::slice::from_ref(server), typed: Some(self.typed) };
        let subject = Subject::Container { action: &action, timeout_seconds: *timeout };
        let signed = self.signing.sign(&servers, subject).await?;
        let query: Vec<_> = timeout.map(|seconds| ("timeout_seconds", seconds.to_string())).into_iter().collect();
        let path = format!("/docker/{}/containers/{}/{verb}", server.id, segment(name));
        let body = signed.value.as_ref().map(|value| json!({"signed": value}));
        let answer = call.api.post_within(&path, &query, body.as_ref(), answer_limit(*timeout)).await;
        let value = answer.map_err(|failure| {
            let failure = explained(failure, server, Action::ControlContainers, &call.api.service(), &signed.keys);
            self.unfinished(failure, name)
        })?;
        let acted = parsed(value.clone())?;
        Ok((value, acted))
    }

    /// What may still happen where the answer is missing.
    fn unfinished(&self, failure: Failure, name: &str) -> Failure {
        if !is_unknown(&failure) {
            return failure;
        }
        let doing = match self.verb {
            "stop" => "stopping",
            "restart" => "restarting",
            _ => "starting",
        };
        failure.and(&format!("{} may still be {doing}", clean(name)))
    }
}

/// How long an answer may take where a container may take this many seconds to stop.
fn answer_limit(timeout: Option<u32>) -> Duration {
    let stopping = Duration::from_secs(timeout.unwrap_or_default().into());
    ANSWER_TIMEOUT.max(stopping + BEYOND_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_take_longer_than_the_container() {
        for (timeout, seconds) in [(None, 100), (Some(0), 100), (Some(70), 100), (Some(71), 101), (Some(300), 330)] {
            assert_eq!(answer_limit(timeout), Duration::from_secs(seconds), "{timeout:?}");
        }
    }
}
