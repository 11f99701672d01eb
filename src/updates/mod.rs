//! Brings releases of the agent to servers, wave by wave.
//!
//! Each instance steps the rollouts of its shards. What an offer or an outcome changes is decided by the database, so that while
//! shards change hands a server is still offered a release by one instance at a time. Nothing is kept in memory: after a restart
//! the rows say what comes next.
//!
//! The service judges no signature. An agent takes a release only with one by a key that its owner pinned.

mod offer;
mod pace;
mod plan;

use std::collections::HashMap;
use std::time::Instant;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

pub use self::offer::is_refusal;
pub use self::pace::Pace;
pub use self::plan::takes_updates;
use self::plan::{Next, Verdict, judge, next, reached};
use crate::audit::{Actor, Entry, Outcome, action};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::install::Programs;
use crate::periodic::every;
use crate::registry::RegistryHandle;
use crate::store::rollouts::{MemberKey, OpenMember, RolloutEnd, UpdateRollout, rollout};
use crate::store::{Store, StoreError};

/// Rollouts that are stepped at the same time.
const ROLLOUTS_AT_ONCE: usize = 8;

/// The servers of a rollout that try a release at the same time: if all of them fail, the others still work.
const MAX_OFFERED: usize = 25;

/// Steps rollouts; cheap to clone.
#[derive(Clone)]
pub struct Updates {
    pub clock: Clock,
    pub store: Store,
    pub registry: RegistryHandle,
    pub cluster: Cluster,
    pub programs: Programs,
    pub pace: Pace,
}

impl Updates {
    /// Steps the rollouts of this instance for as long as it runs.
    pub async fn keep(&self) {
        let mut steady_since = Instant::now();
        every(self.pace.look, async || {
            let is_steady = steady_since.elapsed() >= self.pace.again;
            if let Err(error) = self.look(is_steady).await {
                tracing::warn!(%error, "rollouts could not be checked, will try again");
                // Agents could not connect either while the database was away.
                steady_since = Instant::now();
            }
        })
        .await;
    }

    async fn look(&self, is_steady: bool) -> Result<(), StoreError> {
        // A clock that is in doubt could end pauses.
        if self.cluster.is_draining() || self.clock.doubt().is_some() {
            return Ok(());
        }
        let open = self.store.open_rollouts().await?;
        let ours = open.into_iter().filter(|(_, id)| self.cluster.shards.holds(*id));
        let steps = stream::iter(ours).map(|(owner_id, id)| self.step(owner_id, id, is_steady));
        let outcomes: Vec<_> = steps.buffer_unordered(ROLLOUTS_AT_ONCE).collect().await;
        outcomes.into_iter().collect()
    }

    async fn step(&self, owner_id: Uuid, id: Uuid, is_steady: bool) -> Result<(), StoreError> {
        let Some(row) = self.store.find_rollout(owner_id, id).await? else { return Ok(()) };
        if row.ended_at.is_some() {
            return Ok(());
        }
        self.store.release_transferred(&row).await?;
        let now = self.clock.now();
        let (mut to_offer, mut offered, mut open_waves) = (Vec::new(), 0, Vec::new());
        for member in self.store.open_members(&row, reached(&row, now)).await? {
            match judge(&member, &row.version, now, &self.pace, is_steady) {
                Verdict::Ended(outcome) => self.settle(&row, member.key(id), &member.from_version, outcome).await?,
                Verdict::Trying => {
                    offered += usize::from(member.state == rollout::OFFERED);
                    open_waves.push(member.wave);
                }
                Verdict::Offer => {
                    open_waves.push(member.wave);
                    to_offer.push(member);
                }
            }
        }
        let counts = self.store.rollout_counts(&[id]).await?.remove(&id).unwrap_or_default();
        if let Some(reason) = plan::too_many_failed(&row, &counts) {
            return self.end(&row, RolloutEnd::Stopped(reason), "too_many_failed", &counts).await;
        }
        if row.status != rollout::RUNNING {
            return Ok(());
        }
        let room = MAX_OFFERED.saturating_sub(offered);
        if !to_offer.is_empty() {
            // Those that were offered the release before have their places.
            if room == 0 && to_offer.iter().all(|member| member.state != rollout::OFFERED) {
                return Ok(());
            }
            return match self.is_still_there(&row).await {
                Some(true) => self.offer_some(&row, to_offer, room).await,
                Some(false) => {
                    let reason = "the service has another release now".to_owned();
                    self.end(&row, RolloutEnd::Stopped(reason), "release_changed", &counts).await
                }
                None => Ok(()),
            };
        }
        match next(&row, &counts, &open_waves, now, &self.pace) {
            Next::Wait => Ok(()),
            Next::Wave { wave, since } => self.store.advance_rollout(&row, wave, since).await.map(|_| ()),
            Next::Done => self.end(&row, RolloutEnd::Done, "", &counts).await,
        }
    }

    /// Whether this service still has the release and all its programs; none as long as it has none or not all, as when files are
    /// being copied.
    async fn is_still_there(&self, row: &UpdateRollout) -> Option<bool> {
        match self.programs.release().await {
            Ok(Some(release)) if release.release != row.release => Some(false),
            Ok(Some(release)) => release.missing.is_empty().then_some(true),
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "the agents' release cannot be read, will try again");
                None
            }
        }
    }

    async fn offer_some(&self, row: &UpdateRollout, members: Vec<OpenMember>, room: usize) -> Result<(), StoreError> {
        // What is offered again has its place already.
        let (again, first): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| member.state == rollout::OFFERED);
        let room = room.saturating_sub(again.len());
        let chosen = again.into_iter().take(MAX_OFFERED).chain(first.into_iter().take(room));
        let offers = chosen.filter_map(|member| Some(self.offer(row, member.key(row.id), member.session_id?, member)));
        join_all(offers).await.into_iter().collect()
    }

    /// Notes what became of a server, with an entry in the audit log.
    async fn settle(
        &self,
        row: &UpdateRollout,
        key: MemberKey,
        from_version: &str,
        outcome: plan::Ending,
    ) -> Result<(), StoreError> {
        let (state, reason, noted) = match &outcome {
            plan::Ending::Updated => (rollout::UPDATED, None, Outcome::Ok),
            plan::Ending::Failed(why) => (rollout::FAILED, Some(why.as_str()), Outcome::Failed("update_failed".into())),
            plan::Ending::Refused(code) => (rollout::REFUSED, Some(*code), Outcome::Refused),
        };
        let detail = json!({
            "rollout_id": row.id, "version": row.version, "from_version": from_version, "reason": reason,
        });
        let entry = Entry::new(action::AGENT_UPDATE, row.owner_id, Actor::service(""))
            .on_server(key.server_id)
            .target(row.id)
            .outcome(noted)
            .detail(detail);
        if self.store.settle_member(key, state, reason, self.clock.now(), entry).await? {
            tracing::info!(server.id = %key.server_id, rollout.id = %row.id, state, "a server's agent was settled");
        }
        Ok(())
    }

    async fn end(
        &self,
        row: &UpdateRollout,
        end: RolloutEnd,
        code: &'static str,
        counts: &[(i32, String, i64)],
    ) -> Result<(), StoreError> {
        let outcome = match &end {
            RolloutEnd::Done => Outcome::Ok,
            RolloutEnd::Stopped(_) => Outcome::Failed(code.into()),
        };
        let reason = match &end {
            RolloutEnd::Done => None,
            RolloutEnd::Stopped(reason) => Some(reason.as_str()),
        };
        let detail = json!({ "version": row.version, "reason": reason, "servers": by_state(counts) });
        let entry = Entry::new(action::ROLLOUT_END, row.owner_id, Actor::service(""));
        let entry = entry.target(row.id).outcome(outcome).detail(detail);
        self.store.end_rollout(row.id, end, self.clock.now(), entry).await.map(|_| ())
    }
}

/// How many servers are in each state.
fn by_state(counts: &[(i32, String, i64)]) -> Value {
    let mut sums: HashMap<&str, i64> = HashMap::new();
    for (_, state, count) in counts {
        *sums.entry(state).or_default() += count;
    }
    json!(sums)
}

/// A time that is this much later.
fn after(at: Timestamp, pause: std::time::Duration) -> Timestamp {
    at.plus_millis(i64::try_from(pause.as_millis()).unwrap_or(i64::MAX))
}
