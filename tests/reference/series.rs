//! The table of open series, from the agent's collectors.

use std::fs;
use std::path::{Path, PathBuf};

use signalbox_protocol::series::Unit;

use super::generated::table;

/// Every open series in the order of the document, with what tells several of its name apart.
const SERIES: &[(&str, &str)] = &[
    ("cpu_mode", "`user`, `nice`, `system`, `iowait`, `irq`, `softirq`, `steal`"),
    ("context_switches", ""),
    ("processes_blocked", ""),
    ("pressure_some", "`cpu`, `memory`, `io`"),
    ("pressure_full", "`cpu`, `memory`, `io`"),
    ("disk_busy", "device"),
    ("disk_await", "device"),
    ("disk_queue", "device"),
    ("inodes_used", "mount path"),
    ("memory_page_cache", ""),
    ("memory_buffers", ""),
    ("memory_dirty", ""),
    ("zfs_arc", ""),
    ("tcp_sockets", "`established`, `time_wait`, `orphan`, `in_use`, `allocated`"),
    ("udp_sockets", ""),
    ("network_receive_errors", "interface"),
    ("network_receive_drops", "interface"),
    ("network_transmit_errors", "interface"),
    ("network_transmit_drops", "interface"),
    ("file_handles", ""),
    ("entropy", ""),
    ("fan_speed", "chip and fan"),
    ("battery_charge", "battery"),
    ("agent_series_dropped", ""),
];

/// One as a collector describes it.
struct Described {
    name: String,
    unit: &'static str,
    help: String,
}

pub fn table_of_all() -> String {
    let mut files = Vec::new();
    find_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("agent/src"), &mut files);
    let described: Vec<Described> =
        files.iter().flat_map(|path| described_in(&fs::read_to_string(path).unwrap())).collect();
    for series in &described {
        let is_listed = SERIES.iter().any(|(name, _)| *name == series.name);
        assert!(is_listed, "say in SERIES of tests/reference/series.rs what the targets of {} are", series.name);
    }
    let rows = SERIES.iter().map(|(name, target)| {
        let mut all = described.iter().filter(|series| series.name == *name);
        let Described { unit, help, .. } = all.next().unwrap_or_else(|| panic!("no collector describes {name}"));
        assert!(all.next().is_none(), "{name} is described twice");
        vec![format!("`{name}`"), (*unit).to_owned(), (*target).to_owned(), help.trim_end_matches('.').to_owned()]
    });
    table(&["name", "unit", "target", "meaning"], rows)
}

/// The sources without files of tests.
fn find_sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            find_sources(&path, files);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            files.push(path);
        }
    }
}

/// Every `Metric::gauge("name", Unit::ColumnOwner, "help")` before the file's tests.
fn described_in(source: &str) -> Vec<Described> {
    let product = source.split("#[cfg(test)]").next().unwrap_or_default();
    let described = product.split("Metric::gauge(").skip(1).map(|call| {
        let mut parts = call.split('"').skip(1);
        let mut next = || parts.next().unwrap_or_else(|| panic!("not a description: {call}"));
        let (name, unit, help) = (next().to_owned(), next(), next().to_owned());
        let found = Unit::ALL.into_iter().find(|known| unit.contains(&format!("Unit::{known:?},")));
        let known = found.unwrap_or_else(|| panic!("{name} has no unit of the protocol"));
        Described { name, unit: known.as_str(), help }
    });
    described.collect()
}
