//! The options of commands that can be signed, and signing.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::MAX_SIGNATURES;
use uuid::Uuid;

use super::order::{Order, Subject};
use super::{Key, key_file, ssh_agent};
use crate::api::types::Server;
use crate::commands::prompt;
use crate::error::Failure;
use crate::output::text::visible;
use crate::output::{self, time::parse_duration};

/// From its begin to its end.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Of these options in the help.
pub const HEADING: &str = "Signatures";

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The only key of the ssh-agent, or the one of this fingerprint or comment.
    Agent(Option<String>),
    File(PathBuf),
}

impl FromStr for KeySource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "ssh-agent" => Ok(Self::Agent(None)),
            Some(("ssh-agent", "")) => Err("a fingerprint or a comment has to follow ssh-agent:".to_owned()),
            Some(("ssh-agent", name)) => Ok(Self::Agent(Some(name.to_owned()))),
            _ => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

/// How to sign, for servers that ask for signatures.
#[derive(Debug, Clone, Args)]
pub struct Signing {
    /// Sign with the key of this file, or of the ssh-agent: `ssh-agent`, or with its fingerprint or comment `ssh-agent:SHA256:...`
    /// (repeatable: servers may want several signers)
    #[arg(long = "sign", value_name = "KEYFILE|ssh-agent", help_heading = HEADING)]
    keys: Vec<KeySource>,
    /// What the server's policy calls it; defaults to what its agent reported, otherwise to its name here
    #[arg(long = "as", value_name = "NAME", requires = "keys", help_heading = HEADING)]
    name: Option<String>,
    /// How long after signing it may begin
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10m", requires = "keys",
        help_heading = HEADING)]
    valid_for: Duration,
    /// How far the clocks of servers may be behind this one: the signature begins as much earlier
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1m", requires = "keys",
        help_heading = HEADING)]
    clock_skew: Duration,
    /// Do not ask before signing for servers that the service has named
    #[arg(long, requires = "keys", help_heading = HEADING)]
    yes: bool,
}

/// The keys that sign what somebody else has written.
#[derive(Debug, Clone, Args)]
pub struct Keys {
    /// Sign with the key of this file, or of the ssh-agent: `ssh-agent`, or with its fingerprint or comment `ssh-agent:SHA256:...`
    #[arg(long = "sign", value_name = "KEYFILE|ssh-agent", required = true)]
    keys: Vec<KeySource>,
    /// Do not ask before signing
    #[arg(long)]
    yes: bool,
}

impl Keys {
    /// Shows what will be signed, and signs it with each key. Returns the signatures as the API takes them.
    pub async fn sign(&self, order: &Order, question: &str) -> Result<Vec<Value>, Failure> {
        order.expect_single_command()?;
        let keys = open(&self.keys).await?;
        show(order, &keys);
        if !self.yes {
            prompt::confirm(question).await?;
        }
        signatures(order, &keys).await
    }
}

/// What was signed, and by which keys.
#[derive(Debug, Default)]
pub struct Signed {
    /// As the API takes it; none without `--sign`.
    pub value: Option<Value>,
    /// The public keys, as a file of allowed signers has them.
    pub keys: Vec<String>,
}

/// The servers of an order.
pub struct Servers<'a> {
    pub servers: &'a [Server],
    /// What the user called the server. All other names are the service's.
    pub typed: Option<&'a str>,
}

impl Signing {
    /// Whether anything is to be signed.
    pub fn is_wanted(&self) -> bool {
        !self.keys.is_empty()
    }

    /// What is wrong before anything is asked.
    pub fn check(&self, has_many_servers: bool) -> Result<(), Failure> {
        if self.keys.len() > MAX_SIGNATURES {
            return Err(Failure::usage(format!("at most {MAX_SIGNATURES} keys can sign")));
        }
        if self.valid_for.is_zero() || self.valid_for.saturating_add(self.clock_skew) > LONGEST {
            return Err(Failure::usage("--valid-for has to be at least 1s, and with --clock-skew at most 24h"));
        }
        if has_many_servers && self.name.is_some() {
            return Err(Failure::usage("--as is for one server: with --tag, servers are named as here"));
        }
        Ok(())
    }

    /// Shows what will be signed, and signs it with each key.
    pub async fn sign(&self, servers: &Servers<'_>, subject: Subject<'_>) -> Result<Signed, Failure> {
        if !self.is_wanted() {
            return Ok(Signed::default());
        }
        let names = self.names(servers)?;
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let now = Timestamp::now();
        let times = (now.plus_millis(-millis(self.clock_skew)), now.plus_millis(millis(self.valid_for)));
        let nonce = Uuid::new_v4().simple().to_string() + &Uuid::new_v4().simple().to_string();
        let order = Order::new(&names, subject, times, &nonce)?;
        let keys = open(&self.keys).await?;
        show(&order, &keys);
        if !self.yes && self.name.is_none() && servers.typed.is_none_or(|typed| names != [typed]) {
            // A service that somebody has taken over can name other servers.
            prompt::confirm("The service named the servers. Sign for them?").await?;
        }
        let signatures = signatures(&order, &keys).await?;
        let value = json!({"payload": BASE64_STANDARD.encode(&order.bytes), "signatures": signatures});
        Ok(Signed { value: Some(value), keys: keys.iter().map(Key::line).collect() })
    }

    fn names(&self, servers: &Servers<'_>) -> Result<Vec<String>, Failure> {
        if let Some(name) = &self.name {
            return Ok(vec![name.clone()]);
        }
        let names: Vec<String> = servers.servers.iter().map(name_of).collect();
        match names.iter().find(|name| visible(name) != **name) {
            // Nobody could see what they sign.
            Some(name) => Err(Failure::usage(format!(
                "the name {:?} cannot be shown as it is: sign for this server alone, with --as",
                visible(name)
            ))),
            None => Ok(names),
        }
    }
}

/// As its policy has it, if the service knows that; otherwise its name here. Both are the service's word.
fn name_of(server: &Server) -> String {
    let demands = server.agent.as_ref().and_then(|agent| agent.signing.as_ref());
    demands.map_or(&server.name, |demands| &demands.name).clone()
}

impl KeySource {
    async fn open(&self) -> Result<Key, Failure> {
        match self {
            Self::Agent(wanted) => ssh_agent::choose(wanted.as_deref()).await,
            Self::File(path) => key_file::open(path).await,
        }
    }
}

async fn open(sources: &[KeySource]) -> Result<Vec<Key>, Failure> {
    let mut keys = Vec::new();
    for source in sources {
        keys.push(source.open().await?);
    }
    Ok(keys)
}

async fn signatures(order: &Order, keys: &[Key]) -> Result<Vec<Value>, Failure> {
    let mut signatures = Vec::new();
    for key in keys {
        signatures.push(json!({"type": "sshsig", "signature": key.sign(&order.bytes).await?}));
    }
    Ok(signatures)
}

fn show(order: &Order, keys: &[Key]) {
    output::note("Signing:");
    for line in order.lines() {
        output::note(&line);
    }
    for key in keys {
        output::note(&format!("  key        {}", key.words()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_files_or_in_the_agent() {
        let parse = |text: &str| text.parse::<KeySource>();

        assert_eq!(parse("ssh-agent"), Ok(KeySource::Agent(None)));
        assert_eq!(parse("ssh-agent:SHA256:ab"), Ok(KeySource::Agent(Some("SHA256:ab".to_owned()))));
        assert_eq!(parse("./ssh-agent"), Ok(KeySource::File("./ssh-agent".into())));
        assert!(parse("ssh-agent:").is_err());
    }

    #[test]
    fn a_server_is_called_what_its_policy_calls_it() {
        let mut value = json!({"id": "019aa0b8-7d1c-7e3a-9c61-0d5f8f3f2b10", "name": "web-1", "host": "192.0.2.1", "status": "online",
            "agent": {"version": "1", "hostname": "web", "os": "Debian", "kernel": "6", "arch": "x86_64", "cpu_count": 2}});
        let name = |value: &Value| name_of(&serde_json::from_value(value.clone()).unwrap());

        assert_eq!(name(&value), "web-1");
        value["agent"]["signing"] = json!({"name": "web-1.example.com", "approvals": 2});
        assert_eq!(name(&value), "web-1.example.com");
    }
}
