//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands::alerts::Alerts;
use crate::commands::approvals::Approvals;
use crate::commands::containers::Containers;
use crate::commands::context::ContextCommand;
use crate::commands::exec::Exec;
use crate::commands::login::Login;
use crate::commands::logs::Logs;
use crate::commands::mcp::Mcp;
use crate::commands::metrics::Metrics;
use crate::commands::pages::{Completions, Man};
use crate::commands::recordings::RecordingsCommand;
use crate::commands::servers::Servers;
use crate::commands::shell::Shell;
use crate::commands::tokens::Tokens;
use crate::commands::top::Top;
use crate::output::{ColourChoice, Format};

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 if Ctrl-C ended the wait of `exec`; `exec` on one server ends with \
the exit code of the command.

Environment:
  SIGNALBOX_URL, SIGNALBOX_TOKEN  the service and the token, in place of a context
  HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY  the proxy, as for curl
  NO_COLOR  no colours";

/// They would stand between those of the command.
const OF_ALL: &str = "Options of every command";

/// Signalbox from the command line
#[derive(Debug, Parser)]
#[command(name = "signalboxctl", version, after_help = AFTER_HELP, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub verb: Verb,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct Options {
    /// The context of this call; defaults to the current one
    #[arg(long, global = true, value_name = "NAME", help_heading = OF_ALL)]
    pub context: Option<String>,
    /// Trust the certificate authorities of this PEM file, too
    #[arg(long, global = true, value_name = "FILE", env = "SIGNALBOX_CA_FILE", help_heading = OF_ALL)]
    pub ca_file: Option<PathBuf>,
    /// How results are printed
    #[arg(short, long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = OF_ALL)]
    pub output: Format,
    /// Whether to use colours
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = OF_ALL)]
    pub color: ColourChoice,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Login(Login),
    /// List, choose and remove the services that you signed in to
    #[command(subcommand)]
    Context(ContextCommand),
    Servers(Servers),
    Exec(Exec),
    Approvals(Approvals),
    Shell(Shell),
    Recordings(RecordingsCommand),
    Top(Top),
    Logs(Logs),
    Containers(Containers),
    Alerts(Alerts),
    Metrics(Metrics),
    Tokens(Tokens),
    Mcp(Mcp),
    Completions(Completions),
    Man(Man),
}
