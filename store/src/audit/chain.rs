//! The chain of hashes: what was changed, moved, removed or put in afterwards does not fit any more.
//!
//! Each hash covers all fields of an entry and the hash before. A field is its length and its bytes, so that no byte
//! can move from one field to the next. Whoever may write the whole table can compute a chain anew: against them helps
//! a hash that was written down somewhere else, see [`Expectation`].

#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

/// Bytes of a hash.
pub const HASH_LENGTH: usize = 32;

/// Stands for the hash before the first entry.
pub const BEGINNING: [u8; HASH_LENGTH] = [0; HASH_LENGTH];

/// Nothing else that is hashed begins like this. Another encoding needs another number.
const DOMAIN: &[u8] = b"signalbox audit entry 1";

/// The length of a field that is not there.
const ABSENT: u64 = u64::MAX;

/// An entry as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub seq: i64,
    pub at: Timestamp,
    pub owner_id: Uuid,
    pub user_id: Option<Uuid>,
    pub username: String,
    pub login_id: Option<Uuid>,
    pub address: String,
    pub action: String,
    pub server_id: Option<Uuid>,
    pub server_name: Option<String>,
    pub target: Option<String>,
    pub outcome: String,
    /// A JSON object.
    pub detail: String,
    pub hash: Vec<u8>,
}

/// Where the log says that it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// 0 before the first entry.
    pub seq: i64,
    pub hash: Vec<u8>,
}

/// The hash that an entry must have behind `previous`.
pub fn hash(record: &Record, previous: &[u8]) -> [u8; HASH_LENGTH] {
    // All fields by name: who adds one must say how it is hashed.
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

/// An entry that somebody wrote down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub seq: i64,
    pub hash: [u8; HASH_LENGTH],
}

/// Where a log is broken, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("entry {seq} is missing: entry {found} follows")]
    Missing { seq: i64, found: i64 },
    #[error("entry {seq} does not belong there")]
    Misplaced { seq: i64 },
    #[error("entry {seq} or the hash of the one before was changed")]
    Changed { seq: i64 },
    #[error("entry {seq} is missing: the log has been cut, its head says that it ends with entry {head}")]
    Cut { seq: i64, head: i64 },
    #[error("entry {seq} was added past the head of the log")]
    PastHead { seq: i64 },
    #[error("entry {seq} is not the one that the head of the log names")]
    OtherHead { seq: i64 },
    #[error("entry {seq} has another hash than the expected one")]
    Unexpected { seq: i64 },
    #[error("entry {seq} is missing: it was expected")]
    ExpectedMissing { seq: i64 },
}

/// Walks a log from its first entry.
#[derive(Debug)]
pub struct Verifier {
    seq: i64,
    hash: Vec<u8>,
    expected: Option<Expectation>,
}

impl Verifier {
    pub fn new(expected: Option<Expectation>) -> Self {
        Self { seq: 0, hash: BEGINNING.to_vec(), expected }
    }

    /// The last entry that was looked at; none before the first.
    pub fn last(&self) -> Option<i64> {
        (self.seq > 0).then_some(self.seq)
    }

    /// Looks at the next entry.
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

    /// Compares the end with the head of the log. Gives that head.
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

/// A hash as people write it down.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash that 64 hexadecimal digits stand for.
pub fn parse_hex(text: &str) -> Option<[u8; HASH_LENGTH]> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    bytes.try_into().ok().filter(|_| text.len() == 2 * HASH_LENGTH)
}
