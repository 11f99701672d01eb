//! Signed commands that wait until enough people have signed them.

use clap::{Args, Subcommand};
use serde_json::Value;
use signalbox_signing::payload;
use uuid::Uuid;

use super::{Call, prompt};
use crate::api::types::Approval;
use crate::api::{parsed, text_of};
use crate::error::Failure;
use crate::output::table::Table;
use crate::output::text::{clean, shortened};
use crate::output::time::local;
use crate::output::{self, Format};
use crate::signing::options::Keys;
use crate::signing::order::Order;

/// List, sign and withdraw commands that wait for signatures
///
/// `exec --sign KEYFILE --await-approval` makes one. Those who may run commands on all its servers see it, and the last signature that
/// is missing runs it.
#[derive(Debug, Args)]
pub struct Approvals {
    #[command(subcommand)]
    command: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the commands that wait (the default)
    Ls {
        /// Also those that wait no more
        #[arg(long)]
        all: bool,
    },
    /// Show a command with all that is signed
    Show {
        /// The id, or the end of it that `approvals` shows
        #[arg(value_name = "APPROVAL")]
        approval: String,
    },
    /// Sign a command that waits
    Sign {
        /// The id, or the end of it that `approvals` shows
        #[arg(value_name = "APPROVAL")]
        approval: String,
        #[command(flatten)]
        keys: Keys,
    },
    /// Withdraw a command that waits
    Withdraw {
        /// The id, or the end of it that `approvals` shows
        #[arg(value_name = "APPROVAL")]
        approval: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Ids begin with their time, so their ends differ. As many characters are shown.
const SHORT_ID: usize = 8;
/// Of a command in a list.
const COMMAND_COLUMNS: usize = 60;
pub const WAITS: &str = "awaiting_approval";

impl Approvals {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        match self.command.unwrap_or(Verb::Ls { all: false }) {
            Verb::Ls { all } => list(call, all).await,
            Verb::Show { approval } => show(call, &approval).await,
            Verb::Sign { approval, keys } => sign(call, &approval, &keys).await,
            Verb::Withdraw { approval, yes } => withdraw(call, &approval, yes).await,
        }
    }
}

/// The end of an id, as people write it.
pub fn short(id: Uuid) -> String {
    let text = id.simple().to_string();
    text.get(text.len().saturating_sub(SHORT_ID)..).unwrap_or_default().to_owned()
}

async fn list(call: &Call, is_all: bool) -> Result<(), Failure> {
    let query: &[_] = if is_all { &[] } else { &[("status", WAITS.to_owned())] };
    let values = call.api.list("/commands/approvals", query).await?;
    let mut table = Table::new(["COMMAND", "ASKED BY", "STATUS", "SIGNED", "EXPIRES", "ID"]);
    for value in &values {
        let approval: Approval = parsed(value.clone())?;
        let signed = format!("{} of {}", approval.signatures.len(), approval.needed);
        table.row([
            shortened(&approval.command.replace('\n', " "), COMMAND_COLUMNS).into_owned().into(),
            approval.username.into(),
            approval.status.replace('_', " ").into(),
            signed.into(),
            local(approval.expires_at).into(),
            short(approval.id).into(),
        ]);
    }
    call.out.list(&table, &values)
}

async fn find(call: &Call, wanted: &str) -> Result<(Value, Approval), Failure> {
    let id = match wanted.parse::<Uuid>() {
        Ok(id) => id,
        Err(_) => by_end(&call.api.list("/commands/approvals", &[]).await?, wanted)?,
    };
    let value = call.api.get(&format!("/commands/approvals/{id}"), &[]).await?;
    Ok((value.clone(), parsed(value)?))
}

fn by_end(all: &[Value], wanted: &str) -> Result<Uuid, Failure> {
    let ending = wanted.to_lowercase();
    let ids =
        all.iter().map(|approval| text_of(approval, "id")).filter(|id| !ending.is_empty() && id.ends_with(&ending));
    let found: Vec<Uuid> = ids.filter_map(|id| id.parse().ok()).collect();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(Failure::failed(format!("no command for signatures has an id that ends with {wanted:?}"))),
        _ => Err(Failure::usage(format!(
            "{} commands have an id that ends with {wanted:?}: write the whole id",
            found.len()
        ))),
    }
}

async fn show(call: &Call, wanted: &str) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let (value, approval) = find(call, wanted).await?;
    if call.out.format == Format::Json {
        return call.out.json(&value);
    }
    call.out.line(&format!("{} asks, and the command {}.", clean(&approval.username), approval.words()))?;
    if approval.status == WAITS {
        let order = order_of(&approval)?;
        for line in order.lines() {
            call.out.line(&line)?;
        }
        if let Err(refusal) = order.expect_single_command() {
            output::complain(&refusal.to_string());
        }
    } else {
        // The service forgets the input with the wait, so what was signed cannot be checked.
        call.out.line(&format!("  command    {}", clean(&approval.command)))?;
    }
    for signature in &approval.signatures {
        call.out.line(&format!("  signed     by {} of {}", clean(&signature.signer), clean(&signature.username)))?;
    }
    Ok(())
}

/// What is signed, from the bytes themselves: all else is the service's word.
fn order_of(approval: &Approval) -> Result<Order, Failure> {
    let bytes = payload::decode(approval.payload.as_deref().unwrap_or_default());
    Order::read(bytes.map_err(|error| Failure::failed(error.to_string()))?, approval.stdin.as_deref())
}

async fn sign(call: &Call, wanted: &str, keys: &Keys) -> Result<(), Failure> {
    call.out.expect_no_csv()?;
    let (_, approval) = find(call, wanted).await?;
    if approval.status != WAITS {
        return Err(Failure::failed(format!("the command {}", approval.words())));
    }
    let order = order_of(&approval)?;
    output::note(&format!("{} asks for signatures, says the service.", clean(&approval.username)));
    let (mut last, mut signed) = (Value::Null, approval);
    for signature in keys.sign(&order, "Sign this?").await? {
        let answer = call.api.post(&format!("/commands/approvals/{}/signatures", signed.id), &signature).await;
        last = answer.map_err(|failure| not_added(failure, signed.id))?;
        signed = parsed(last.clone())?;
        if signed.status != WAITS || signed.missing == 0 {
            // The signature completed it: the service takes no more, at once or when it starts.
            break;
        }
    }
    call.out.done(&format!("Signed. The command {}.", signed.words()), &last)
}

/// Why a signature was not added, as far as that is known: the answer may have got lost.
fn not_added(failure: Failure, id: Uuid) -> Failure {
    if matches!(failure, Failure::NotSent(_)) {
        failure.and("the signature was not added")
    } else if failure.is_passing() {
        failure.and(&format!(
            "it is not known whether the signature was added, and with it the command started: \
             see `signalboxctl approvals show {}`",
            short(id)
        ))
    } else {
        failure
    }
}

async fn withdraw(call: &Call, wanted: &str, is_sure: bool) -> Result<(), Failure> {
    let (_, approval) = find(call, wanted).await?;
    if !is_sure {
        let command = shortened(&clean(&approval.command), COMMAND_COLUMNS).into_owned();
        prompt::confirm(&format!("Withdraw {command:?} of {}?", clean(&approval.username))).await?;
    }
    let answer = call.api.delete(&format!("/commands/approvals/{}", approval.id)).await?;
    call.out.done("Withdrawn.", &answer)
}

impl Approval {
    /// What it is doing, after "the command".
    pub fn words(&self) -> String {
        match (self.status.as_str(), self.batch_id) {
            // The service starts it when its own clock says so.
            (WAITS, _) if self.missing == 0 => match self.not_before {
                Some(at) => {
                    format!("has all its signatures, and runs when the clock of the service has reached {}", local(at))
                }
                None => "has all its signatures, and runs soon".to_owned(),
            },
            (WAITS, _) => {
                let what = if self.missing == 1 { "signature" } else { "signatures" };
                let waits = format!("waits for {} more {what}, until {}", self.missing, local(self.expires_at));
                match &self.refused_reason {
                    Some(reason) => format!("{waits}: the agents refused those that there are ({})", clean(reason)),
                    None => waits,
                }
            }
            (_, Some(id)) => format!("runs as the batch {id}, or has run"),
            (status, None) => format!("waits no more: it is {}", clean(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_is_found_by_its_end() {
        let ids = ["019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b20"];
        let all = ids.map(|id| json!({"id": id}));

        assert_eq!(by_end(&all, "8F3F2B10").unwrap().to_string(), ids[0]);
        assert_eq!(short(ids[1].parse().unwrap()), "8f3f2b20");
        assert!(by_end(&all, "0").unwrap_err().to_string().contains("2 commands"));
        for wanted in ["", "77"] {
            assert!(by_end(&all, wanted).unwrap_err().to_string().contains("no command"), "{wanted:?}");
        }
    }

    #[test]
    fn a_command_with_all_its_signatures_waits_for_its_time_alone() {
        let words = |missing: u32| {
            let value = json!({"id": Uuid::nil(), "status": WAITS, "command": "true", "username": "ada", "needed": 1,
                "missing": missing, "signatures": [], "not_before": "2026-11-26T10:00:00Z",
                "expires_at": "2026-11-26T10:10:00Z"});
            serde_json::from_value::<Approval>(value).unwrap().words()
        };

        let begin = "has all its signatures, and runs when the clock of the service has reached 2026-";
        assert!(words(0).starts_with(begin));
        assert!(words(1).starts_with("waits for 1 more signature, until 2026-"));
        assert!(words(2).starts_with("waits for 2 more signatures, until 2026-"));
    }

    #[test]
    fn a_signature_whose_answer_is_missing_may_have_started_the_command() {
        let words = |failure| not_added(failure, Uuid::nil()).to_string();

        assert_eq!(words(Failure::NotSent("no".to_owned())), "no; the signature was not added");
        let unknown = words(Failure::Unreachable("no".to_owned()));
        assert!(unknown.contains("; it is not known whether the signature was added, and with it the command started"));
        assert!(unknown.ends_with(": see `signalboxctl approvals show 00000000`"), "{unknown}");
        assert_eq!(words(Failure::failed("no")), "no");
    }
}
