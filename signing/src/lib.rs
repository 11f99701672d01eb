//! What operators sign so that a server runs it, and who signed it.
//!
//! The agent decides with it what it runs, and `signalbox audit verify --signatures` tells afterwards who ordered what. It is
//! pure: no file, no clock, no network.
//!
//! - [`payload`]: the bytes that are signed, and what they say
//! - [`repeat`]: when something that recurs is due
//! - [`ssh`]: keys and signatures of OpenSSH
//! - [`webauthn`]: passkeys, for the service's sign-in, too
//! - [`signers`]: the people whose signatures count, in OpenSSH's format of allowed signers
//! - [`form`]: whether something is a signature of some bytes, for who knows no signers
//! - [`verdict`]: whether a signed payload permits what is asked
//!
//! All cryptography is aws-lc's, which agent and service contain for TLS.

pub mod form;
#[doc(hidden)]
pub mod fuzzing;
pub mod payload;
pub mod repeat;
pub mod signers;
pub mod ssh;
pub mod verdict;
pub mod webauthn;

pub use form::{Author, FormError};
pub use payload::{Kind, Payload, PayloadError};
pub use repeat::{Recurrence, Repeat, RepeatError};
pub use signers::{Signer, Signers, SignersError};
pub use verdict::{Asked, Reason, Refusal, Terms, Use, signers_of};

/// What SSH signatures of payloads are for. A signature that was made for something else, such as a commit, has another one.
pub const NAMESPACE: &str = "signalbox-command-v1";
