//! The order of the service's modules, and violations of it in the code.

use super::*;

/// Crates that `src/lib.rs` re-exports as modules: they are below everything here, and cannot name any of it.
const BELOW: &[&str] = &["audit", "store"];

/// The modules of the service, layer upon layer: each names only modules of earlier layers, so none names another of its layer
/// and there are no cycles. A module that seems to need one passes a trait down, as the registry does with its `Observer`, or
/// belongs further up.
pub const LAYERS: &[&[&str]] = &[
    // Helpers that know nothing of the service.
    &["address", "alert_words", "networks", "periodic", "random", "seal", "tls"],
    // Independent modules.
    &["bus", "disk", "health", "memory", "observe", "shares"],
    &["batch_writer", "change", "clock", "install", "shards"],
    // The present state, and who watches it.
    &["fleet"],
    &["feeds"],
    // Authentication, and the connections to agents.
    &["auth", "registry"],
    &["cluster"],
    // The purposes of the service.
    &["docker", "events", "live", "metrics", "notify", "recordings", "updates"],
    &["config"],
    &["alerts", "commands", "logs"],
    // What combines them: samples, agents that connect and disconnect, requests of other instances.
    &["reconciler"],
    &["ingest", "peer_server", "presence"],
    &["state"],
    // How others reach it.
    &["effects", "ws"],
    &["http"],
    &["startup"],
    &["admin", "cli", "demo"],
    &["program"],
];

/// The layer of a module.
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

/// Everything that a file names and that is not below it.
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
