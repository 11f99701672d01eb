//! The questions about containers, each with its word and its answer.

use serde::Serialize;
use serde::de::DeserializeOwned;

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

/// What a container wrote last.
pub struct Logs;

impl ContainerQuestion for Logs {
    const METHOD: &'static str = "docker.logs";
    type Params = LogsParams;
    type Answer = ContainerLogs;

    /// Lines are shown as they were written.
    fn clean(_: &mut ContainerLogs) {}
}
