//! One offer of a release to an agent.

use std::time::Duration;

use serde_json::json;
use signalbox_protocol::agent::{OFFER_UPDATE, RequestError, UpdateOffer, UpdateTaken};
use uuid::Uuid;

use super::Updates;
use super::plan::Ending;
use crate::registry::{CallError, Question};
use crate::store::StoreError;
use crate::store::rollouts::{MemberKey, OpenMember, UpdateRollout};

/// The time for an answer: the agent only checks the signature before it.
const DEADLINE: Duration = Duration::from_secs(15);

/// The refusals that agents give for good. Anything else that they say is not passed on to people.
const REFUSALS: [&str; 6] = ["updates_off", "unknown_signer", "malformed", "not_newer", "no_build", FAILED_BEFORE];

/// The agent has tried this very build, and it did not work.
const FAILED_BEFORE: &str = "failed_before";

/// The agent downloads another release at the moment.
const BUSY: &str = "busy";

/// Whether an agent may refuse an offer with this reason.
pub fn is_refusal(reason: &str) -> bool {
    reason == BUSY || REFUSALS.contains(&reason)
}

/// What an answer to an offer means.
#[derive(Debug, PartialEq, Eq)]
enum Answered {
    /// The agent has taken it, or may have.
    Taken,
    /// The agent does not know of it.
    NotReached,
    Ended(Ending),
}

impl Updates {
    /// Offers the release to a server, unless somebody else does.
    pub(super) async fn offer(
        &self,
        row: &UpdateRollout,
        key: MemberKey,
        session_id: Uuid,
        member: OpenMember,
    ) -> Result<(), StoreError> {
        let Some(key) = self.store.claim_offer(key, session_id, self.clock.now()).await? else { return Ok(()) };
        let offer = UpdateOffer { release: row.release.clone(), signature: row.signature.clone() };
        let question = Question { method: OFFER_UPDATE, params: json!(offer), deadline: DEADLINE, by: None };
        let answer = self.registry.ask::<UpdateTaken>(key.server_id, question).await;
        match answered(&answer, key.offers) {
            Answered::Taken => Ok(()),
            Answered::NotReached => self.store.take_back_offer(key, self.clock.now()).await,
            Answered::Ended(ending) => self.settle(row, key, &member.from_version, ending).await,
        }
    }
}

fn answered(answer: &Result<UpdateTaken, CallError>, offers: i32) -> Answered {
    match answer {
        // The agent may have got it in these cases: what it does shows later.
        Ok(_) | Err(CallError::Timeout | CallError::Disconnected) => Answered::Taken,
        Err(CallError::Offline | CallError::Busy | CallError::Unreachable) => Answered::NotReached,
        Err(CallError::Agent(error)) if error.code == "agent_refused" => refused(error, offers),
        // An agent that fails may do better at the next offer.
        Err(CallError::Agent(_)) => Answered::Taken,
    }
}

fn refused(error: &RequestError, offers: i32) -> Answered {
    let reason = error.reason.as_deref().unwrap_or_default();
    if reason == BUSY {
        return Answered::Taken;
    }
    // It was this rollout that offered the build before.
    if reason == FAILED_BEFORE && offers > 1 {
        return Answered::Ended(Ending::Failed("the build did not work".to_owned()));
    }
    let known = REFUSALS.into_iter().find(|known| *known == reason);
    Answered::Ended(Ending::Refused(known.unwrap_or("other")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(code: &str, reason: Option<&str>) -> Result<UpdateTaken, CallError> {
        let error = RequestError::new(code, "no");
        Err(CallError::Agent(RequestError { reason: reason.map(str::to_owned), ..error }))
    }

    #[test]
    fn an_answer_says_whether_the_agent_has_the_offer() {
        let refused = |code| Answered::Ended(Ending::Refused(code));
        let cases = [
            (Ok(UpdateTaken { version: "1.4.0".to_owned() }), Answered::Taken),
            (Err(CallError::Timeout), Answered::Taken),
            (Err(CallError::Disconnected), Answered::Taken),
            (Err(CallError::Offline), Answered::NotReached),
            (Err(CallError::Busy), Answered::NotReached),
            (Err(CallError::Unreachable), Answered::NotReached),
            (refusal("agent_error", None), Answered::Taken),
            (refusal("agent_refused", Some("busy")), Answered::Taken),
            (refusal("agent_refused", Some("not_newer")), refused("not_newer")),
            (refusal("agent_refused", Some("failed_before")), refused("failed_before")),
            (refusal("agent_refused", Some("<b>anything</b>")), refused("other")),
            (refusal("agent_refused", None), refused("other")),
        ];

        for (answer, expected) in cases {
            assert_eq!(answered(&answer, 1), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_build_that_failed_after_an_earlier_offer_has_failed_here() {
        let answer = answered(&refusal("agent_refused", Some("failed_before")), 2);

        assert_eq!(answer, Answered::Ended(Ending::Failed("the build did not work".to_owned())));
    }
}
