//! Tools that change something. The service checks the right to each call, and its audit log has it.

use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::{Answer, middle_cut};
use super::arguments::{AcknowledgeAlert, RestartContainer, RunCommand};
use super::read::Found;
use crate::api::types::Command;
use crate::api::{Api, parsed, segment};
use crate::commands::exec::{command_not_started, not_started};
use crate::commands::refused::{Action, explained, is_unknown};
use crate::error::Failure;

const TIMEOUT_SECONDS: u32 = 60;
/// The service waits for a command at most 10 s longer than its timeout, and at most 90 s.
const MAX_TIMEOUT_SECONDS: u32 = 80;
/// Of the output: the rest of an answer is what is known about the command.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

pub async fn acknowledge(api: &Api, wanted: AcknowledgeAlert) -> Result<Found, Failure> {
    let id: Uuid =
        wanted.alert.parse().map_err(|_| Failure::usage("`alert` is the whole id that list_alerts shows"))?;
    let alert = api.act(&format!("/alerts/{id}/acknowledge"), &[]).await?;
    let shown = json!({"id": alert.get("id"), "status": alert.get("status"), "message": alert.get("message")});
    Ok((Answer::fields("alert", shown), String::new()))
}

pub async fn restart(api: &Api, wanted: RestartContainer) -> Result<Found, Failure> {
    let server = api.server(&wanted.server).await?;
    let path = format!("/docker/{}/containers/{}/restart", server.id, segment(&wanted.container));
    let answer = api.act(&path, &[]).await;
    let explain = |failure| explained(failure, &server, Action::ControlContainers, &api.service(), &[]);
    let answer = answer.map_err(|failure| not_twice(explain(failure), "restart"))?;
    Ok((Answer::fields("container", answer), String::new()))
}

pub async fn run(api: &Api, wanted: RunCommand) -> Result<Found, Failure> {
    let timeout = wanted.timeout_seconds.unwrap_or(TIMEOUT_SECONDS);
    if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout) {
        return Err(Failure::usage(format!("timeout_seconds has to be between 1 and {MAX_TIMEOUT_SECONDS}")));
    }
    let server = api.server(&wanted.server).await?;
    let body = json!({"command": wanted.command, "stdin": wanted.stdin, "timeout_seconds": timeout});
    let explain = |failure| not_run(explained(failure, &server, Action::Commands, &api.service(), &[]));
    let value = api.post(&format!("/commands/{}", server.id), &body).await.map_err(explain)?;
    let command: Command = parsed(value.clone())?;
    if let Some(reason) = command.error {
        return Err(explain(reason.into()));
    }
    let output = middle_cut(&command.output, MAX_OUTPUT_BYTES);
    let is_cut = output.is_some() || value.get("truncated") == Some(&Value::Bool(true));
    // As lines, so that the bound of a text does not apply to all of it.
    let lines: Vec<Value> = output.as_ref().unwrap_or(&command.output).lines().map(Value::from).collect();
    let answer = Answer::new("output", lines)
        .about("server", server.name)
        .about("command_id", command.command_id.to_string())
        .about("status", command.status)
        .about("exit_code", command.exit_code)
        .cut(is_cut);
    Ok((answer, "Run a command that prints less, for instance with tail or grep.".to_owned()))
}

/// Why a command has no result. A busy service has not started it, unlike a restart: there `busy` may also say that the
/// answer of another instance could not be read.
fn not_run(failure: Failure) -> Failure {
    if failure.code() == "busy" {
        return command_not_started(failure).and("you may call this again in a moment");
    }
    not_twice(failure, "command")
}

/// A failure that does not invite to a second call where the first one may have worked, or may still.
fn not_twice(failure: Failure, what: &str) -> Failure {
    if !is_unknown(&failure) {
        return not_started(failure, what);
    }
    let failure = match failure.code() {
        "agent_disconnected" | "agent_timeout" => failure.and(&format!("the {what} may still run")),
        _ => not_started(failure, what),
    };
    failure.and("do not call this again before you have checked what became of it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    #[test]
    fn a_call_is_not_to_be_repeated_where_its_outcome_is_not_known() {
        let refused = |status, code: &str| {
            Failure::Refused(Refusal { status, code: code.to_owned(), detail: "no".to_owned(), reason: None })
        };
        let words = |failure, what| not_twice(failure, what).to_string();
        let checked = "; do not call this again before you have checked what became of it";

        for code in ["agent_disconnected", "agent_timeout"] {
            assert_eq!(words(refused(400, code), "command"), format!("no; the command may still run{checked}"));
        }
        for failure in [Failure::Unreachable("no".to_owned()), refused(502, ""), refused(504, "")] {
            let unknown = format!("no; it is not known whether the restart was started{checked}");
            assert_eq!(words(failure, "restart"), unknown);
        }
        assert_eq!(words(Failure::NotSent("no".to_owned()), "command"), "no; the command was not started");
        assert_eq!(words(refused(400, "agent_offline"), "command"), "no");
    }

    #[test]
    fn a_command_may_be_called_again_where_the_service_was_busy() {
        let refusal =
            |code: &str| Refusal { status: 503, code: code.to_owned(), detail: "no".to_owned(), reason: None };
        let again = "no; the command was not started; you may call this again in a moment";

        let deferred = Failure::Deferred { refusal: refusal("busy"), retry_after: std::time::Duration::from_secs(2) };
        assert_eq!(not_run(deferred).to_string(), again);
        assert_eq!(not_run(Failure::Refused(refusal("busy"))).to_string(), again);
        let of_proxy = not_run(Failure::Refused(refusal(""))).to_string();
        assert!(of_proxy.contains("whether the command was started; do not call this again"), "{of_proxy}");
        let restart = not_twice(Failure::Refused(refusal("busy")), "restart").to_string();
        assert!(restart.contains("it is not known whether the restart was started"), "{restart}");
    }
}
