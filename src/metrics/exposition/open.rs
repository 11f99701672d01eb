//! Families of open series, named `signalbox_<name>_<unit>`. Their samples have the label `target` if the series has one.

use std::collections::{BTreeMap, HashMap, HashSet};

use signalbox_history::metric::{self, Series};
use uuid::Uuid;

use super::families::{FAMILIES, Kind};
use super::{Lines, Target};

/// A family that agents described, and the positions of its samples.
#[derive(Debug)]
pub(super) struct OpenFamily {
    name: String,
    kind: Kind,
    /// The help text.
    help: String,
    /// The server and the series name from which it takes its help text.
    described_by: (Uuid, String),
    /// The indexes of the target and of its series.
    samples: Vec<(usize, usize)>,
}

/// Returns the families of all targets, by name. If two series of one target differ only in what the format cannot
/// express, only the first is written.
pub(super) fn families(targets: &[Target]) -> Vec<OpenFamily> {
    let mut families: BTreeMap<String, OpenFamily> = BTreeMap::new();
    let mut names: HashMap<(&str, &str), String> = HashMap::new();
    for (index, target) in targets.iter().enumerate() {
        let mut told = HashSet::new();
        let Some(snapshot) = target.snapshot() else { continue };
        for (place, (series, _)) in snapshot.open.iter().enumerate() {
            let name = names.entry((&series.name, &series.unit)).or_insert_with(|| name_of(series));
            let is_ours = FAMILIES.iter().any(|family| family.name == name);
            if is_ours || !told.insert((name.clone(), series.target.as_deref())) {
                continue;
            }
            let kind = if series.kind == metric::Kind::Counter { Kind::Counter } else { Kind::Gauge };
            let family = families.entry(name.clone()).or_insert_with(|| OpenFamily {
                name: name.clone(),
                kind,
                help: format!("Reported by the agent, in {}.", series.unit.replace('_', " ")),
                described_by: (snapshot.server_id, series.name.clone()),
                samples: Vec::new(),
            });
            if kind == Kind::Gauge {
                // It is a counter only if it is one for every agent.
                family.kind = kind;
            }
            family.samples.push((index, place));
        }
    }
    families.into_values().collect()
}

fn name_of(series: &Series) -> String {
    format!("signalbox_{}_{}", series.name, series.unit)
}

impl OpenFamily {
    pub fn described_by(&self) -> &(Uuid, String) {
        &self.described_by
    }

    pub fn set_help(&mut self, help: &str) {
        // The format escapes these two in help.
        self.help = help.replace('\\', "\\\\").replace('\n', "\\n");
    }

    /// Writes the sample at this index. Returns whether there is one.
    pub fn write(&self, targets: &[Target], place: usize, text: &mut String) -> bool {
        let Some((target, series)) = self.samples.get(place) else { return false };
        let Some(target) = targets.get(*target) else { return true };
        let Some((series, value)) = target.snapshot().and_then(|snapshot| snapshot.open.get(*series)) else {
            return true;
        };
        let mut has_head = place > 0;
        let has_head = &mut has_head;
        let (name, kind, help) = (self.name.as_str(), self.kind, self.help.as_str());
        let mut lines = Lines { text, name, kind, help, labels: &target.labels, has_head };
        match &series.target {
            Some(target) => lines.add(&[("target", target)], value),
            None => lines.add(&[], value),
        }
        true
    }
}
