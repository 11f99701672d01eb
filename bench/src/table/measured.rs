//! The measurements of a run, by row.

use std::collections::HashMap;

use crate::figures::{Line, Machine, NotMeasured, Row, Run};
use crate::stats::median;

/// The lines of one run, in order.
#[derive(Debug, Default)]
pub struct Measured {
    pub run: Option<Run>,
    /// In the order of the run.
    pub machines: Vec<Machine>,
    pub not_measured: Vec<NotMeasured>,
    /// Names that are of no row, or of one with another unit: of another build.
    pub unknown: Vec<String>,
    values: HashMap<Row, Vec<f64>>,
}

impl Measured {
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Self {
        let mut measured = Self::default();
        for line in lines {
            match line {
                Line::Figure(figure) => match Row::named(&figure.row) {
                    Some(row) if row.facts().unit == figure.unit => {
                        measured.values.entry(row).or_default().push(figure.value);
                    }
                    _ => measured.unknown.push(format!("{} in {}", figure.row, figure.unit)),
                },
                Line::NotMeasured(reason) => measured.not_measured.push(reason),
                Line::Machine(machine) => measured.machines.push(machine),
                Line::Run(run) => measured.run = Some(run),
            }
        }
        measured
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The median of a row's measurements.
    pub fn value(&self, row: Row) -> Option<f64> {
        median(self.values.get(&row)?)
    }

    /// Why a scenario omitted rows. Empty where it is unknown.
    pub fn why(&self, scenario: &str) -> String {
        let reasons = self.not_measured.iter().filter(|one| one.scenario == scenario);
        reasons.map(|one| one.why.as_str()).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figure;

    #[test]
    fn of_several_values_the_median_counts() {
        let lines = [3.0, 1.0, 2.0].into_iter().filter_map(|value| Line::figure(Row::MachineHello, value));

        let measured = Measured::of(lines);

        assert_eq!(measured.value(Row::MachineHello), Some(2.0));
        assert_eq!(measured.value(Row::Burst), None);
        assert!(!measured.is_empty());
    }

    #[test]
    fn a_figure_of_another_unit_is_no_figure_of_the_row() {
        let Some(Line::Figure(figure)) = Line::figure(Row::AgentRss, 8.0) else { panic!("no figure") };
        let other_unit = Figure { unit: "KB".to_owned(), ..figure.clone() };
        let other_row = Figure { row: "agent-size".to_owned(), ..figure };

        let measured = Measured::of([Line::Figure(other_unit), Line::Figure(other_row)]);

        assert!(measured.is_empty());
        assert_eq!(measured.unknown, ["agent-rss in KB", "agent-size in MB"]);
    }

    #[test]
    fn reasons_are_those_of_the_scenario() {
        let measured = Measured::of([
            Line::not_measured("rest", "cannot run wrk"),
            Line::not_measured("storm", "interrupted"),
            Line::not_measured("storm", "took longer than 600 s"),
        ]);

        assert_eq!(measured.why("storm"), "interrupted; took longer than 600 s");
        assert_eq!(measured.why("idle"), "");
    }
}
