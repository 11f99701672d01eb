//! Signatures of operators, for servers whose policy asks for them.
//!
//! [`order`] is what is signed, [`key_file`] and [`ssh_agent`] are where keys are, and [`options`] puts them together: it shows what
//! will be signed, signs it once with each key, and checks the signatures as the agent will.

pub mod key_file;
pub mod options;
pub mod order;
pub mod private_key;
mod rsa;
pub mod ssh_agent;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use signalbox_signing::NAMESPACE;
use signalbox_signing::ssh::{PublicKey, SshError, SshSignature, fingerprint, to_sign};

use crate::error::Failure;
use crate::output::text::clean;
use private_key::PrivateKey;

/// A key that can sign.
pub struct Key {
    /// As a line of allowed signers has it, in base64.
    public: Vec<u8>,
    comment: String,
    place: Place,
}

/// Where its private part is.
enum Place {
    Here(PrivateKey),
    Agent,
}

impl Key {
    pub fn of_file(public: Vec<u8>, comment: String, private: PrivateKey) -> Self {
        Self { public, comment, place: Place::Here(private) }
    }

    pub fn of_agent(public: Vec<u8>, comment: String) -> Self {
        Self { public, comment, place: Place::Agent }
    }

    /// Its type and base64, as a file of allowed signers has them.
    pub fn line(&self) -> String {
        let name = PublicKey::parse(&self.public).map_or("", PublicKey::name);
        format!("{name} {}", BASE64_STANDARD.encode(&self.public))
    }

    /// Fingerprint and comment.
    pub fn words(&self) -> String {
        format!("{} {}", fingerprint(&self.public), clean(&self.comment)).trim_end().to_owned()
    }

    /// Whether it signs only after somebody touched it.
    pub fn needs_touch(&self) -> bool {
        PublicKey::parse(&self.public).is_ok_and(|key| key.name().starts_with("sk-"))
    }

    /// Signs a payload. Returns the text that `ssh-keygen -Y sign` would write.
    pub async fn sign(&self, payload: &[u8]) -> Result<String, Failure> {
        let fault = |error: SshError| Failure::failed(format!("cannot sign with {}: {error}", self.words()));
        let message = to_sign(NAMESPACE, payload).map_err(fault)?;
        let signature = match &self.place {
            Place::Here(private) => private.sign(&message).map_err(fault)?,
            Place::Agent => ssh_agent::sign(self, message).await?,
        };
        let signature = SshSignature::new(self.public.clone(), NAMESPACE, signature);
        // An ssh-agent may answer with something that no server accepts, such as SHA-1.
        signature.verify(NAMESPACE, payload).map_err(fault)?;
        signature.to_text().map_err(fault)
    }
}
