//! Keys and signatures of OpenSSH: RFC 4253 and 5656, PROTOCOL.u2f and PROTOCOL.sshsig of OpenSSH.

mod key;
mod reader;
mod signature;

pub use key::{PublicKey, fingerprint, key_type_is_known};
pub use reader::{Reader, put_string};
pub use signature::{SshSignature, to_sign};

/// Why a key or a signature is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SshError {
    #[error("it cannot be read")]
    Malformed,
    #[error("it is not an SSH signature, as `ssh-keygen -Y sign` writes it")]
    NotArmored,
    #[error("the kind of key is not supported (use ed25519, ecdsa, rsa or a FIDO key)")]
    UnknownKey,
    #[error("an RSA key needs 2048 to 8192 bits")]
    RsaSize,
    #[error("the algorithm of the signature is not supported (RSA needs rsa-sha2-256 or rsa-sha2-512)")]
    UnknownAlgorithm,
    #[error("it was made for another purpose: sign with `-n signalbox-command-v1`")]
    WrongNamespace,
    #[error("the security key was not touched")]
    NotTouched,
    #[error("the signature is wrong")]
    WrongSignature,
}
