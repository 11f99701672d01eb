//! Which part of the work that must happen once is this instance's at the moment.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use uuid::Uuid;

use crate::store::Share;

/// What is this instance's, behind cheap clones. It changes while others come and go, so it is asked anew each time.
#[derive(Clone)]
pub struct Shards(Arc<RwLock<Held>>);

struct Held {
    share: Share,
    /// From then on it may be somebody else's; none where there is nobody else.
    until: Option<Instant>,
}

impl Shards {
    /// Those of the only instance.
    pub fn all() -> Self {
        Self::of(Held { share: Share::All, until: None })
    }

    /// Nothing yet.
    pub fn none() -> Self {
        Self::of(Held { share: Share::Of(Vec::new()), until: None })
    }

    fn of(held: Held) -> Self {
        Self(Arc::new(RwLock::new(held)))
    }

    /// What is this instance's now.
    pub fn share(&self) -> Share {
        let held = self.0.read();
        if held.is_over() { Share::Of(Vec::new()) } else { held.share.clone() }
    }

    /// Whether what has this id is this instance's to look after.
    pub fn holds(&self, id: Uuid) -> bool {
        let held = self.0.read();
        !held.is_over() && held.share.holds(id)
    }

    /// Takes these, until then.
    pub fn set(&self, shards: Vec<i16>, until: Instant) {
        *self.0.write() = Held { share: Share::Of(shards), until: Some(until) };
    }

    /// Gives everything up.
    pub fn lose(&self) {
        self.set(Vec::new(), Instant::now());
    }
}

impl Held {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_was_not_renewed_in_time_is_nobodys() {
        let shards = Shards::none();
        assert!(!shards.holds(Uuid::nil()));

        shards.set(vec![0], Instant::now() + Duration::from_secs(3_600));
        assert!(shards.holds(Uuid::nil()) && !shards.holds(Uuid::from_u128(1)));
        shards.set(vec![0], Instant::now());

        assert!(!shards.holds(Uuid::nil()));
        assert_eq!(shards.share(), Share::Of(Vec::new()));
    }
}
