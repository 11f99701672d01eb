//! Looks up silences for the notifier.

use signalbox_protocol::Timestamp;

use super::silence;
use crate::notify::{Holding, Silences};
use crate::store::{AlertToNotify, Store};

impl Silences for Store {
    fn held_until<'a>(&'a self, wanted: &'a AlertToNotify, now: Timestamp) -> Holding<'a> {
        Box::pin(async move {
            let silences = self.silences_of(wanted.alert.owner_id, now).await?;
            Ok(silence::held_until(silences.iter(), wanted.alert.server_id, &wanted.audience.tags, now))
        })
    }
}
