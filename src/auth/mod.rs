//! Who somebody is, and what they may do.
//!
//! `password` and `token` know cryptography, `logins` knows which sign-ins live, `api_key` knows agents' keys, and
//! `access` is the one place that decides who may do what to which server.

pub mod access;
pub mod account;
pub mod api_key;
pub mod logins;
pub mod password;
pub mod refusals;
pub mod secret;
pub mod token;

pub use crate::store::Caller;
