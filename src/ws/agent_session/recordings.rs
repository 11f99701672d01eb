//! Notes in the audit log that an agent has recorded a terminal.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use actix::{ActorFutureExt, AsyncContext, WrapFuture};
use serde_json::json;
use signalbox_protocol::agent::{ServiceMessage, TerminalRecorded};
use uuid::Uuid;

use super::{AgentSession, Context, Phase};
use crate::store::RecordingNote;

/// Reports of one agent that may be on their way to the database, as many as an agent sends before it waits. The agent repeats
/// what is dropped.
const MAX_NOTING: usize = 4;

/// The minimum time between two reports of one agent: a report of an unknown terminal reads all entries of its server. Later ones
/// wait. So none is lost, and four that wait are through before the agent repeats them after a minute.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// Reports that do not wait, such as those of the terminals that the end of a connection has ended.
const MAX_REPORTS_AT_ONCE: u32 = 16;

/// Reports that are on their way to the database, and when the next one may be.
#[derive(Debug, Default)]
pub(super) struct Noting {
    /// The terminals whose recordings are being noted.
    running: HashSet<Uuid>,
    /// When the reports so far would have been through at the permitted rate.
    until: Option<Instant>,
}

impl Noting {
    /// Returns how long a report must wait; `None` for one that is dropped.
    fn begin(&mut self, stream_id: Uuid, now: Instant) -> Option<Duration> {
        if self.running.len() >= MAX_NOTING || !self.running.insert(stream_id) {
            return None;
        }
        let until = self.until.map_or(now, |until| until.max(now)) + REPORT_EVERY;
        self.until = Some(until);
        Some(until.duration_since(now).saturating_sub(REPORT_EVERY * MAX_REPORTS_AT_ONCE))
    }

    fn end(&mut self, stream_id: Uuid) {
        self.running.remove(&stream_id);
    }
}

impl AgentSession {
    /// Writes the hash of a recording to the audit log once, and confirms it to the agent, which then stops reporting it.
    pub(super) fn recorded(&mut self, recorded: TerminalRecorded, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let stream_id = recorded.stream_id;
        if !recorded.is_sound() {
            // To repeat it would not help.
            metrics::counter!("signalbox_agent_messages_unasked_total").increment(1);
            return self.send(&ServiceMessage::RecordedAck { stream_id }, ctx);
        }
        let Some(wait) = active.noting.begin(stream_id, Instant::now()) else { return };
        let (store, server_id, owner_id) = (self.services.store.clone(), active.server_id, active.owner_id);
        let mut detail = json!({
            "sha256": recorded.sha256,
            "bytes": recorded.bytes,
            "seconds": (recorded.seconds * 1_000.0).round() / 1_000.0,
        });
        if let Some(fields) = detail.as_object_mut().filter(|_| recorded.interrupted) {
            fields.insert("interrupted".to_owned(), true.into());
        }
        let noted = async move {
            tokio::time::sleep(wait).await;
            store.note_recording((owner_id, server_id), stream_id, detail).await
        };
        ctx.spawn(noted.into_actor(self).map(move |noted, session, ctx| {
            if let Phase::Active(active) = &mut session.phase {
                active.noting.end(stream_id);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_reports_may_come_at_once_and_later_ones_wait_five_seconds_each() {
        let (mut noting, began) = (Noting::default(), Instant::now());
        let mut wait_at = |seconds: u64| {
            let (id, now) = (Uuid::now_v7(), began + Duration::from_secs(seconds));
            let wait = noting.begin(id, now);
            noting.end(id);
            wait.map(|wait| wait.as_secs())
        };

        let at_once: Vec<_> = (0..18).map(|_| wait_at(0)).collect();
        let after_a_while = wait_at(15);
        let after_a_quiet_time: Vec<_> = (0..17).map(|_| wait_at(1_000)).collect();

        assert!(at_once.iter().take(16).all(|wait| *wait == Some(0)), "{at_once:?}");
        assert_eq!(at_once[16..], [Some(5), Some(10)]);
        assert_eq!(after_a_while, Some(0));
        assert_eq!(after_a_quiet_time[15..], [Some(0), Some(5)]);
    }

    #[test]
    fn four_reports_are_on_their_way_at_most_and_each_terminal_once() {
        let (mut noting, now) = (Noting::default(), Instant::now());
        let mut begins = |number: u128| noting.begin(Uuid::from_u128(number), now).is_some();

        let first = [1, 1, 2, 3, 4, 5].map(&mut begins);
        noting.end(Uuid::from_u128(2));
        let next = [5, 6].map(|number| noting.begin(Uuid::from_u128(number), now).is_some());

        assert_eq!(first, [true, false, true, true, true, false]);
        assert_eq!(next, [true, false]);
    }
}
