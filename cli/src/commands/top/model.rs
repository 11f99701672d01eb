//! What the table shows, and in which order. Pure.

use std::cmp::Ordering;
use std::collections::HashMap;

use clap::ValueEnum;
use signalbox_protocol::frontend::{FleetServer, ServerStatus};
use uuid::Uuid;

use super::feed::Update;

/// What the rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Sort {
    #[default]
    Cpu,
    Memory,
    Disk,
    Load,
    In,
    Out,
    Uptime,
    Name,
    Status,
}

/// A server.
#[derive(Debug)]
pub struct Row {
    pub id: Uuid,
    pub name: String,
    pub tags: Vec<String>,
    /// None until the service has sent it.
    pub state: Option<FleetServer>,
}

/// The table and what the user has chosen.
#[derive(Debug)]
pub struct Model {
    rows: Vec<Row>,
    /// States of servers that the list does not have (yet).
    others: HashMap<Uuid, FleetServer>,
    is_listed: bool,
    pub sort: Sort,
    pub is_reversed: bool,
    pub filter: String,
    /// The filter is being typed.
    pub is_typing: bool,
    /// The server that is marked: it stays marked when the order changes.
    pub marked: Option<Uuid>,
    /// The first row that is visible, and how many are: the view says it.
    pub top: usize,
    pub height: usize,
    /// Why nothing changes.
    pub fault: Option<String>,
}

impl Model {
    pub fn new(sort: Sort) -> Self {
        Self {
            rows: Vec::new(),
            others: HashMap::new(),
            is_listed: false,
            sort,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            marked: None,
            top: 0,
            height: 1,
            fault: None,
        }
    }

    pub fn apply(&mut self, update: Update) {
        match update {
            Update::Servers(servers) => {
                let mut states = std::mem::take(&mut self.others);
                states.extend(self.rows.drain(..).filter_map(|row| Some((row.id, row.state?))));
                let row = |server: crate::api::types::Server| {
                    let state = states.remove(&server.id);
                    Row { id: server.id, name: server.name, tags: server.tags, state }
                };
                self.rows = servers.into_iter().map(row).collect();
                self.others = states;
                self.is_listed = true;
            }
            Update::States(states) => {
                let mut places: HashMap<Uuid, &mut Row> = self.rows.iter_mut().map(|row| (row.id, row)).collect();
                for state in states {
                    match places.get_mut(&state.server_id) {
                        Some(row) => row.state = Some(state),
                        None => drop(self.others.insert(state.server_id, state)),
                    }
                }
            }
            Update::Connected => self.fault = None,
            Update::Lost(reason) => self.fault = Some(reason),
            Update::Failed(failure) => self.fault = Some(failure.to_string()),
        }
    }

    /// Whether every listed server has a state.
    pub fn is_complete(&self) -> bool {
        self.is_listed && self.rows.iter().all(|row| row.state.is_some())
    }

    /// How many servers there are, and how many of them are online.
    pub fn counts(&self) -> (usize, usize) {
        let is_online = |row: &&Row| row.state.as_ref().is_some_and(|state| state.status == ServerStatus::Online);
        (self.rows.len(), self.rows.iter().filter(is_online).count())
    }

    /// The rows that the filter leaves, in order.
    pub fn shown(&self) -> Vec<&Row> {
        let wanted = self.filter.to_lowercase();
        let is_wanted = |text: &String| text.to_lowercase().contains(&wanted);
        let mut rows: Vec<&Row> =
            self.rows.iter().filter(|row| is_wanted(&row.name) || row.tags.iter().any(is_wanted)).collect();
        rows.sort_by(|a, b| {
            let order = self.order(a, b);
            // Equal rows must not change places with every frame.
            order.then_with(|| a.name.cmp(&b.name)).then_with(|| a.id.cmp(&b.id))
        });
        rows
    }

    fn order(&self, a: &Row, b: &Row) -> Ordering {
        let by = |value: fn(&FleetServer) -> Option<f64>| {
            let of = |row: &Row| row.state.as_ref().and_then(value);
            self.largest_first(of(a), of(b))
        };
        match self.sort {
            Sort::Cpu => by(|state| state.cpu_percent),
            Sort::Memory => by(|state| state.memory_percent),
            Sort::Disk => by(|state| state.disk_percent),
            Sort::Load => by(|state| state.load_1),
            Sort::In => by(|state| state.network_in),
            Sort::Out => by(|state| state.network_out),
            Sort::Uptime => by(uptime),
            Sort::Name => self.turned(a.name.to_lowercase().cmp(&b.name.to_lowercase())),
            Sort::Status => self.turned(urgency(a).cmp(&urgency(b))),
        }
    }

    /// What is unknown is last in either direction.
    fn largest_first(&self, a: Option<f64>, b: Option<f64>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => self.turned(b.total_cmp(&a)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    fn turned(&self, order: Ordering) -> Ordering {
        if self.is_reversed { order.reverse() } else { order }
    }

    /// Moves the mark by rows, and the visible part with it.
    pub fn step(&mut self, by: isize) {
        let ids: Vec<Uuid> = self.shown().iter().map(|row| row.id).collect();
        let at = self.marked.and_then(|marked| ids.iter().position(|id| *id == marked));
        let to = match at {
            Some(at) => at.saturating_add_signed(by),
            None => self.top,
        };
        self.marked = ids.get(to.min(ids.len().saturating_sub(1))).copied();
    }
}

#[allow(clippy::cast_precision_loss)]
fn uptime(state: &FleetServer) -> Option<f64> {
    state.uptime_seconds.map(|seconds| seconds as f64)
}

/// What needs somebody comes first.
fn urgency(row: &Row) -> u8 {
    match row.state.as_ref().map(|state| state.status) {
        Some(ServerStatus::Offline) => 0,
        Some(ServerStatus::Online) => 1,
        Some(ServerStatus::Pending) => 2,
        None => 3,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn servers(names: &[&str]) -> Update {
        let server = |(number, name): (usize, &&str)| {
            let value = json!({"id": id(number as u128), "name": name, "host": "h", "status": "online", "tags": ["t"]});
            serde_json::from_value(value).unwrap()
        };
        Update::Servers(names.iter().enumerate().map(server).collect())
    }

    fn state(number: u128, status: &str, cpu: Option<f64>) -> FleetServer {
        serde_json::from_value(json!({"server_id": id(number), "status": status, "cpu_percent": cpu})).unwrap()
    }

    fn names(model: &Model) -> Vec<&str> {
        model.shown().iter().map(|row| row.name.as_str()).collect()
    }

    fn model() -> Model {
        let mut model = Model::new(Sort::Cpu);
        // States may come before the list.
        model.apply(Update::States(vec![state(0, "online", Some(5.0)), state(1, "offline", None)]));
        model.apply(servers(&["web-1", "web-2", "db-1"]));
        model
    }

    #[test]
    fn what_is_unknown_is_last_in_either_direction() {
        let mut model = model();
        assert!(!model.is_complete());
        model.apply(Update::States(vec![state(2, "online", Some(90.0))]));
        assert!(model.is_complete());

        assert_eq!(names(&model), ["db-1", "web-1", "web-2"]);
        model.is_reversed = true;
        assert_eq!(names(&model), ["web-1", "db-1", "web-2"]);
        model.sort = Sort::Status;
        model.is_reversed = false;
        assert_eq!(names(&model), ["web-2", "db-1", "web-1"]);
        assert_eq!(model.counts(), (3, 2));
    }

    #[test]
    fn the_mark_stays_with_its_server() {
        let mut model = model();
        model.step(1);
        assert_eq!(model.marked, Some(id(0)));
        model.apply(Update::States(vec![state(2, "online", Some(90.0))]));
        model.step(1);
        assert_eq!(model.marked, Some(id(1)), "db-1 is above it by now");
        model.step(99);
        assert_eq!(model.marked, Some(id(1)));
        model.step(-99);
        assert_eq!(model.marked, Some(id(2)));
    }

    #[test]
    fn a_filter_finds_names_and_tags_and_a_new_list_keeps_states() {
        let mut model = model();
        model.filter = "WEB".to_owned();
        assert_eq!(names(&model), ["web-1", "web-2"]);
        model.filter = "T".to_owned();
        assert_eq!(names(&model).len(), 3);

        model.apply(servers(&["renamed"]));
        model.filter.clear();
        assert_eq!(names(&model), ["renamed"]);
        assert!(model.is_complete());
    }
}
