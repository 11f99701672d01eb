//! Samples as VictoriaMetrics' JSON lines: one a series, with many values.

use std::fmt::Write as _;

use signalbox_protocol::{Sample, Timestamp};

use crate::data::{Machine, Name, names, visit};

/// A server's samples, request body by request body.
#[derive(Debug)]
pub struct Lines {
    machine: Machine,
    sample: Sample,
    left: u64,
    /// The beginning of each line, and its values so far.
    beginnings: Vec<String>,
    values: Vec<String>,
    times: String,
}

impl Lines {
    pub fn new(machine: Machine, instance: &str, samples: u64) -> Self {
        let sample = machine.blank();
        let beginnings: Vec<String> = names(&sample).iter().map(|name| beginning(name, instance)).collect();
        let values = vec![String::new(); beginnings.len()];
        Self { machine, sample, left: samples, beginnings, values, times: String::new() }
    }

    /// The next `count` samples, or the rest of them; none after the last.
    pub fn body(&mut self, count: u64) -> Option<String> {
        let count = self.left.min(count);
        if count == 0 {
            return None;
        }
        self.left -= count;
        for _ in 0..count {
            self.machine.fill(&mut self.sample);
            self.add();
        }
        Some(self.take())
    }

    /// One sample taken at `at`.
    pub fn body_at(&mut self, at: Timestamp) -> String {
        self.machine.fill_at(at, &mut self.sample);
        self.add();
        self.take()
    }

    fn add(&mut self) {
        let mut values = self.values.iter_mut();
        visit(&self.sample, |_, _, value| {
            if let Some(text) = values.next() {
                separate(text);
                // Writing to a string never fails.
                write!(text, "{value}").ok();
            }
        });
        separate(&mut self.times);
        write!(self.times, "{}", self.sample.timestamp.as_millis()).ok();
    }

    fn take(&mut self) -> String {
        let length: usize = self.values.iter().map(|values| values.len() + self.times.len() + 160).sum();
        let mut body = String::with_capacity(length);
        for (beginning, values) in self.beginnings.iter().zip(&mut self.values) {
            for part in [beginning, values, "],\"timestamps\":[", &self.times, "]}\n"] {
                body.push_str(part);
            }
            values.clear();
        }
        self.times.clear();
        body
    }
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push(',');
    }
}

fn beginning(name: &Name, instance: &str) -> String {
    let label = name.label.as_ref().map_or_else(String::new, |(label, value)| format!(",\"{label}\":\"{value}\""));
    format!("{{\"metric\":{{\"__name__\":\"{}\",\"instance\":\"{instance}\"{label}}},\"values\":[", name.metric)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::data::values;

    #[test]
    fn every_series_is_a_line_of_json() {
        let machine = Machine::new(1, 4, Timestamp::from_millis(1_795_000_000_000), 5000);
        let mut lines = Lines::new(machine.clone(), "server-00004", 3);

        let body = lines.body(2).unwrap();
        let rest = lines.body(2).unwrap();

        let parsed: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut machine = machine;
        let mut sample = machine.blank();
        let mut expected = Vec::new();
        machine.fill(&mut sample);
        values(&sample, &mut expected);
        let first: Vec<f64> = parsed.iter().map(|line| line["values"][0].as_f64().unwrap()).collect();
        assert_eq!(first, expected);
        assert!(parsed.iter().all(|line| line["timestamps"][0] == sample.timestamp.as_millis()));
        assert!(parsed.iter().all(|line| line["timestamps"].as_array().unwrap().len() == 2));
        assert_eq!(rest.lines().count(), expected.len());
        assert_eq!(lines.body(2), None);
    }
}
