//! Stores how many series of a server's samples the history leaves out.

use std::time::{Duration, Instant};

use super::AgentSession;

/// The pause between two writes of one session: on a build machine the number changes with every sample.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// The number last stored, and when. `None` at first, because an earlier session may have stored a number.
#[derive(Default)]
pub(super) struct SeriesDropped {
    noted: Option<(u32, Instant)>,
}

impl SeriesDropped {
    /// Whether to store this number now: at once when dropping begins or ends, otherwise rarely.
    fn is_news(&mut self, dropped: u32, now: Instant) -> bool {
        let is_news = self.noted.is_none_or(|(noted, at)| {
            noted != dropped && ((noted == 0) != (dropped == 0) || now.duration_since(at) >= NOTE_EVERY)
        });
        if is_news {
            self.noted = Some((dropped, now));
        }
        is_news
    }
}

impl AgentSession {
    /// Takes the number of series that were dropped from the last sample.
    pub(super) fn dropped(&mut self, dropped: u32) {
        let super::Phase::Active(active) = &mut self.phase else { return };
        if !active.series_dropped.is_news(dropped, Instant::now()) {
            return;
        }
        let (store, server_id) = (self.services.store.clone(), active.server_id);
        actix_web::rt::spawn(async move {
            if let Err(error) = store.note_series_dropped(server_id, dropped).await {
                tracing::warn!(server.id = %server_id, %error, "cannot store the number of dropped series");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_begin_and_end_of_dropping_are_stored_at_once_and_changes_rarely() {
        let mut dropped = SeriesDropped::default();
        let began = Instant::now();
        let mut is_news = |count: u32, seconds: u64| dropped.is_news(count, began + Duration::from_secs(seconds));

        assert!(is_news(0, 0), "an earlier session may have stored a number");
        assert!(!is_news(0, 100));
        assert!(is_news(8, 101));
        assert!(!is_news(12, 102));
        assert!(is_news(12, 161));
        assert!(is_news(0, 162));
        assert!(!is_news(0, 500));
    }
}
