//! The descriptions of open series that an agent sends before their values.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use signalbox_protocol::close;
use signalbox_protocol::series::SeriesDescription;

use super::{AgentSession, Context, Phase};

/// The pause between two writes of help texts: an agent describes its series once, but a broken one does so repeatedly.
const NOTE_EVERY: Duration = Duration::from_secs(10);

/// How long the socket waits for the write, so that descriptions are stored before a later sample is acknowledged. A
/// database that is away must not keep people from watching and using the server.
const NOTED_WITHIN: Duration = Duration::from_secs(1);

/// Help texts that may wait to be written.
const MAX_WAITING: usize = 4_000;

/// The help texts of the agent's series by name, as far as they are not written yet.
#[derive(Default)]
pub(super) struct HelpToNote {
    waiting: BTreeMap<String, String>,
    was_noted: bool,
}

impl AgentSession {
    pub(super) fn describe(&mut self, series: Vec<SeriesDescription>, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        match self.services.pipeline.describe(&mut active.described, series) {
            Ok(help) => {
                let dropped = active.described.dropped();
                if active.help.waiting.len() + help.len() <= MAX_WAITING {
                    active.help.waiting.extend(help);
                }
                if dropped > 0 {
                    self.dropped(dropped);
                }
                self.note_help(ctx);
            }
            Err(error) => {
                tracing::debug!(server.id = %active.server_id, %error, "series were refused");
                self.end(close::MALFORMED, &error.to_string(), ctx);
            }
        }
    }

    fn note_help(&mut self, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        if active.help.was_noted || active.help.waiting.is_empty() {
            return;
        }
        active.help.was_noted = true;
        let (store, server_id) = (self.services.store.clone(), active.server_id);
        let help = std::mem::take(&mut active.help.waiting);
        let written = actix_web::rt::spawn(async move {
            if let Err(error) = store.note_series_help(server_id, &help).await {
                tracing::warn!(server.id = %server_id, %error, "cannot store the descriptions of an agent's series");
            }
        });
        ctx.wait(tokio::time::timeout(NOTED_WITHIN, written).into_actor(self).map(|_, _, _| ()));
        ctx.run_later(NOTE_EVERY, |session, ctx| {
            if let Phase::Active(active) = &mut session.phase {
                active.help.was_noted = false;
            }
            session.note_help(ctx);
        });
    }
}
