//! What comes next in a rollout. Pure.

use std::time::Duration;

use serde::Deserialize;
use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentInfo, FailedUpdate};
use uuid::Uuid;

use super::{Pace, after};
use crate::store::rollouts::{OpenMember, UpdateRollout, rollout};

/// The offers that an agent gets before it counts as failed: some six hours, because it waits for commands that run and terminals that
/// are open.
const MAX_OFFERS: i32 = 36;

/// The capability of agents that take updates.
const UPDATES: &str = "updates";

/// What the service stores beside what an agent says of itself.
#[derive(Default, Deserialize)]
struct Sampling {
    sample_interval_seconds: Option<f64>,
}

/// What became of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Updated,
    /// Why, for people.
    Failed(String),
    /// The code of the refusal.
    Refused(&'static str),
}

/// What to do about a server whose outcome is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Ended(Ending),
    /// Its agent has the time to take the release.
    Trying,
    Offer,
}

/// What comes next, once no server is to be offered anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Wait,
    Wave { wave: i32, since: Timestamp },
    Done,
}

/// Whether an agent takes updates, by what it says of itself.
pub fn takes_updates(agent: &AgentInfo) -> bool {
    agent.capabilities.iter().any(|capability| capability == UPDATES)
}

/// The last wave that has begun; one before the first if none has.
pub fn reached(row: &UpdateRollout, now: Timestamp) -> i32 {
    if now >= Timestamp::from(row.wave_since) { row.wave } else { row.wave.saturating_sub(1) }
}

/// Judges a server of a wave that has begun. `is_steady` says that agents could connect for as long as they may take.
pub fn judge(member: &OpenMember, version: &str, now: Timestamp, pace: &Pace, is_steady: bool) -> Verdict {
    let is_offered = member.state == rollout::OFFERED;
    let is_late = |since: Timestamp| now >= after(since, pace.again);
    let failed = |why: &str| Verdict::Ended(Ending::Failed(why.to_owned()));
    let Some(session_id) = member.session_id else {
        let is_lost = is_late(there_until(member, pace)) && is_steady;
        return if is_lost { failed("it has been offline since it was offered the build") } else { Verdict::Trying };
    };
    let agent: AgentInfo = member.agent.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    if agent.version == version {
        let is_settled = now >= after(begun_at(session_id), pace.settled);
        return if is_settled { Verdict::Ended(Ending::Updated) } else { Verdict::Trying };
    }
    if let Some(FailedUpdate { version: tried, reason }) = agent.failed_update.as_deref()
        && is_offered
        && member.offered_session != Some(session_id)
        && tried == version
    {
        let reason = if reason.is_empty() { "the build did not work" } else { reason };
        return failed(reason);
    }
    if !takes_updates(&agent) {
        return Verdict::Ended(Ending::Refused("updates_off"));
    }
    match (is_offered, is_late(member.changed_at.into())) {
        (true, false) => Verdict::Trying,
        (true, true) if member.offers >= MAX_OFFERS => {
            failed(&format!("it was offered the build {MAX_OFFERS} times and did not connect with it"))
        }
        (true, true) | (false, _) => Verdict::Offer,
    }
}

/// When a server that is offline left, at the latest: its agent may have waited for hours after it took the offer. While it waits it
/// gets the next one in time, so that one which connects again and again with the build and ends is not waited for.
fn there_until(member: &OpenMember, pace: &Pace) -> Timestamp {
    let offered_at = Timestamp::from(member.changed_at);
    let sampling: Sampling = member.agent.as_deref().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    // It was last seen when its last samples came, and the next ones were not due before this time had passed.
    let pause = sampling.sample_interval_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let pause = pause.unwrap_or_default();
    let left_at = member.last_seen_at.map_or(offered_at, |at| offered_at.max(after(at.into(), pause)));
    left_at.min(after(offered_at, pace.again.saturating_add(pause)))
}

/// When a session began: its id says so.
fn begun_at(session_id: Uuid) -> Timestamp {
    let seconds = session_id.get_timestamp().map_or(0, |at| at.to_unix().0);
    Timestamp::from_millis(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or_default())
}

/// Why the rollout stops; none if few enough servers have failed.
pub fn too_many_failed(row: &UpdateRollout, counts: &[(i32, String, i64)]) -> Option<String> {
    let failed: i64 = counts.iter().filter(|(_, state, _)| state == rollout::FAILED).map(|(.., count)| count).sum();
    let most = i64::from(row.max_failed);
    (failed > most).then(|| match failed {
        1 => format!("1 server failed, and at most {most} may"),
        failed => format!("{failed} servers failed, and at most {most} may"),
    })
}

/// What comes next. `open_waves` are those of the servers that still try the release.
pub fn next(
    row: &UpdateRollout,
    counts: &[(i32, String, i64)],
    open_waves: &[i32],
    now: Timestamp,
    pace: &Pace,
) -> Next {
    if reached(row, now) < row.wave || open_waves.contains(&row.wave) {
        return Next::Wait;
    }
    // Waves without servers are passed over.
    let following = counts.iter().map(|(wave, ..)| *wave).filter(|wave| *wave > row.wave).min();
    if let Some(wave) = following {
        return Next::Wave { wave, since: now.plus_millis(i64::from(row.pause_seconds).saturating_mul(1_000)) };
    }
    let is_open = |state: &str| state == rollout::WAITING || state == rollout::OFFERED;
    let all_ended = !counts.iter().any(|(_, state, _)| is_open(state));
    let is_over = now >= after(row.wave_since.into(), pace.give_up);
    if all_ended || (is_over && open_waves.is_empty()) { Next::Done } else { Next::Wait }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const VERSION: &str = "9.0.0";

    /// When every member here changed its state.
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis((1_700_000_000 + seconds) * 1_000)
    }

    /// A session that began then.
    fn session(seconds: u64) -> Uuid {
        Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 1_700_000_000 + seconds, 0))
    }

    fn pace() -> Pace {
        let seconds = Duration::from_secs;
        Pace { look: seconds(4), again: seconds(600), settled: seconds(30), give_up: seconds(86_400) }
    }

    fn member(state: &str, version: &str, failed: Option<&str>) -> OpenMember {
        let failed = failed.map(|version| json!({ "version": version, "reason": "it exited" }));
        let agent = json!({ "version": version, "capabilities": ["updates"], "failed_update": failed });
        OpenMember {
            server_id: Uuid::nil(),
            wave: 0,
            state: state.to_owned(),
            from_version: "1.2.3".to_owned(),
            offered_session: None,
            offers: i32::from(state == rollout::OFFERED),
            changed_at: at(0).into(),
            session_id: Some(session(0)),
            last_seen_at: Some(at(0).into()),
            agent: Some(agent.to_string()),
        }
    }

    fn judged(member: &OpenMember, seconds: i64) -> Verdict {
        judge(member, VERSION, at(seconds), &pace(), true)
    }

    fn is_failed(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Ended(Ending::Failed(_)))
    }

    #[test]
    fn a_version_counts_once_its_session_has_outlived_a_trial() {
        for state in [rollout::WAITING, rollout::OFFERED] {
            let new = member(state, VERSION, None);

            assert_eq!(judged(&new, 29), Verdict::Trying);
            assert_eq!(judged(&new, 30), Verdict::Ended(Ending::Updated));
        }
    }

    #[test]
    fn a_failure_counts_if_it_came_after_the_offer_and_is_of_this_version() {
        let back = OpenMember { session_id: Some(session(5)), ..member(rollout::OFFERED, "1.2.3", Some(VERSION)) };
        assert_eq!(judged(&back, 10), Verdict::Ended(Ending::Failed("it exited".to_owned())));

        let still = member(rollout::OFFERED, "1.2.3", Some(VERSION));
        let still = OpenMember { offered_session: still.session_id, ..still };
        assert_eq!(judged(&still, 10), Verdict::Trying);
        let older = OpenMember { session_id: Some(session(5)), ..member(rollout::OFFERED, "1.2.3", Some("8.0.0")) };
        assert_eq!(judged(&older, 10), Verdict::Trying);
        assert_eq!(judged(&member(rollout::WAITING, "1.2.3", Some(VERSION)), 10), Verdict::Offer);
    }

    #[test]
    fn an_offer_is_repeated_ten_minutes_later_for_some_hours() {
        let offered = member(rollout::OFFERED, "1.2.3", None);
        assert_eq!(judged(&offered, 599), Verdict::Trying);
        assert_eq!(judged(&offered, 600), Verdict::Offer);

        let last = OpenMember { offers: MAX_OFFERS, ..offered };
        assert_eq!(judged(&last, 599), Verdict::Trying);
        assert!(is_failed(&judged(&last, 600)));
    }

    #[test]
    fn a_server_that_left_has_failed_only_if_it_could_have_come_back() {
        let gone = OpenMember { session_id: None, ..member(rollout::OFFERED, "1.2.3", None) };

        assert_eq!(judged(&gone, 599), Verdict::Trying);
        assert_eq!(judge(&gone, VERSION, at(600), &pace(), false), Verdict::Trying);
        assert!(is_failed(&judged(&gone, 600)));
    }

    #[test]
    fn the_time_of_a_server_that_left_counts_from_when_it_left() {
        let gone = OpenMember {
            session_id: None,
            last_seen_at: Some(at(590).into()),
            ..member(rollout::OFFERED, "1.2.3", None)
        };
        assert_eq!(judged(&gone, 600), Verdict::Trying);
        assert_eq!(judged(&gone, 1_189), Verdict::Trying);
        assert!(is_failed(&judged(&gone, 1_190)));

        // It sends samples every 100 s.
        let agent = json!({ "version": "1.2.3", "sample_interval_seconds": 100.0 }).to_string();
        let slow = OpenMember { agent: Some(agent), ..gone.clone() };
        assert_eq!(judged(&slow, 1_289), Verdict::Trying);
        assert!(is_failed(&judged(&slow, 1_290)));

        // It connects again and again, and ends.
        let restless = OpenMember { last_seen_at: Some(at(1_199).into()), ..gone.clone() };
        assert_eq!(judged(&restless, 1_199), Verdict::Trying);
        assert!(is_failed(&judged(&restless, 1_200)));

        // It was last seen before the offer, or nobody knows when.
        for last_seen_at in [Some(at(-590).into()), None] {
            let silent = OpenMember { last_seen_at, ..gone.clone() };
            assert_eq!(judged(&silent, 599), Verdict::Trying);
            assert!(is_failed(&judged(&silent, 600)));
        }
    }

    #[test]
    fn a_server_that_is_there_gets_its_next_offer_by_the_last_one() {
        let there = OpenMember { last_seen_at: Some(at(599).into()), ..member(rollout::OFFERED, "1.2.3", None) };

        assert_eq!(judged(&there, 600), Verdict::Offer);
    }

    #[test]
    fn an_agent_that_takes_no_updates_is_not_asked() {
        let agent = json!({ "version": "1.2.3", "capabilities": ["metrics"] }).to_string();
        for agent in [Some(agent), Some("{".to_owned()), None] {
            let off = OpenMember { agent, ..member(rollout::WAITING, "", None) };

            assert_eq!(judged(&off, 0), Verdict::Ended(Ending::Refused("updates_off")));
        }
    }

    /// A rollout whose present wave began at 0.
    fn row(wave: i32) -> UpdateRollout {
        UpdateRollout {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            version: VERSION.to_owned(),
            release: String::new(),
            signature: String::new(),
            waves: "[]".to_owned(),
            pause_seconds: 60,
            max_failed: 1,
            status: rollout::RUNNING.to_owned(),
            stopped_reason: None,
            wave,
            wave_since: at(0).into(),
            created_by: String::new(),
            created_at: at(0).into(),
            ended_at: None,
        }
    }

    fn counts(of: &[(i32, &str, i64)]) -> Vec<(i32, String, i64)> {
        of.iter().map(|(wave, state, count)| (*wave, (*state).to_owned(), *count)).collect()
    }

    #[test]
    fn the_next_wave_with_servers_begins_after_the_pause() {
        let all = counts(&[(0, "updated", 1), (0, "waiting", 2), (3, "waiting", 1)]);

        assert_eq!(next(&row(0), &all, &[0], at(10), &pace()), Next::Wait);
        assert_eq!(next(&row(0), &all, &[], at(10), &pace()), Next::Wave { wave: 3, since: at(70) });
        // In the pause.
        assert_eq!(next(&row(3), &all, &[], at(-1), &pace()), Next::Wait);
        assert_eq!((reached(&row(3), at(-1)), reached(&row(3), at(0))), (2, 3));
    }

    #[test]
    fn a_rollout_is_done_when_all_have_ended_or_the_time_is_over() {
        let ended = counts(&[(0, "updated", 1), (0, "refused", 1), (0, "failed", 1)]);
        let open = counts(&[(0, "updated", 1), (0, "waiting", 1)]);

        assert_eq!(next(&row(0), &ended, &[], at(1), &pace()), Next::Done);
        assert_eq!(next(&row(0), &[], &[], at(1), &pace()), Next::Done);
        assert_eq!(next(&row(0), &open, &[], at(86_399), &pace()), Next::Wait);
        assert_eq!(next(&row(0), &open, &[], at(86_400), &pace()), Next::Done);
        // One of an earlier wave tries it.
        assert_eq!(next(&row(1), &open, &[0], at(86_400), &pace()), Next::Wait);
    }

    #[test]
    fn one_failure_more_than_allowed_stops() {
        assert_eq!(too_many_failed(&row(0), &counts(&[(0, "failed", 1), (0, "refused", 9)])), None);
        let reason = too_many_failed(&row(0), &counts(&[(0, "failed", 1), (1, "failed", 1)]));
        assert_eq!(reason.as_deref(), Some("2 servers failed, and at most 1 may"));
    }
}
