//! The lines of a file of figures, each a JSON object.

use serde::{Deserialize, Serialize};

use super::row::{Better, Row};

/// One line. Its keys say which it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Figure(Figure),
    NotMeasured(NotMeasured),
    Machine(Machine),
    Run(Run),
}

/// The measurement of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub row: String,
    pub value: f64,
    pub unit: String,
    pub better: Better,
}

/// A scenario that failed or could not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotMeasured {
    #[serde(rename = "not_measured")]
    pub scenario: String,
    pub why: String,
}

/// The machine at some moment of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub processor: String,
    pub kernel: String,
    /// Averages of 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// The use of all cores by other programs while this one waited.
    pub busy_percent: f64,
    /// The share that the host gave to other machines during that time.
    pub stolen_percent: f64,
    /// Requests a second; none where it could not be measured.
    pub hello: Option<f64>,
}

/// What identifies a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub commit: String,
    pub date: String,
    /// With fewer agents and seconds, to try it.
    pub short: bool,
}

impl Line {
    /// None of a value that is no number: there were no samples to divide by.
    pub fn figure(row: Row, value: f64) -> Option<Self> {
        let facts = row.facts();
        value.is_finite().then(|| {
            Self::Figure(Figure { row: facts.id.to_owned(), value, unit: facts.unit.to_owned(), better: facts.better })
        })
    }

    pub fn not_measured(scenario: &str, why: &str) -> Self {
        Self::NotMeasured(NotMeasured { scenario: scenario.to_owned(), why: why.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_written_with_its_unit_and_direction() {
        let line = Line::figure(Row::Burst, 113_000.5);

        let text = serde_json::to_string(&line).unwrap();

        assert_eq!(text, r#"{"row":"burst","value":113000.5,"unit":"a second and core","better":"higher"}"#);
        assert_eq!(Line::figure(Row::Burst, f64::NAN), None);
    }

    #[test]
    fn a_line_is_what_its_keys_say() {
        let machine = Machine {
            cores: 2,
            processor: "some".to_owned(),
            kernel: "6.1".to_owned(),
            load: [0.5, 0.25, 0.0],
            busy_percent: 1.5,
            stolen_percent: 0.5,
            hello: None,
        };
        let lines = [
            Line::figure(Row::StormKill, 11.0).unwrap(),
            Line::not_measured("rest", "cannot run wrk"),
            Line::Machine(machine),
            Line::Run(Run { commit: "abc".to_owned(), date: "2026-11-24".to_owned(), short: false }),
        ];

        for line in lines {
            let text = serde_json::to_string(&line).unwrap();
            assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line, "{text}");
        }
    }

    #[test]
    fn whole_numbers_of_other_programs_are_read() {
        let line: Line = serde_json::from_str(r#"{"row":"agent-rss","value":8,"unit":"MB","better":"lower"}"#).unwrap();

        assert_eq!(Some(line), Line::figure(Row::AgentRss, 8.0));
        assert!(serde_json::from_str::<Line>(r#"{"row":"agent-rss"}"#).is_err());
    }
}
