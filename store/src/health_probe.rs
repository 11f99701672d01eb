//! Detects whether PostgreSQL answers.
//!
//! A database that vanishes sends nothing, and the driver gives no access to its sockets. Without more, a caller would wait
//! until the system gives the connection up, a quarter of an hour. A deadline on each statement would also end statements that
//! are slow for a reason. So one connection does nothing but ask every second whether the database answers. When an answer is
//! late, every waiting caller fails, and every new one fails at once, until an answer comes.
//!
//! A busy database is not away: behind a pooler even that question waits until one of few connections is free. So an answer to
//! any other statement counts as well.
//!
//! After a failover, connections may lead to the former primary, which only reads now, for as long as they last. So the question
//! is whether the session may write. Where one may not, each further question is asked on a new connection, and when that may
//! write, every connection is replaced. Until then reads continue.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sea_orm::sqlx::postgres::{PgConnectOptions, PgConnection};
use sea_orm::sqlx::{self, Connection, Row};
use sea_orm::{ConnAcquireErr, ConnectOptions, Database, DbErr, RuntimeErr};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::connections::Shared;
use super::failure::{TOO_MANY_CONNECTIONS, is_pooler_full, is_read_only, state_of};

/// How often to ask.
const EVERY: Duration = Duration::from_secs(1);

/// How long an answer may take: a query that does no work is late only where everything is. With this and the interval a caller
/// waits at most 7 s for a database that is away.
const PATIENCE: Duration = Duration::from_secs(6);

/// What is known of the database; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct HealthProbe {
    state: Arc<watch::Sender<State>>,
    began: Instant,
    /// When any statement was last answered, in milliseconds since the line was created.
    answered: Arc<AtomicU64>,
    /// Whether a session was read-only, and no new one has accepted writes since.
    refuses_writes: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    There,
    Away,
    /// The store was closed.
    HungUp,
}

/// What a session answers about writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    Accepted,
    Refused,
    /// The database answered and gave no session.
    Unknown,
}

impl HealthProbe {
    /// A line that assumes that the database is there until [`probe`] finds that it is not.
    pub fn new() -> Self {
        let state = Arc::new(watch::Sender::new(State::There));
        Self { state, began: Instant::now(), answered: Arc::default(), refuses_writes: Arc::default() }
    }

    /// Runs `work`; fails as soon as the database is away, though what was begun may have been done.
    pub async fn unless_away<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        tokio::select! {
            biased;
            () = self.becomes(State::Away) => Err(away()),
            done = work => {
                match &done {
                    Ok(_) => self.answered.store(millis(self.began.elapsed()), Ordering::Relaxed),
                    Err(error) if is_read_only(error) => self.refused(),
                    // The connections were replaced while it waited for one. Only a store that was closed may say that it is.
                    Err(DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed)) if !self.has_hung_up() => {
                        return Err(away());
                    }
                    Err(_) => {}
                }
                done
            }
        }
    }

    /// Whether the database is away.
    pub fn is_away(&self) -> bool {
        *self.state.borrow() == State::Away
    }

    /// Ends the checks: nobody needs them any more.
    pub fn hang_up(&self) {
        self.state.send_replace(State::HungUp);
    }

    fn has_hung_up(&self) -> bool {
        *self.state.borrow() == State::HungUp
    }

    async fn becomes(&self, wanted: State) {
        // Fails only without a sender, and this is one.
        _ = self.state.subscribe().wait_for(|state| *state == wanted).await;
    }

    /// Returns when no statement has been answered for too long since `asked`.
    async fn silence(&self, asked: Instant) {
        loop {
            let answered = self.began + Duration::from_millis(self.answered.load(Ordering::Relaxed));
            let until = Ord::max(asked, answered) + PATIENCE;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Records that a session is read-only.
    fn refused(&self) {
        if !self.refuses_writes.swap(true, Ordering::Relaxed) {
            tracing::warn!("the database refuses writes: connecting again until it accepts them");
        }
    }

    /// Records whether there was an answer. Returns whether the connections have to be replaced: it is the first after a time
    /// without any, or the first session that accepts writes after one that did not.
    fn heard(&self, answer: Result<Writes, Silence>) -> bool {
        let was_away = self.is_away();
        let state = if answer.is_ok() { State::There } else { State::Away };
        // A closed line stays closed.
        self.state.send_if_modified(|known| {
            let is_news = *known != State::HungUp && *known != state;
            if is_news {
                *known = state;
            }
            is_news
        });
        metrics::gauge!("signalbox_database_up").set(if answer.is_ok() { 1.0 } else { 0.0 });
        match &answer {
            Err(silence) if !was_away => tracing::error!(%silence, "the database is away: agents keep their samples"),
            Ok(_) if was_away => tracing::info!("the database answers again"),
            _ => {}
        }
        let accepts_again = match answer {
            Ok(Writes::Accepted) => self.refuses_writes.swap(false, Ordering::Relaxed),
            Ok(Writes::Refused) => {
                self.refused();
                false
            }
            Ok(Writes::Unknown) | Err(_) => false,
        };
        if accepts_again {
            tracing::info!("the database accepts writes again");
        }
        (was_away || accepts_again) && self.state.borrow().eq(&State::There)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The error of every call while the database is away.
pub(super) fn away() -> DbErr {
    DbErr::Conn(RuntimeErr::Internal("the database does not answer".to_owned()))
}

#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error("no answer in {} s", PATIENCE.as_secs())]
    Late,
    #[error(transparent)]
    Failed(#[from] sqlx::Error),
}

/// Asks repeatedly until the line is closed or nobody holds the connections any more. When the database is back, or accepts writes
/// again, `renewed` makes new connections, because some of the old ones may hang, or lead to a server that only reads.
pub(super) async fn probe(
    line: HealthProbe,
    ask: PgConnectOptions,
    renewed: ConnectOptions,
    connections: Weak<Shared>,
) {
    let mut connection: Option<PgConnection> = None;
    loop {
        tokio::select! {
            () = sleep(EVERY) => {}
            () = line.becomes(State::HungUp) => return,
        }
        // A new connection decides, as the pool's would: the name may lead to another server by now, and the settings of a
        // session may date from its beginning.
        if line.refuses_writes.load(Ordering::Relaxed)
            && let Some(known) = connection.take()
        {
            _ = timeout(EVERY, known.close()).await;
        }
        let answer = tokio::select! {
            biased;
            answer = answer(&mut connection, &ask) => answer,
            () = line.silence(Instant::now()) => Err(Silence::Late),
        };
        let Some(connections) = connections.upgrade() else { return };
        if line.heard(answer) {
            match Database::connect(renewed.clone()).await {
                Ok(pool) => connections.replace(pool),
                Err(error) => tracing::error!(%error, "the connections to the database could not be renewed"),
            }
        }
    }
}

/// Whether the database answers, and accepts writes. A failing connection may date from before the database restarted, so a new
/// one decides.
async fn answer(connection: &mut Option<PgConnection>, options: &PgConnectOptions) -> Result<Writes, Silence> {
    if let Some(known) = connection.take()
        && let Ok((known, writes)) = asked(known).await
    {
        *connection = Some(known);
        return Ok(writes);
    }
    loop {
        let asked = async { asked(PgConnection::connect_with(options).await?).await };
        match asked.await {
            Ok((new, writes)) => {
                *connection = Some(new);
                return Ok(writes);
            }
            // The database answers that it has no free connection.
            Err(error) if state_of(&error).as_deref() == Some(TOO_MANY_CONNECTIONS) => return Ok(Writes::Unknown),
            // That says nothing about the database behind the pooler.
            Err(error) if is_pooler_full(&error) => sleep(EVERY).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks a session whether it may write. On a standby none may, nor where an operator has set `default_transaction_read_only`.
async fn asked(mut connection: PgConnection) -> Result<(PgConnection, Writes), sqlx::Error> {
    let row = sqlx::raw_sql("SHOW transaction_read_only").fetch_one(&mut connection).await?;
    let writes = if row.try_get::<String, _>(0)? == "on" { Writes::Refused } else { Writes::Accepted };
    Ok((connection, writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreError;

    #[tokio::test]
    async fn only_a_store_that_was_closed_says_so_and_not_connections_that_were_replaced() {
        let line = HealthProbe::new();
        let ask = async || {
            let closed = DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed);
            StoreError::from(line.unless_away(async { Err::<(), _>(closed) }).await.unwrap_err())
        };

        let replaced = ask().await;
        line.hang_up();

        assert!(replaced.is_busy() && !replaced.is_closed());
        assert!(ask().await.is_closed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_answers_others_is_not_away() {
        let (line, asked) = (HealthProbe::new(), Instant::now());
        let silence = line.silence(asked);
        tokio::pin!(silence);

        for _ in 0..5 {
            assert!(timeout(PATIENCE / 2, &mut silence).await.is_err());
            line.unless_away(async { Ok(()) }).await.unwrap();
        }
        assert!(timeout(PATIENCE / 2, &mut silence).await.is_err());
        line.unless_away(async { Err::<(), _>(away()) }).await.unwrap_err();
        silence.await;

        assert_eq!(asked.elapsed().as_secs(), (PATIENCE / 2 * 5 + PATIENCE).as_secs());
    }

    #[test]
    fn connections_are_replaced_once_when_a_server_accepts_writes_again() {
        let line = HealthProbe::new();
        let heard = |writes| line.heard(Ok(writes));

        assert!(!heard(Writes::Accepted), "as ever");
        for _ in 0..3 {
            assert!(!heard(Writes::Refused), "a database that only reads is read on");
        }
        assert!(!heard(Writes::Unknown));
        assert!(heard(Writes::Accepted));
        assert!(!heard(Writes::Accepted));

        // One that was away and comes back to read alone.
        assert!(!line.heard(Err(Silence::Late)));
        assert!(heard(Writes::Refused));
        assert!(heard(Writes::Accepted));
        line.refused();
        line.hang_up();
        assert!(!heard(Writes::Accepted), "the store was closed");
    }
}
