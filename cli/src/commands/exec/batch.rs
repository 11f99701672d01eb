//! A command on many servers: the service runs it, this waits for it and shows who answered what.

use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_protocol::agent::Stream;
use uuid::Uuid;

use super::grouped::{Group, groups};
use super::printer::Printer;
use super::{Order, not_started};
use crate::api::backoff::Backoff;
use crate::api::parsed;
use crate::api::types::{Batch, BatchResult, Command, Server};
use crate::commands::Call;
use crate::commands::interrupts::{Demand, Interrupts, Signal};
use crate::commands::refused::Action;
use crate::error::{Failure, Refusal};
use crate::output::text::{clean, shell_word};
use crate::output::{self, Format, Paint};
use crate::signing::options::{Servers, Signed};

/// A batch has no socket: this is how late its end is noticed, at most.
const POLL: Duration = Duration::from_millis(500);
/// An answer may be from the moment between the end of the last command and that of the batch: looked at again, this often at most.
const MAX_LATE_LOOKS: u32 = 10;
/// Results have this much of their output; the rest is asked for.
const PREVIEW_BYTES: usize = 4096;
/// Whole outputs that are asked for, one request each.
const MAX_WHOLE: usize = 50;
/// How often in a row the service may be unreachable. The batch runs without us.
const MAX_ATTEMPTS: u32 = 10;

/// On which servers, and how.
pub struct Choice {
    pub tag: String,
    pub concurrency: Option<u32>,
    pub stop_on_failure: bool,
}

impl Choice {
    /// How it runs, as the API takes it.
    pub fn body(&self) -> [(&'static str, Value); 2] {
        [("concurrency", json!(self.concurrency)), ("stop_on_failure", json!(self.stop_on_failure))]
    }
}

pub async fn run(call: &Call, choice: &Choice, order: &Order) -> Result<(), Failure> {
    let mut body = order.body();
    let signed = if order.signing.is_wanted() {
        let servers = servers_of(call, &choice.tag).await?;
        let ids: Vec<Uuid> = servers.iter().map(|server| server.id).collect();
        // Those that were shown, and none that get the tag in the meantime.
        body.insert("server_ids", json!(ids));
        order.signing.sign(&Servers { servers: &servers, typed: None }, order.subject()).await?
    } else {
        body.insert("tag", json!(choice.tag));
        Signed::default()
    };
    body.extend(signed.value.map(|value| ("signed", value)));
    body.extend(choice.body());
    let started = call.api.post("/commands", &body).await;
    let started = started.map_err(|failure| of_tag(not_started(failure, "batch"), &choice.tag))?;
    let (results, mut interrupts) = follow(call, started).await?;
    if !order.signing.is_wanted() && call.out.format != Format::Json {
        let advice = interrupts.unless_pressed(advice(call, &choice.tag, &results)).await;
        if let Some(advice) = advice.map_err(|interrupted| ended(interrupted, &results))? {
            output::complain(&advice);
        }
    }
    verdict(&results)
}

/// Waits until a batch has ended, and shows it. Also returns what listens to signals, which no longer end the process. After SIGTERM and
/// SIGHUP it is a failure, unless the batch had succeeded before.
pub async fn follow(call: &Call, started: Value) -> Result<(Vec<BatchResult>, Interrupts), Failure> {
    let id = parsed::<Batch>(started.clone())?.id;
    let mut interrupts = Interrupts::listen().map_err(|failure| continues(call, failure, id))?;
    let finished = finish(call, started, &mut interrupts).await;
    let (value, Batch { mut results, .. }) = finished.map_err(|failure| continues(call, failure, id))?;
    let mut completed = Ok(());
    let printed = if call.out.format == Format::Json {
        let text = call.out.json_text(&value)? + "\n";
        interrupts.unless_pressed(print(call, [text])).await
    } else {
        completed = complete(call, &mut results, &mut interrupts).await;
        let found = groups(&results);
        let texts = found.iter().enumerate().map(|(index, group)| text_of(call, index, group));
        interrupts.unless_pressed(print(call, texts)).await
    };
    let over = match (printed.flatten().and(completed), interrupts.ending(), verdict(&results)) {
        (Err(failure), ..) | (Ok(()), Some(failure), Err(_)) => Err(failure),
        (Ok(()), ..) => Ok(()),
    };
    over.map_err(|failure| ended(failure, &results))?;
    Ok((results, interrupts))
}

/// A failure while the batch runs, which needs nobody who waits, and where to look at it.
pub fn continues(call: &Call, failure: Failure, id: Uuid) -> Failure {
    failure.and(&format!("the batch {id} continues at the service: see {}/run/{id}", call.api.service()))
}

/// A failure after the end of a batch, as Ctrl-C, with what is known of the batch.
pub fn ended(failure: Failure, results: &[BatchResult]) -> Failure {
    let known = failure.and("the batch has ended");
    match verdict(results) {
        Ok(()) => known,
        Err(failure) => known.and(&failure.to_string()),
    }
}

/// A failure if it failed anywhere.
pub fn verdict(results: &[BatchResult]) -> Result<(), Failure> {
    let failed = results.iter().filter(|result| result.status != "succeeded").count();
    match failed {
        0 => Ok(()),
        count => Err(Failure::failed(format!("it did not succeed on {count} of {}", counted(results.len())))),
    }
}

/// The servers with this tag on which the caller may run commands.
pub async fn servers_of(call: &Call, tag: &str) -> Result<Vec<Server>, Failure> {
    let values = call.api.list("/servers", &[("tag", tag.to_owned())]).await?;
    let mut servers: Vec<Server> = values.into_iter().map(parsed).collect::<Result<_, _>>()?;
    servers.retain(|server| server.rights.iter().any(|right| right == "commands"));
    if servers.is_empty() {
        return Err(Failure::failed(format!("tag {tag:?}: there is no server on which you may run commands")));
    }
    Ok(servers)
}

/// What to do where signatures were missing: once, not for each server. A batch's results have no reasons.
async fn advice(call: &Call, tag: &str, results: &[BatchResult]) -> Option<String> {
    let is_refused = |result: &&BatchResult| result.error.as_ref().is_some_and(|error| error.code == "agent_refused");
    let refused = results.iter().find(is_refused)?;
    let server = call.api.server(&refused.server_id.to_string()).await.ok()?;
    let sign = format!("signalboxctl exec --sign ~/.ssh/id_ed25519 --tag {} -- COMMAND", shell_word(tag));
    Action::Commands
        .needs_signature(&server)
        .then(|| format!("{} asks for signatures. Sign: {sign}", clean(&server.name)))
}

/// The service does not repeat the tag.
fn of_tag(failure: Failure, tag: &str) -> Failure {
    match failure {
        Failure::Refused(refusal) if matches!(refusal.status, 400 | 404 | 422) => {
            Failure::Refused(Refusal { detail: format!("tag {tag:?}: {}", refusal.detail), ..refusal })
        }
        failure => failure,
    }
}

fn counted(servers: usize) -> String {
    if servers == 1 { "1 server".to_owned() } else { format!("{servers} servers") }
}

/// Waits until every server is done.
async fn finish(call: &Call, started: Value, interrupts: &mut Interrupts) -> Result<(Value, Batch), Failure> {
    let mut progress = Progress::default();
    let mut late_looks = 0;
    let mut value = started;
    loop {
        let batch: Batch = parsed(value.clone())?;
        progress.show(&batch);
        if is_over(&batch, late_looks) {
            progress.clear();
            return Ok((value, batch));
        }
        late_looks += u32::from(batch.finished_at.is_some());
        let path = format!("/commands/batches/{}", batch.id);
        let mut next = pin!(read_again(call, &path));
        let answer = loop {
            tokio::select! {
                answer = &mut next => break answer,
                demand = interrupts.next() => {
                    progress.clear();
                    obey(call, batch.id, demand)?;
                }
            }
        };
        value = answer.inspect_err(|_| progress.clear())?;
    }
}

/// The batch a moment later. The service may be away for a while.
async fn read_again(call: &Call, path: &str) -> Result<Value, Failure> {
    tokio::time::sleep(POLL).await;
    let mut backoff = Backoff::default();
    let mut attempts = 0;
    loop {
        match call.api.get(path, &[]).await {
            Err(failure) if attempts < MAX_ATTEMPTS && failure.is_passing_for_reads() => {
                attempts += 1;
                tokio::time::sleep(backoff.pause_after(&failure)).await;
            }
            answer => return answer,
        }
    }
}

/// The first signal cancels the batch, a second Ctrl-C leaves it alone. So does a terminal that closes: a batch needs nobody who waits.
fn obey(call: &Call, id: Uuid, demand: Demand) -> Result<(), Failure> {
    match demand {
        Demand::Cancel(Signal::Interrupt) => output::note("cancelling; press Ctrl-C again to leave it to the service"),
        Demand::Cancel(Signal::Terminate) => output::note(&format!("cancelling the batch {id}")),
        Demand::Cancel(signal @ Signal::Hangup) | Demand::Leave(signal) => return Err(signal.failure()),
    }
    let (api, path) = (Arc::clone(&call.api), format!("/commands/batches/{id}/cancel"));
    // Its answer must not keep a second press waiting.
    tokio::spawn(async move {
        if let Err(failure) = api.act(&path, &[]).await {
            // A reader that has paused must not hold up the one thread.
            tokio::task::spawn_blocking(move || output::complain(&format!("cannot cancel: {failure}")));
        }
    });
    Ok(())
}

fn is_over(batch: &Batch, late_looks: u32) -> bool {
    let is_complete = batch.counts.queued + batch.counts.running == 0;
    batch.finished_at.is_some() && (is_complete || late_looks >= MAX_LATE_LOOKS)
}

/// How many are done, for people who wait.
#[derive(Default)]
struct Progress {
    shown: bool,
}

impl Progress {
    fn show(&mut self, batch: &Batch) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let waiting = batch.counts.queued + batch.counts.running;
            let done = (batch.results.len() as u64).saturating_sub(waiting);
            let _ = write!(stderr, "\r{done} of {} done", counted(batch.results.len()));
            let _ = stderr.flush();
            self.shown = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Fetches what the previews lack, until a signal, which it returns, or until the service cannot be reached. What remains cut says so.
async fn complete(call: &Call, results: &mut [BatchResult], interrupts: &mut Interrupts) -> Result<(), Failure> {
    let long = results.iter_mut().filter(|result| result.preview.len() + 4 > PREVIEW_BYTES);
    let (mut has_given_up, mut completed) = (false, Ok(()));
    for (index, result) in long.enumerate() {
        if index < MAX_WHOLE && !has_given_up {
            let path = format!("/commands/{}/{}", result.server_id, result.command_id);
            match interrupts.unless_pressed(call.api.get(&path, &[])).await {
                Ok(answer) => match answer.and_then(parsed::<Command>) {
                    Ok(command) => {
                        result.preview = command.output;
                        continue;
                    }
                    Err(failure) => has_given_up = failure.is_passing_for_reads(),
                },
                Err(interrupted) => (has_given_up, completed) = (true, Err(interrupted)),
            }
        }
        result.truncated = true;
    }
    completed
}

async fn print(call: &Call, texts: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let printer = Printer::start(call.out);
    for text in texts {
        printer.print(Stream::Stdout, &text).await?;
    }
    printer.finish().await
}

/// What is shown of a group, after a blank line except for the first.
fn text_of(call: &Call, index: usize, group: &Group) -> String {
    let mut lines = Vec::new();
    if index > 0 {
        lines.push(String::new());
    }
    let paint = if group.status == "succeeded" { Paint::Green } else { Paint::Red };
    lines.push(call.out.paint(paint, &format!("── {}", group.heading())));
    lines.extend(group.reason.clone());
    // Of many machines at once: in a terminal it must not be able to imitate another one's heading.
    let shown = |line: &str| if call.out.is_terminal { clean(line) } else { line.to_owned() };
    lines.extend(group.output.lines().map(shown));
    if group.is_cut {
        lines.push(call.out.paint(Paint::Dim, "(a part of the output is missing)"));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_over_when_its_last_command_is() {
        let batch = |finished_at: Value, running: u64| {
            let value = json!({"id": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "finished_at": finished_at,
                "counts": {"queued": 0, "running": running}, "results": []});
            serde_json::from_value::<Batch>(value).unwrap()
        };
        let end = json!("2026-11-26T20:25:41.778Z");

        assert!(is_over(&batch(end.clone(), 0), 0));
        assert!(!is_over(&batch(Value::Null, 0), MAX_LATE_LOOKS));
        assert!(!is_over(&batch(end.clone(), 1), 0), "the counts are from before the end");
        assert!(is_over(&batch(end, 1), MAX_LATE_LOOKS), "nobody waits for what does not come");
    }
}
