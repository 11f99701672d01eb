use sea_orm::DeriveValueType;
use signalbox_protocol::Timestamp;

/// Milliseconds since the Unix epoch, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, DeriveValueType)]
pub struct Millis(pub i64);

impl From<Timestamp> for Millis {
    fn from(time: Timestamp) -> Self {
        Self(time.as_millis())
    }
}

impl From<Millis> for Timestamp {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}
