//! The flags of `signalbox user`.

use clap::{Args, Subcommand};

use super::DataArgs;
use super::values::{email, public_url, whole};

/// The longest time that an invitation is open.
const MAX_HOURS: u64 = 720;

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// List the accounts
    List(ListUsersArgs),
    /// Print a link with which somebody can make an account, once, also if registration is closed
    Invite(InviteArgs),
    /// End all sessions, tokens and enrolments of a user, and refuse their sign-ins. Their agents keep sending
    Disable(UserArgs),
    /// Let a disabled user sign in again
    Enable(UserArgs),
    /// Make a user an administrator
    Admin(AdminArgs),
    /// Give a user a new random password, and end their sessions
    ResetPassword(UserArgs),
    /// Remove a user's authenticator app, recovery codes and passkeys, and end their sessions
    ResetSecondFactor(UserArgs),
}

#[derive(Debug, Args)]
pub struct ListUsersArgs {
    /// Text in the user name, e-mail address or full name [default: all accounts]
    pub text: Option<String>,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct InviteArgs {
    /// The only e-mail address that may register with the link [default: any]
    #[arg(long, value_name = "ADDRESS", value_parser = email)]
    pub email: Option<String>,
    /// Hours until the link ends
    #[arg(long, value_name = "HOURS", default_value_t = 72, value_parser = whole::<u64>(1, MAX_HOURS))]
    pub expires_in_hours: u64,
    /// Address at which people reach the service
    #[arg(long, env = "SIGNALBOX_PUBLIC_URL", value_name = "URL", default_value = "http://127.0.0.1:8000",
          value_parser = public_url)]
    pub public_url: String,
    #[command(flatten)]
    pub data: DataArgs,
}

/// A command about one user.
#[derive(Debug, Args)]
pub struct UserArgs {
    /// User name or e-mail address
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
}

#[derive(Debug, Args)]
pub struct AdminArgs {
    /// User name or e-mail address
    pub name: String,
    /// Remove the administrator role instead
    #[arg(long)]
    pub revoke: bool,
    #[command(flatten)]
    pub data: DataArgs,
}
