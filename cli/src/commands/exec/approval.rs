//! A command that waits at the service for the signatures of others.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::{self, Choice};
use super::one::exit_code;
use super::{Order, not_started};
use crate::api::parsed;
use crate::api::types::{Approval, BatchResult, Server};
use crate::commands::Call;
use crate::commands::approvals::{WAITS, short};
use crate::error::Failure;
use crate::output;
use crate::signing::options::Servers;

/// What the results of a batch mean for the caller.
type Verdict = fn(&[BatchResult]) -> Result<(), Failure>;

/// On one server.
pub async fn one(call: &Call, wanted: &str, order: &Order) -> Result<(), Failure> {
    let server = call.api.server(wanted).await?;
    let servers = Servers { servers: std::slice::from_ref(&server), typed: Some(wanted) };
    ask(call, &servers, order, order.body(), verdict_of_one).await
}

/// On all servers with a tag.
pub async fn many(call: &Call, choice: &Choice, order: &Order) -> Result<(), Failure> {
    let servers = batch::servers_of(call, &choice.tag).await?;
    let mut body = order.body();
    body.extend(choice.body());
    ask(call, &Servers { servers: &servers, typed: None }, order, body, batch::verdict).await
}

async fn ask(
    call: &Call,
    servers: &Servers<'_>,
    order: &Order,
    mut body: BTreeMap<&'static str, Value>,
    verdict_of: Verdict,
) -> Result<(), Failure> {
    let signed = order.signing.sign(servers, order.subject()).await?;
    let ids: Vec<Uuid> = servers.servers.iter().map(|server: &Server| server.id).collect();
    body.insert("server_ids", json!(ids));
    body.extend(signed.value.map(|value| ("signed", value)));
    let asked = call.api.post("/commands/approvals", &body).await;
    let value = asked.map_err(|failure| not_started(failure, "command"))?;
    let approval: Approval = parsed(value.clone())?;
    if let Some(id) = approval.batch_id {
        // There were enough signatures.
        let started = call.api.get(&format!("/commands/batches/{id}"), &[]).await;
        let started = started.map_err(|failure| batch::continues(call, failure, id))?;
        let (results, mut interrupts) = batch::follow(call, started).await?;
        let verdict = verdict_of(&results);
        if verdict.is_err() {
            // For the service there were; the agents may know better.
            let path = format!("/commands/approvals/{}", approval.id);
            let now = interrupts.unless_pressed(call.api.get(&path, &[])).await;
            let now = now.map_err(|interrupted| batch::ended(interrupted, &results))?;
            if let Ok(now) = now.and_then(parsed::<Approval>)
                && now.status == WAITS
            {
                output::complain(&format!("the command {}", now.words()));
            }
        }
        return verdict;
    }
    call.out.done(&waiting(&approval), &value)
}

/// What it waits for, and how others end that.
fn waiting(approval: &Approval) -> String {
    let words = approval.words();
    if approval.status == WAITS && approval.missing == 0 {
        return format!("The command {words}.");
    }
    let how = format!("signalboxctl approvals sign {} --sign KEYFILE", short(approval.id));
    format!("The command {words}. Others sign with:\n  {how}")
}

/// The exit code is the command's own, as without a wait, if it ran.
fn verdict_of_one(results: &[BatchResult]) -> Result<(), Failure> {
    match results {
        [BatchResult { status, exit_code: code, error: None, .. }]
            if matches!(status.as_str(), "failed" | "timed_out" | "cancelled") =>
        {
            Err(Failure::Remote(exit_code(status, *code)))
        }
        results => batch::verdict(results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_for_a_signature_that_is_not_missing() {
        let text = |missing: u32| {
            let value = json!({"id": Uuid::nil(), "status": WAITS, "command": "true", "username": "ada", "needed": 1,
                "missing": missing, "signatures": [], "not_before": "2026-11-26T10:00:00Z",
                "expires_at": "2026-11-26T10:10:00Z"});
            waiting(&serde_json::from_value(value).unwrap())
        };

        assert!(text(0).starts_with("The command has all its signatures, and runs when "));
        assert!(!text(0).contains("Others sign with"));
        assert!(text(1).ends_with("Others sign with:\n  signalboxctl approvals sign 00000000 --sign KEYFILE"));
    }

    #[test]
    fn on_one_server_the_exit_code_is_the_commands_own() {
        let verdict = |status: &str, code: Option<i32>, error: Value| {
            let id = Uuid::nil();
            let result = json!({"server_id": id, "server_name": "web-1", "command_id": id, "status": status,
                "exit_code": code, "preview": "", "truncated": false, "error": error});
            verdict_of_one(&[serde_json::from_value(result).unwrap()]).map_err(|failure| failure.exit_code())
        };
        let refused = json!({"code": "agent_refused", "detail": "no", "reason": null});

        assert_eq!(verdict("succeeded", Some(0), Value::Null), Ok(()));
        assert_eq!(verdict("failed", Some(3), Value::Null), Err(3));
        assert_eq!(verdict("timed_out", None, Value::Null), Err(124));
        assert_eq!(verdict("failed", None, refused), Err(1));
        assert_eq!(verdict("lost", None, Value::Null), Err(1));
    }
}
