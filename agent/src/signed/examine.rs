//! Whether this server would run what a file contains: as the agent decides it, without the agent.
//!
//! Beside the signatures, two things decide: the policy's word for that kind of thing, and the record of what has run. The record
//! is read and never locked, because the agent that keeps it may be running.

use std::fmt::Write as _;
use std::path::Path;

use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::{MAX_PAYLOAD_CHARACTERS, MAX_SIGNATURES, Signed};
use signalbox_signing::verdict::{distinct, read};
use signalbox_signing::{Kind, Payload, Signer, signers_of};

use super::Demands;
use super::explain::{Answer, ExplainError, read_bounded};
use super::nonces::{Record, RecordError};
use crate::policy::{DockerAccess, Policy, Switch};

/// A payload, its signatures and the JSON around them.
const MAX_FILE_BYTES: u64 = (MAX_PAYLOAD_CHARACTERS + MAX_SIGNATURES * 64 * 1024) as u64;

/// What the agent goes by.
struct Server<'a> {
    policy: &'a Policy,
    demands: &'a Demands,
    record: &'a Result<Record, RecordError>,
}

/// What the agent would do.
enum Verdict {
    /// Run it, and anything else of its kind, because this line of the policy asks for no signature.
    Unsigned(String),
    /// Run it once.
    Once,
    /// Run it once, if it has not run already: what has run is not known.
    Unknown(String),
    Refuse(String),
}

/// What a line of the policy asks for.
enum Rule {
    Nothing,
    Signatures,
    /// It permits nothing.
    Forbidden,
}

pub fn verify(file: &Path, policy_file: &Path, state_dir: &Path) -> Result<Answer, ExplainError> {
    let policy = Policy::read(policy_file)?;
    let demands = Demands::read(policy_file, &policy)?;
    let demands = demands.ok_or_else(|| ExplainError::AsksForNone(policy_file.to_owned()))?;
    let text = read_bounded(file, MAX_FILE_BYTES)?;
    let signed: Signed = serde_json::from_slice(&text)
        .map_err(|error| ExplainError::NotSigned { path: file.to_owned(), detail: error.to_string() })?;
    let record = Record::read(state_dir);
    let server = Server { policy: &policy, demands: &demands, record: &record };
    Ok(server.examine(&signed, Timestamp::now()))
}

impl Server<'_> {
    /// What a payload says, who signed it, and what the agent would do.
    fn examine(&self, signed: &Signed, now: Timestamp) -> Answer {
        let (payload, bytes) = match read(signed) {
            Ok(read) => read,
            Err(refusal) => return Answer { text: format!("Would not run: {refusal}.\n"), is_good: false },
        };
        let by = signers_of(signed, &bytes, &self.demands.signers, now);
        let mut text = described(&payload);
        for signer in &by {
            _ = writeln!(text, "Signed by {} with {}.", signer.principals, signer.key);
        }
        let verdict = self.verdict(&payload, &by, now);
        let once = if payload.repeat.is_some() { "once for the time at which it is due" } else { "once" };
        _ = match &verdict {
            Verdict::Unsigned(line) => {
                writeln!(
                    text,
                    "Would run as often as the service asks, and needs no signature: the policy says {line}."
                )
            }
            Verdict::Once => writeln!(text, "Would run, {once}."),
            Verdict::Unknown(why) => {
                writeln!(text, "Would run, {once}, unless it has run already, which is not known: {why}.")
            }
            Verdict::Refuse(why) => writeln!(text, "Would not run: {why}."),
        };
        if self.is_allowed(&payload) {
            text.push_str("Without a signature it runs as often as the service asks, because `allow` lists it.\n");
        }
        Answer { text, is_good: !matches!(verdict, Verdict::Refuse(_)) }
    }

    fn verdict(&self, payload: &Payload, by: &[&Signer], now: Timestamp) -> Verdict {
        let (rule, line) = rule(self.policy, payload.kind);
        match rule {
            Rule::Forbidden => return Verdict::Refuse(format!("the policy says {line}")),
            Rule::Nothing => return Verdict::Unsigned(line),
            Rule::Signatures => {}
        }
        let Demands { name, approvals, .. } = self.demands;
        let people = distinct(by);
        if !payload.servers.contains(name) {
            return Verdict::Refuse(format!("it is for other servers than `{name}`"));
        }
        let uses = match payload.expect_current(now).and_then(|()| payload.uses(now)) {
            Ok(uses) => uses,
            Err(refusal) => return Verdict::Refuse(refusal.to_string()),
        };
        if people == 0 {
            return Verdict::Refuse("no signature is by a signer whom this server knows".to_owned());
        }
        if people < *approvals {
            return Verdict::Refuse(format!("{people} of {approvals} different people have signed"));
        }
        let record = match self.record {
            Ok(record) => record,
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        // The agent takes the first way that is left, and says why the last one is not.
        let mut verdict = Verdict::Refuse("it cannot be used now".to_owned());
        for one in &uses {
            match record.expect_new(&one.key, one.not_before, one.expires_at) {
                Ok(()) => return Verdict::Once,
                Err(error) => verdict = Verdict::Refuse(error.to_string()),
            }
        }
        verdict
    }

    /// Whether the command runs without a signature.
    fn is_allowed(&self, payload: &Payload) -> bool {
        let is_signed = self.policy.commands.grade == Switch::Signed;
        let command = payload.command.as_deref().filter(|_| is_signed && payload.is_for_input(None));
        command.is_some_and(|command| self.demands.allowed.words_of(command).is_some())
    }
}

/// What the policy asks for, for this kind of thing, with its line.
fn rule(policy: &Policy, kind: Kind) -> (Rule, String) {
    let of_switch = |switch: Switch| match switch {
        Switch::Off => Rule::Forbidden,
        Switch::Signed => Rule::Signatures,
        Switch::On => Rule::Nothing,
    };
    let (rule, key, value) = match kind {
        Kind::Command => (of_switch(policy.commands.grade), "commands", serde_json::to_string(&policy.commands)),
        Kind::Terminal => (of_switch(policy.terminal.grade), "terminal", serde_json::to_string(&policy.terminal)),
        Kind::Container => {
            let rule = match policy.docker.grade {
                DockerAccess::Off | DockerAccess::Read => Rule::Forbidden,
                DockerAccess::Signed => Rule::Signatures,
                DockerAccess::Control => Rule::Nothing,
            };
            (rule, "docker", serde_json::to_string(&policy.docker))
        }
    };
    (rule, format!("{key} = {}", value.unwrap_or_default()))
}

fn described(payload: &Payload) -> String {
    // Names every field: a new one has to be described before this compiles.
    let Payload {
        v: _,
        servers,
        kind,
        command,
        action,
        stdin_sha256,
        timeout_seconds,
        repeat,
        not_before,
        expires_at,
        nonce: _,
    } = payload;
    let what =
        command.as_ref().or(action.as_ref()).map(|what| format!(": {}", what.escape_debug())).unwrap_or_default();
    let mut text = format!("A {kind} for {}{what}\n", servers.join(", ").escape_debug());
    if let Some(hash) = stdin_sha256 {
        _ = writeln!(text, "Standard input with SHA-256 {hash}.");
    }
    if let Some(seconds) = timeout_seconds {
        _ = writeln!(text, "For at most {seconds} s.");
    }
    if let Some(repeat) = repeat {
        let (cron, time_zone) = (repeat.cron.escape_debug(), repeat.time_zone.escape_debug());
        _ = writeln!(
            text,
            "Each time that `{cron}` is due in {time_zone}, from 30 s before to 5 minutes after, once each."
        );
    }
    _ = writeln!(text, "Holds from {not_before} until {expires_at}.");
    text
}
