//! Pauses between attempts to fetch or try the same build, whose reason is outside of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many builds are remembered.
const MAX: usize = 16;

/// Cheap to clone. The agents that run one after the other in a process share it.
#[derive(Debug, Clone, Default)]
pub struct Pauses(Arc<Mutex<Vec<Pause>>>);

#[derive(Debug)]
struct Pause {
    sha256: String,
    length: Duration,
    until: Instant,
}

impl Pauses {
    /// Whether this build is not fetched now.
    pub fn has(&self, sha256: &str) -> bool {
        self.0.lock().iter().any(|pause| pause.sha256 == sha256 && pause.until > Instant::now())
    }

    /// Begins a pause of this build, twice as long as the one before.
    pub fn begin(&self, sha256: &str, first: Duration, most: Duration) {
        let mut pauses = self.0.lock();
        let before = pauses.iter().find(|pause| pause.sha256 == sha256).map(|pause| pause.length);
        let length = before.map_or(first, |length| (length * 2).min(most));
        pauses.retain(|pause| pause.sha256 != sha256);
        pauses.push(Pause { sha256: sha256.to_owned(), length, until: Instant::now() + length });
        let surplus = pauses.len().saturating_sub(MAX);
        pauses.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_their_bound() {
        let (pauses, minute) = (Pauses::default(), Duration::from_secs(60));
        let mut minutes = Vec::new();
        for _ in 0..9 {
            let began = Instant::now();
            pauses.clone().begin("ab", minute, 60 * minute);
            while pauses.has("ab") {
                sleep(minute).await;
            }
            minutes.push(began.elapsed().as_secs() / 60);
        }

        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert!(!pauses.has("cd"));
    }

    #[tokio::test(start_paused = true)]
    async fn only_some_builds_are_remembered() {
        let (pauses, minute) = (Pauses::default(), Duration::from_secs(60));

        (0..=MAX).for_each(|number| pauses.begin(&number.to_string(), minute, minute));

        assert_eq!((pauses.has("0"), pauses.has("1"), pauses.0.lock().len()), (false, true, MAX));
    }
}
