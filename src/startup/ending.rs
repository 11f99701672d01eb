//! The end of the service, and how long each of its steps may take. The steps share one deadline: one that takes long takes its
//! time from those after it, except for what is reserved for them.

use std::future::Future;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::sockets;
use crate::state::State;

/// For all steps together. The service promises 10 s; the rest is for the end of its threads.
const WITHIN: Duration = Duration::from_millis(9_500);

/// How long running requests may continue when the service is asked to stop. Those that are left then have the rest of the time, at
/// most as much again.
pub const DRAIN: Duration = Duration::from_secs(4);
pub const LEAST_DRAIN: Duration = Duration::from_secs(1);

/// How long sockets may take to send their close frames: as long as they wait for the peer's ([`crate::ws::handover`]), so that a
/// peer that does not answer delays the stop by no more.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long they have if the steps before took long. Running requests have less then.
const LEAST_GOODBYE: Duration = Duration::from_millis(250);

/// How long the waiting samples and events of servers may take to be written at the end, both at the same time.
const LAST_COMMIT: Duration = Duration::from_secs(2);

/// How long a notification that is being sent may take at the end.
const LAST_MESSAGE: Duration = Duration::from_secs(2);

/// How long each of the last four steps may take.
const LAST_STEP: Duration = Duration::from_secs(1);

/// Reserved for those four together: each takes milliseconds where the database answers.
const RESERVED_FOR_LAST: Duration = Duration::from_secs(1);

/// What takes time at the end, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Running requests are answered while their agents are still connected. Skipped where the service announces its end, and so
    /// answers requests for a while.
    RunningRequests,
    /// Sockets send their close frames.
    Sockets,
    /// The requests that are left are answered.
    LeftRequests,
    /// The waiting samples and events of servers are written.
    Commit,
    /// A notification that is being sent is sent.
    Message,
    /// What the service does by itself ends.
    Housekeeping,
    /// The archiver ends.
    Archive,
    /// Other instances learn of the end.
    Leave,
    /// The database's connections close.
    Close,
}

impl Step {
    /// How long it may take where this much time is left.
    fn limit(self, left: Duration) -> Duration {
        let (most, reserved) = match self {
            Self::RunningRequests => (DRAIN, GOODBYE + LEAST_DRAIN + LAST_COMMIT + RESERVED_FOR_LAST),
            Self::Sockets => (GOODBYE, LEAST_DRAIN + LAST_COMMIT + RESERVED_FOR_LAST),
            // The server ends them after its own time; this ends the wait for the server.
            Self::LeftRequests => (WITHIN, LAST_COMMIT + RESERVED_FOR_LAST),
            Self::Commit => (LAST_COMMIT, RESERVED_FOR_LAST),
            Self::Message => (LAST_MESSAGE, RESERVED_FOR_LAST),
            Self::Housekeeping => (LAST_STEP, RESERVED_FOR_LAST * 3 / 4),
            Self::Archive => (LAST_STEP, RESERVED_FOR_LAST / 2),
            Self::Leave => (LAST_STEP, RESERVED_FOR_LAST / 4),
            Self::Close => (LAST_STEP, Duration::ZERO),
        };
        let least = if self == Self::Sockets { LEAST_GOODBYE } else { Duration::ZERO };
        most.min(left.saturating_sub(reserved)).max(least.min(left))
    }
}

/// When the last step must have ended.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn from_now() -> Self {
        Self(Instant::now() + WITHIN)
    }

    /// How long a step that begins now may take.
    pub fn limit(self, step: Step) -> Duration {
        step.limit(self.0.saturating_duration_since(Instant::now()))
    }
}

/// Waits for `stop`, then accepts no new connections, lets running requests end, closes agents and dashboards, and lets the server
/// answer what is left. Sends to `ending` how long that may take.
pub async fn stop_when(
    stop: impl Future<Output = Deadline>,
    server: ServerHandle,
    state: State,
    drain: Duration,
    ending: oneshot::Sender<Duration>,
) {
    let deadline = stop.await;
    tracing::info!("stopping");
    state.cluster.drain().await;
    state.alerts.stop();
    if drain.is_zero() {
        server.pause().await;
        running_requests_end(&state, deadline).await;
        // Dashboards go first: they would otherwise show every server as offline, because the agents are disconnected.
        state.feeds.close_all();
    }
    state.registry.end_all(drain).await;
    // Requests are still answered during this time: a load balancer in front may not have noticed yet.
    sleep(drain).await;
    server.pause().await;
    state.jobs.stop();
    state.feeds.close_all();
    // The sockets' own tasks send the close frames, and end with the workers.
    if timeout(deadline.limit(Step::Sockets), sockets::all_closed(&state.limits.sockets)).await.is_err() {
        tracing::debug!(sockets = state.limits.sockets.count(), "some sockets did not take their close frame");
    }
    let stopped = server.stop(true);
    _ = ending.send(deadline.limit(Step::LeftRequests));
    stopped.await;
}

/// Waits for the requests that run: many of them need an agent. Anybody can make a stop take this long, by a body that does not come.
async fn running_requests_end(state: &State, deadline: Deadline) {
    if state.cluster.company.is_displaced() {
        // Another service has the database already.
        return;
    }
    let running = state.limits.requests.end();
    if timeout(deadline.limit(Step::RunningRequests), sockets::all_closed(running)).await.is_err() {
        tracing::debug!(requests = running.count(), "some requests take longer than the service waits for them");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step; 9] = [
        Step::RunningRequests,
        Step::Sockets,
        Step::LeftRequests,
        Step::Commit,
        Step::Message,
        Step::Housekeeping,
        Step::Archive,
        Step::Leave,
        Step::Close,
    ];

    #[test]
    fn steps_that_take_all_their_time_end_in_time_and_samples_have_theirs() {
        // The announcement to other instances takes a second at most, and `--drain` five, in which running requests are answered.
        for before in 0..=6 {
            let mut left = WITHIN - Duration::from_secs(before);
            for step in STEPS {
                let limit = step.limit(left);
                left = left.checked_sub(limit).expect("no step takes more than is left");
                assert!(step != Step::Sockets || limit >= LEAST_GOODBYE, "after {before} s");
                assert!(step != Step::Commit || limit == LAST_COMMIT, "after {before} s");
                assert!(
                    matches!(step, Step::RunningRequests | Step::Message) || limit > Duration::ZERO,
                    "{step:?} after {before} s"
                );
            }
        }
    }

    #[test]
    fn a_step_has_its_usual_time_if_those_before_were_quick() {
        let usual = [DRAIN, GOODBYE, DRAIN, LAST_COMMIT, LAST_MESSAGE].into_iter().chain([LAST_STEP; 4]);

        for (step, usual) in STEPS.into_iter().zip(usual) {
            assert!(step.limit(WITHIN) >= usual, "{step:?}");
        }
    }
}
