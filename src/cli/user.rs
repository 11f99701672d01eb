//! Commands about accounts.

use clap::{Args, Subcommand};

use super::DataArgs;

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Give a user a new random password, and end their sessions
    ResetPassword(UserArgs),
    /// Remove a user's authenticator app, recovery codes and passkeys, and end their sessions
    ResetSecondFactor(UserArgs),
}

#[derive(Debug, Args)]
pub struct UserArgs {
    /// User name or e-mail address
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}
