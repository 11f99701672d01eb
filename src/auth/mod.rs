//! Authentication and access rights.
//!
//! `password` and `token` have the cryptography, `logins` the active sign-ins, `api_key` the agents' keys, `invitation`
//! what lets people register, `oidc` sign-in at an identity provider; `machines` detects two machines with one key, and
//! `access` is the only place that decides who may do what to which server.

pub mod access;
pub mod account;
pub mod api_key;
#[doc(hidden)]
pub mod fuzzing;
mod hints;
pub mod invitation;
pub mod logins;
pub mod machines;
pub mod oidc;
pub mod password;
pub mod refusals;
pub mod secret;
pub mod setup;
pub mod token;
mod verified;

pub use crate::store::Caller;
