//! The path of a sample: to the fleet (the latest sample), the evaluators, the subscribers and the recorder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytestring::ByteString;
use signalbox_history::codec;
use signalbox_history::frame::Row;
use signalbox_history::open::{Measured, Open};
use signalbox_protocol::agent::Metrics;
use signalbox_protocol::series::SeriesDescription;
use signalbox_protocol::{Sample, Timestamp};
use uuid::Uuid;

use crate::alerts::{Alerts, Beside, Freshness};
use crate::clock::Clock;
use crate::feeds::{FeedFrame, Feeds, Topic};
use crate::fleet::{Fleet, OF_NOW_MS, Recency, Snapshot};
use crate::metrics::cardinality::Cardinality;
use crate::metrics::described::{Described, Undescribed};
use crate::metrics::known_series::KnownSeries;
use crate::metrics::recorder::{self, Batch, NewSample, Recorded, RecorderHandle};
use crate::metrics::tail::{Fresh, Tail};

/// A sample further in the future than this is refused: the agent's clock is wrong, and the sample would stay the latest
/// forever.
const MAX_AHEAD_MS: i64 = 24 * 3600 * 1000;

/// The largest encoded sample that is stored; a larger one is refused. An ordinary one takes 300 bytes, one with a thousand
/// containers 64 KiB; reading history holds a page of them in memory.
const MAX_ENCODED_BYTES: usize = 256 * 1024;

/// The largest live sample that is shown, as text. No other is sent so often.
const MAX_LIVE_BYTES: usize = 512 * 1024;

/// Passes samples on; cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    clock: Clock,
    fleet: Fleet,
    feeds: Feeds,
    recorder: RecorderHandle,
    tail: Tail,
    cardinality: Cardinality,
    known_series: Arc<KnownSeries>,
    alerts: Alerts,
}

/// The server that samples come from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub server_id: Uuid,
    pub owner_id: Uuid,
}

/// When a batch arrived, by our clock and by the agent's.
#[derive(Debug, Clone, Copy)]
pub struct ArrivalTime {
    pub now: Timestamp,
    /// How far the agent's clock is ahead of ours, as far as known.
    pub offset_ms: i64,
}

impl ArrivalTime {
    fn agent_now(self) -> Timestamp {
        self.now.plus_millis(self.offset_ms)
    }
}

/// A batch that was checked and published, and has to be made durable.
pub struct Accepted {
    pub seq: u64,
    /// Whether one of its samples is current. If not, the agent is catching up.
    pub is_live: bool,
    /// How many series of its last sample are not stored, plus how many of a recent one had no place; `None` without any
    /// sample.
    pub series_dropped: Option<u32>,
    /// Whether a sample was left out because it is too large.
    pub has_too_large: bool,
    /// The time of its latest sample, if that is so far in the future that our own clock may be behind: the agent has to keep
    /// the batch until then.
    pub waits_for: Option<Timestamp>,
    samples: Vec<NewSample>,
}

impl Accepted {
    /// Returns the memory that it takes while it waits.
    pub fn bytes(&self) -> usize {
        recorder::weight(&self.samples)
    }
}

/// Why a `metrics` message is refused as a whole.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    OutOfRange(#[from] signalbox_protocol::sample::OutOfRange),
    #[error(transparent)]
    Undescribed(#[from] Undescribed),
    #[error("too many samples in one message")]
    TooMany,
    #[error(transparent)]
    Codec(#[from] codec::CodecError),
}

/// A sample that has passed all checks.
struct Checked {
    measured: Measured,
    /// The part that is stored.
    row: Row,
    beside: Beside,
    /// `row`, encoded.
    data: Vec<u8>,
    series_dropped: u32,
}

/// The part of a sample that is stored.
struct Kept {
    row: Row,
    /// `row`, encoded.
    data: Vec<u8>,
    /// How many series are not part of it.
    dropped: u32,
}

impl Pipeline {
    pub fn new(clock: Clock, fleet: Fleet, feeds: Feeds, recorder: RecorderHandle, tail: Tail, alerts: Alerts) -> Self {
        Self {
            clock,
            fleet,
            feeds,
            recorder,
            tail,
            cardinality: Cardinality::default(),
            known_series: Arc::default(),
            alerts,
        }
    }

    /// Takes in an agent's descriptions of series. Returns their texts for people, by name.
    pub fn describe(
        &self,
        described: &mut Described,
        series: Vec<SeriesDescription>,
    ) -> Result<BTreeMap<String, String>, Undescribed> {
        described.describe(series, &self.known_series, Instant::now())
    }

    /// Checks a message as a whole, then publishes its samples. Nothing of a refused message is published.
    pub fn accept(
        &self,
        Source { server_id, owner_id }: Source,
        metrics: Metrics,
        described: &mut Described,
        moment: ArrivalTime,
    ) -> Result<Accepted, Refused> {
        let now = moment.now;
        if metrics.samples.len() > signalbox_protocol::agent::MAX_SAMPLES {
            return Err(Refused::TooMany);
        }
        metrics.samples.iter().try_for_each(Sample::validate)?;

        let is_ahead = |sample: &Sample| sample.timestamp.millis_since(now) > MAX_AHEAD_MS;
        let ahead = metrics.samples.iter().filter(|sample| is_ahead(sample)).map(|sample| sample.timestamp);
        let waits_for = ahead.filter(|at| self.must_wait(*at, now)).max();
        let (mut accepted, mut has_too_large) = (Vec::with_capacity(metrics.samples.len()), false);
        let arrived = Some(Instant::now());
        for mut sample in metrics.samples {
            let open = described.open(&std::mem::take(&mut sample.values), arrived)?;
            if waits_for.is_none() && is_ahead(&sample) {
                metrics::counter!("signalbox_samples_refused_total").increment(1);
                continue;
            }
            sample.round();
            sample.clean();
            let unread = std::mem::take(&mut sample.unread);
            let Some(Kept { row, data, dropped }) = self.kept(server_id, &sample, &open)? else {
                // Its agent would never get past it: it sends again what is not acknowledged.
                metrics::counter!("signalbox_samples_refused_total").increment(1);
                has_too_large = true;
                continue;
            };
            let series_dropped = described.dropped().saturating_add(dropped);
            // Processes are stored apart from the sample, and are not published with it.
            let beside = Beside { processes: sample.processes.take().map(Arc::new), unread };
            accepted.push(Checked { measured: Measured { sample, open }, row, beside, data, series_dropped });
        }

        let (mut samples, mut is_live, mut series_dropped) = (Vec::with_capacity(accepted.len()), false, None);
        for Checked { measured, row, beside, data: encoded, series_dropped: dropped } in accepted {
            series_dropped = Some(dropped);
            let snapshot = Arc::new(Snapshot::of(server_id, measured));
            let freshness =
                if self.show(&snapshot, owner_id, moment) { freshness(&snapshot, moment) } else { Freshness::Late };
            is_live |= freshness == Freshness::Live;
            let processes = beside.processes.clone();
            self.alerts.sample(&snapshot, beside, freshness, moment.agent_now());
            samples.push(NewSample { server_id, fresh: Fresh { row, processes }, encoded });
        }
        self.fleet.seen(server_id, now);
        Ok(Accepted { seq: metrics.seq, is_live, series_dropped, has_too_large, waits_for, samples })
    }

    /// Shows a live sample to the server's subscribers. Nothing is kept of it: it does not become the latest, and neither the
    /// history nor the alerts know of it.
    pub fn show_live(
        &self,
        server_id: Uuid,
        mut sample: Sample,
        described: &mut Described,
        now: Timestamp,
    ) -> Result<(), Refused> {
        sample.validate()?;
        let open = described.open(&std::mem::take(&mut sample.values), None)?;
        let topic = Topic::Server(server_id);
        // An older one would set dashboards back.
        let is_newest = self.fleet.latest(server_id).is_none_or(|latest| latest.sample.timestamp < sample.timestamp);
        let is_ahead = sample.timestamp.millis_since(now) > MAX_AHEAD_MS;
        if !is_newest || is_ahead || !self.feeds.is_watched(topic) {
            return Ok(());
        }
        sample.round();
        sample.clean();
        (sample.processes, sample.unread) = (None, Vec::new());
        let message = metrics_message(&Snapshot::of(server_id, Measured { sample, open }));
        if message.len() <= MAX_LIVE_BYTES {
            self.feeds.publish(topic, FeedFrame::Metrics(message.into()));
        }
        Ok(())
    }

    /// Returns the part of a sample that is stored, while all of it is published; `None` if it is too large for both.
    fn kept(&self, server_id: Uuid, sample: &Sample, open: &Open) -> Result<Option<Kept>, Refused> {
        let (mut row, mut data) = self.encoded(server_id, sample, open)?;
        let (mut dropped, none) = (0, Open::default());
        let mut taken = open;
        if data.len() > MAX_ENCODED_BYTES && !open.is_empty() {
            (dropped, taken) = (u32::try_from(open.len()).unwrap_or(u32::MAX), &none);
            (row, data) = self.encoded(server_id, sample, taken)?;
        }
        if data.len() > MAX_ENCODED_BYTES {
            return Ok(None);
        }
        if let Some(limited) = self.cardinality.limited(server_id, &row.shape, sample, taken) {
            dropped = dropped.saturating_add(limited.dropped);
            (row, data) = self.encoded(server_id, &limited.sample, &limited.open)?;
        }
        Ok(Some(Kept { row, data, dropped }))
    }

    fn encoded(&self, server_id: Uuid, sample: &Sample, open: &Open) -> Result<(Row, Vec<u8>), Refused> {
        let row = Row::with_open(sample, open, self.tail.shape(server_id, sample, open));
        let data = codec::encode(sample, &row)?;
        Ok((row, data))
    }

    /// Returns whether a batch has to wait until our own clock is correct.
    pub fn is_waiting(&self, batch: &Accepted) -> bool {
        batch.waits_for.is_some_and(|at| self.must_wait(at, self.clock.now()))
    }

    /// Returns whether a sample from the far future may be current, because our own clock may be behind. A sample that is in
    /// the future by any clock does not wait, because the agent's later samples would wait for it forever.
    fn must_wait(&self, at: Timestamp, now: Timestamp) -> bool {
        self.clock.tally_if_due(|| self.fleet.clock_offsets());
        let ahead_ms = at.millis_since(now);
        ahead_ms > MAX_AHEAD_MS && ahead_ms.saturating_sub(MAX_AHEAD_MS) <= self.clock.may_lag_ms()
    }

    /// Passes a batch to the recorder, which notifies `done` when it is durable. Returns the batch if there is no room. It is
    /// written only if `session_id` holds the server then.
    pub fn record(&self, batch: Accepted, session_id: Uuid, done: actix::Recipient<Recorded>) -> Result<(), Accepted> {
        let Accepted { seq, is_live, series_dropped, has_too_large, waits_for, samples } = batch;
        self.recorder.record(Batch { seq, session_id, samples, done }).map_err(|Batch { seq, samples, .. }| Accepted {
            seq,
            is_live,
            series_dropped,
            has_too_large,
            waits_for,
            samples,
        })
    }

    /// Removes a server that was deleted.
    pub fn forget(&self, server_id: Uuid) {
        self.cardinality.forget(server_id);
        self.tail.forget(server_id);
    }

    /// Takes in that the session of a server has ended.
    pub fn ended(&self, server_id: Uuid) {
        self.cardinality.ended(server_id);
        self.tail.forget(server_id);
    }

    /// Makes a sample the latest and publishes it. Returns whether it is of the latest's time. An older sample comes from an agent
    /// that catches up and sends its live samples first. It is not published: it would set a dashboard back, and a day of such
    /// samples would push the live ones out of the dashboard's queue.
    fn show(&self, snapshot: &Arc<Snapshot>, owner_id: Uuid, moment: ArrivalTime) -> bool {
        let topic = Topic::Server(snapshot.server_id);
        let recency = self.fleet.record(snapshot.clone(), moment.agent_now());
        let is_newest = recency == Recency::Newest;
        if is_newest && self.feeds.is_watched(topic) {
            self.feeds.publish(topic, FeedFrame::Metrics(metrics_message(snapshot).into()));
        }
        // Subscribers to all servers on this instance read the fleet instead.
        if is_newest {
            self.feeds.relay().sample(owner_id, snapshot);
        }
        recency != Recency::Older
    }
}

/// Returns whether the latest sample is current. After an outage an agent that sends in order makes samples the latest that
/// are hours old. If the agent's clock is wrong, its own time counts.
fn freshness(latest: &Snapshot, ArrivalTime { now, offset_ms }: ArrivalTime) -> Freshness {
    let age_ms = now.millis_since(latest.sample.timestamp);
    let is_of_now = age_ms.min(age_ms.saturating_add(offset_ms)) <= OF_NOW_MS;
    if is_of_now { Freshness::Live } else { Freshness::Late }
}

/// Returns the `metrics` message of a snapshot, as every dashboard gets it.
pub fn metrics_message(snapshot: &Snapshot) -> ByteString {
    let json = snapshot.json();
    let message = [b"{\"type\":\"metrics\",\"data\":", json.as_ref(), b"}"].concat();
    ByteString::try_from(message).unwrap_or_default()
}
