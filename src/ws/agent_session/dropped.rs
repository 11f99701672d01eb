//! Stores how many series of a server's samples the history leaves out.

use std::time::{Duration, Instant};

use actix::{ActorFutureExt, AsyncContext, WrapFuture};

use super::{AgentSession, Context, Phase};

/// How long a number waits until it is stored: one that changes back and forth is written once, and not with each message.
const NOTE_AFTER: Duration = Duration::from_secs(1);

/// The pause between two writes of one session, unless dropping begins or ends: on a build machine the number changes with
/// every sample.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// The number of the latest sample, and what is stored of it.
#[derive(Default)]
pub(super) struct SeriesDropped {
    latest: u32,
    /// The stored number. `None` while it is not known: an earlier session may have stored one, or a write failed.
    noted: Option<u32>,
    /// When the last write began.
    written_at: Option<Instant>,
    /// A number waits until it is stored, or is being stored.
    is_pending: bool,
}

impl SeriesDropped {
    /// Takes the number of a sample. Returns whether it has to wait until it is stored, and none waits yet.
    fn take(&mut self, dropped: u32) -> bool {
        self.latest = dropped;
        self.noted != Some(dropped) && !std::mem::replace(&mut self.is_pending, true)
    }

    /// Returns the number to store now, after the wait: if dropping begins or ends, otherwise rarely.
    fn due(&mut self, now: Instant) -> Option<u32> {
        let begins_or_ends = self.noted.is_some_and(|noted| (noted == 0) != (self.latest == 0));
        let is_rare = self.written_at.is_none_or(|at| now.duration_since(at) >= NOTE_EVERY);
        if self.noted == Some(self.latest) || !(begins_or_ends || is_rare) {
            self.is_pending = false;
            return None;
        }
        self.written_at = Some(now);
        Some(self.latest)
    }

    /// Takes in which number was stored; `None` if the write failed.
    fn written(&mut self, stored: Option<u32>) {
        self.noted = stored;
        self.is_pending = false;
    }
}

impl AgentSession {
    /// Takes the number of series that were dropped from the last sample.
    pub(super) fn dropped(&mut self, dropped: u32, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        if active.series_dropped.take(dropped) {
            ctx.run_later(NOTE_AFTER, |session, ctx| session.note_dropped(ctx));
        }
    }

    fn note_dropped(&mut self, ctx: &mut Context) {
        let Phase::Active(active) = &mut self.phase else { return };
        let Some(dropped) = active.series_dropped.due(Instant::now()) else { return };
        let (store, server_id) = (self.services.store.clone(), active.server_id);
        let writing = actix_web::rt::spawn(async move {
            let written = store.note_series_dropped(server_id, dropped).await;
            if let Err(error) = &written {
                tracing::warn!(server.id = %server_id, %error, "cannot store the number of dropped series");
            }
            written.is_ok()
        });
        ctx.spawn(writing.into_actor(self).map(move |written, session, ctx| {
            let Phase::Active(active) = &mut session.phase else { return };
            active.series_dropped.written(matches!(written, Ok(true)).then_some(dropped));
            // It may have changed in the meantime.
            let latest = active.series_dropped.latest;
            session.dropped(latest, ctx);
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number that is written if a sample with this one comes, and what waits is due at `now`.
    fn stored(dropped: &mut SeriesDropped, count: u32, now: Instant) -> Option<u32> {
        let due = if dropped.take(count) { dropped.due(now) } else { None };
        if due.is_some() {
            dropped.written(due);
        }
        due
    }

    #[test]
    fn the_begin_and_end_of_dropping_are_stored_soon_and_changes_rarely() {
        let mut dropped = SeriesDropped::default();
        let began = Instant::now();
        let mut note = |count, seconds| stored(&mut dropped, count, began + Duration::from_secs(seconds));

        assert_eq!(note(0, 0), Some(0), "an earlier session may have stored a number");
        assert_eq!(note(0, 100), None);
        assert_eq!(note(8, 101), Some(8));
        assert_eq!(note(12, 102), None);
        assert_eq!(note(12, 161), Some(12));
        assert_eq!(note(0, 162), Some(0));
        assert_eq!(note(0, 500), None);
    }

    #[test]
    fn a_number_that_changes_a_thousand_times_is_written_once_at_a_time() {
        let (mut dropped, now) = (SeriesDropped::default(), Instant::now());
        let flips = |dropped: &mut SeriesDropped| (0..1_000).filter(|number| dropped.take(number % 2)).count();

        assert_eq!(flips(&mut dropped), 1, "all wait for the same write");
        let written = dropped.due(now);
        assert_eq!((written, flips(&mut dropped)), (Some(1), 0), "nothing waits while it is written");
        dropped.written(written);

        assert_eq!(flips(&mut dropped), 1);
    }

    #[test]
    fn a_number_whose_write_failed_is_written_later() {
        let (mut dropped, began) = (SeriesDropped::default(), Instant::now());
        assert!(dropped.take(8));
        assert_eq!(dropped.due(began), Some(8));
        dropped.written(None);

        assert_eq!(stored(&mut dropped, 8, began + NOTE_AFTER), None);
        assert_eq!(stored(&mut dropped, 8, began + NOTE_EVERY), Some(8));
    }
}
