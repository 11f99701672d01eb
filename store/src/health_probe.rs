//! Detects whether PostgreSQL answers.
//!
//! A database that vanishes sends nothing, and the driver gives no access to its sockets. Without more, a caller would wait
//! until the system gives the connection up, a quarter of an hour. A deadline on each statement would also end statements that
//! are slow for a reason. So one connection does nothing but ask every second whether the database answers. When an answer is
//! late, every waiting caller fails, and every new one fails at once, until an answer comes.
//!
//! A busy database is not away: behind a pooler even that question waits until one of few connections is free. So an answer to
//! any other statement counts as well.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use sea_orm::sqlx::postgres::{PgConnectOptions, PgConnection};
use sea_orm::sqlx::{self, Connection};
use sea_orm::{ConnectOptions, Database, DbErr, RuntimeErr};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::connections::Shared;
use super::failure::{TOO_MANY_CONNECTIONS, is_pooler_full, state_of};

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    There,
    Away,
    /// The store was closed.
    HungUp,
}

impl HealthProbe {
    /// A line that assumes that the database is there until [`probe`] finds that it is not.
    pub fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::There)), began: Instant::now(), answered: Arc::default() }
    }

    /// Runs `work`; fails as soon as the database is away, though what was begun may have been done.
    pub async fn unless_away<T>(&self, work: impl Future<Output = Result<T, DbErr>>) -> Result<T, DbErr> {
        tokio::select! {
            biased;
            () = self.becomes(State::Away) => Err(away()),
            done = work => {
                if done.is_ok() {
                    self.answered.store(millis(self.began.elapsed()), Ordering::Relaxed);
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

    /// Records whether there was an answer. Returns whether it is the first after a time without any.
    fn heard(&self, answer: Result<(), Silence>) -> bool {
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
        match answer {
            Err(silence) if !was_away => tracing::error!(%silence, "the database is away: agents keep their samples"),
            Ok(()) if was_away => tracing::info!("the database answers again"),
            _ => {}
        }
        was_away && self.state.borrow().eq(&State::There)
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

/// Asks repeatedly until the line is closed or nobody holds the connections any more. When the database is back, `renewed`
/// makes new connections, because some of the old ones may hang.
pub(super) async fn probe(
    line: HealthProbe,
    ask: PgConnectOptions,
    renewed: ConnectOptions,
    connections: Weak<Shared>,
) {
    let mut connection = None;
    loop {
        tokio::select! {
            () = sleep(EVERY) => {}
            () = line.becomes(State::HungUp) => return,
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

/// Whether the database answers. A failing connection may date from before the database restarted, so a new one decides.
async fn answer(connection: &mut Option<PgConnection>, options: &PgConnectOptions) -> Result<(), Silence> {
    if let Some(known) = connection.take()
        && let Ok(known) = asked(known).await
    {
        *connection = Some(known);
        return Ok(());
    }
    loop {
        let asked = async { asked(PgConnection::connect_with(options).await?).await };
        match asked.await {
            Ok(new) => {
                *connection = Some(new);
                return Ok(());
            }
            // The database answers that it has no free connection.
            Err(error) if state_of(&error).as_deref() == Some(TOO_MANY_CONNECTIONS) => return Ok(()),
            // That says nothing about the database behind the pooler.
            Err(error) if is_pooler_full(&error) => sleep(EVERY).await,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn asked(mut connection: PgConnection) -> Result<PgConnection, sqlx::Error> {
    sqlx::raw_sql("SELECT 1").execute(&mut connection).await?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

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
}
