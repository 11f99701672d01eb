//! A dashboard's terminal on one server.
//!
//! The terminal takes output from the agent one message at a time and returns credit as it is sent: a browser that does
//! not read stops only the program in the terminal. Input is handed on in order; while the agent's session is busy,
//! nothing more is read from the browser.
//!
//! A terminal that is kept is with the session of the agent. Its socket is one client of it, and what a lost client leaves can be
//! resumed through another socket ([`resume`]).

mod resume;

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentMessage, Asker, ServiceMessage, TerminalOutput, TerminalSize, TerminalStart};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use super::dashboard::{self, Context, Dashboard, Feature, Recognition, SocketAuth};
use super::end::Closing;
use crate::audit::{Actor, Entry, Outcome, action};
use crate::feeds::Topic;
use crate::registry::terminal::{Closer, KeptRequest, TERMINAL_CREDIT};
use crate::registry::{AgentStream, CallError, RegistryHandle, cost};
use crate::state::State;
use crate::store::{Store, StoreError, TerminalNote};

/// Credit is returned in portions of this size, not for the echo of each key.
const PORTION: u64 = 32 * 1024;

/// The maximum of columns and of rows.
pub const MAX_CHARACTERS: u64 = 1_000;

/// The longest message from a browser: a pasted text.
const MAX_MESSAGE: usize = 128 * 1024;

/// After this long without taking input an agent has lost its terminal.
const PATIENCE: Duration = Duration::from_secs(10);

/// A socket that is a terminal.
pub type Terminal = Dashboard<LiveTerminal>;

/// The terminal of a socket.
pub struct LiveTerminal {
    server_id: Uuid,
    registry: RegistryHandle,
    stream_id: Uuid,
    /// `None` while a task waits for its next message.
    stream: Option<AgentStream>,
    /// Bytes that were sent and not yet returned as credit.
    owed: u64,
    /// The audit entry to write when the terminal ends. The home of the server writes that of a terminal that it keeps.
    entry: Option<Entry>,
    store: Store,
    kept: Option<Kept>,
    /// The client has to name the terminal that it resumes.
    resuming: Option<Opening>,
}

/// A terminal that waits for its client when the connection is lost.
struct Kept {
    terminal_id: Uuid,
    secret: SecretString,
    kept_for: Duration,
    /// The bytes of output that the client has.
    offset: u64,
    /// Whether the home has the terminal, and the client knows it.
    is_told: bool,
    /// Ends the terminal with its stream.
    closer: Option<Closer>,
    /// Whether the first reason for the end of the socket was known.
    is_decided: bool,
}

/// The size and the user of a terminal to be opened or resumed.
pub struct Opening {
    pub owner_id: Uuid,
    pub actor: Actor,
    /// The same person, for the agent.
    pub asker: Option<Asker>,
    pub size: TerminalSize,
    /// What operators signed for it.
    pub signed: Option<Signed>,
    /// For how long it waits for its client when the connection is lost. `None`: it ends.
    pub kept_for: Option<Duration>,
}

/// The server of a terminal, and what leads there.
pub struct Server<'a> {
    pub id: Uuid,
    pub registry: &'a RegistryHandle,
    pub store: &'a Store,
}

/// Why no terminal is opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the system has no random numbers")]
    Random(#[from] getrandom::Error),
}

#[derive(Deserialize)]
struct Input {
    data: String,
}

/// The next message of the agent, or the end.
enum Pumped {
    Message(Box<AgentMessage>),
    Ended(Result<Value, CallError>),
}

impl LiveTerminal {
    /// Opens a terminal on the server. The audit entry is written before the agent gets the request.
    pub async fn start(server: &Server<'_>, opening: Opening) -> Result<Self, OpenError> {
        let Opening { owner_id, actor, asker, size, signed, kept_for } = opening;
        let (terminal_id, user_id) = (Uuid::now_v7(), actor.user_id);
        let token_id = actor.token.as_ref().map(|token| token.id);
        let by = Some(actor.to_string());
        let kept = kept_for.map(|kept_for| Kept::fresh(terminal_id, kept_for)).transpose()?;
        let entry = Entry::new(action::TERMINAL_OPEN, owner_id, actor).on_server(server.id).target(terminal_id);
        let started = match &signed {
            Some(signed) => entry.clone().detail(json!({ "signed": signed })),
            None => entry.clone(),
        };
        server.store.record(started.outcome(Outcome::Started)).await?;
        let start = TerminalStart {
            stream_id: terminal_id,
            size,
            credit: Some(TERMINAL_CREDIT),
            by,
            asker: asker.clone(),
            signed,
        };
        let mut live = Self::new(server, terminal_id);
        live.entry = Some(entry);
        live.stream = match (&kept, user_id) {
            (Some(kept), Some(user_id)) => {
                // The agent knows the terminal, and each client has a stream of its own.
                let stream_id = Uuid::now_v7();
                live.stream_id = stream_id;
                let holder = kept.holder(user_id, token_id, asker);
                server.registry.open_kept(server.id, KeptRequest::Start { stream_id, start, holder }).ok()
            }
            _ => server.registry.open_terminal(server.id, start).ok(),
        };
        live.kept = kept;
        Ok(live)
    }

    /// A terminal that the client names in its first message.
    pub fn resuming(server: &Server<'_>, opening: Opening, kept_for: Duration) -> Self {
        let mut live = Self::new(server, Uuid::now_v7());
        live.resuming = Some(Opening { kept_for: Some(kept_for), ..opening });
        live
    }

    fn new(server: &Server<'_>, stream_id: Uuid) -> Self {
        Self {
            server_id: server.id,
            registry: server.registry.clone(),
            stream_id,
            stream: None,
            owed: 0,
            entry: None,
            store: server.store.clone(),
            kept: None,
            resuming: None,
        }
    }

    /// Writes how the terminal ended to the audit log, once.
    fn conclude(&mut self, note: TerminalNote) {
        let Some(entry) = self.entry.take() else { return };
        let (store, server_id) = (self.store.clone(), self.server_id);
        // Whether the home has it is not known before its first message. The first of the two that writes is right.
        let kept = self.kept.as_ref().map(|kept| (kept.terminal_id, kept.is_told));
        if kept.is_some_and(|(_, is_told)| is_told) {
            return;
        }
        tokio::spawn(async move {
            let written = match kept {
                Some((terminal_id, _)) => store.note_terminal((entry.owner_id, server_id), terminal_id, note).await,
                None => store.record(entry.outcome(note.outcome).reason(note.reason.as_deref())).await,
            };
            if let Err(error) = written {
                tracing::error!(%error, "cannot record the end of a terminal");
            }
        });
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        self.conclude(TerminalNote::new(action::TERMINAL_OPEN, Outcome::Ok));
    }
}

/// Upgrades a request to a terminal.
pub fn open(
    state: &State,
    pass: SocketAuth,
    terminal: LiveTerminal,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    dashboard::open(state, pass, terminal, request, payload)
}

impl Feature for LiveTerminal {
    const MAX_MESSAGE: usize = MAX_MESSAGE;

    fn topics(&self, _: &SocketAuth) -> Vec<Topic> {
        Vec::new()
    }

    fn opened(terminal: &mut Terminal, ctx: &mut Context<Self>) {
        if terminal.feature.resuming.is_some() {
            return resume::await_message(ctx);
        }
        match terminal.feature.stream.take() {
            Some(stream) => pump(terminal, stream, ctx),
            None => over(terminal, Err(CallError::Busy), ctx),
        }
    }

    fn closing(terminal: &mut Terminal, why: Closing) {
        let Some(kept) = &mut terminal.feature.kept else { return };
        if !std::mem::replace(&mut kept.is_decided, true) && !why.is_loss() {
            _ = kept.closer.take().map(|closer| closer.close());
        }
    }

    fn message(terminal: &mut Terminal, kind: &str, message: &Value, ctx: &mut Context<Self>) -> Recognition {
        if let Some(opening) = terminal.feature.resuming.take() {
            resume::first_message(terminal, opening, kind, message, ctx);
            return Recognition::Known;
        }
        let stream_id = terminal.feature.stream_id;
        let told = match kind {
            "input" => {
                data::<Input>(message).map(|input| ServiceMessage::TerminalInput { stream_id, data: input.data })
            }
            "resize" => data::<TerminalSize>(message)
                .filter(|size| is_sound(*size))
                .map(|size| ServiceMessage::TerminalResize { stream_id, size }),
            _ => return Recognition::Unknown,
        };
        match told {
            Some(told) => tell(terminal, told, ctx),
            None => terminal.end(close::MALFORMED, "malformed message", ctx),
        }
        Recognition::Known
    }
}

/// Whether the size of a terminal is within the limits.
fn is_sound(size: TerminalSize) -> bool {
    [size.columns, size.rows].into_iter().all(|count| (1..=MAX_CHARACTERS).contains(&u64::from(count)))
}

fn data<T: DeserializeOwned>(message: &Value) -> Option<T> {
    message.get("data").and_then(|data| T::deserialize(data).ok())
}

/// Hands input to the agent; the browser's next message waits for that.
fn tell(terminal: &Terminal, message: ServiceMessage, ctx: &mut Context<LiveTerminal>) {
    let link = terminal.feature.registry.link(terminal.feature.server_id);
    let told = async move { tokio::time::timeout(PATIENCE, link.send(message)).await };
    ctx.wait(told.into_actor(terminal).map(|told, terminal, ctx| {
        if !matches!(told, Ok(Ok(()))) {
            over(terminal, Err(CallError::Disconnected), ctx);
        }
    }));
}

/// Waits for the agent's next message, and shows it.
fn pump(terminal: &mut Terminal, mut stream: AgentStream, ctx: &mut Context<LiveTerminal>) {
    if let Some(kept) = &mut terminal.feature.kept {
        // A socket that closes has taken it away.
        if !kept.is_decided {
            kept.closer = stream.closer();
        }
    }
    let credit = if terminal.feature.owed >= PORTION { std::mem::take(&mut terminal.feature.owed) } else { 0 };
    let pumped = async move {
        if credit > 0 && stream.grant(credit).await.is_err() {
            return (stream, Pumped::Ended(Err(CallError::Disconnected)));
        }
        let pumped = match stream.next().await {
            Some(message) => Pumped::Message(Box::new(message)),
            None => Pumped::Ended(stream.outcome().await),
        };
        (stream, pumped)
    };
    ctx.spawn(pumped.into_actor(terminal).map(|(stream, pumped), terminal, ctx| match pumped {
        Pumped::Message(message) => {
            show(terminal, *message, ctx);
            pump(terminal, stream, ctx);
        }
        Pumped::Ended(outcome) => over(terminal, outcome, ctx),
    }));
}

/// Sends what the agent shows. The first message of a terminal that is kept says that it is, and where its output begins.
fn show(terminal: &mut Terminal, message: AgentMessage, ctx: &mut Context<LiveTerminal>) {
    terminal.feature.owed += cost(&message);
    let AgentMessage::TerminalOutput(TerminalOutput { data, offset, .. }) = message else { return };
    if let Some(begins) = offset
        && let Some(messages) = terminal.feature.kept.as_mut().and_then(|kept| kept.tell(begins))
    {
        messages.iter().for_each(|message| terminal.send(message, ctx));
    }
    if !data.is_empty() {
        terminal.send(&FeedMessage::Output { stream: None, data, offset }, ctx);
    }
}

/// Sends how the terminal ended, and closes the socket.
fn over(terminal: &mut Terminal, outcome: Result<Value, CallError>, ctx: &mut Context<LiveTerminal>) {
    let last = match &outcome {
        Ok(result) => FeedMessage::Exit { exit_code: result.get("exit_code").and_then(Value::as_i64) },
        Err(error) => FeedMessage::Error {
            code: error.code().to_owned(),
            detail: error.to_string(),
            reason: error.reason().map(str::to_owned),
        },
    };
    if let Err(error) = &outcome {
        let outcome = Outcome::Failed(error.code().to_owned().into());
        let reason = error.reason().map(str::to_owned);
        terminal.feature.conclude(TerminalNote { action: action::TERMINAL_OPEN, outcome, reason });
    }
    // The home knows how it ended, or continues without this client; whether the client hears of it is not sure.
    if let Some(kept) = &mut terminal.feature.kept {
        kept.is_decided = true;
    }
    terminal.send(&last, ctx);
    terminal.end(1000, "the terminal has ended", ctx);
}
