//! The last samples of servers of which none is known here.

use uuid::Uuid;

use super::view::Missing;
use crate::fleet::Fleet;
use crate::fleet::abroad::Abroad;
use crate::metrics::query::History;

/// Servers of other instances that are looked up at once.
const AT_ONCE: usize = 500;

/// Looks them up. The fleet has them then.
pub(super) async fn recall(history: History, fleet: Fleet, owner_id: Uuid, missing: Vec<Missing>) {
    match fleet.abroad() {
        Some(abroad) => of_others(&history, abroad, owner_id, &missing).await,
        None => one_by_one(&history, &fleet, &missing).await,
    }
}

async fn one_by_one(history: &History, fleet: &Fleet, missing: &[Missing]) {
    for Missing { server_id, .. } in missing {
        // By the dashboard that asked first.
        if fleet.is_known_to_lack_samples(*server_id) {
            continue;
        }
        match history.latest(*server_id).await {
            Ok(Some(_)) => {}
            Ok(None) => fleet.lacks_samples(*server_id),
            Err(error) => {
                tracing::warn!(server.id = %server_id, %error, "the latest sample could not be read for a dashboard");
            }
        }
    }
}

async fn of_others(history: &History, abroad: &Abroad, owner_id: Uuid, missing: &[Missing]) {
    for some in missing.chunks(AT_ONCE) {
        let ids: Vec<Uuid> = some.iter().map(|missing| missing.server_id).collect();
        match history.latest_of(&ids).await {
            Ok(mut latest) => some.iter().for_each(|Missing { server_id, last_seen_at }| {
                abroad.recall(owner_id, *server_id, latest.remove(server_id), *last_seen_at);
            }),
            Err(error) => tracing::warn!(%error, "latest samples could not be read for a dashboard"),
        }
    }
}
