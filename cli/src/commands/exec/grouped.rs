//! Results of many servers, those that are the same together. Pure.

use crate::api::types::BatchResult;
use crate::output::text::clean;

/// Servers on which the command did the same.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    pub servers: Vec<String>,
    pub status: String,
    pub exit_code: Option<i32>,
    pub output: String,
    /// Why it did not run.
    pub reason: Option<String>,
    pub is_cut: bool,
}

/// The largest group first, failures before successes of the same size.
pub fn groups(results: &[BatchResult]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for result in results {
        let group = of_one(result);
        let same = groups.iter_mut().find(|other| {
            (&other.status, other.exit_code, &other.output, &other.reason)
                == (&group.status, group.exit_code, &group.output, &group.reason)
        });
        match same {
            Some(other) => other.servers.extend(group.servers),
            None => groups.push(group),
        }
    }
    groups.iter_mut().for_each(|group| group.servers.sort());
    groups.sort_by_key(|group| (std::cmp::Reverse(group.servers.len()), group.status == "succeeded"));
    groups
}

fn of_one(result: &BatchResult) -> Group {
    Group {
        servers: vec![result.server_name.as_deref().map_or_else(|| result.server_id.to_string(), clean)],
        status: result.status.clone(),
        exit_code: result.exit_code,
        output: result.preview.clone(),
        reason: result.error.as_ref().map(|reason| clean(&reason.detail)),
        is_cut: result.truncated,
    }
}

impl Group {
    /// Which servers, and what the command did there.
    pub fn heading(&self) -> String {
        let count = match self.servers.len() {
            1 => String::new(),
            count => format!("{count} servers: "),
        };
        let how = match (self.status.as_str(), self.exit_code) {
            ("succeeded", _) => String::new(),
            (status, Some(code)) => format!(" ({}, exit code {code})", status.replace('_', " ")),
            (status, None) => format!(" ({})", status.replace('_', " ")),
        };
        format!("{count}{}{how}", self.servers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(name: &str, status: &str, exit_code: Option<i32>, output: &str) -> BatchResult {
        let id = "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10";
        let value = json!({"server_id": id, "server_name": name, "command_id": id, "status": status, "exit_code": exit_code,
            "preview": output, "truncated": false, "error": null});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn servers_with_the_same_output_are_one_group() {
        let results = [
            result("web-2", "succeeded", Some(0), "12\n"),
            result("db-1", "failed", Some(3), "12\n"),
            result("web-1", "succeeded", Some(0), "12\n"),
            result("db-2", "timed_out", None, ""),
        ];

        let headings: Vec<String> = groups(&results).iter().map(Group::heading).collect();

        assert_eq!(headings, ["2 servers: web-1, web-2", "db-1 (failed, exit code 3)", "db-2 (timed out)"]);
    }
}
