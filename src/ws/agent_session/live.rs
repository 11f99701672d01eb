//! Live samples, which an agent sends while somebody watches its server: they are shown, and nothing is kept of them.

use std::time::{Duration, Instant};

use signalbox_protocol::agent::{Auth, ServiceMessage};
use signalbox_protocol::{Sample, close};

use super::{AgentSession, Context, Phase};
use crate::feeds::Topic;
use crate::live;

/// Seconds between samples for an agent that does not report the interval that its owner chose.
const SAMPLE_INTERVAL_SECONDS: f64 = 5.0;

/// The least time between two live samples that are shown: half of what the service asks for, because messages come unevenly.
/// Nothing else holds back an agent that sends more.
const LEAST_APART: Duration = Duration::from_millis(500);

/// How often an agent measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) interval_seconds: f64,
    /// The shortest interval of its live samples; none from an agent that sends none.
    live_seconds: Option<f64>,
}

impl Pace {
    pub(super) fn of(auth: &Auth) -> Self {
        Self {
            interval_seconds: auth.sample_interval_seconds.unwrap_or(SAMPLE_INTERVAL_SECONDS),
            live_seconds: auth.live_interval_seconds.filter(|seconds| seconds.is_finite()),
        }
    }
}

/// The live samples of one agent.
pub(super) struct LiveSamples {
    shortest_seconds: Option<f64>,
    shown_at: Option<Instant>,
}

impl LiveSamples {
    pub(super) fn new(pace: Pace) -> Self {
        Self { shortest_seconds: pace.live_seconds, shown_at: None }
    }

    /// Whether to show a sample that came at this time.
    fn takes(&mut self, now: Instant) -> bool {
        let is_due = self.shown_at.is_none_or(|at| now.duration_since(at) >= LEAST_APART);
        if is_due {
            self.shown_at = Some(now);
        }
        is_due
    }
}

impl AgentSession {
    /// Asks an agent that has just connected, if somebody watches its server already.
    pub(super) fn ask_if_watched(&mut self, ctx: &mut Context) {
        let Phase::Active(active) = &self.phase else { return };
        if self.services.feeds.is_watched(Topic::Server(active.server_id)) {
            self.watched(live::INTERVAL_SECONDS, live::FOR_SECONDS, ctx);
        }
    }

    /// Asks for live samples. An agent that sends none, such as an older one, is not asked.
    pub(super) fn watched(&mut self, interval_seconds: f64, for_seconds: f64, ctx: &mut Context) {
        let Phase::Active(active) = &self.phase else { return };
        let Some(shortest) = active.live.shortest_seconds else { return };
        let interval_seconds = interval_seconds.max(shortest);
        self.send(&ServiceMessage::Watched { interval_seconds, for_seconds }, ctx);
    }

    pub(super) fn show_live(&mut self, sample: Sample, ctx: &mut Context) {
        let now = self.services.clock.now();
        let Phase::Active(active) = &mut self.phase else { return };
        if !active.live.takes(Instant::now()) {
            return;
        }
        let server_id = active.server_id;
        if let Err(error) = self.services.pipeline.show_live(server_id, sample, &mut active.described, now) {
            tracing::debug!(server.id = %server_id, %error, "a live sample was refused");
            self.end(close::MALFORMED, &error.to_string(), ctx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_come_too_fast_are_not_shown() {
        let mut live = LiveSamples { shortest_seconds: Some(1.0), shown_at: None };
        let began = Instant::now();

        let shown = [0, 400, 499, 500, 900, 1_000, 60_000].map(|ms| live.takes(began + Duration::from_millis(ms)));

        assert_eq!(shown, [true, false, false, true, false, true, true]);
    }
}
