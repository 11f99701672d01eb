//! tmp
use crate::store::Silence;
use signalbox_protocol::Timestamp;
use uuid::Uuid;
pub fn held_until<'a>(_: impl Iterator<Item = &'a Silence>, _: Uuid, _: &[String], _: Timestamp) -> Option<Timestamp> {
    None
}
