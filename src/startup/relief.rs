//! What is dropped when the process exceeds its memory budget.

use crate::state::State;
use crate::store::Store;

/// Returns the action for each change between too little and enough memory.
pub fn tighten(state: &State) -> impl Fn(bool) + use<> {
    let (tail, store) = (state.metrics.tail.clone(), state.store.clone());
    move |is_tight| {
        tail.tighten(is_tight);
        if is_tight {
            actix_web::rt::spawn(forget_pages(store.clone()));
        }
    }
}

/// Drops the database's page cache.
async fn forget_pages(store: Store) {
    if let Err(error) = store.forget_pages().await {
        tracing::warn!(%error, "cannot drop the database's page cache");
    }
}
