//! Terminals that the service opens, if the machine's owner permits them.
//!
//! A terminal belongs to its connection: it is a stream like a log, sent as far as there is credit. When nobody watches any
//! more, or the connection is lost, it hangs up. Input never waits for the program: it is queued, and a terminal whose program
//! does not read is closed.

mod console;
mod login;
mod pty;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use signalbox_protocol::agent::{RequestError, Response, TerminalSize, TerminalStart};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use uuid::Uuid;

use crate::config::{Config, Roots};
use crate::policy::{Permit, Switch};
use crate::recordings::Recordings;
use crate::signed::{Asked, Gate};
use crate::streams::{StreamPort, Streams};
use crate::updates::Role;
use console::{Console, Vacant};
use login::Login;
use pty::Pty;

/// The most open terminals; more are refused.
const MAX_OPEN: usize = 4;

/// Whether terminals may be opened on this machine, and how many. Shared by an agent's connections.
#[derive(Clone)]
pub struct Terminals {
    policy: Permit<Switch>,
    gate: Gate,
    roots: Arc<Roots>,
    places: Arc<Semaphore>,
    /// How many places there are.
    most: usize,
    recordings: Recordings,
}

/// A terminal that is permitted, and in which no shell runs yet.
struct Permitted {
    console: Console,
    vacant: Vacant,
    size: TerminalSize,
    /// The time for which it may stay open.
    limit: Option<Duration>,
}

impl Terminals {
    pub fn new(config: &Config, gate: Gate, recordings: Recordings) -> Self {
        let (policy, roots) = (config.policy.terminal.clone(), Arc::new(config.roots.clone()));
        // A build on trial ends within seconds.
        let most = if config.updates.running.role == Role::Trial { 0 } else { MAX_OPEN };
        Self { policy, gate, roots, places: Arc::new(Semaphore::new(most)), most, recordings }
    }

    /// Whether none is open.
    pub fn are_closed(&self) -> bool {
        self.places.available_permits() == self.most
    }

    /// Opens a terminal without a shell, if it is permitted.
    fn open(&self, start: &TerminalStart) -> Result<Permitted, RequestError> {
        if self.policy.grade == Switch::Off {
            return Err(RequestError::new("agent_refused", "this agent opens no terminals"));
        }
        // Before the signature is used up.
        let place = self.places.clone().try_acquire_owned();
        let place =
            place.map_err(|_| RequestError::new("agent_busy", "the agent has as many terminals open as it may"))?;
        let (limit, size) = (self.permit(start)?, start.size);
        let opened = Console::open(size, self.roots.proc.clone(), place);
        let (console, vacant) = opened.map_err(|error| unopened(&error))?;
        Ok(Permitted { console, vacant, size, limit })
    }

    /// The only check: no terminal is opened unless the machine's owner has permitted it, for any caller.
    fn permit(&self, start: &TerminalStart) -> Result<Option<Duration>, RequestError> {
        match self.policy.grade {
            Switch::Off => Err(RequestError::new("agent_refused", "this agent opens no terminals")),
            Switch::On => self.policy.expect(start.asker.as_ref(), "opens terminals").map(|()| None),
            Switch::Signed => {
                let payload = self.gate.permit(start.signed.as_ref(), Asked::Terminal, start.stream_id)?;
                Ok(payload.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into())))
            }
        }
    }

    /// Runs a shell in a terminal until it ends. The recording begins first: without it, there is no shell.
    ///
    /// It begins after the signature was used up, so an error costs the signature. In the other order, one signature could begin
    /// recordings again and again, and each of them can remove the oldest ones.
    async fn run(self, terminal: Permitted, port: StreamPort, by: String) -> Result<Value, RequestError> {
        let Permitted { mut console, vacant, size, limit } = terminal;
        let recording = self.recordings.begin(port.stream_id, size, &by).await;
        let recording =
            recording.map_err(|error| error.of_terminal("no terminal was opened, because it cannot be recorded"))?;
        console.start(&Login::current(&self.roots.etc), vacant).map_err(|error| unopened(&error))?;
        let Some(limit) = limit else { return console.run(port, recording).await };
        let over = || Err(RequestError::new("agent_refused", "the terminal was signed for this long only"));
        timeout(limit, console.run(port, recording)).await.unwrap_or_else(|_| over())
    }
}

fn unopened(error: &dyn std::error::Error) -> RequestError {
    RequestError::new("agent_error", &format!("cannot open a terminal: {error}"))
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
        let opened = self.terminals.open(&start);
        let TerminalStart { stream_id, credit, by, .. } = start;
        let by = by.unwrap_or_default();
        let terminal = match opened {
            Ok(terminal) => terminal,
            Err(refusal) => {
                tracing::warn!(stream.id = %stream_id, by, reason = refusal.detail, "refused a terminal");
                return Some(Response::new(stream_id, Err(refusal)));
            }
        };
        self.open.retain(|_, pty| pty.strong_count() > 0);
        let pty = Arc::downgrade(&terminal.console.pty);
        let (terminals, opener) = (self.terminals.clone(), by.clone());
        let refusal = streams.start(stream_id, credit, |port| async move {
            let end = LogEnd(stream_id);
            let ended = terminals.run(terminal, port, opener).await;
            if let Err(error) = &ended {
                tracing::warn!(stream.id = %stream_id, reason = error.detail, "a terminal ends early");
            }
            drop(end);
            ended
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
