//! What can be said of a signature without knowing anybody: that it is one of these bytes, and whose it is.
//!
//! The service uses it to refuse early what no agent would accept. It does not decide: an agent knows its signers, and this
//! does not.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use signalbox_protocol::signed::Signature;

use crate::NAMESPACE;
use crate::ssh::{SshError, SshSignature};
use crate::webauthn::WebauthnError;
use crate::webauthn::authenticator::AuthenticatorData;
use crate::webauthn::client::{self, ClientData};

/// Whose signature it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// The fingerprint of an SSH key, as `ssh-keygen -l` shows it. The signature is right.
    Ssh(String),
    /// Some passkey: an assertion does not name its key, so only those who know it can verify the signature.
    Passkey,
}

/// Why something is no signature of these bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error("it is not an SSH signature of this payload: {0}")]
    Ssh(#[from] SshError),
    #[error("it is not a passkey's signature of this payload: {0}")]
    Webauthn(#[from] WebauthnError),
    #[error("its parts are not base64url without padding")]
    NotBase64,
    #[error("it is of a kind that this version does not know")]
    UnknownKind,
}

/// Reads a signature of these bytes. Returns whose it is, as far as it says so itself.
pub fn author(signature: &Signature, bytes: &[u8]) -> Result<Author, FormError> {
    match signature {
        Signature::Sshsig { signature } => {
            let signature = SshSignature::parse(signature)?;
            signature.verify(NAMESPACE, bytes)?;
            let hash = digest(&SHA256, signature.public_key());
            Ok(Author::Ssh(format!("SHA256:{}", BASE64_STANDARD_NO_PAD.encode(hash.as_ref()))))
        }
        Signature::Webauthn { client_data_json, authenticator_data, signature } => {
            let decode = |text: &String| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| FormError::NotBase64);
            let client = ClientData::parse(&decode(client_data_json)?)?;
            AuthenticatorData::parse(&decode(authenticator_data)?)?;
            decode(signature)?;
            let is_of_these = client.kind == client::GET && client.challenge == digest(&SHA256, bytes).as_ref();
            if is_of_these { Ok(Author::Passkey) } else { Err(WebauthnError::WrongRequest.into()) }
        }
        Signature::Unknown => Err(FormError::UnknownKind),
    }
}
