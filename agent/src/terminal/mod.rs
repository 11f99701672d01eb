//! Terminals that the service opens, if the machine's owner permits them.
//!
//! A terminal belongs to its connection: it is a stream like a log, sent as far as there is credit. When nobody watches any
//! more, or the connection is lost, it hangs up. Input never waits for the program: it is queued, and a terminal whose program
//! does not read is closed.

mod console;
mod login;
mod pty;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use signalbox_protocol::agent::{RequestError, Response, TerminalSize, TerminalStart};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::config::{Config, Roots};
use crate::policy::Switch;
use crate::streams::Streams;
use console::Console;
use login::Login;
use pty::Pty;

/// The most open terminals; more are refused.
const MAX_OPEN: usize = 4;

/// Whether terminals may be opened on this machine, and how many. Shared by an agent's connections.
#[derive(Debug, Clone)]
pub struct Terminals {
    policy: Switch,
    roots: Arc<Roots>,
    places: Arc<Semaphore>,
}

impl Terminals {
    pub fn new(config: &Config) -> Self {
        let places = Arc::new(Semaphore::new(MAX_OPEN));
        Self { policy: config.policy.terminal, roots: Arc::new(config.roots.clone()), places }
    }

    fn open(&self, size: TerminalSize) -> Result<Console, RequestError> {
        // The only check: no terminal is opened unless the machine's owner has permitted it, for any caller.
        if self.policy != Switch::On {
            return Err(RequestError::new("agent_refused", "this agent opens no terminals"));
        }
        let place = self.places.clone().try_acquire_owned();
        let place =
            place.map_err(|_| RequestError::new("agent_busy", "the agent has as many terminals open as it may"))?;
        let proc: PathBuf = self.roots.proc.clone();
        Console::open(&Login::current(&self.roots.etc), size, proc, place)
            .map_err(|error| RequestError::new("agent_error", &format!("cannot open a terminal: {error}")))
    }
}

/// The terminals of one connection. They hang up when its streams end.
pub struct OpenTerminals {
    terminals: Terminals,
    open: HashMap<Uuid, Weak<Pty>>,
}

impl OpenTerminals {
    pub fn new(terminals: Terminals) -> Self {
        Self { terminals, open: HashMap::new() }
    }

    /// Opens a terminal, or returns the refusal.
    pub fn start(&mut self, start: TerminalStart, streams: &mut Streams) -> Option<Response> {
        let TerminalStart { stream_id, size, credit, by } = start;
        let by = by.unwrap_or_default();
        let console = match self.terminals.open(size) {
            Ok(console) => console,
            Err(refusal) => {
                tracing::warn!(stream.id = %stream_id, by, reason = refusal.detail, "refused a terminal");
                return Some(Response::new(stream_id, Err(refusal)));
            }
        };
        self.open.retain(|_, pty| pty.strong_count() > 0);
        let pty = Arc::downgrade(&console.pty);
        let refusal = streams.start(stream_id, credit, |port| async move {
            let _ended = LogEnd(stream_id);
            console.run(port).await
        });
        if refusal.is_none() {
            tracing::info!(stream.id = %stream_id, by, "opened a terminal");
            self.open.insert(stream_id, pty);
        }
        refusal
    }

    /// Passes input on.
    pub fn type_in(&self, stream_id: Uuid, text: &str) {
        if let Some(pty) = self.open(stream_id) {
            pty.type_in(text);
        }
    }

    pub fn resize(&self, stream_id: Uuid, size: TerminalSize) {
        if let Some(pty) = self.open(stream_id) {
            pty.resize(size);
        }
    }

    fn open(&self, stream_id: Uuid) -> Option<Arc<Pty>> {
        self.open.get(&stream_id)?.upgrade()
    }
}

/// Logs the end, however it comes.
struct LogEnd(Uuid);

impl Drop for LogEnd {
    fn drop(&mut self) {
        tracing::info!(stream.id = %self.0, "a terminal has ended");
    }
}
