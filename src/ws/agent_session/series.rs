//! The descriptions of open series that an agent sends before their values.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use signalbox_protocol::close;
use signalbox_protocol::series::SeriesDescription;
use tokio::sync::oneshot;

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
    /// Some are being written, or were a moment ago.
    was_noted: bool,
}

impl HelpToNote {
    /// Adds texts, if there is room for them.
    fn add(&mut self, help: BTreeMap<String, String>) {
        if self.waiting.len() + help.len() <= MAX_WAITING {
            self.waiting.extend(help);
        }
    }

    /// Takes back texts whose write failed, except those that the agent has described again.
    fn put_back(&mut self, mut unwritten: BTreeMap<String, String>) {
        unwritten.retain(|name, _| !self.waiting.contains_key(name));
        self.add(unwritten);
    }
}

impl AgentSession {
    pub(super) fn describe(&mut self, series: Vec<SeriesDescription>, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        match self.services.pipeline.describe(&mut active.described, series) {
            Ok(help) => {
                let dropped = active.described.dropped();
                active.help.add(help);
                if dropped > 0 {
                    self.dropped(dropped, ctx);
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
        let (ended, has_ended) = oneshot::channel::<()>();
        let writing = actix_web::rt::spawn(async move {
            let written = store.note_series_help(server_id, &help).await;
            // The session reads on.
            drop(ended);
            match written {
                Ok(()) => BTreeMap::new(),
                Err(error) => {
                    tracing::warn!(server.id = %server_id, %error, "cannot store the descriptions of an agent's series");
                    help
                }
            }
        });
        ctx.wait(tokio::time::timeout(NOTED_WITHIN, has_ended).into_actor(self).map(|_, _, _| ()));
        ctx.spawn(writing.into_actor(self).map(|unwritten, session, ctx| {
            if let (Ok(left), Phase::Active(active)) = (unwritten, &mut session.phase) {
                active.help.put_back(left);
            }
            ctx.run_later(NOTE_EVERY, |session, ctx| {
                if let Phase::Active(active) = &mut session.phase {
                    active.help.was_noted = false;
                }
                session.note_help(ctx);
            });
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help<const N: usize>(texts: [(&str, &str); N]) -> BTreeMap<String, String> {
        texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    }

    #[test]
    fn texts_whose_write_failed_wait_again_unless_newer_ones_do() {
        let mut noted = HelpToNote::default();
        noted.add(help([("queue", "new")]));

        noted.put_back(help([("disk", "old"), ("queue", "old")]));

        assert_eq!(noted.waiting, help([("disk", "old"), ("queue", "new")]));
    }

    #[test]
    fn texts_that_wait_are_bounded() {
        let many = |prefix: &str| (0..MAX_WAITING).map(|id| (format!("{prefix}_{id}"), String::new())).collect();
        let mut noted = HelpToNote::default();
        noted.add(many("first"));

        noted.add(many("second"));
        noted.put_back(many("third"));

        assert_eq!(noted.waiting, many("first"));
    }
}
