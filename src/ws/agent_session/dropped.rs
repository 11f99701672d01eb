//! Notes at the server how many series of its samples the history leaves out.

use std::time::{Duration, Instant};

use super::AgentSession;

/// Between two notes of one session: the number changes with every sample of a build machine.
const NOTE_EVERY: Duration = Duration::from_secs(60);

/// What was noted last, and when. Nothing yet: what an earlier session noted may stand there.
#[derive(Default)]
pub(super) struct SeriesDropped {
    noted: Option<(u32, Instant)>,
}

impl SeriesDropped {
    /// Whether this is to be noted now: where it begins or ends at once, else not too often.
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
    /// So many series of the last sample were left out.
    pub(super) fn dropped(&mut self, dropped: u32) {
        let super::Phase::Active(active) = &mut self.phase else { return };
        if !active.series_dropped.is_news(dropped, Instant::now()) {
            return;
        }
        let (store, server_id) = (self.services.store.clone(), active.server_id);
        actix_web::rt::spawn(async move {
            if let Err(error) = store.note_series_dropped(server_id, dropped).await {
                tracing::warn!(server.id = %server_id, %error, "the number of series that were left out was not noted");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_or_ends_is_noted_at_once_and_what_changes_now_and_then() {
        let mut dropped = SeriesDropped::default();
        let began = Instant::now();
        let mut is_news = |count: u32, seconds: u64| dropped.is_news(count, began + Duration::from_secs(seconds));

        assert!(is_news(0, 0), "an earlier session may have noted something");
        assert!(!is_news(0, 100));
        assert!(is_news(8, 101));
        assert!(!is_news(12, 102));
        assert!(is_news(12, 161));
        assert!(is_news(0, 162));
        assert!(!is_news(0, 500));
    }
}
