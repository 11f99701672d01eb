//! Whether a signed payload permits what is asked.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::{Signature, Signed};

use crate::NAMESPACE;
use crate::payload::{self, Kind, Payload};
use crate::repeat::{EARLY_MS, LATE_MS};
use crate::signers::{Key, Signer, Signers, author_among};
use crate::ssh::SshSignature;
use crate::webauthn::{self, Assertion};

/// What the service asks a server to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    Command {
        command: &'a str,
        stdin: Option<&'a str>,
        timeout_seconds: u32,
    },
    Terminal,
    /// A verb and a container, such as `restart web`, and the time that the container gets to stop.
    Container {
        action: &'a str,
        timeout_seconds: Option<u32>,
    },
}

/// What a server demands of a signed payload.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// The name that the server has for signers.
    pub name: &'a str,
    pub signers: &'a Signers,
    /// How many different people have to sign.
    pub approvals: usize,
}

/// Why something may not run, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// There is no signature, or the payload is about something else than what is asked.
    NotSigned,
    /// No signature is by anybody whom the server knows.
    UnknownSigner,
    /// The payload names other servers.
    WrongServer,
    /// The payload does not hold now.
    Expired,
    /// The payload was used already.
    Replayed,
    /// Too few different people have signed.
    NotEnoughApprovals,
}

impl Reason {
    pub const ALL: [Self; 6] = [
        Self::NotSigned,
        Self::UnknownSigner,
        Self::WrongServer,
        Self::Expired,
        Self::Replayed,
        Self::NotEnoughApprovals,
    ];

    /// The reason of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason that the words of an agent's refusal give, for those who have the words alone.
    pub fn in_words(detail: &str) -> Option<Self> {
        let words = [
            ("signers have signed", Self::NotEnoughApprovals),
            ("no signature is by a signer", Self::UnknownSigner),
            ("the signed payload is for other servers", Self::WrongServer),
            ("and the server's time is", Self::Expired),
            ("this server knows only since", Self::Expired),
            ("this server has forgotten", Self::Expired),
            ("what was signed has run already", Self::Replayed),
            ("the signed payload has another", Self::NotSigned),
            ("the signed payload is for a ", Self::NotSigned),
        ];
        words.into_iter().find(|(words, _)| detail.contains(words)).map(|(_, reason)| reason)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::NotSigned => "not_signed",
            Self::UnknownSigner => "unknown_signer",
            Self::WrongServer => "wrong_server",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::NotEnoughApprovals => "not_enough_approvals",
        }
    }
}

/// A refusal, with the reason in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub detail: String,
}

impl Refusal {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Terms<'_> {
    /// Returns the payload if it permits what is asked, now and here. That its nonce is new is left to the caller, who keeps them.
    pub fn permit(&self, signed: &Signed, asked: Asked<'_>, now: Timestamp) -> Result<Payload, Refusal> {
        let (payload, bytes) = read(signed)?;
        if let Some(difference) = payload.difference(asked) {
            return Err(Refusal::new(Reason::NotSigned, difference));
        }
        if !payload.servers.iter().any(|name| name == self.name) {
            let detail = format!("the signed payload is for other servers than `{}`", self.name);
            return Err(Refusal::new(Reason::WrongServer, detail));
        }
        payload.expect_current(now)?;
        payload.uses(now)?;
        let people = distinct(&signers_of(signed, &bytes, self.signers, now));
        match people {
            0 => {
                let detail =
                    "no signature is by a signer whom this server knows: compare the key with its allowed signers";
                Err(Refusal::new(Reason::UnknownSigner, detail))
            }
            people if people < self.approvals => {
                let detail =
                    format!("{people} of {} signers have signed, who have to be different people", self.approvals);
                Err(Refusal::new(Reason::NotEnoughApprovals, detail))
            }
            _ => Ok(payload),
        }
    }
}

/// A way in which a payload may be used once, and what has to be remembered for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// What is used up.
    pub key: String,
    /// It could have been used from here on,
    pub not_before: Timestamp,
    /// and can be until here.
    pub expires_at: Timestamp,
}

/// Reads a payload from its base64, and returns its bytes, too.
pub fn read(signed: &Signed) -> Result<(Payload, Vec<u8>), Refusal> {
    let not_signed = |error: payload::PayloadError| Refusal::new(Reason::NotSigned, error.to_string());
    if !signed.is_bounded() {
        return Err(Refusal::new(
            Reason::NotSigned,
            "the payload has no signature, or more or longer ones than it may have",
        ));
    }
    let bytes = payload::decode(&signed.payload).map_err(not_signed)?;
    let payload = Payload::parse(&bytes).map_err(not_signed)?;
    Ok((payload, bytes))
}

/// The signers of these bytes whose keys are valid at a time: one for each signature that is theirs.
pub fn signers_of<'a>(signed: &Signed, bytes: &[u8], signers: &'a Signers, time: Timestamp) -> Vec<&'a Signer> {
    let valid: Vec<&Signer> = signers.all().iter().filter(|signer| signer.is_valid_at(time)).collect();
    signed.signatures.iter().filter_map(|signature| signer_of(signature, bytes, &valid)).collect()
}

/// How many different people these signers are.
pub fn distinct(signers: &[&Signer]) -> usize {
    let mut people: Vec<usize> = signers.iter().map(|signer| signer.person()).collect();
    people.sort_unstable();
    people.dedup();
    people.len()
}

fn signer_of<'a>(signature: &Signature, bytes: &[u8], valid: &[&'a Signer]) -> Option<&'a Signer> {
    match signature {
        Signature::Sshsig { signature } => {
            let signature = SshSignature::parse(signature).ok()?;
            author_among(valid.iter().copied(), &signature, NAMESPACE, bytes)
        }
        Signature::Webauthn { client_data_json, authenticator_data, signature } => {
            let decode = |text: &String| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
            let (client_data, authenticator_data) = (decode(client_data_json)?, decode(authenticator_data)?);
            let signature = decode(signature)?;
            let given =
                Assertion { client_data: &client_data, authenticator_data: &authenticator_data, signature: &signature };
            let challenge = digest(&SHA256, bytes);
            let is_by = |signer: &&&Signer| match &signer.key {
                Key::Passkey { cose, relying_party } => {
                    webauthn::verify(given, challenge.as_ref(), cose, relying_party).is_ok()
                }
                Key::Ssh { .. } => false,
            };
            valid.iter().find(is_by).copied()
        }
        Signature::Unknown => None,
    }
}

impl Payload {
    /// What of the payload is not what is asked, in words.
    pub fn difference(&self, asked: Asked<'_>) -> Option<String> {
        let other = |field: &str| Some(format!("the signed payload has another {field} than what is asked"));
        match (self.kind, asked) {
            (Kind::Command, Asked::Command { command, stdin, timeout_seconds }) => {
                if self.command.as_deref() != Some(command) {
                    return other("command");
                }
                if !self.is_for_input(stdin) {
                    return other("standard input");
                }
                if self.timeout_seconds == Some(timeout_seconds) { None } else { other("timeout_seconds") }
            }
            (Kind::Terminal, Asked::Terminal) => None,
            (Kind::Container, Asked::Container { action, timeout_seconds }) => {
                if self.action.as_deref() != Some(action) {
                    return other("action");
                }
                if self.timeout_seconds == timeout_seconds { None } else { other("timeout_seconds") }
            }
            (kind, _) => Some(format!("the signed payload is for a {kind}, which is not what is asked")),
        }
    }

    /// The ways in which a payload that holds may be used now. One that recurs can be used once for each time at which it is due:
    /// for the one that has come, and for the one that is about to.
    pub fn uses(&self, now: Timestamp) -> Result<Vec<Use>, Refusal> {
        let Self { nonce, repeat, not_before, expires_at, .. } = self;
        let Some(repeat) = repeat else {
            return Ok(vec![Use { key: nonce.clone(), not_before: *not_before, expires_at: *expires_at }]);
        };
        let recurrence = repeat.read().map_err(|error| Refusal::new(Reason::NotSigned, error.to_string()))?;
        let holds = |due: &Timestamp| (*not_before..*expires_at).contains(due);
        let of = |due: Timestamp| Use {
            key: format!("{nonce}@{}", due.as_millis() / 1_000),
            not_before: due.plus_millis(-EARLY_MS),
            expires_at: due.plus_millis(LATE_MS),
        };
        let uses: Vec<Use> = recurrence.about(now).into_iter().filter(holds).map(of).collect();
        if uses.is_empty() {
            let detail = format!(
                "the signed payload recurs (`{}` in {}) and is not due now: the server's time is {now}",
                repeat.cron, repeat.time_zone
            );
            return Err(Refusal::new(Reason::Expired, detail));
        }
        Ok(uses)
    }

    /// Refuses a payload that does not hold at this time.
    pub fn expect_current(&self, now: Timestamp) -> Result<(), Refusal> {
        if now < self.not_before {
            let detail =
                format!("the signed payload holds from {} on, and the server's time is {now}", self.not_before);
            return Err(Refusal::new(Reason::Expired, detail));
        }
        if now >= self.expires_at {
            let detail = format!("the signed payload held until {}, and the server's time is {now}", self.expires_at);
            return Err(Refusal::new(Reason::Expired, detail));
        }
        Ok(())
    }
}
