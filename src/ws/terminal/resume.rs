//! A terminal that its client resumes.

use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use signalbox_protocol::agent::{AgentMessage, Asker, TerminalSize};
use signalbox_protocol::close;
use signalbox_protocol::frontend::FeedMessage;
use uuid::Uuid;

use super::{Kept, LiveTerminal, Opening, PATIENCE, Terminal, data, over, pump, show};
use crate::audit::{Entry, Outcome, action};
use crate::random;
use crate::registry::terminal::{Closer, Holder, Intent, KeptRequest};
use crate::registry::{AgentStream, CallError, RegistryHandle};
use crate::store::Store;
use crate::ws::dashboard::Context;

/// What a client says of the terminal that it resumes.
#[derive(Deserialize)]
struct Resume {
    terminal_id: Uuid,
    secret: String,
    /// How many bytes of output it has.
    #[serde(default)]
    offset: u64,
}

impl Kept {
    /// A new terminal, with a secret of 256 random bits.
    pub(super) fn fresh(terminal_id: Uuid, kept_for: Duration) -> Result<Self, getrandom::Error> {
        let secret = SecretString::from(BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>()?));
        Ok(Self::new(terminal_id, secret, kept_for, 0))
    }

    fn new(terminal_id: Uuid, secret: SecretString, kept_for: Duration, offset: u64) -> Self {
        Self { terminal_id, secret, kept_for, offset, is_told: false, closer: None, is_decided: false }
    }

    pub(super) fn holder(&self, user_id: Uuid, token_id: Option<Uuid>, asker: Option<Asker>) -> Holder {
        let secret_digest = Sha256::digest(self.secret.expose_secret().as_bytes()).to_vec();
        Holder { user_id, token_id, secret_digest, asker }
    }

    /// What to tell the client first: once, when the home has the terminal, whose output it gets from `begins` on.
    pub(super) fn tell(&mut self, begins: u64) -> Option<Vec<FeedMessage>> {
        if std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        if !self.is_decided {
            _ = self.closer.as_ref().map(Closer::keep);
        }
        let secret = self.secret.expose_secret().to_owned();
        let kept = FeedMessage::Kept { terminal_id: self.terminal_id, secret, seconds: self.kept_for.as_secs() };
        let missing = begins.saturating_sub(self.offset);
        Some(std::iter::once(kept).chain((missing > 0).then_some(FeedMessage::LeftOut { bytes: missing })).collect())
    }
}

/// Closes a socket whose client does not say in time which terminal it resumes.
pub(super) fn await_message(ctx: &mut Context<LiveTerminal>) {
    ctx.run_later(PATIENCE, |terminal, ctx| {
        if terminal.feature.resuming.is_some() {
            terminal.end(close::AUTH_TIMEOUT, "no resume message in time", ctx);
        }
    });
}

/// Takes the client's first message, which must name the terminal.
pub(super) fn first_message(
    terminal: &mut Terminal,
    opening: Opening,
    kind: &str,
    message: &Value,
    ctx: &mut Context<LiveTerminal>,
) {
    let Some(resume) = data::<Resume>(message).filter(|_| kind == "resume") else {
        return terminal.end(close::MALFORMED, "the first message must be resume, with terminal_id and secret", ctx);
    };
    let Some(user_id) = opening.actor.user_id else { return over(terminal, Err(CallError::Offline), ctx) };
    let Resume { terminal_id, secret, offset } = resume;
    let kept = Kept::new(terminal_id, SecretString::from(secret), opening.kept_for.unwrap_or_default(), offset);
    let holder = kept.holder(user_id, opening.actor.token.as_ref().map(|token| token.id), opening.asker);
    let entry = Entry::new(action::TERMINAL_RESUME, opening.owner_id, opening.actor);
    let entry = entry.on_server(terminal.feature.server_id).target(terminal_id);
    terminal.feature.kept = Some(kept);
    let asked = Asked {
        registry: terminal.feature.registry.clone(),
        store: terminal.feature.store.clone(),
        server_id: terminal.feature.server_id,
        entry,
        terminal_id,
        holder,
        size: opening.size,
        offset,
    };
    let resumed = asked.resume(terminal.feature.stream_id);
    ctx.wait(resumed.into_actor(terminal).map(|resumed, terminal, ctx| match resumed {
        Ok((stream, first)) => {
            show(terminal, first, ctx);
            pump(terminal, stream, ctx);
        }
        Err(error) => over(terminal, Err(error), ctx),
    }));
}

/// A terminal that a client asks for, and who asks.
struct Asked {
    registry: RegistryHandle,
    store: Store,
    server_id: Uuid,
    entry: Entry,
    terminal_id: Uuid,
    holder: Holder,
    size: TerminalSize,
    offset: u64,
}

/// How a stream begins.
enum Beginning {
    Message(Box<(AgentStream, AgentMessage)>),
    End(Result<Value, CallError>),
}

impl Asked {
    /// Returns the stream, and what it begins with.
    async fn resume(self, stream_id: Uuid) -> Result<(AgentStream, AgentMessage), CallError> {
        if let Beginning::End(Err(error)) = self.ask(Uuid::now_v7(), Intent::Check).await? {
            return Err(self.refused(error).await);
        }
        // Before the client that has the terminal loses it, and before anybody types into it.
        self.record(Outcome::Ok).await?;
        match self.ask(stream_id, Intent::Take).await? {
            Beginning::Message(begun) => Ok(*begun),
            // The terminal has ended in between.
            Beginning::End(outcome) => Err(self.refused(outcome.err().unwrap_or(CallError::Disconnected)).await),
        }
    }

    async fn ask(&self, stream_id: Uuid, intent: Intent) -> Result<Beginning, CallError> {
        let (terminal_id, holder) = (self.terminal_id, self.holder.clone());
        let request =
            KeptRequest::Resume { stream_id, terminal_id, holder, size: self.size, offset: self.offset, intent };
        let mut stream = self.registry.open_kept(self.server_id, request)?;
        let first = tokio::time::timeout(PATIENCE, stream.next()).await.map_err(|_| CallError::Timeout)?;
        Ok(match first {
            Some(first) => Beginning::Message(Box::new((stream, first))),
            None => Beginning::End(stream.outcome().await),
        })
    }

    /// Records a refusal. Returns it, or why it cannot be recorded.
    async fn refused(&self, error: CallError) -> CallError {
        let recorded = self.record(Outcome::Failed(error.code().to_owned().into())).await;
        recorded.err().unwrap_or(error)
    }

    async fn record(&self, outcome: Outcome) -> Result<(), CallError> {
        self.store.record(self.entry.clone().outcome(outcome)).await.map_err(|error| {
            tracing::error!(%error, "cannot record who resumes a terminal");
            CallError::Busy
        })
    }
}
