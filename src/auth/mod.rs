//! Who somebody is, and what they may do.
//!
//! `password` and `token` know cryptography, `logins` knows which sign-ins live, `api_key` knows agents' keys,
//! `machines` tells who shows one twice, and `access` is the one place that decides who may do what to which server.

pub mod access;
pub mod account;
pub mod api_key;
#[doc(hidden)]
pub mod fuzzing;
mod hints;
pub mod logins;
pub mod machines;
pub mod password;
pub mod refusals;
pub mod secret;
pub mod setup;
pub mod token;
mod verified;

pub use crate::store::Caller;
