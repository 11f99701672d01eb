//! How far the service may trust its own clock, and each agent's.
//!
//! Clocks fail: a machine without a battery starts in 1970 or at its last shutdown, a virtual machine is paused,
//! somebody sets the wrong time zone. So nothing is deleted, refused, acknowledged or reported missing on the basis of
//! a single clock.
//!
//! - [`belief`] (pure): the time that has certainly come, which deletion relies on
//! - [`verdict`] (pure): whether this machine's clock is in doubt, given the agents' clocks
//! - [`agent`] (pure): how far an agent's clock is off, updated from its messages
//! - `database` (pure): the database's clock, from its answers
//! - `reading`: this machine's clocks, and what changed between two readings
//! - `keeper`: checks every second, asks the database, stores the certain time

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

/// The database's clock is not known.
const UNKNOWN: i64 = i64::MIN;

/// How old the count of the agents' votes may be for decisions about samples.
const TALLY_FOR: Duration = Duration::from_millis(200);

/// The service's clock. Clones are cheap.
#[derive(Clone)]
pub struct Clock {
    inner: Arc<Inner>,
}

struct Inner {
    boot_id: String,
    /// When this program was built: no earlier time can be right.
    built_ms: i64,
    lead: Lead,
    /// A copy of `database`, for readers without the lock.
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
    /// This machine's time at the start, minus its time since boot: ids of sessions continue from there.
    id_epoch_ms: i64,
    last_id_ms: i64,
}

/// The initial state of a clock.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The state that an earlier process stored.
    pub saved: Option<SavedClock>,
    /// The time of the newest stored data; `None` if there is none.
    pub newest: Option<Timestamp>,
    pub lead: Lead,
}

/// The clock that defines the present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lead {
    #[default]
    Machine,
    /// The database's, once it has answered: it is the same for several instances.
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

    /// The present time, as far as is known; several instances share it.
    pub fn now(&self) -> Timestamp {
        match self.leading_epoch_ms() {
            Some(epoch_ms) => Timestamp::from_millis(epoch_ms + self.boot_ms()),
            None => Timestamp::now(),
        }
    }

    /// The clock of an instance whose own one is so far behind the database's.
    #[cfg(test)]
    pub fn behind_the_database(by_ms: i64) -> Self {
        let clock = Self::start(&Start { lead: Lead::Database, ..Start::default() });
        let (database_ms, boot_ms) = (Timestamp::now().as_millis() + by_ms, clock.boot_ms());
        clock.heard_database(Answer { database_ms, asked_ms: boot_ms, answered_ms: boot_ms });
        clock
    }

    /// Milliseconds since the machine's boot, including suspended time. This clock cannot be set.
    pub fn boot_ms(&self) -> i64 {
        Reading::now().boot_ms
    }

    /// The latest time that has certainly come; deletion measures ages from it.
    pub fn certain(&self) -> Timestamp {
        self.look();
        let state = self.lock();
        let present_ms = self.present_ms(Reading::now());
        let by_agents_ms = match state.doubt {
            // Agents that agree with each other are more reliable.
            Some(Doubt::Ahead) if state.tally.earlier > 0 => present_ms.saturating_add(state.tally.earlier_by_ms),
            _ => present_ms,
        };
        Timestamp::from_millis(state.belief.certain_ms().min(present_ms).min(by_agents_ms))
    }

    /// How this machine's clock may be off; `None` if it is trusted.
    pub fn doubt(&self) -> Option<Doubt> {
        self.look();
        self.lock().doubt
    }

    /// How far this machine's clock may be behind, for decisions that can wait; 0 if nothing indicates it. Less
    /// evidence suffices than for a doubt.
    pub fn may_lag_ms(&self) -> i64 {
        self.look();
        self.lock().may_lag_ms
    }

    /// Counts the votes of the agents' clocks, given how far each is ahead of this one.
    pub fn tally(&self, offsets_ms: impl IntoIterator<Item = i64>) {
        let tally = Tally::of(offsets_ms, self.now().as_millis(), self.inner.built_ms);
        {
            let mut state = self.lock();
            (state.tally, state.tallied) = (tally, Some(Instant::now()));
        }
        self.look();
    }

    /// The same, unless it was done a moment ago.
    pub fn tally_if_due(&self, offsets_ms: impl FnOnce() -> Vec<i64>) {
        let is_due = self.lock().tallied.is_none_or(|at| at.elapsed() > TALLY_FOR);
        if is_due {
            self.tally(offsets_ms());
        }
    }

    /// How long ago the service was paused, or its clock was set; `None` if that never happened. Callers need not wait
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

    /// Returns an id for a session, later than all earlier ones even if the clock was set. Among several instances it
    /// begins with their shared time.
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

    /// Checks the clocks. Any task may call it; the first call after a change notices the change.
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

    /// The clocks' time: the earlier of the machine's and the database's, if the database has one.
    fn present_ms(&self, now: Reading) -> i64 {
        let database_ms = self.database_epoch_ms().map(|epoch_ms| epoch_ms + now.boot_ms);
        database_ms.map_or(now.wall_ms, |database_ms| database_ms.min(now.wall_ms))
    }

    /// The shared time minus this machine's time since boot; `None` if the service uses only its own clock.
    fn leading_epoch_ms(&self) -> Option<i64> {
        match self.inner.lead {
            Lead::Machine => None,
            Lead::Database => self.database_epoch_ms(),
        }
    }

    fn database_epoch_ms(&self) -> Option<i64> {
        Some(self.inner.database_epoch_ms.load(Ordering::Relaxed)).filter(|epoch_ms| *epoch_ms != UNKNOWN)
    }

    /// Processes an answer of the database. Returns whether its clock is now known precisely enough.
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
            tracing::warn!(
                paused_ms,
                "the service was paused: agents get time to reconnect before they count as offline"
            );
        }
        if set_by_ms != 0 {
            self.belief.unsettle();
            metrics::counter!("signalbox_clock_steps_total").increment(1);
            tracing::warn!(set_by_ms, "this machine's clock was set");
        }
    }
}

impl Default for Clock {
    /// A clock without any stored state.
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
            "this machine's clock seems to be behind: samples dated more than a day ahead stay with their agents"
        ),
        Some(Doubt::Ahead) => {
            tracing::error!("this machine's clock seems to be ahead: it is not used to delete data");
        }
        None => tracing::info!("this machine's clock is trusted"),
    }
}

/// The id of the machine's boot. If it cannot be read, a new id, so that no other boot looks like this one.
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
    fn a_clock_that_was_not_touched_is_trusted() {
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
    fn several_instances_use_the_databases_clock() {
        let clock = Clock::start(&Start { lead: Lead::Database, ..Start::default() });
        let boot_ms = clock.boot_ms();

        let database_ms = Timestamp::now().as_millis() + 7_200_000;
        assert!(clock.heard_database(Answer { database_ms, asked_ms: boot_ms, answered_ms: boot_ms }));

        assert!((clock.now().millis_since(Timestamp::now()) - 7_200_000).abs() < 1_000);
        assert_eq!(clock.doubt(), Some(Doubt::Behind));
        assert!(Timestamp::now().millis_since(clock.certain()).abs() < 1_000, "deletion uses the earlier one");
    }

    #[test]
    fn one_agent_makes_samples_wait_but_a_steady_clock_not_doubted() {
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
    fn the_stored_time_holds_back_a_clock_that_is_ahead() {
        let saved = SavedClock { boot_id: "another".to_owned(), boot_ms: 0, certain_ms: built_ms() };
        let start = Start { saved: Some(saved), ..Start::default() };

        let clock = Clock::start(&start);

        assert!((clock.certain().as_millis() - built_ms()).abs() < 1_000);
    }
}
