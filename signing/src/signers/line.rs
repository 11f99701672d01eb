//! One line of a file of signers.

use std::fmt;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use signalbox_protocol::Timestamp;

use super::time::{Bound, parse_time};
use super::{LineFault, Signer};
use crate::ssh::{PublicKey, key_type_is_known};
use crate::webauthn::key as passkey;

/// The type of key of a passkey.
const PASSKEY: &str = "sk-webauthn";

/// Whose signatures a line accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Ssh {
        /// Such as `ssh-ed25519`.
        kind: String,
        /// The key as SSH encodes it.
        bytes: Vec<u8>,
    },
    Passkey {
        /// The public key in COSE form.
        cose: Vec<u8>,
        /// The host name that the passkey is bound to.
        relying_party: String,
    },
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh { kind, bytes } => write!(f, "{kind} {}", BASE64_STANDARD.encode(bytes)),
            Self::Passkey { cose, relying_party } => {
                write!(f, "{PASSKEY} {} {relying_party}", BASE64_URL_SAFE_NO_PAD.encode(cose))
            }
        }
    }
}

#[derive(Default)]
struct Options {
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
}

/// Reads a line. None for a blank line, a comment, and a key whose namespaces exclude this one.
pub fn parse(line: &str, namespace: &str) -> Result<Option<Signer>, LineFault> {
    let line = line.trim_matches([' ', '\t', '\r']);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    // What shows the line is often a terminal.
    if line.contains(|character: char| character.is_control() && character != '\t') {
        return Err(LineFault::ControlCharacter);
    }
    let (principals, rest) = word(line)?;
    let principals = principals.replace('"', "");
    if let Some(name) = principals.split(',').find(|name| name.is_empty() || name.contains(['*', '?', '!'])) {
        return Err(LineFault::Pattern(name.to_owned()));
    }
    let (first, after) = word(rest)?;
    let (options, kind, rest) = if is_kind(first) {
        (Options::default(), first, after)
    } else {
        let options = Options::parse(first)?;
        let (kind, after) = word(after)?;
        (options, kind, after)
    };
    let key = key(kind, rest)?;
    let is_meant = options.namespaces.as_deref().is_none_or(|patterns| matches_list(patterns, namespace));
    let Options { valid_after, valid_before, .. } = options;
    Ok(is_meant.then_some(Signer { principals, key, valid_after, valid_before, person: 0 }))
}

fn is_kind(word: &str) -> bool {
    word == PASSKEY || key_type_is_known(word)
}

fn key(kind: &str, rest: &str) -> Result<Key, LineFault> {
    if !is_kind(kind) {
        return Err(LineFault::UnknownType(kind.to_owned()));
    }
    let (text, rest) = word(rest)?;
    if kind == PASSKEY {
        let (relying_party, _) = word(rest).map_err(|_| LineFault::NoRelyingParty)?;
        let cose = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| LineFault::NotBase64)?;
        passkey::check(&cose).map_err(LineFault::Passkey)?;
        return Ok(Key::Passkey { cose, relying_party: relying_party.to_ascii_lowercase() });
    }
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| LineFault::NotBase64)?;
    let key = PublicKey::parse(&bytes);
    // The name is the first thing in a key: whatever else is wrong, a line about another type is a mix-up.
    if !bytes.get(4..).is_some_and(|after| after.starts_with(kind.as_bytes())) {
        return Err(LineFault::OtherType);
    }
    let name = key.map_err(LineFault::Ssh)?.name();
    if name != kind {
        return Err(LineFault::OtherType);
    }
    Ok(Key::Ssh { kind: kind.to_owned(), bytes })
}

/// Splits off the first word. Blanks between quotes do not end it.
fn word(text: &str) -> Result<(&str, &str), LineFault> {
    let text = text.trim_start_matches([' ', '\t']);
    let mut is_quoted = false;
    let end = text.find(|character| {
        is_quoted ^= character == '"';
        !is_quoted && matches!(character, ' ' | '\t')
    });
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    match (is_quoted, word.is_empty()) {
        (true, _) => Err(LineFault::OpenQuotes),
        (false, true) => Err(LineFault::Incomplete),
        (false, false) => Ok((word, rest)),
    }
}

impl Options {
    fn parse(text: &str) -> Result<Self, LineFault> {
        let mut options = Self::default();
        let mut is_quoted = false;
        let parts = text.split(|character| {
            is_quoted ^= character == '"';
            !is_quoted && character == ','
        });
        for part in parts {
            options.add(part)?;
        }
        Ok(options)
    }

    fn add(&mut self, part: &str) -> Result<(), LineFault> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let unknown = || LineFault::UnknownOption(part.to_owned());
        let time = |bound| {
            let value = quoted.ok_or_else(unknown)?;
            parse_time(value, bound).map(Some).ok_or_else(|| LineFault::Time(value.to_owned()))
        };
        match name.to_ascii_lowercase().as_str() {
            "cert-authority" => Err(LineFault::CertAuthority),
            "namespaces" => once(&mut self.namespaces, Some(quoted.ok_or_else(unknown)?.to_owned()), "namespaces"),
            "valid-after" => once(&mut self.valid_after, time(Bound::Start)?, "valid-after"),
            "valid-before" => once(&mut self.valid_before, time(Bound::End)?, "valid-before"),
            _ => Err(unknown()),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: Option<T>, name: &'static str) -> Result<(), LineFault> {
    match place.replace(value.ok_or(LineFault::Incomplete)?) {
        Some(_) => Err(LineFault::RepeatedOption(name)),
        None => Ok(()),
    }
}

/// Whether a list of patterns has the text and does not exclude it.
fn matches_list(patterns: &str, text: &str) -> bool {
    let is_match = |pattern: &str| matches(pattern.as_bytes(), text.as_bytes());
    let mut patterns = patterns.split(',').map(str::trim);
    let (mut is_in, mut is_out) = (false, false);
    patterns.by_ref().for_each(|pattern| match pattern.strip_prefix('!') {
        Some(excluded) => is_out |= is_match(excluded),
        None => is_in |= is_match(pattern),
    });
    is_in && !is_out
}

/// Whether a pattern with `*` and `?` is the whole text.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the text may continue after each character of the pattern: linear in both lengths.
    let mut reached = vec![false; text.len() + 1];
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    for wanted in pattern {
        let mut next = vec![false; reached.len()];
        let mut is_open = false;
        for (at, place) in next.iter_mut().enumerate() {
            is_open |= reached.get(at).copied().unwrap_or_default();
            let before = at.checked_sub(1);
            let was_reached = before.and_then(|before| reached.get(before)).copied().unwrap_or_default();
            let character = before.and_then(|before| text.get(before));
            *place = match wanted {
                b'*' => is_open,
                b'?' => was_reached,
                other => was_reached && character == Some(other),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_openssh() {
        let yes =
            [("*", "a"), ("*", ""), ("a*c", "abbc"), ("a?c", "abc"), ("*b*", "abc"), ("abc", "abc"), ("a**c", "ac")];
        let no = [("?", ""), ("a?c", "ac"), ("abc", "abcd"), ("a*c", "abcd"), ("", "a"), ("ab", "b")];

        assert!(yes.iter().all(|(pattern, text)| matches(pattern.as_bytes(), text.as_bytes())));
        assert!(!no.iter().any(|(pattern, text)| matches(pattern.as_bytes(), text.as_bytes())));
    }
}
