//! Logs of any servers and containers, in the order of their time.

mod follow;
mod merge;
mod past;
mod print;
mod recent;
pub mod source;

use clap::Args;
use signalbox_protocol::Timestamp;

use super::Call;
use crate::error::Failure;
use crate::output::Format;
use crate::output::time::parse_moment;
use print::Printer;
use source::{Kind, Source};

/// Show logs of servers and containers, in the order of their time
///
/// By default the system's log (the journal, or syslog). With --container or --file those of all the named servers.
#[derive(Debug, Args)]
pub struct Logs {
    /// Names or ids of servers
    #[arg(value_name = "SERVER", required = true)]
    servers: Vec<String>,
    /// Show new lines as they are written
    #[arg(short, long)]
    follow: bool,
    /// The log of a container, by name or id (repeatable)
    #[arg(short, long = "container", value_name = "CONTAINER")]
    containers: Vec<String>,
    /// A file that the server's policy lets be read (repeatable)
    #[arg(long = "file", value_name = "PATH")]
    files: Vec<String>,
    /// The system's log, too, besides --container and --file
    #[arg(long)]
    system: bool,
    /// Only lines that match this regular expression; ignores case unless it has a capital letter
    #[arg(short = 'g', long = "grep", value_name = "PATTERN")]
    pattern: Option<String>,
    /// At most this many of the newest lines of each log
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    lines: u32,
    /// Only lines after this: a duration ago such as 15m, or a time
    #[arg(long, value_name = "TIME", value_parser = parse_moment, conflicts_with = "follow")]
    since: Option<Timestamp>,
    /// Only lines before this
    #[arg(long, value_name = "TIME", value_parser = parse_moment, conflicts_with = "follow")]
    until: Option<Timestamp>,
}

/// Each is a connection of its own, or a search on a server.
const MAX_SOURCES: usize = 50;

impl Logs {
    pub async fn run(self, call: &Call) -> Result<(), Failure> {
        if call.out.format == Format::Csv {
            call.out.expect_no_csv()?;
        }
        // Before anything is asked: the pattern also marks what it matched.
        let printer = Printer::new(call.out, self.pattern.as_deref())?;
        let sources = self.sources(call).await?;
        if self.follow {
            follow::run(call, sources, self.lines, printer).await
        } else {
            past::run(call, &self, sources, printer).await
        }
    }

    async fn sources(&self, call: &Call) -> Result<Vec<Source>, Failure> {
        let mut kinds: Vec<Kind> = self.containers.iter().cloned().map(Kind::Container).collect();
        kinds.extend(self.files.iter().cloned().map(Kind::File));
        if kinds.is_empty() || self.system {
            kinds.push(Kind::System);
        }
        if self.servers.len() * kinds.len() > MAX_SOURCES {
            return Err(Failure::usage(format!("at most {MAX_SOURCES} logs at a time")));
        }
        let mut sources = Vec::new();
        for wanted in &self.servers {
            let server = call.api.server(wanted).await?;
            sources.extend(kinds.iter().map(|kind| Source { server: server.clone(), kind: kind.clone() }));
        }
        Ok(sources)
    }
}
