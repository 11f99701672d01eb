//! Which part of the work that must happen once belongs to this instance at the moment.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;
use uuid::Uuid;

use crate::store::Share;

/// The shards of this instance. Clones are cheap. They change while other instances come and go, so callers must not
/// cache them.
#[derive(Clone)]
pub struct Shards(Arc<RwLock<HeldShards>>);

struct HeldShards {
    share: Share,
    /// After this the shards may belong to another instance; `None` if there is no other.
    until: Option<Instant>,
}

impl Shards {
    /// The shards of the only instance: all of them.
    pub fn all() -> Self {
        Self::of(HeldShards { share: Share::All, until: None })
    }

    /// No shards yet.
    pub fn none() -> Self {
        Self::of(HeldShards { share: Share::Of(Vec::new()), until: None })
    }

    fn of(held: HeldShards) -> Self {
        Self(Arc::new(RwLock::new(held)))
    }

    /// The shards that this instance has now.
    pub fn share(&self) -> Share {
        let held = self.0.read();
        if held.is_over() { Share::Of(Vec::new()) } else { held.share.clone() }
    }

    /// Whether this instance is responsible for the item with this id.
    pub fn holds(&self, id: Uuid) -> bool {
        let held = self.0.read();
        !held.is_over() && held.share.holds(id)
    }

    /// Sets the shards, valid until `until`.
    pub fn set(&self, shards: Vec<i16>, until: Instant) {
        *self.0.write() = HeldShards { share: Share::Of(shards), until: Some(until) };
    }

    /// Gives up all shards.
    pub fn lose(&self) {
        self.set(Vec::new(), Instant::now());
    }
}

impl HeldShards {
    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn shards_that_were_not_renewed_in_time_expire() {
        let shards = Shards::none();
        assert!(!shards.holds(Uuid::nil()));

        shards.set(vec![0], Instant::now() + Duration::from_secs(3_600));
        assert!(shards.holds(Uuid::nil()) && !shards.holds(Uuid::from_u128(1)));
        shards.set(vec![0], Instant::now());

        assert!(!shards.holds(Uuid::nil()));
        assert_eq!(shards.share(), Share::Of(Vec::new()));
    }
}
