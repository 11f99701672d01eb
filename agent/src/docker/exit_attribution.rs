//! Whether a user requested a container's end. Pure.
//!
//! An engine reports a death without its reason. Docker reports before it which signal a user sent through it; a container that
//! ends on its own, or by a signal from elsewhere, has no such event. Podman reports `kill` and `restart` before the death, but
//! a stop only after it or not at all: there a death without a reason may be either.

use std::collections::HashMap;

use super::engine::Kind;
use super::event::{Action, ContainerEvent};

/// SIGINT, SIGQUIT, SIGKILL, SIGTERM, and the equivalents of httpd (SIGWINCH) and systemd (SIGRTMIN+3): the signals that ask
/// programs to end.
const ENDING: &[i64] = &[2, 3, 9, 15, 28, 37];
/// A container may take its time to end; one that has not ended by then ignored the signal.
const MAX_MILLIS: i64 = 600_000;
/// For an engine that does not name the signal, which may have been one that ends nothing.
const MAX_MILLIS_UNKNOWN: i64 = 10_000;
/// The most containers that are remembered: signals that end nothing are rare.
const MAX_ASKED: usize = 1_024;

/// What was requested of containers since they started.
#[derive(Debug, Default)]
pub struct ExitAttribution {
    asked: HashMap<String, StopRequest>,
}

#[derive(Debug, Clone, Copy)]
struct StopRequest {
    at_ms: i64,
    how: StopMethod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopMethod {
    Signal(i64),
    UnknownSignal,
    /// A stop or a restart.
    Verb,
}

impl ExitAttribution {
    /// Records what is requested of a container. Of a death: returns whether it was requested, if that can be known.
    pub fn note(&mut self, happened: &ContainerEvent, engine: Kind) -> Option<bool> {
        let id = happened.container_id.as_str();
        match happened.action {
            Action::Kill => self.ask(happened, happened.signal.map_or(StopMethod::UnknownSignal, StopMethod::Signal)),
            // Docker reports these when they are done: the container may run again by then.
            Action::Stop | Action::Restart if engine == Kind::Podman => self.ask(happened, StopMethod::Verb),
            Action::Die => {
                let is_asked = self.asked.remove(id).is_some_and(|asked| asked.explains(happened));
                return (is_asked || engine == Kind::Docker).then_some(is_asked);
            }
            Action::Start | Action::Destroy => _ = self.asked.remove(id),
            Action::Stop
            | Action::Restart
            | Action::Oom
            | Action::HealthStatus
            | Action::Pause
            | Action::Unpause
            | Action::Rename => {}
        }
        None
    }

    fn ask(&mut self, happened: &ContainerEvent, how: StopMethod) {
        let (id, at_ms) = (happened.container_id.as_str(), happened.at_ms);
        if self.asked.get(id).is_some_and(|before| before.how.ends() && !how.ends()) {
            return;
        }
        if self.asked.len() >= MAX_ASKED {
            self.asked.retain(|_, asked| asked.is_recent(at_ms));
        }
        if self.asked.len() < MAX_ASKED || self.asked.contains_key(id) {
            self.asked.insert(id.to_owned(), StopRequest { at_ms, how });
        }
    }
}

impl StopRequest {
    fn is_recent(self, now_ms: i64) -> bool {
        let most = if self.how == StopMethod::UnknownSignal { MAX_MILLIS_UNKNOWN } else { MAX_MILLIS };
        now_ms.saturating_sub(self.at_ms) <= most
    }

    fn explains(self, death: &ContainerEvent) -> bool {
        // The code is 128 plus the signal, so this signal ended it, whatever it usually means.
        let is_cause = |signal| death.exit_code == Some(128 + signal);
        self.is_recent(death.at_ms)
            && (self.how.ends() || matches!(self.how, StopMethod::Signal(signal) if is_cause(signal)))
    }
}

impl StopMethod {
    fn ends(self) -> bool {
        match self {
            Self::Signal(signal) => ENDING.contains(&signal),
            Self::UnknownSignal | Self::Verb => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event after `at` seconds.
    fn event(action: Action, at: i64) -> ContainerEvent {
        let event = signalbox_protocol::agent::Event { kind: String::new(), fields: serde_json::Map::new() };
        let at_ms = at * 1000;
        ContainerEvent { action, container_id: "web".to_owned(), at_ms, signal: None, exit_code: None, event }
    }

    fn kill(signal: i64, at: i64) -> ContainerEvent {
        ContainerEvent { signal: Some(signal), ..event(Action::Kill, at) }
    }

    fn die(exit_code: i64, at: i64) -> ContainerEvent {
        ContainerEvent { exit_code: Some(exit_code), ..event(Action::Die, at) }
    }

    /// The result for the last event.
    fn last(engine: Kind, events: &[ContainerEvent]) -> Option<bool> {
        let mut attribution = ExitAttribution::default();
        events.iter().map(|event| attribution.note(event, engine)).last().unwrap()
    }

    #[test]
    fn docker_distinguishes_a_stop_from_a_crash() {
        let cases: [(&str, &[ContainerEvent], bool); 9] = [
            ("a crash", &[event(Action::Start, 1), die(1, 2)], false),
            ("a signal from elsewhere", &[event(Action::Start, 1), die(137, 2)], false),
            ("a stop", &[kill(15, 1), die(0, 2)], true),
            ("a stop that had to be killed", &[kill(15, 1), kill(9, 11), die(137, 11)], true),
            ("a signal that ends by default only", &[kill(1, 1), die(129, 1)], true),
            ("a reload, and a crash", &[kill(1, 1), die(1, 2)], false),
            ("a signal that was ignored", &[kill(15, 1), die(1, 602)], false),
            ("a stop of the run before", &[kill(15, 1), die(0, 2), event(Action::Start, 3), die(1, 4)], false),
            (
                "a restart, told when it is done, and a crash",
                &[kill(15, 1), die(0, 2), event(Action::Start, 3), event(Action::Restart, 3), die(1, 4)],
                false,
            ),
        ];
        for (what, events, expected) in cases {
            assert_eq!(last(Kind::Docker, events), Some(expected), "{what}");
        }
    }

    #[test]
    fn a_reload_does_not_hide_a_stop() {
        assert_eq!(last(Kind::Docker, &[kill(15, 1), kill(1, 2), die(0, 3)]), Some(true));
    }

    #[test]
    fn podman_reports_some_reasons_and_others_stay_unknown() {
        let cases: [(&str, &[ContainerEvent], Option<bool>); 5] = [
            ("a crash or a stop", &[event(Action::Start, 1), die(0, 2)], None),
            ("a kill", &[event(Action::Kill, 1), die(137, 1)], Some(true)),
            ("a signal long ago", &[event(Action::Kill, 1), die(1, 12)], None),
            ("a restart by hand", &[event(Action::Restart, 1), die(0, 9)], Some(true)),
            (
                "its own restart, reported after the death",
                &[die(1, 1), event(Action::Restart, 1), event(Action::Start, 2), die(1, 3)],
                None,
            ),
        ];
        for (what, events, expected) in cases {
            assert_eq!(last(Kind::Podman, events), expected, "{what}");
        }
    }

    #[test]
    fn remembered_requests_are_bounded() {
        let mut attribution = ExitAttribution::default();
        for number in 0..3 * MAX_ASKED {
            let event = ContainerEvent { container_id: number.to_string(), ..kill(15, 1) };
            attribution.note(&event, Kind::Docker);
        }

        assert_eq!(attribution.asked.len(), MAX_ASKED);
        attribution.note(&kill(15, 1_000), Kind::Docker);
        assert_eq!(attribution.asked.len(), 1, "what is too old makes room");
    }
}
