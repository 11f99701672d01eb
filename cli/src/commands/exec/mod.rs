//! Runs a command on one server, or on all that have a tag.

mod approval;
mod batch;
mod grouped;
mod one;
mod position;
mod printer;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::Call;
use crate::error::Failure;
use crate::output::text::shell_word;
use crate::output::time::parse_duration;
use crate::signing::options::{HEADING, Signing};
use crate::signing::order::Subject;

/// Run a command on a server, or on all servers with a tag
///
/// On one server the output streams, Ctrl-C cancels the command, and the exit code is the command's own. With --tag the output is
/// grouped: servers with the same output are listed together; the exit code is 1 if the command failed anywhere.
///
/// One word after -- is a shell script, as in `-- 'ps aux | grep nginx'`. Several words are a program and its arguments, which
/// arrive as they are.
///
/// Servers whose policy asks for signatures run what their operators signed: --sign shows what is signed, and signs it once for all
/// servers.
#[derive(Debug, Args)]
pub struct Exec {
    /// Name or id of the server
    #[arg(value_name = "SERVER", required_unless_present = "tag", conflicts_with = "tag")]
    server: Option<String>,
    /// Run it on all servers with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// On how many servers it runs at the same time; defaults to 50
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "tag")]
    concurrency: Option<u32>,
    /// After a failure, do not run it on servers that still wait
    #[arg(long, requires = "tag")]
    stop_on_failure: bool,
    /// After this time the command is ended, at most 1h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "60s")]
    timeout: Duration,
    /// Send standard input to the command, at most 512 KiB of text
    #[arg(short = 'i', long)]
    stdin: bool,
    #[command(flatten)]
    signing: Signing,
    /// Let the command wait at the service for the signatures of others (see `signalboxctl approvals`)
    #[arg(long, requires = "keys", help_heading = HEADING)]
    await_approval: bool,
    /// The command
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

/// The body of a request is at most 1 MiB, and text grows when it becomes JSON.
const MAX_STDIN_BYTES: u64 = 512 * 1024;

/// What to run, as the API takes it.
pub struct Order {
    command: String,
    stdin: Option<String>,
    timeout: Duration,
    signing: Signing,
}

impl Exec {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        call.out.expect_no_csv()?;
        if !(1..=3600).contains(&self.timeout.as_secs()) {
            return Err(Failure::usage("--timeout has to be between 1s and 1h"));
        }
        self.signing.check(self.tag.is_some())?;
        let stdin = if self.stdin { Some(read_stdin().await?) } else { None };
        let order = Order { command: script_of(&self.command), stdin, timeout: self.timeout, signing: self.signing };
        match (self.server, self.tag) {
            (Some(server), _) if self.await_approval => approval::one(call, &server, &order).await,
            (Some(server), _) => one::run(call, &server, &order).await,
            (None, Some(tag)) => {
                let choice =
                    batch::Choice { tag, concurrency: self.concurrency, stop_on_failure: self.stop_on_failure };
                if self.await_approval {
                    approval::many(call, &choice, &order).await
                } else {
                    batch::run(call, &choice, &order).await
                }
            }
            (None, None) => Err(Failure::usage("name a server or a tag")),
        }
    }
}

impl Order {
    fn body(&self) -> BTreeMap<&'static str, Value> {
        let timeout = json!(self.timeout.as_secs());
        [("command", json!(self.command)), ("stdin", json!(self.stdin)), ("timeout_seconds", timeout)].into()
    }

    /// What is signed, if it is.
    fn subject(&self) -> Subject<'_> {
        let Self { command, stdin, timeout, .. } = self;
        Subject::Command { command, stdin: stdin.as_deref(), timeout_seconds: timeout.as_secs() }
    }
}

/// Why a command or a batch was not started, as far as that is known. The answer may have got lost. So may that of the database to
/// the service, which then says that it is busy, and runs a batch that it finds stored.
pub fn not_started(failure: Failure, what: &str) -> Failure {
    if matches!(failure, Failure::NotSent(_)) {
        failure.and(&format!("the {what} was not started"))
    } else if failure.is_passing() {
        failure.and(&format!("it is not known whether the {what} was started"))
    } else {
        failure
    }
}

/// The same for a command on one server. One that the service stored and could not send at once is never sent, unlike a batch:
/// `busy` says that it does not run.
pub fn command_not_started(failure: Failure) -> Failure {
    if failure.code() == "busy" { failure.and("the command was not started") } else { not_started(failure, "command") }
}

/// The whole standard input, which has to be text because the API's requests are.
async fn read_stdin() -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = read.await.map_err(|ended| Failure::failed(ended.to_string()))??;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        return Err(Failure::failed("standard input is longer than 512 KiB: copy it to the server as a file"));
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(Failure::failed("standard input is not UTF-8 text: encode it, for example with base64")),
    }
}

/// The words for `/bin/sh -c`.
fn script_of(words: &[String]) -> String {
    match words {
        [script] => script.clone(),
        words => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    fn script(words: &[&str]) -> String {
        script_of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn one_word_is_a_script_and_several_are_arguments() {
        assert_eq!(script(&["ps aux | grep x"]), "ps aux | grep x");
        assert_eq!(script(&["echo", "a  b", "$HOME", "it's", ""]), r"echo 'a  b' '$HOME' 'it'\''s' ''");
        assert_eq!(script(&["systemctl", "restart", "nginx.service"]), "systemctl restart nginx.service");
    }

    #[test]
    fn only_what_may_have_reached_the_service_may_have_been_started() {
        let refused = |status: u16| Failure::Refused(Refusal::of(status, b""));
        let text = || "no".to_owned();

        assert_eq!(not_started(Failure::NotSent(text()), "batch").to_string(), "no; the batch was not started");
        for failure in [Failure::Unreachable(text()), refused(502), refused(503), refused(504), refused(524)] {
            let line = not_started(failure, "batch").to_string();
            assert!(line.ends_with("; it is not known whether the batch was started"), "{line}");
        }
        let refusal = not_started(refused(422), "batch");
        assert_eq!(refusal.to_string(), "the service answered with status 422");
    }

    #[test]
    fn a_busy_service_has_not_started_a_command_and_a_proxy_does_not_know() {
        let of = |body: &[u8]| command_not_started(Failure::Refused(Refusal::of(503, body))).to_string();

        assert_eq!(of(br#"{"detail": "no", "code": "busy"}"#), "no; the command was not started");
        assert!(of(b"").ends_with("; it is not known whether the command was started"));
    }
}
