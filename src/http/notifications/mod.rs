//! `/notifications`: channels, and the notifications that were sent on them.

mod channels;
pub(super) mod deliveries;
pub(super) mod fields;
mod settings;

use paperclip::actix::web::{Resource, delete, get, post, put};

use super::path::at;

/// The routes. Fixed paths come before those with parameters that would match them.
pub fn routes() -> Vec<Resource> {
    vec![
        at("/notifications/channels").route(get().to(channels::list)).route(post().to(channels::create)),
        at("/notifications/channels/{id}")
            .route(get().to(channels::read))
            .route(put().to(channels::update))
            .route(delete().to(channels::delete)),
        at("/notifications/channels/{id}/test").route(post().to(channels::test)),
        at("/notifications/deliveries").route(get().to(deliveries::list)),
    ]
}
