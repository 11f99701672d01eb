//! Containers of this host, through a closed list of verbs.
//!
//! [`Docker::call`] is the only place that checks the owner's policy. Below it, [`engine`] connects to Docker or Podman;
//! [`model`], [`states`] and [`stats`] understand their answers; [`frames`] and [`lines`] make lines of their logs, and
//! [`window`] knows whether they are the last ones.

mod address;
mod engine;
mod error;
mod event;
mod exit_attribution;
#[cfg(test)]
mod fixture;
mod follow;
pub(crate) mod frames;
mod lines;
mod logs;
mod model;
mod position;
mod states;
mod stats;
mod transport;
mod verb;
mod watch;
mod window;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use signalbox_protocol::agent::RequestError;
use signalbox_protocol::container::{
    Acted, Container, ContainerDetail, ContainerLogs, ContainerParams, ListParams, LogsParams, STOP_SECONDS,
    VERB_SECONDS, is_container_name,
};
use uuid::Uuid;

pub use address::{AddressError, socket_of};
use engine::Engine;
use error::EngineError;
use model::{Inspected, Listed};
use verb::{Change, Verb};
pub use watch::{Running, RunningContainers};

use crate::policy::{DockerAccess, Permit, Policy};
use crate::signed::{Asked, Gate};

/// The longest list of containers that fits into a message with room to spare.
const MAX_LIST_BYTES: usize = 3 << 20;

/// The containers of this host, as far as the owner permits the service.
#[derive(Clone)]
pub struct Docker {
    access: Permit<DockerAccess>,
    gate: Gate,
    engine: Engine,
}

impl Docker {
    /// Does not ask the engine anything yet.
    pub fn new(policy: &Policy, gate: Gate) -> Self {
        Self { access: policy.docker.clone(), gate, engine: Engine::new(policy.docker_host.clone()) }
    }

    /// Starts a call. None for a method that is not on the list.
    pub fn call(
        &self,
        method: &str,
        params: Value,
        by: Option<String>,
    ) -> Option<BoxFuture<'static, Result<Value, RequestError>>> {
        let verb = Verb::of(method)?;
        let docker = self.clone();
        let call = async move {
            docker.permit(verb)?;
            docker.run(verb, params, by).await
        };
        Some(call.boxed())
    }

    /// Whether the owner permits this.
    fn permit(&self, verb: Verb) -> Result<(), RequestError> {
        // What needs a signature is asked for it once it is known what it is about.
        let access = self.access.grade;
        let is_permitted = access >= verb.needs() || (access == DockerAccess::Signed && verb.is_signable());
        if is_permitted {
            return Ok(());
        }
        let detail = match verb.needs() {
            DockerAccess::Control => "this agent does not let the service control containers",
            DockerAccess::Signed | DockerAccess::Read | DockerAccess::Off => {
                "this agent does not let the service see containers"
            }
        };
        Err(RequestError::new("agent_refused", detail))
    }

    async fn run(&self, verb: Verb, params: Value, by: Option<String>) -> Result<Value, RequestError> {
        match verb {
            Verb::List => self.list(parse(params)?).await,
            Verb::Inspect => answer(&self.detail(&container(params)?.container_id).await?),
            Verb::Stats => answer(&stats::read(&self.engine, &container(params)?.container_id).await?),
            Verb::Logs => self.logs(parse(params)?).await,
            Verb::Change(change) => {
                let params = container(params)?;
                self.expect_ordered(change, &params)?;
                answer(&self.change(change, &params, by).await?)
            }
        }
    }

    /// Where the owner's policy names people, a change needs one of them; where it says `signed`, a signature for this container.
    fn expect_ordered(&self, change: Change, params: &ContainerParams) -> Result<(), RequestError> {
        if self.access.grade >= DockerAccess::Control {
            return self.access.expect(params.asker.as_ref(), "controls containers");
        }
        let action = format!("{} {}", change.name(), params.container_id);
        let asked = Asked::Container { action: &action, timeout_seconds: params.timeout_seconds };
        self.gate.permit(params.signed.as_ref(), asked, Uuid::nil()).map(|_| ())
    }

    async fn list(&self, params: ListParams) -> Result<Value, RequestError> {
        let path = format!("/containers/json?all={}", params.all);
        let listed: Vec<Listed> = self.engine.read(&path).await?;
        let containers: Vec<Container> = listed.into_iter().map(Container::from).collect();
        let list = answer(&containers)?;
        let bytes = list.to_string().len();
        if bytes > MAX_LIST_BYTES {
            let detail = format!("{} containers are too many for one answer", containers.len());
            return Err(RequestError::new("docker_error", &detail));
        }
        Ok(list)
    }

    async fn inspect(&self, container_id: &str) -> Result<Inspected, EngineError> {
        self.engine.read(&format!("/containers/{container_id}/json")).await
    }

    async fn detail(&self, container_id: &str) -> Result<ContainerDetail, EngineError> {
        let mut detail = ContainerDetail::from(self.inspect(container_id).await?);
        if self.access.grade < DockerAccess::Control {
            // Arguments may hold passwords. (A user who may control containers could read them in other ways.)
            detail.command.clear();
        }
        Ok(detail)
    }

    async fn logs(&self, params: LogsParams) -> Result<Value, RequestError> {
        answer(&self.newest_logs(params).await?)
    }

    /// The last lines of a container's output.
    pub async fn newest_logs(&self, params: LogsParams) -> Result<ContainerLogs, RequestError> {
        self.permit(Verb::Logs)?;
        checked(&params.container_id)?;
        Ok(logs::read(&self.engine, &params).await?)
    }

    /// Asks the engine to change a container, and writes to this host's log before and after that.
    async fn change(&self, change: Change, params: &ContainerParams, by: Option<String>) -> Result<Acted, EngineError> {
        let (id, by) = (params.container_id.as_str(), by.as_deref());
        // Quoted, because others chose the words. The engine continues where nobody waits for the outcome any more.
        tracing::info!(container.id = id, by, "container: {} begins", change.name());
        let outcome = self.make_it_so(change, id, params.timeout_seconds).await;
        match &outcome {
            Ok(acted) => tracing::info!(container.id = id, by, state = acted.state, "container: {}", change.name()),
            Err(error) => tracing::warn!(container.id = id, by, %error, "container: {} failed", change.name()),
        }
        outcome
    }

    async fn make_it_so(&self, change: Change, id: &str, timeout: Option<u32>) -> Result<Acted, EngineError> {
        let stopping = if change.stops() { timeout.unwrap_or(STOP_SECONDS) } else { 0 };
        let limit = Duration::from_secs(u64::from(stopping.saturating_add(VERB_SECONDS)));
        let done = self.engine.act(limit, &change.path(id, timeout)).await;
        let after = self.inspect(id).await;
        match (done, after) {
            (Ok(()), Ok(after)) => Ok(acted(after)),
            // The action succeeded and removed the container (`--rm`).
            (Ok(()), Err(EngineError::NoSuchContainer)) => {
                Ok(Acted { container_id: id.to_owned(), state: "removed".to_owned(), name: None })
            }
            (Ok(()), Err(error)) => Err(error),
            // Engines differ in what they call an error; a state that is already reached is a success.
            (Err(EngineError::Refused { .. }), Ok(after)) if change.is_done(&after.state) => Ok(acted(after)),
            (Err(error), _) => Err(error),
        }
    }
}

fn acted(after: Inspected) -> Acted {
    let name = after.name.trim_start_matches('/').to_owned();
    Acted { container_id: after.id, state: after.state.status, name: Some(name) }
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, RequestError> {
    serde_json::from_value(params).map_err(|error| RequestError::new("bad_params", &error.to_string()))
}

/// A name becomes a part of the engine's addresses, so it must be a valid one.
fn checked(container_id: &str) -> Result<(), RequestError> {
    if is_container_name(container_id) {
        return Ok(());
    }
    Err(RequestError::new("bad_params", "this is not a container's id or name"))
}

fn container(params: Value) -> Result<ContainerParams, RequestError> {
    let params: ContainerParams = parse(params)?;
    checked(&params.container_id)?;
    Ok(params)
}

fn answer<T: Serialize>(answer: &T) -> Result<Value, RequestError> {
    serde_json::to_value(answer).map_err(|error| RequestError::new("agent_error", &error.to_string()))
}

#[cfg(test)]
mod tests;
