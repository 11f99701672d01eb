//! What the service sends to the agent.

use bytes::Bytes;
use bytestring::ByteString;
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::ServiceMessage;

use super::{AgentSession, Context};

impl AgentSession {
    pub(super) fn ping(&mut self, ctx: &mut Context) {
        if self.gate.is_paused() {
            // We do not listen, so its silence is our doing. A peer that has gone does not acknowledge the ping either,
            // and then the kernel ends the connection.
            self.heartbeat.beat();
        }
        ctx.ping(b"");
    }

    pub(super) fn send(&mut self, message: &ServiceMessage, ctx: &mut Context) {
        match self.encoding.encode(message) {
            Ok(bytes) => send_encoded(self.encoding, bytes, ctx),
            Err(error) => tracing::error!(%error, "cannot encode a message to an agent"),
        }
    }
}

fn send_encoded(encoding: Encoding, bytes: Bytes, ctx: &mut Context) {
    match encoding {
        Encoding::Json => ctx.text(ByteString::try_from(bytes).unwrap_or_default()),
        Encoding::MessagePack => ctx.binary(bytes),
    }
}
