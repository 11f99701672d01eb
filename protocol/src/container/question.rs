//! The questions about containers, each with its method and its answer.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Container, ContainerDetail, ContainerLogs, ContainerParams, ContainerStats, ListParams, LogsParams};
use crate::text::clean;

/// A question about containers: its method, its parameters and its answer.
pub trait ContainerQuestion {
    /// The method's name in a request.
    const METHOD: &'static str;
    /// The method's parameters.
    type Params: Serialize;
    /// What a successful response holds.
    type Answer: DeserializeOwned;

    /// Removes the characters from every name in an answer that a name may not have.
    fn clean(answer: &mut Self::Answer);
}

/// Lists the containers of a server.
pub struct List;

impl ContainerQuestion for List {
    const METHOD: &'static str = "docker.list";
    type Params = ListParams;
    type Answer = Vec<Container>;

    fn clean(answer: &mut Vec<Container>) {
        answer.iter_mut().for_each(Container::clean);
    }
}

/// Returns the details of one container.
pub struct Inspect;

impl ContainerQuestion for Inspect {
    const METHOD: &'static str = "docker.inspect";
    type Params = ContainerParams;
    type Answer = ContainerDetail;

    fn clean(answer: &mut ContainerDetail) {
        answer.clean();
    }
}

/// Returns what a container uses.
pub struct Stats;

impl ContainerQuestion for Stats {
    const METHOD: &'static str = "docker.stats";
    type Params = ContainerParams;
    type Answer = ContainerStats;

    fn clean(answer: &mut ContainerStats) {
        clean(&mut answer.container_id);
    }
}

/// Returns the last lines of a container's log.
pub struct Logs;

impl ContainerQuestion for Logs {
    const METHOD: &'static str = "docker.logs";
    type Params = LogsParams;
    type Answer = ContainerLogs;

    /// Does nothing: lines are shown as they were written.
    fn clean(_: &mut ContainerLogs) {}
}
