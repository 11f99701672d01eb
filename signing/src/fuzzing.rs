//! Entry points for fuzzers.

use aws_lc_rs::digest::{SHA256, digest};

use crate::payload::Payload;
use crate::ssh::{PublicKey, SshSignature};
use crate::{NAMESPACE, Signers};

/// Bytes that claim to be a payload, a file of signers, or a signature.
pub fn signed(data: &[u8]) {
    if let Ok(payload) = Payload::parse(data) {
        assert!(payload.expires_at > payload.not_before, "a payload that never holds");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(signers) = Signers::parse(text) {
        assert!(signers.people() <= signers.all().len(), "more people than keys");
    }
    if let Ok(signature) = SshSignature::parse(text) {
        let challenge = digest(&SHA256, data);
        assert!(signature.verify(NAMESPACE, challenge.as_ref()).is_err(), "a signature of its own hash");
    }
    _ = PublicKey::parse(data);
}
