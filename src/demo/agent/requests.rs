//! Answers the service's questions about a simulated server.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{LogLine, RequestError};
use signalbox_protocol::container::{Container, ContainerLogs, ContainerParams, ListParams, LogsParams, MAX_LOG_LINES};

use super::super::containers::{detail, find, listed as list_one, stats, stopped};
use super::super::journal::newest;
use super::super::services::Service;
use super::Site;
use super::streams::log_of;

/// Lines of a search, where the question names no number.
const FOUND: u32 = 100;

/// A search of a log.
#[derive(Deserialize)]
struct Query {
    source: String,
    #[serde(default)]
    container_id: Option<String>,
    #[serde(default)]
    since: Option<Timestamp>,
    #[serde(default)]
    until: Option<Timestamp>,
    #[serde(default)]
    tail: Option<u32>,
    #[serde(default)]
    q: Option<String>,
    #[serde(default)]
    regex: bool,
}

/// Answers a question.
pub fn answer(site: &mut Site, method: &str, params: &Value, at_ms: i64) -> Result<Value, RequestError> {
    match method {
        "agent.info" => Ok(json!(site.info())),
        "agent.policy" => Ok(json!({
            "processes": "on", "commands": "on", "docker": "control", "docker_host": null, "logs": "on",
            "log_paths": [], "terminal": "off",
        })),
        "logs.query" => search(site, &parse(params)?, at_ms),
        "docker.list" => {
            let ListParams { all } = parse(params)?;
            let containers = listed(site, at_ms);
            Ok(json!(containers.into_iter().filter(|it| all || it.state == "running").collect::<Vec<_>>()))
        }
        "docker.inspect" => {
            let service = named(site, params)?;
            Ok(json!(detail(site.course, &site.machine, service, at_ms, state_of(site, service, at_ms))))
        }
        "docker.stats" => {
            let service = named(site, params)?;
            let sample = site.sample(at_ms);
            let usage = sample.containers.iter().find(|usage| usage.name == service.name);
            let usage = usage.ok_or_else(|| RequestError::new("docker_error", "the container does not run"))?;
            Ok(json!(stats(&site.machine, usage, at_ms)))
        }
        "docker.logs" => logs(site, &parse(params)?, at_ms),
        _ if is_change(method) => {
            let service = named(site, params)?;
            Ok(change(site, method, service, at_ms))
        }
        _ => Err(RequestError::new("unknown_method", "this agent does not know the method")),
    }
}

/// Whether a method changes a container.
pub fn is_change(method: &str) -> bool {
    matches!(method, "docker.start" | "docker.stop" | "docker.restart")
}

/// All containers.
pub fn listed(site: &Site, at_ms: i64) -> Vec<Container> {
    site.machine.services.iter().map(|service| state_of(site, service, at_ms)).collect()
}

fn state_of(site: &Site, service: &Service, at_ms: i64) -> Container {
    let container = list_one(site.course, &site.machine, service, at_ms);
    if site.stopped.contains(service.name) { stopped(container) } else { container }
}

fn change(site: &mut Site, method: &str, service: &'static Service, at_ms: i64) -> Value {
    if method == "docker.stop" {
        site.stopped.insert(service.name);
    } else {
        site.stopped.remove(service.name);
    }
    let Container { id, name, state, .. } = state_of(site, service, at_ms);
    json!({ "container_id": id, "name": name, "state": state })
}

fn logs(site: &Site, params: &LogsParams, at_ms: i64) -> Result<Value, RequestError> {
    let log = log_of(site, "container", Some(&params.container_id))?;
    let wanted = |line: &LogLine| match line.stream.as_deref() {
        Some("stderr") => params.stderr,
        _ => params.stdout,
    };
    let lines =
        newest(site.course, &site.machine, log, range(params.since, params.until, at_ms), most(params.tail), wanted);
    Ok(json!(ContainerLogs { lines, truncated: false }))
}

fn search(site: &Site, query: &Query, at_ms: i64) -> Result<Value, RequestError> {
    if query.regex {
        let detail = "a simulated server searches for text, not for regular expressions";
        return Err(RequestError::new("invalid_pattern", detail));
    }
    let log = log_of(site, &query.source, query.container_id.as_deref())?;
    let text = query.q.as_deref().unwrap_or_default().to_lowercase();
    let wanted = |line: &LogLine| text.is_empty() || line.message.to_lowercase().contains(&text);
    let range = range(query.since, query.until, at_ms);
    let lines = newest(site.course, &site.machine, log, range, most(query.tail.unwrap_or(FOUND)), wanted);
    Ok(json!({ "lines": lines, "truncated": false, "stopped_at": null }))
}

fn range(since: Option<Timestamp>, until: Option<Timestamp>, at_ms: i64) -> (Option<i64>, i64) {
    let until = until.map_or(at_ms, |until| until.as_millis().min(at_ms));
    (since.map(Timestamp::as_millis), until)
}

fn most(tail: u32) -> usize {
    usize::try_from(tail.min(MAX_LOG_LINES)).unwrap_or_default()
}

fn named(site: &Site, params: &Value) -> Result<&'static Service, RequestError> {
    let ContainerParams { container_id, .. } = parse(params)?;
    let found = find(&site.machine, &container_id);
    found.ok_or_else(|| RequestError::new("container_not_found", "no such container"))
}

fn parse<T: DeserializeOwned>(params: &Value) -> Result<T, RequestError> {
    T::deserialize(params).map_err(|error| RequestError::new("bad_params", &error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::super::super::cast::fleet;
    use super::super::super::course::Course;
    use super::*;

    const AT_MS: i64 = 1_800_000_000_000;

    fn site() -> Site {
        let machine = Arc::new(fleet(1).remove(0));
        Site { course: Course { began_ms: AT_MS }, machine, stopped: HashSet::new() }
    }

    #[test]
    fn a_stopped_container_stays_stopped_until_it_is_started() {
        let (mut site, params) = (site(), json!({ "container_id": "nginx" }));
        let states = |site: &Site| listed(site, AT_MS).into_iter().map(|it| it.state).collect::<Vec<_>>();

        let stopped = answer(&mut site, "docker.stop", &params, AT_MS).unwrap();
        let then = states(&site);
        answer(&mut site, "docker.start", &params, AT_MS).unwrap();

        assert_eq!(stopped["state"], "exited");
        assert_eq!(
            (then, states(&site)),
            (vec!["exited".into(), "running".into(), "running".into()], vec!["running".to_owned(); 3])
        );
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let mut site = site();
        let code = |outcome: Result<Value, RequestError>| outcome.unwrap_err().code;

        assert_eq!(code(answer(&mut site, "shell.run", &json!({}), AT_MS)), "unknown_method");
        let missing = json!({ "container_id": "nothing" });
        assert_eq!(code(answer(&mut site, "docker.logs", &json!({}), AT_MS)), "bad_params");
        assert_eq!(code(answer(&mut site, "docker.inspect", &missing, AT_MS)), "container_not_found");
    }

    #[test]
    fn a_search_returns_the_lines_that_match() {
        let params = json!({ "source": "container", "container_id": "shop", "q": "UPSTREAM FAILED", "tail": 3 });

        let found = answer(&mut site(), "logs.query", &params, AT_MS).unwrap();

        assert_eq!(found["lines"].as_array().map(Vec::len), Some(3));
    }
}
