//! A dashboard's terminal on one server.
//!
//! The terminal takes output from the agent one message at a time and returns credit as it is sent: a browser that does
//! not read stops only the program in the terminal. Input is handed on in order; while the agent's session is busy,
//! nothing more is read from the browser.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use signalbox_protocol::agent::{AgentMessage, Asker, ServiceMessage, TerminalSize, TerminalStart};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::signed::Signed;
use uuid::Uuid;

use super::dashboard::{self, Context, Dashboard, Feature, Recognition, SocketAuth};
use crate::audit::{Actor, Entry, Outcome, action};
use crate::feeds::Topic;
use crate::registry::{AgentLink, AgentStream, CallError, RegistryHandle, cost};
use crate::state::State;
use crate::store::{Store, StoreError};

/// Bytes that the agent may send ahead of the browser.
const CREDIT: u64 = 256 * 1024;

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
    /// The way to its agent.
    link: AgentLink,
    stream_id: Uuid,
    /// `None` while a task waits for its next message.
    stream: Option<AgentStream>,
    /// Bytes that were sent and not yet returned as credit.
    owed: u64,
    /// The audit entry to write when the terminal ends.
    entry: Option<Entry>,
    store: Store,
}

/// The size and the user of a terminal to be opened.
pub struct Opening {
    pub owner_id: Uuid,
    pub actor: Actor,
    /// The same person, for the agent.
    pub asker: Option<Asker>,
    pub size: TerminalSize,
    /// What operators signed for it.
    pub signed: Option<Signed>,
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
    pub async fn start(
        store: &Store,
        registry: &RegistryHandle,
        server_id: Uuid,
        opening: Opening,
    ) -> Result<Self, StoreError> {
        let Opening { owner_id, actor, asker, size, signed } = opening;
        let stream_id = Uuid::now_v7();
        let by = Some(actor.to_string());
        let entry = Entry::new(action::TERMINAL_OPEN, owner_id, actor).on_server(server_id).target(stream_id);
        let started = match &signed {
            Some(signed) => entry.clone().detail(json!({ "signed": signed })),
            None => entry.clone(),
        };
        store.record(started.outcome(Outcome::Started)).await?;
        let start = TerminalStart { stream_id, size, credit: Some(CREDIT), by, asker, signed };
        let stream = registry.open_terminal(server_id, start).ok();
        let link = registry.link(server_id);
        Ok(Self { link, stream_id, stream, owed: 0, entry: Some(entry), store: store.clone() })
    }

    /// Writes how the terminal ended to the audit log, once.
    fn conclude(&mut self, outcome: Outcome) {
        let Some(entry) = self.entry.take() else { return };
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.record(entry.outcome(outcome)).await {
                tracing::error!(%error, "cannot record the end of a terminal");
            }
        });
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        self.conclude(Outcome::Ok);
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
        match terminal.feature.stream.take() {
            Some(stream) => pump(terminal, stream, ctx),
            None => over(terminal, Err(CallError::Busy), ctx),
        }
    }

    fn message(terminal: &mut Terminal, kind: &str, message: &Value, ctx: &mut Context<Self>) -> Recognition {
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
    let link = terminal.feature.link.clone();
    let told = async move { tokio::time::timeout(PATIENCE, link.send(message)).await };
    ctx.wait(told.into_actor(terminal).map(|told, terminal, ctx| {
        if !matches!(told, Ok(Ok(()))) {
            over(terminal, Err(CallError::Disconnected), ctx);
        }
    }));
}

/// Waits for the agent's next message, and shows it.
fn pump(terminal: &mut Terminal, mut stream: AgentStream, ctx: &mut Context<LiveTerminal>) {
    let credit = if terminal.feature.owed >= PORTION { std::mem::take(&mut terminal.feature.owed) } else { 0 };
    let pumped = async move {
        if credit > 0 {
            // An agent that has gone ends the stream, which the next call reports.
            _ = stream.grant(credit).await;
        }
        let pumped = match stream.next().await {
            Some(message) => Pumped::Message(Box::new(message)),
            None => Pumped::Ended(stream.outcome().await),
        };
        (stream, pumped)
    };
    ctx.spawn(pumped.into_actor(terminal).map(|(stream, pumped), terminal, ctx| match pumped {
        Pumped::Message(message) => {
            terminal.feature.owed += cost(&message);
            if let AgentMessage::TerminalOutput(output) = *message {
                terminal.send(&FeedMessage::Output { stream: None, data: output.data, offset: None }, ctx);
            }
            pump(terminal, stream, ctx);
        }
        Pumped::Ended(outcome) => over(terminal, outcome, ctx),
    }));
}

/// Sends how the terminal ended, and closes the socket.
fn over(terminal: &mut Terminal, outcome: Result<Value, CallError>, ctx: &mut Context<LiveTerminal>) {
    let last = match &outcome {
        Ok(result) => FeedMessage::Exit { exit_code: result.get("exit_code").and_then(Value::as_i64) },
        Err(error) => FeedMessage::Error { code: error.code().to_owned(), detail: error.to_string() },
    };
    if let Err(error) = &outcome {
        terminal.feature.conclude(Outcome::Failed(error.code().to_owned().into()));
    }
    terminal.send(&last, ctx);
    terminal.end(1000, "the terminal has ended", ctx);
}
