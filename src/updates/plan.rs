//! What comes next in a rollout. Pure.

use signalbox_protocol::Timestamp;
use signalbox_protocol::agent::{AgentInfo, FailedUpdate};
use uuid::Uuid;

use super::{Pace, after};
use crate::store::{OpenMember, UpdateRollout, rollout};

/// The offers that an agent gets before it counts as failed.
const MAX_OFFERS: i32 = 5;

/// The capability of agents that take updates.
const UPDATES: &str = "updates";

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
    let is_late = now >= after(member.changed_at.into(), pace.again);
    let failed = |why: &str| Verdict::Ended(Ending::Failed(why.to_owned()));
    let Some(session_id) = member.session_id else {
        let is_lost = is_late && is_steady;
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
    match (is_offered, is_late) {
        (true, false) => Verdict::Trying,
        (true, true) if member.offers >= MAX_OFFERS => {
            failed(&format!("it was offered the build {MAX_OFFERS} times and did not connect with it"))
        }
        (true, true) | (false, _) => Verdict::Offer,
    }
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
