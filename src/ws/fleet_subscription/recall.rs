//! The last samples of servers that have none in memory.

use uuid::Uuid;

use super::view::Missing;
use crate::fleet::{Fleet, Kept};
use crate::metrics::query::History;

/// Servers in one lookup.
const AT_ONCE: usize = 500;

/// Looks up these samples and stores them in the fleet.
pub(super) async fn recall(history: History, fleet: Fleet, mut missing: Vec<Missing>) {
    // Another dashboard may have looked them up already.
    missing.retain(|missing| !fleet.is_known_to_lack_samples(missing.server_id));
    for some in missing.chunks(AT_ONCE) {
        let ids: Vec<Uuid> = some.iter().map(|missing| missing.server_id).collect();
        match history.latest_of(&ids).await {
            Ok(mut latest) => some.iter().for_each(|missing| {
                let Missing { server_id, owner_id, last_seen_at } = *missing;
                fleet.recall(Kept { server_id, owner_id, latest: latest.remove(&server_id), last_seen_at });
            }),
            Err(error) => tracing::warn!(%error, "cannot read the latest samples for a dashboard"),
        }
    }
}
