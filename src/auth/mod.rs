//! Authentication and access rights.
//!
//! `password` and `token` have the cryptography, `logins` the active sign-ins, `api_key` the agents' keys, `program_token` the
//! tokens of programs, `bearer` who calls with a token of either kind, `enrolment` the tokens of machines that become servers,
//! `marked_token` the form of these three, `invitation` what lets people register, `oidc` sign-in at an identity provider;
//! `machines` detects two machines with one key, and `access` is the only place that decides who may do what to which server. `totp`,
//! `recovery` and `webauthn` verify second factors, `factors` decides who needs one, and `proof` what they prove.

pub mod access;
pub mod account;
pub mod api_key;
pub mod bearer;
pub mod enrolment;
pub mod factors;
#[doc(hidden)]
pub mod fuzzing;
mod hints;
pub mod invitation;
pub mod logins;
pub mod machines;
pub mod marked_token;
pub mod oidc;
pub mod password;
pub mod program_token;
pub mod proof;
mod recovery;
pub mod refusals;
pub mod secret;
pub mod setup;
pub mod token;
pub mod totp;
mod verified;
pub mod webauthn;

pub use crate::store::Caller;
