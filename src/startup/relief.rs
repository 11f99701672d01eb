//! What is let go of when the process holds more memory than it may.

use crate::state::State;
use crate::store::Store;

/// What is done each time that memory becomes short, and when it is enough again.
pub fn tighten(state: &State) -> impl Fn(bool) + use<> {
    let (tail, store) = (state.metrics.tail.clone(), state.store.clone());
    move |is_tight| {
        tail.tighten(is_tight);
        if is_tight {
            actix_web::rt::spawn(forget_pages(store.clone()));
        }
    }
}

/// Lets go of what the database keeps in memory to be quick.
async fn forget_pages(store: Store) {
    if let Err(error) = store.forget_pages().await {
        tracing::warn!(%error, "the database keeps its pages in memory");
    }
}
