//! How a run ended on each server, in words for alerts. Pure.

use uuid::Uuid;

use crate::commands::JobStatus;
use crate::commands::batch::BatchServer;
use crate::store::FailedOn;

/// How a run ended on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded,
    /// With what an alert says about it.
    Failed(String),
    /// It says nothing about whether the command works there.
    Unclear,
    /// The owner of the schedule may not run commands there any more.
    Forbidden,
}

/// How a run ended on a server that did not succeed.
pub(super) fn ending(failed: &FailedOn) -> Ending {
    let FailedOn { status, exit_code, error_code, .. } = failed;
    Ending::Failed(match (JobStatus::of(status), error_code.as_deref(), exit_code) {
        // Somebody cancelled it, or it failed on another server, which has an alert.
        (JobStatus::Cancelled | JobStatus::Skipped, ..) => return Ending::Unclear,
        (_, Some("forbidden"), _) => return Ending::Forbidden,
        (_, Some("agent_offline"), _) => "did not run: its agent was not connected".to_owned(),
        (_, Some("agent_refused"), _) => "did not run: the agent refused it".to_owned(),
        (JobStatus::TimedOut, ..) => "took too long and was ended".to_owned(),
        (JobStatus::Running | JobStatus::Lost, ..) => "was started, and how it ended is not known".to_owned(),
        (_, Some(code), _) => format!("failed ({code})"),
        (_, None, Some(code)) => format!("failed with exit code {code}"),
        (_, None, None) => "failed".to_owned(),
    })
}

/// The same failure on all of these servers.
pub(super) fn all(servers: &[BatchServer], what: &str) -> Vec<(Uuid, Ending)> {
    servers.iter().map(|server| (server.server_id, Ending::Failed(what.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_says_why_a_run_failed_and_some_endings_open_none() {
        let on = |status: &str, exit_code, error_code: Option<&str>| {
            let error_code = error_code.map(str::to_owned);
            ending(&FailedOn { server_id: Uuid::nil(), status: status.to_owned(), exit_code, error_code })
        };
        let says = |what: &str| Ending::Failed(what.to_owned());

        assert_eq!(on("failed", Some(3), None), says("failed with exit code 3"));
        assert_eq!(on("failed", None, Some("agent_refused")), says("did not run: the agent refused it"));
        assert_eq!(on("failed", None, Some("agent_offline")), says("did not run: its agent was not connected"));
        assert_eq!(on("failed", None, Some("agent_error")), says("failed (agent_error)"));
        assert_eq!(on("timed_out", Some(124), None), says("took too long and was ended"));
        assert_eq!(on("running", None, None), says("was started, and how it ended is not known"));
        assert_eq!(on("lost", None, None), says("was started, and how it ended is not known"));
        assert_eq!(on("failed", None, Some("forbidden")), Ending::Forbidden);
        assert_eq!(on("skipped", None, None), Ending::Unclear);
        assert_eq!(on("cancelled", Some(130), None), Ending::Unclear);
    }
}
