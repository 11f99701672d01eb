//! The questions about containers, each with its word and its answer.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Container, ContainerDetail, ContainerLogs, ContainerParams, ContainerStats, ListParams, LogsParams};
use crate::text::clean;

/// A question about containers: its word, what it is asked and what is answered.
pub trait ContainerQuestion {
    const METHOD: &'static str;
    type Params: Serialize;
    type Answer: DeserializeOwned;

    /// Takes out of every name in an answer what does not belong in one.
    fn clean(answer: &mut Self::Answer);
}

/// Which containers there are.
pub struct List;

impl ContainerQuestion for List {
    const METHOD: &'static str = "docker.list";
    type Params = ListParams;
    type Answer = Vec<Container>;

    fn clean(answer: &mut Vec<Container>) {
        answer.iter_mut().for_each(Container::clean);
    }
}

/// What one container is.
pub struct Inspect;

impl ContainerQuestion for Inspect {
    const METHOD: &'static str = "docker.inspect";
    type Params = ContainerParams;
    type Answer = ContainerDetail;

    fn clean(answer: &mut ContainerDetail) {
        answer.clean();
    }
}

/// What a container uses.
pub struct Stats;

impl ContainerQuestion for Stats {
    const METHOD: &'static str = "docker.stats";
    type Params = ContainerParams;
    type Answer = ContainerStats;

    fn clean(answer: &mut ContainerStats) {
        clean(&mut answer.container_id);
    }
}

/// Which processes a container has.
pub struct Top;

impl ContainerQuestion for Top {
    const METHOD: &'static str = "docker.top";
    type Params = ContainerParams;
    type Answer = Vec<ContainerProcess>;

    fn clean(answer: &mut Vec<ContainerProcess>) {
        for process in answer {
            [&mut process.user, &mut process.name].into_iter().for_each(clean);
        }
    }
}

/// A process of a container at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ContainerProcess {
    /// As the host counts it.
    pub pid: u32,
    /// The name of the user that it runs as, or the number where it has none.
    pub user: String,
    /// The name of the program, without its arguments: those may hold secrets.
    pub name: String,
    /// Resident, in bytes.
    pub memory_bytes: u64,
}

/// What a container wrote last.
pub struct Logs;

impl ContainerQuestion for Logs {
    const METHOD: &'static str = "docker.logs";
    type Params = LogsParams;
    type Answer = ContainerLogs;

    /// Lines are shown as they were written.
    fn clean(_: &mut ContainerLogs) {}
}
