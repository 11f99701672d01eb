//! The people whose signatures count: OpenSSH's format of allowed signers (ssh-keygen(1), ALLOWED SIGNERS), and passkeys.
//!
//! ```text
//! # principals   options                       type         key ...
//! ada@example.org namespaces="signalbox-*"     ssh-ed25519  AAAAC3Nza... laptop
//! ben@example.org valid-before="20270101Z"     sk-ssh-ed25519@openssh.com AAAAGnNr...
//! ada@example.org                              sk-webauthn  pQECAyYgASFYI... box.example.org
//! ```
//!
//! One line that cannot be read refuses the whole file: a signer who is missing by mistake is noticed, but a restriction that
//! is missing by mistake is not.

mod line;
mod time;

use std::collections::HashMap;

use signalbox_protocol::Timestamp;

use crate::NAMESPACE;
use crate::ssh::{SshError, SshSignature};
use crate::webauthn::WebauthnError;
pub use line::Key;

/// Longer files are refused.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// One line: a key and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The names of the person, separated by commas.
    pub principals: String,
    pub key: Key,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
    /// Equal for lines that share a name or a key.
    person: usize,
}

/// All lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signers {
    all: Vec<Signer>,
    people: usize,
}

/// Why a file of signers is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignersError {
    #[error("the file is longer than 1 MiB")]
    TooLong,
    #[error("line {line}: {fault}")]
    Line { line: usize, fault: LineFault },
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("a line needs principals, a type of key and a key")]
    Incomplete,
    #[error("a line has a control character")]
    ControlCharacter,
    #[error("the quotes are not closed")]
    OpenQuotes,
    #[error("`{0}` is no name: patterns are not supported, because signers are counted by name")]
    Pattern(String),
    #[error("`cert-authority` is not supported: list the keys of the people themselves")]
    CertAuthority,
    #[error("unknown option `{0}`")]
    UnknownOption(String),
    #[error("`{0}` is given twice")]
    RepeatedOption(&'static str),
    #[error("`{0}` is no time: write YYYYMMDD[HHMM[SS]][Z]")]
    Time(String),
    #[error("unknown type of key `{0}`")]
    UnknownType(String),
    #[error("the key is not base64")]
    NotBase64,
    #[error("the key is of another type than the line says")]
    OtherType,
    #[error("the key: {0}")]
    Ssh(SshError),
    #[error("the passkey: {0}")]
    Passkey(WebauthnError),
    #[error("a passkey needs its relying party, the host name of the service, after the key")]
    NoRelyingParty,
}

impl Signer {
    /// Whether its signatures count at this time.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        self.valid_after.is_none_or(|after| after <= time) && self.valid_before.is_none_or(|before| time < before)
    }

    /// Which person it is: equal for lines that share a name or a key.
    pub fn person(&self) -> usize {
        self.person
    }
}

/// Who of these signed `message` by SSH for this purpose.
pub(crate) fn author_among<'a>(
    mut signers: impl Iterator<Item = &'a Signer>,
    signature: &SshSignature,
    namespace: &str,
    message: &[u8],
) -> Option<&'a Signer> {
    let signer =
        signers.find(|signer| matches!(&signer.key, Key::Ssh { bytes, .. } if *bytes == signature.public_key()))?;
    signature.verify(namespace, message).ok().map(|()| signer)
}

impl Signers {
    /// Reads the text of a file. Lines whose `namespaces` exclude commands are left out.
    pub fn parse(text: &str) -> Result<Self, SignersError> {
        Self::parse_for(text, NAMESPACE)
    }

    /// Reads the text of a file of those who sign for another purpose. Lines whose `namespaces` exclude it are left out.
    pub fn parse_for(text: &str, namespace: &str) -> Result<Self, SignersError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(SignersError::TooLong);
        }
        let mut all = Vec::new();
        for (number, text) in text.lines().enumerate() {
            let parsed =
                line::parse(text, namespace).map_err(|fault| SignersError::Line { line: number + 1, fault })?;
            all.extend(parsed);
        }
        let people = tell_apart(&mut all);
        Ok(Self { all, people })
    }

    pub fn all(&self) -> &[Signer] {
        &self.all
    }

    /// Who signed `message` by SSH for this purpose, with a key that is valid at this time.
    pub fn author_of(
        &self,
        signature: &SshSignature,
        namespace: &str,
        message: &[u8],
        time: Timestamp,
    ) -> Option<&Signer> {
        author_among(self.all.iter().filter(|signer| signer.is_valid_at(time)), signature, namespace, message)
    }

    /// How many different people there are.
    pub fn people(&self) -> usize {
        self.people
    }
}

/// Numbers the people. Lines that share a name or a key are the same person, also through others: nobody can approve
/// their own command with a second line. Returns how many there are.
fn tell_apart(all: &mut [Signer]) -> usize {
    let mut groups = Groups::default();
    let mut known: HashMap<String, usize> = HashMap::new();
    for signer in all.iter_mut() {
        signer.person = groups.add();
        let names = signer.principals.split(',').map(|name| format!("name {name}"));
        for mark in names.chain([format!("key {}", signer.key)]) {
            let first = *known.entry(mark).or_insert(signer.person);
            groups.join(first, signer.person);
        }
    }
    let mut people = Vec::new();
    for signer in all.iter_mut() {
        let group = groups.of(signer.person);
        signer.person = people.iter().position(|known| *known == group).unwrap_or(people.len());
        if signer.person == people.len() {
            people.push(group);
        }
    }
    people.len()
}

/// Disjoint sets of lines, each represented by its first line.
#[derive(Default)]
struct Groups(Vec<usize>);

impl Groups {
    fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn of(&self, mut line: usize) -> usize {
        while let Some(before) = self.0.get(line).filter(|before| **before != line) {
            line = *before;
        }
        line
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        if let Some(root) = self.0.get_mut(one.max(other)) {
            *root = one.min(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE+jtV7q6aV3JRpFDVVOcBpYeGFUZM4Oq0FQjKjp6rNs";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPg9vA6UDyfzQEnoBbn2f5gjbe2bDhHmAE6pQz4q0qSE";

    fn parse(text: &str) -> Result<Signers, SignersError> {
        Signers::parse(text)
    }

    fn fault(line: &str) -> LineFault {
        match parse(&format!("# first\n\n{line}")) {
            Err(SignersError::Line { line: 3, fault }) => fault,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_have_principals_options_a_key_and_a_comment() {
        let text = format!(
            "# those on duty\n\n  ada@example.org {ED25519} laptop of ada\n\
             ben,ben@example.org valid-before=\"20270101Z\",namespaces=\"git, signalbox-*\" {OTHER}\r\n"
        );

        let signers = parse(&text).unwrap();

        let principals: Vec<&str> = signers.all().iter().map(|signer| signer.principals.as_str()).collect();
        assert_eq!(principals, ["ada@example.org", "ben,ben@example.org"]);
        assert_eq!(signers.people(), 2);
        let at = |text| Timestamp::parse(text).unwrap();
        assert!(signers.all()[1].is_valid_at(at("2026-12-31T23:59:59.999Z")));
        assert!(!signers.all()[1].is_valid_at(at("2027-01-01T00:00:00Z")));
    }

    #[test]
    fn a_key_for_another_purpose_is_left_out() {
        for namespaces in ["git", "git,file", "signalbox-*,!signalbox-command-v1", ""] {
            let signers = parse(&format!("ada namespaces=\"{namespaces}\" {ED25519}")).unwrap();
            assert_eq!(signers.all(), [], "{namespaces}");
        }
        for namespaces in ["signalbox-command-v1", "git,signalbox-command-v?", "*"] {
            let signers = parse(&format!("ada namespaces=\"{namespaces}\" {ED25519}")).unwrap();
            assert_eq!(signers.all().len(), 1, "{namespaces}");
        }
    }

    #[test]
    fn a_file_for_another_purpose_has_the_keys_of_that_purpose() {
        let text = format!("ada {ED25519}\nben namespaces=\"signalbox-command-v1\" {OTHER}\n");
        let signers = Signers::parse_for(&text, "signalbox-agent-release-v1").unwrap();

        let principals: Vec<&str> = signers.all().iter().map(|signer| signer.principals.as_str()).collect();
        assert_eq!(principals, ["ada"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_with_what_is_wrong() {
        let cases = [
            ("ada".to_owned(), LineFault::Incomplete),
            ("ada ssh-ed25519".to_owned(), LineFault::Incomplete),
            (format!("a\u{1b}[2Jda {ED25519}"), LineFault::ControlCharacter),
            (format!("\"ada {ED25519}"), LineFault::OpenQuotes),
            (format!("*@example.org {ED25519}"), LineFault::Pattern("*@example.org".to_owned())),
            (format!("ada,!eve {ED25519}"), LineFault::Pattern("!eve".to_owned())),
            (format!("ada,, {ED25519}"), LineFault::Pattern(String::new())),
            (format!("ada cert-authority {ED25519}"), LineFault::CertAuthority),
            (format!("ada CERT-AUTHORITY,namespaces=\"git\" {ED25519}"), LineFault::CertAuthority),
            (format!("ada no-touch-required {ED25519}"), LineFault::UnknownOption("no-touch-required".to_owned())),
            (format!("ada namespaces=\"a\",namespaces=\"b\" {ED25519}"), LineFault::RepeatedOption("namespaces")),
            (format!("ada valid-after=\"tomorrow\" {ED25519}"), LineFault::Time("tomorrow".to_owned())),
            (format!("ada valid-after=\"20261301Z\" {ED25519}"), LineFault::Time("20261301Z".to_owned())),
            ("ada ssh-dss AAAA".to_owned(), LineFault::UnknownOption("ssh-dss".to_owned())),
            ("ada ssh-ed25519 AAA".to_owned(), LineFault::NotBase64),
            (ED25519.replace("ssh-ed25519", "ada ssh-rsa"), LineFault::OtherType),
            ("ada ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAAA==".to_owned(), LineFault::Ssh(SshError::Malformed)),
            ("ada sk-webauthn oA".to_owned(), LineFault::NoRelyingParty),
            ("ada sk-webauthn oA box.example.org".to_owned(), LineFault::Passkey(WebauthnError::UnknownKey)),
        ];

        for (line, expected) in cases {
            assert_eq!(fault(&line), expected, "{line}");
        }
        assert_eq!(parse(&" ".repeat(MAX_FILE_BYTES + 1)), Err(SignersError::TooLong));
    }

    #[test]
    fn lines_that_share_a_name_or_a_key_are_one_person() {
        let two_names = format!("ada {ED25519}\nben {ED25519}\n");
        let two_keys = format!("ada {ED25519}\nada {OTHER}\n");
        let through_another = format!("ada {ED25519}\nben {OTHER}\nada,ben {OTHER}\n");
        let two_people = format!("ada {ED25519}\nben {OTHER}\n");

        assert_eq!(parse(&two_names).unwrap().people(), 1);
        assert_eq!(parse(&two_keys).unwrap().people(), 1);
        assert_eq!(parse(&through_another).unwrap().people(), 1);
        assert_eq!(parse(&two_people).unwrap().people(), 2);
    }
}
