//! The chain of hashes, which reveals entries that were changed, moved, removed or inserted later.
//!
//! Each hash covers all fields of an entry and the previous hash. A field is its length followed by its bytes, so that no byte
//! can move from one field to the next. An attacker who can write the whole table can recompute the chain; a hash that was
//! recorded elsewhere reveals that, see [`Expectation`].

#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

/// The length of a hash in bytes.
pub const HASH_LENGTH: usize = 32;

/// Takes the place of the hash before the first entry.
pub const BEGINNING: [u8; HASH_LENGTH] = [0; HASH_LENGTH];

/// Nothing else that is hashed begins like this. Another encoding needs another number.
const DOMAIN: &[u8] = b"signalbox audit entry 1";

/// The length that stands for an absent field.
const ABSENT: u64 = u64::MAX;

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number, from 1 without gaps.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    /// The user whose property it concerns.
    pub owner_id: Uuid,
    /// The user who did it; none for the service and its operator, and where nobody has proved who they are.
    pub user_id: Option<Uuid>,
    /// The actor's name at that time.
    pub username: String,
    /// The sign-in that the user used.
    pub login_id: Option<Uuid>,
    /// The other end of the connection; empty when there was none.
    pub address: String,
    /// What was done: one of [`super::action`].
    pub action: String,
    /// The server that it concerns.
    pub server_id: Option<Uuid>,
    /// The server's name at that time.
    pub server_name: Option<String>,
    /// What it was done to, such as the id of a key.
    pub target: Option<String>,
    /// An [`Outcome`](super::Outcome), as text.
    pub outcome: String,
    /// More about it, as a JSON object.
    pub detail: String,
    /// The entry's hash.
    pub hash: Vec<u8>,
}

impl Record {
    /// Whether the operator did it, with a command on the service's own machine.
    pub fn is_of_command_line(&self) -> bool {
        self.user_id.is_none() && self.username == super::COMMAND_LINE
    }
}

/// The end of the log, as the log itself records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The number of the last entry; 0 before the first.
    pub seq: i64,
    /// The hash of the last entry.
    pub hash: Vec<u8>,
}

/// The hash that an entry must have after `previous`.
pub fn hash(record: &Record, previous: &[u8]) -> [u8; HASH_LENGTH] {
    // Names all fields, so that a new one cannot be forgotten here.
    let Record {
        seq,
        at,
        owner_id,
        user_id,
        username,
        login_id,
        address,
        action,
        server_id,
        server_name,
        target,
        outcome,
        detail,
        hash: _,
    } = record;
    let (seq, at) = (seq.to_be_bytes(), at.as_millis().to_be_bytes());
    let fields: [Option<&[u8]>; 15] = [
        Some(DOMAIN),
        Some(previous),
        Some(&seq),
        Some(&at),
        Some(owner_id.as_bytes()),
        user_id.as_ref().map(|id| id.as_bytes().as_slice()),
        Some(username.as_bytes()),
        login_id.as_ref().map(|id| id.as_bytes().as_slice()),
        Some(address.as_bytes()),
        Some(action.as_bytes()),
        server_id.as_ref().map(|id| id.as_bytes().as_slice()),
        server_name.as_ref().map(String::as_bytes),
        target.as_ref().map(String::as_bytes),
        Some(outcome.as_bytes()),
        Some(detail.as_bytes()),
    ];
    let mut hasher = Sha256::new();
    for field in fields {
        let length = field.map_or(ABSENT, |bytes| bytes.len() as u64);
        hasher.update(length.to_be_bytes());
        hasher.update(field.unwrap_or_default());
    }
    hasher.finalize().into()
}

/// An entry that was recorded outside of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// Its number.
    pub seq: i64,
    /// Its hash.
    pub hash: [u8; HASH_LENGTH],
}

/// Where a log is broken, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// An entry is missing.
    #[error("entry {seq} is missing: entry {found} follows")]
    Missing {
        /// The missing entry's number.
        seq: i64,
        /// The number of the entry in its place.
        found: i64,
    },
    /// An entry has a number that is too low.
    #[error("entry {seq} does not belong there")]
    Misplaced {
        /// The entry's number.
        seq: i64,
    },
    /// An entry, or the hash of the one before it, was changed.
    #[error("entry {seq} or the hash of the one before was changed")]
    Changed {
        /// The entry's number.
        seq: i64,
    },
    /// The end of the log is missing.
    #[error("entry {seq} is missing: the log has been cut, its head says that it ends with entry {head}")]
    Cut {
        /// The first missing entry's number.
        seq: i64,
        /// The number of the last entry, as the log records it.
        head: i64,
    },
    /// There are entries after the recorded end of the log.
    #[error("entry {seq} was added past the head of the log")]
    PastHead {
        /// The entry's number.
        seq: i64,
    },
    /// The last entry is not the recorded one.
    #[error("entry {seq} is not the one that the head of the log names")]
    OtherHead {
        /// The entry's number.
        seq: i64,
    },
    /// The expected entry has another hash.
    #[error("entry {seq} has another hash than the expected one")]
    Unexpected {
        /// The entry's number.
        seq: i64,
    },
    /// The expected entry is missing.
    #[error("entry {seq} is missing: it was expected")]
    ExpectedMissing {
        /// The entry's number.
        seq: i64,
    },
}

/// Checks a log, entry by entry from the first.
#[derive(Debug)]
pub struct Verifier {
    seq: i64,
    hash: Vec<u8>,
    expected: Option<Expectation>,
}

impl Verifier {
    /// Begins before the first entry.
    pub fn new(expected: Option<Expectation>) -> Self {
        Self { seq: 0, hash: BEGINNING.to_vec(), expected }
    }

    /// The number of the last entry that was checked; none before the first.
    pub fn last(&self) -> Option<i64> {
        (self.seq > 0).then_some(self.seq)
    }

    /// Checks the next entry.
    pub fn take(&mut self, record: &Record) -> Result<(), Broken> {
        let next = self.seq.saturating_add(1);
        if record.seq > next {
            return Err(Broken::Missing { seq: next, found: record.seq });
        }
        if record.seq < next {
            return Err(Broken::Misplaced { seq: record.seq });
        }
        if record.hash != hash(record, &self.hash) {
            return Err(Broken::Changed { seq: next });
        }
        self.seq = next;
        self.hash.clone_from(&record.hash);
        match &self.expected {
            Some(expected) if expected.seq == next && self.hash != expected.hash => {
                Err(Broken::Unexpected { seq: next })
            }
            _ => Ok(()),
        }
    }

    /// Compares the end with the head of the log, which it returns.
    pub fn finish(self, head: &Head) -> Result<Head, Broken> {
        if self.seq < head.seq {
            return Err(Broken::Cut { seq: self.seq.saturating_add(1), head: head.seq });
        }
        if self.seq > head.seq {
            return Err(Broken::PastHead { seq: head.seq.saturating_add(1) });
        }
        if self.hash != head.hash {
            return Err(Broken::OtherHead { seq: self.seq });
        }
        match self.expected {
            Some(expected) if expected.seq > self.seq => Err(Broken::ExpectedMissing { seq: expected.seq }),
            _ => Ok(Head { seq: self.seq, hash: self.hash }),
        }
    }
}

/// A hash as hexadecimal digits, for people.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a hash of 64 hexadecimal digits.
pub fn parse_hex(text: &str) -> Option<[u8; HASH_LENGTH]> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    bytes.try_into().ok().filter(|_| text.len() == 2 * HASH_LENGTH)
}
