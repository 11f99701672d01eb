//! The order of the service's modules, and what in the code breaks it.

use super::*;

/// Crates that `src/lib.rs` shows as modules: they lie below everything here, and cannot name any of it.
const BELOW: &[&str] = &["audit", "store"];

/// The modules of the service, layer upon layer: each names only those of the layers before its own, so none names
/// another of its layer and there is no way back. A module that seems to need one hands a trait down, as the registry does with
/// its `Observer`, or belongs further up.
pub const LAYERS: &[&[&str]] = &[
    // Helpers that know nothing of the service.
    &["address", "alert_words", "networks", "periodic", "random", "tls"],
    // What stands on its own.
    &["bus", "disk", "health", "install", "memory", "observe", "shares"],
    &["change", "clock", "ledger", "shards"],
    // What is so at the moment, and who watches it.
    &["fleet"],
    &["feeds"],
    // Who somebody is, and the way to agents.
    &["auth", "registry"],
    &["cluster"],
    // What the service is for.
    &["docker", "events", "metrics", "notify"],
    &["config"],
    &["alerts", "commands", "logs"],
    // What brings it together: a sample, an agent that comes or goes, another instance that asks.
    &["vigil"],
    &["ingest", "peer_server", "presence"],
    &["state"],
    // How others reach it.
    &["effects", "ws"],
    &["http"],
    &["startup"],
    &["admin", "cli", "demo"],
];

/// Where a module stands.
fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The module that a file of the service belongs to; none for the map itself, the program, and tests.
fn module_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?.trim_end_matches(".rs");
    let is_test = inside.split('/').any(|name| name == "tests" || name.ends_with("_tests"));
    let module = inside.split('/').next().filter(|_| !is_test)?;
    (!["lib", "main"].contains(&module)).then_some(module)
}

/// What a file names that does not lie below it.
pub fn violations(source: &Source) -> Vec<String> {
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let Some(here) = layer_of(module) else { return vec![violation(source, 1, &format!("{module} is in no layer"))] };
    let others = source.paths().into_iter().filter_map(|named| {
        let other = named.path.strip_prefix("crate::")?.split("::").next()?.to_owned();
        (other != module && !BELOW.contains(&other.as_str())).then_some((named.line, other))
    });
    let broken = others.filter_map(|(line, other)| match layer_of(&other) {
        Some(there) if there < here => None,
        Some(_) => Some((line, format!("{module} names {other}, which does not lie below it"))),
        None => Some((line, format!("{module} names {other}, which is in no layer"))),
    });
    broken.map(|(line, rule)| violation(source, line, &rule)).collect()
}

/// Modules that are listed more than once, or that there are none of.
pub fn misprints(sources: &[Source]) -> Vec<String> {
    let listed = || LAYERS.iter().copied().flatten();
    let is_there = |module: &str| sources.iter().any(|source| module_of(&source.path) == Some(module));
    let wrong = listed().filter(|module| listed().filter(|other| other == module).count() > 1 || !is_there(module));
    wrong.map(|module| format!("{module} is listed twice, or there is none")).collect()
}
