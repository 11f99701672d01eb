//! What operators have signed: the service carries it, and agents decide.

use serde::{Deserialize, Serialize};

/// The longest `payload`, in characters of base64: a command of the greatest length, escaped, and the names of a large batch.
pub const MAX_PAYLOAD_CHARACTERS: usize = 400_000;

/// The most signatures of one payload.
pub const MAX_SIGNATURES: usize = 16;

/// The longest text of one signature or of a part of it. An SSH signature with a key of 8192 bits has 3,500 characters.
pub const MAX_SIGNATURE_CHARACTERS: usize = 16_384;

/// A payload with its signatures. The bytes of the payload are signed as they are, never a copy that was parsed and written
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// What was signed, in base64: JSON that names the servers, what is to run, and when.
    pub payload: String,
    /// The signatures, of as many signers as the server asks for.
    pub signatures: Vec<Signature>,
}

/// One signature of the bytes of a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Signature {
    /// Made with an SSH key, as `ssh-keygen -Y sign -n signalbox-command-v1` writes it.
    Sshsig {
        /// The text, with its first and last line.
        signature: String,
    },
    /// An assertion of a passkey, whose challenge is the SHA-256 of the payload's bytes. Each part is base64url without padding.
    Webauthn {
        /// What the browser said.
        client_data_json: String,
        /// What the authenticator said.
        authenticator_data: String,
        /// The authenticator's signature.
        signature: String,
    },
    /// Of a kind that this version does not know: it counts as nobody's.
    #[serde(other)]
    Unknown,
}

impl Signed {
    /// Whether each part is within its bounds, and there is at least one signature.
    pub fn is_bounded(&self) -> bool {
        self.payload.len() <= MAX_PAYLOAD_CHARACTERS
            && (1..=MAX_SIGNATURES).contains(&self.signatures.len())
            && self.signatures.iter().all(Signature::is_bounded)
    }
}

impl Signed {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.signatures.iter().flat_map(Signature::parts).map(String::len).sum::<usize>()
    }
}

impl Signature {
    fn is_bounded(&self) -> bool {
        self.parts().iter().all(|part| part.len() <= MAX_SIGNATURE_CHARACTERS)
    }

    fn parts(&self) -> Vec<&String> {
        match self {
            Self::Sshsig { signature } => vec![signature],
            Self::Webauthn { client_data_json, authenticator_data, signature } => {
                vec![client_data_json, authenticator_data, signature]
            }
            Self::Unknown => Vec::new(),
        }
    }
}
