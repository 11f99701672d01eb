//! Where a sample goes: into the fleet (the latest), to whoever watches, and to the recorder.

use std::sync::Arc;

use bytestring::ByteString;
use signalbox_protocol::agent::Metrics;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use super::codec;
use super::frame::Row;
use super::recorder::{self, Batch, NewSample, Recorded, RecorderHandle};
use super::tail::{Fresh, Tail};
use crate::alerts::{Alerts, Lane};
use crate::feeds::{Feeds, Frame, Topic};
use crate::fleet::{Fleet, Snapshot};

/// A sample further in the future than this is refused: its clock is broken, and it would be the latest for ever.
const MAX_AHEAD_MS: i64 = 24 * 3600 * 1000;

/// How old a sample of now may be, by the clocks of two machines.
const OF_NOW_MS: i64 = 60 * 1000;

/// The largest sample that is kept, encoded. An ordinary one takes 300 bytes, and a thousand containers 64 KiB; reading
/// the history holds a page of them.
const MAX_ENCODED_BYTES: usize = 256 * 1024;

/// The way of a sample, behind cheap clones.
#[derive(Clone)]
pub struct Pipeline {
    fleet: Fleet,
    feeds: Feeds,
    recorder: RecorderHandle,
    tail: Tail,
    alerts: Alerts,
}

/// Where samples come from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub server_id: Uuid,
    pub owner_id: Uuid,
}

/// A batch that was read and shown, and waits to be made durable.
pub struct Accepted {
    pub seq: u64,
    samples: Vec<NewSample>,
}

impl Accepted {
    /// The memory that it takes while it waits.
    pub fn bytes(&self) -> usize {
        recorder::weight(&self.samples)
    }
}

/// Why a `metrics` message is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    OutOfRange(#[from] signalbox_protocol::sample::OutOfRange),
    #[error("too many samples in one message")]
    TooMany,
    #[error("a sample is larger than 256 KiB")]
    TooLarge,
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
}

impl Pipeline {
    pub fn new(fleet: Fleet, feeds: Feeds, recorder: RecorderHandle, tail: Tail, alerts: Alerts) -> Self {
        Self { fleet, feeds, recorder, tail, alerts }
    }

    /// Checks a message as a whole, then shows its samples. Nothing is shown of a message that is refused. The agent's
    /// clock is `offset_ms` ahead of ours, as far as is known.
    pub fn accept(
        &self,
        Source { server_id, owner_id }: Source,
        metrics: Metrics,
        now: Timestamp,
        offset_ms: i64,
    ) -> Result<Accepted, Refused> {
        if metrics.samples.len() > signalbox_protocol::agent::MAX_SAMPLES {
            return Err(Refused::TooMany);
        }
        metrics.samples.iter().try_for_each(Sample::validate)?;

        let mut accepted = Vec::with_capacity(metrics.samples.len());
        for mut sample in metrics.samples {
            if sample.timestamp.millis_since(now) > MAX_AHEAD_MS {
                metrics::counter!("signalbox_samples_refused_total").increment(1);
                continue;
            }
            sample.round();
            let data = codec::encode(&sample)?;
            if data.len() > MAX_ENCODED_BYTES {
                return Err(Refused::TooLarge);
            }
            // They are kept beside the sample, and are not part of what is shown.
            let processes = sample.processes.take().map(Arc::new);
            accepted.push((sample, processes, data));
        }

        let mut samples = Vec::with_capacity(accepted.len());
        for (sample, processes, encoded) in accepted {
            let row = Row::of(&sample, self.tail.shape(server_id, &sample));
            let snapshot = Arc::new(Snapshot::new(server_id, sample));
            let lane = if self.show(&snapshot, owner_id, now) { lane(&snapshot, now, offset_ms) } else { Lane::Late };
            self.alerts.sample(&snapshot, processes.as_ref(), lane, now);
            samples.push(NewSample { server_id, fresh: Fresh { row, processes }, encoded });
        }
        self.fleet.seen(server_id, now);
        Ok(Accepted { seq: metrics.seq, samples })
    }

    /// Hands a batch to the recorder, which tells `done` when it is durable. Gives it back when there is no room.
    /// They are written if `session_id` holds the server then.
    pub fn record(&self, batch: Accepted, session_id: Uuid, done: actix::Recipient<Recorded>) -> Result<(), Accepted> {
        let Accepted { seq, samples } = batch;
        self.recorder
            .record(Batch { seq, session_id, samples, done })
            .map_err(|Batch { seq, samples, .. }| Accepted { seq, samples })
    }

    /// Makes a sample the latest and publishes it. One that is not the latest comes from an agent that catches up behind
    /// its live samples. It is history: shown, it would set a dashboard back, and a day of such samples would push the
    /// live ones out of its queue. Gives whether it is the latest.
    fn show(&self, snapshot: &Arc<Snapshot>, owner_id: Uuid, now: Timestamp) -> bool {
        let topic = Topic::Server(snapshot.server_id);
        let is_present = self.fleet.record(snapshot.clone()) || self.is_put_right(snapshot, now);
        if is_present && self.feeds.is_watched(topic) {
            self.feeds.publish(topic, Frame::Metrics(metrics_message(snapshot)));
        }
        // Those who watch all servers on this instance look into the fleet.
        if let Some(exchange) = self.feeds.exchange().filter(|_| is_present) {
            exchange.sample(owner_id, snapshot);
        }
        is_present
    }

    /// Whether this is of now, while what counts as the latest is of the future: the machine's clock was ahead and was
    /// put right. Such a machine must not be silent until its old time has come.
    fn is_put_right(&self, snapshot: &Snapshot, now: Timestamp) -> bool {
        let latest_is_ahead =
            || self.fleet.latest(snapshot.server_id).is_some_and(|latest| latest.sample.timestamp > now);
        now.millis_since(snapshot.sample.timestamp) <= OF_NOW_MS && latest_is_ahead()
    }
}

/// Whether the latest sample is of now. After an outage, and from an agent that sends in order, the latest so far may
/// be hours old. Where the agent's clock is off, its own time counts.
fn lane(latest: &Snapshot, now: Timestamp, offset_ms: i64) -> Lane {
    let age_ms = now.millis_since(latest.sample.timestamp);
    let is_of_now = age_ms.min(age_ms.saturating_add(offset_ms)) <= OF_NOW_MS;
    if is_of_now { Lane::Live } else { Lane::Late }
}

/// The `metrics` message of a snapshot, as every dashboard gets it.
pub fn metrics_message(snapshot: &Snapshot) -> ByteString {
    let json = snapshot.json();
    let message = [b"{\"type\":\"metrics\",\"data\":", json.as_ref(), b"}"].concat();
    ByteString::try_from(message).unwrap_or_default()
}
