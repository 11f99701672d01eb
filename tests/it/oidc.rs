//! `/auth/oidc`: sign-in at an identity provider. A real one (npm's `oidc-provider`) shows that it works, one that the
//! test controls what is refused.

mod accounts;
pub mod browser;
mod evil;
pub mod fake;
mod floods;
mod groups;
mod links;
mod logout;
mod outages;
mod passwords;
pub mod real;
