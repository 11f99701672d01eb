//! Notes in the audit log that an agent has recorded a terminal.

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use serde_json::json;
use signalbox_protocol::agent::{ServiceMessage, TerminalRecorded};

use super::{AgentSession, Context, Phase};
use crate::store::RecordingNote;

/// Reports of one agent that may be on their way to the database. The agent repeats what is dropped.
const MAX_NOTING: usize = 8;

impl AgentSession {
    /// Writes the hash of a recording to the audit log once, and confirms it to the agent, which then stops reporting it.
    pub(super) fn recorded(&mut self, recorded: TerminalRecorded, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let stream_id = recorded.stream_id;
        if active.noting.len() >= MAX_NOTING || !active.noting.insert(stream_id) {
            return;
        }
        if !recorded.is_sound() {
            // To repeat it would not help.
            active.noting.remove(&stream_id);
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
            return self.send(&ServiceMessage::RecordedAck { stream_id }, ctx);
        }
        let (store, server_id, owner_id) = (self.services.store.clone(), active.server_id, active.owner_id);
        let mut detail = json!({
            "sha256": recorded.sha256,
            "bytes": recorded.bytes,
            "seconds": (recorded.seconds * 1_000.0).round() / 1_000.0,
        });
        if let Some(fields) = detail.as_object_mut().filter(|_| recorded.interrupted) {
            fields.insert("interrupted".to_owned(), true.into());
        }
        let noted = async move { store.note_recording((owner_id, server_id), stream_id, detail).await };
        ctx.spawn(noted.into_actor(self).map(move |noted, session, ctx| {
            if let Phase::Active(active) = &mut session.phase {
                active.noting.remove(&stream_id);
            }
            match noted {
                Ok(RecordingNote::New | RecordingNote::Known) => {}
                Ok(RecordingNote::NoTerminal) => {
                    tracing::warn!(
                        server.id = %server_id, stream.id = %stream_id,
                        "an agent reports the recording of a terminal that nobody opened"
                    );
                    metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
                }
                Err(error) => {
                    // The agent repeats it.
                    tracing::warn!(server.id = %server_id, %error, "cannot note the recording of a terminal");
                    return;
                }
            }
            session.send(&ServiceMessage::RecordedAck { stream_id }, ctx);
        }));
    }
}
