//! What the service may believe about its own clock, and about each agent's.
//!
//! A clock is a part that fails: a machine without a battery starts in 1970 or at its last shutdown, a virtual one is
//! paused, somebody sets the time zone wrong. So nothing is deleted, refused, acknowledged or called missing on the word
//! of one clock alone.
//!
//! - [`belief`] (pure): the time that has certainly come, by which things are deleted
//! - [`verdict`] (pure): whether this machine's clock is doubted, given what the agents' clocks say
//! - [`agent`] (pure): how far an agent's clock is off, kept up to date from its messages
//! - `database` (pure): where the database's clock is, by its answers
//! - `reading`: this machine's clocks, and what the next look at them tells
//! - `keeper`: looks every second, asks the database, remembers

pub mod agent;
pub mod belief;
mod database;
mod keeper;
mod reading;
pub mod verdict;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use signalbox_protocol::Timestamp;
use uuid::{ContextV7, Uuid};

use self::belief::Belief;
use self::database::{Answer, Known};
pub use self::keeper::keep;
use self::reading::{Disturbance, Reading, Watch};
use self::verdict::{Doubt, Own, Tally};
use crate::store::SavedClock;

/// What is not known.
const UNKNOWN: i64 = i64::MIN;

/// How old a count of the agents' votes may be where one decides about samples.
const TALLY_FOR: Duration = Duration::from_millis(200);

/// The service's clock, behind cheap clones.
#[derive(Clone)]
pub struct Clock {
    inner: Arc<Inner>,
}

struct Inner {
    boot_id: String,
    /// When this program was built: no earlier time is right.
    built_ms: i64,
    lead: Lead,
    /// What `database` says, for readers without the lock.
    database_epoch_ms: AtomicI64,
    state: Mutex<State>,
}

struct State {
    watch: Watch,
    database: Option<Known>,
    belief: Belief,
    tally: Tally,
    tallied: Option<Instant>,
    doubt: Option<Doubt>,
    may_lag_ms: i64,
    /// When the last pause ended, or the clock was last set.
    disturbed: Option<Instant>,
    /// When the last pause ended.
    resumed: Option<Instant>,
    ids: ContextV7,
    /// This machine's time, at a start, less its time since its boot: ids of sessions go on from there.
    id_epoch_ms: i64,
    last_id_ms: i64,
}

/// What a clock begins with.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// What an earlier process remembered.
    pub saved: Option<SavedClock>,
    /// The time of the newest thing that is stored; none where nothing is.
    pub newest: Option<Timestamp>,
    pub lead: Lead,
}

/// Whose clock tells the present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lead {
    #[default]
    Machine,
    /// Once it has answered: it is the same for several instances.
    Database,
}

impl Clock {
    pub fn start(start: &Start) -> Self {
        let (now, boot_id, built_ms) = (Reading::now(), boot_id(), built_ms());
        let newest_ms = start.newest.map(Timestamp::as_millis);
        // A first start at a time that cannot be true.
        let newest_ms = newest_ms.or_else(|| (now.wall_ms > verdict::latest_ms(built_ms)).then_some(built_ms));
        let belief = Belief::begin(start.saved.as_ref(), newest_ms, &boot_id, now).not_before(built_ms);
        let state = State {
            watch: Watch::new(now),
            database: None,
            belief,
            tally: Tally::default(),
            tallied: None,
            doubt: None,
            may_lag_ms: 0,
            disturbed: None,
            resumed: None,
            ids: ContextV7::new(),
            id_epoch_ms: now.wall_ms - now.boot_ms,
            last_id_ms: 0,
        };
        let inner = Inner {
            boot_id,
            built_ms,
            lead: start.lead,
            database_epoch_ms: AtomicI64::new(UNKNOWN),
            state: Mutex::new(state),
        };
        let clock = Self { inner: Arc::new(inner) };
        clock.look();
        clock
    }

    /// The present, as far as is known: of several instances the same for all.
    pub fn now(&self) -> Timestamp {
        match self.leading_epoch_ms() {
            Some(epoch_ms) => Timestamp::from_millis(epoch_ms + self.boot_ms()),
            None => Timestamp::now(),
        }
    }

    /// Milliseconds since the machine's boot, suspended or not. Nobody sets this one.
    pub fn boot_ms(&self) -> i64 {
        Reading::now().boot_ms
    }

    /// The latest time that has certainly come. What is deleted for its age is older than this says.
    pub fn certain(&self) -> Timestamp {
        self.look();
        let state = self.lock();
        let present_ms = self.present_ms(Reading::now());
        let by_agents_ms = match state.doubt {
            // Those that agree with each other know better.
            Some(Doubt::Ahead) if state.tally.earlier > 0 => present_ms.saturating_add(state.tally.earlier_by_ms),
            _ => present_ms,
        };
        Timestamp::from_millis(state.belief.certain_ms().min(present_ms).min(by_agents_ms))
    }

    /// How this machine's clock may be off; none where it is believed.
    pub fn doubt(&self) -> Option<Doubt> {
        self.look();
        self.lock().doubt
    }

    /// How far this machine's clock may be behind, for those who can wait for the answer; 0 where nothing says so. This
    /// takes less than a doubt.
    pub fn may_lag_ms(&self) -> i64 {
        self.look();
        self.lock().may_lag_ms
    }

    /// Counts what the agents' clocks say, each by how far it is ahead of this one.
    pub fn tally(&self, offsets_ms: impl IntoIterator<Item = i64>) {
        let tally = Tally::of(offsets_ms, self.now().as_millis(), self.inner.built_ms);
        {
            let mut state = self.lock();
            (state.tally, state.tallied) = (tally, Some(Instant::now()));
        }
        self.look();
    }

    /// The same, unless that was done a moment ago.
    pub fn tally_if_due(&self, offsets_ms: impl FnOnce() -> Vec<i64>) {
        let is_due = self.lock().tallied.is_none_or(|at| at.elapsed() > TALLY_FOR);
        if is_due {
            self.tally(offsets_ms());
        }
    }

    /// How long ago the service was paused, or its clock was set; none where that never happened. Who asks need not wait
    /// for the keeper to notice.
    pub fn disturbed(&self) -> Option<Duration> {
        self.look();
        self.lock().disturbed.map(|at| at.elapsed())
    }

    /// How long ago a pause of the service ended.
    pub fn resumed(&self) -> Option<Duration> {
        self.look();
        self.lock().resumed.map(|at| at.elapsed())
    }

    /// An id for a session, later than all before it whatever was done to the clock. Of several instances it begins with
    /// the time that all share.
    pub fn session_id(&self) -> Uuid {
        let epoch_ms = self.leading_epoch_ms();
        let boot_ms = self.boot_ms();
        let mut state = self.lock();
        let at_ms = (epoch_ms.unwrap_or(state.id_epoch_ms) + boot_ms).max(state.last_id_ms).max(0);
        state.last_id_ms = at_ms;
        let (seconds, millis) = (at_ms / 1_000, at_ms % 1_000);
        let (seconds, nanos) = (seconds.unsigned_abs(), u32::try_from(millis * 1_000_000).unwrap_or_default());
        Uuid::new_v7(uuid::Timestamp::from_unix(&state.ids, seconds, nanos))
    }

    /// Looks at the clocks. Any task may; the first one that looks notices what happened.
    pub fn look(&self) {
        let now = Reading::now();
        let database_ms = self.database_epoch_ms().map(|epoch_ms| epoch_ms + now.boot_ms);
        let present_ms = self.present_ms(now);
        let mut state = self.lock();
        let disturbance = state.watch.look(now);
        let agrees = state.doubt.is_none() && state.tally.agrees();
        state.belief.advance(now, present_ms, agrees);
        if let Some(disturbance) = disturbance {
            state.disturbed_by(disturbance);
        }
        let own = Own {
            wall_ms: now.wall_ms,
            built_ms: self.inner.built_ms,
            certain_ms: state.belief.certain_ms(),
            database_ms,
            is_steady: state.belief.is_steady(),
        };
        let doubt = own.doubt(state.tally);
        state.may_lag_ms = own.may_lag_ms(state.tally);
        let before = std::mem::replace(&mut state.doubt, doubt);
        drop(state);
        if before != doubt {
            tell(doubt);
        }
    }

    /// What the clocks say, the earlier of the two where the database has one.
    fn present_ms(&self, now: Reading) -> i64 {
        let database_ms = self.database_epoch_ms().map(|epoch_ms| epoch_ms + now.boot_ms);
        database_ms.map_or(now.wall_ms, |database_ms| database_ms.min(now.wall_ms))
    }

    /// The time that all share, less this machine's time since its boot; none where its own clock is all that it goes by.
    fn leading_epoch_ms(&self) -> Option<i64> {
        match self.inner.lead {
            Lead::Machine => None,
            Lead::Database => self.database_epoch_ms(),
        }
    }

    fn database_epoch_ms(&self) -> Option<i64> {
        Some(self.inner.database_epoch_ms.load(Ordering::Relaxed)).filter(|epoch_ms| *epoch_ms != UNKNOWN)
    }

    /// Whether the database's clock is known well enough now.
    fn heard_database(&self, answer: Answer) -> bool {
        let mut state = self.lock();
        let known = state.database.map_or_else(|| Known::by(answer), |known| known.and(answer));
        state.database = Some(known);
        self.inner.database_epoch_ms.store(known.epoch_ms, Ordering::Relaxed);
        known.is_close()
    }

    fn save(&self) -> SavedClock {
        self.lock().belief.save(&self.inner.boot_id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock()
    }
}

impl State {
    fn disturbed_by(&mut self, Disturbance { paused_ms, set_by_ms }: Disturbance) {
        self.disturbed = Some(Instant::now());
        if paused_ms > 0 {
            self.resumed = Some(Instant::now());
            metrics::counter!("signalbox_clock_pauses_total").increment(1);
            tracing::warn!(paused_ms, "the service was paused: agents have time to come back before they are missed");
        }
        if set_by_ms != 0 {
            self.belief.unsettle();
            metrics::counter!("signalbox_clock_steps_total").increment(1);
            tracing::warn!(set_by_ms, "this machine's clock was set");
        }
    }
}

impl Default for Clock {
    /// One that remembers nothing.
    fn default() -> Self {
        Self::start(&Start::default())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).finish_non_exhaustive()
    }
}

fn tell(doubt: Option<Doubt>) {
    match doubt {
        Some(Doubt::Behind) => tracing::error!(
            "this machine's clock seems to be behind: samples of later than a day from now stay with their agents"
        ),
        Some(Doubt::Ahead) => {
            tracing::error!("this machine's clock seems to be ahead: nothing is deleted by it");
        }
        None => tracing::info!("this machine's clock is believed"),
    }
}

/// What changes at every boot of the machine; nothing where that cannot be read, and then no other boot is like this one.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    match text.trim() {
        "" => Uuid::now_v7().to_string(),
        id => id.to_owned(),
    }
}

fn built_ms() -> i64 {
    env!("BUILT_AT_SECONDS").parse::<i64>().unwrap_or_default().saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_nobody_touches_is_believed() {
        let clock = Clock::default();

        assert_eq!((clock.doubt(), clock.disturbed()), (None, None));
        assert!(clock.now().millis_since(clock.certain()).abs() < 1_000);
    }

    #[test]
    fn ids_of_sessions_rise() {
        let clock = Clock::default();

        let ids: Vec<Uuid> = (0..1_000).map(|_| clock.session_id()).collect();

        assert!(ids.is_sorted() && ids.first() != ids.last());
    }

    #[test]
    fn several_instances_go_by_the_databases_clock() {
        let clock = Clock::start(&Start { lead: Lead::Database, ..Start::default() });
        let boot_ms = clock.boot_ms();

        let database_ms = Timestamp::now().as_millis() + 7_200_000;
        assert!(clock.heard_database(Answer { database_ms, asked_ms: boot_ms, answered_ms: boot_ms }));

        assert!((clock.now().millis_since(Timestamp::now()) - 7_200_000).abs() < 1_000);
        assert_eq!(clock.doubt(), Some(Doubt::Behind));
        assert!(Timestamp::now().millis_since(clock.certain()).abs() < 1_000, "deleting goes by the earlier");
    }

    #[test]
    fn one_agent_is_no_doubt_of_a_clock_that_was_steady_for_hours_and_still_has_samples_wait() {
        let clock = Clock::default();
        {
            let (now, hours_ms) = (Reading::now(), 4 * 3_600_000);
            let began = Reading { boot_ms: now.boot_ms - hours_ms, wall_ms: now.wall_ms - hours_ms, ..now };
            clock.lock().belief = Belief::begin(None, None, "", began);
        }

        clock.tally([2 * 24 * 3_600_000]);

        assert_eq!((clock.doubt(), clock.may_lag_ms()), (None, 2 * 24 * 3_600_000));
    }

    #[test]
    fn what_was_remembered_holds_back_a_clock_that_is_ahead() {
        let saved = SavedClock { boot_id: "another".to_owned(), boot_ms: 0, certain_ms: built_ms() };
        let start = Start { saved: Some(saved), ..Start::default() };

        let clock = Clock::start(&start);

        assert!((clock.certain().as_millis() - built_ms()).abs() < 1_000);
    }
}
