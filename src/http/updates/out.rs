//! The releases and rollouts of responses.

use paperclip::actix::Apiv2Schema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use signalbox_protocol::agent::AgentInfo;

use crate::http::extract::field::described;
use crate::http::field_out::{Bytes, Id, TimeOut};
use crate::http::servers::Status;
use crate::install::OfferedRelease;
use crate::store::Server;
use crate::store::rollouts::{RolloutServer, UpdateRollout, rollout};
use crate::updates::takes_updates;

/// A program of a release.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ReleasedProgramOut {
    name: String,
    bytes: Bytes,
}

/// The release that the service can offer.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct ReleaseOut {
    version: String,
    programs: Vec<ReleasedProgramOut>,
    /// Whether the service has all its programs.
    is_complete: bool,
    /// The programs that the service does not have with the length and checksum that the release names.
    missing: Vec<String>,
}

/// Whether an agent takes updates: `off`, or `signed`, which is with a signature by a key that its owner pinned.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct UpdatesWord(&'static str);

described!(UpdatesWord, json!({ "type": "string", "enum": ["off", "signed"], "example": "signed" }));

/// A build that an agent tried, and that did not work.
#[derive(Debug, Clone, Serialize, Deserialize, Apiv2Schema)]
pub struct FailedUpdateOut {
    version: String,
    /// Why, in the agent's words.
    reason: String,
}

/// The agent of a server.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct UpdatableOut {
    server_id: Id,
    name: String,
    /// Null until an agent has connected.
    version: Option<String>,
    arch: Option<String>,
    status: Status,
    updates: UpdatesWord,
    /// The last build that did not work, as long as the agent runs the one before.
    failed_update: Option<FailedUpdateOut>,
    /// Whether it has the version of the release.
    is_current: bool,
}

/// The agent's release, and the servers that could get it.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct UpdatesOut {
    /// Null if the service has no signed release.
    release: Option<ReleaseOut>,
    /// Your own servers, by name.
    servers: Vec<UpdatableOut>,
    /// Your newest rollout, whether it has ended or not.
    rollout: Option<RolloutSummaryOut>,
}

/// Whether a rollout continues, and how it ended.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RolloutStatusOut(String);

described!(
    RolloutStatusOut,
    json!({ "type": "string", "enum": ["running", "paused", "done", "stopped", "cancelled"], "example": "running" })
);

/// What became of a server: `waiting` until it is offered the release, also while it is offline; `offered` while it tries it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct MemberStateOut(String);

described!(
    MemberStateOut,
    json!({ "type": "string", "enum": ["waiting", "offered", "updated", "failed", "refused"], "example": "updated" })
);

/// One wave of a rollout.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct WaveOut {
    /// Empty for all other servers.
    tags: Vec<String>,
}

/// How many servers of a rollout are in each state.
#[derive(Debug, Default, Serialize, Apiv2Schema)]
pub struct CountsOut {
    waiting: i64,
    offered: i64,
    updated: i64,
    failed: i64,
    refused: i64,
}

/// A rollout without its servers.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RolloutSummaryOut {
    id: Id,
    version: String,
    status: RolloutStatusOut,
    /// Why it stopped, as a sentence.
    stopped_reason: Option<String>,
    waves: Vec<WaveOut>,
    /// The present wave, from 0.
    wave: i32,
    /// When that wave began. In the pause after the wave before: when it begins.
    wave_since: TimeOut,
    pause_minutes: i32,
    max_failed: i32,
    /// The name of the user who began it.
    created_by: String,
    created_at: TimeOut,
    ended_at: Option<TimeOut>,
    counts: CountsOut,
}

/// A server of a rollout.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RolloutServerOut {
    server_id: Id,
    name: String,
    /// From 0.
    wave: i32,
    state: MemberStateOut,
    /// With `failed` a sentence; with `refused` the agent's code: `updates_off`, `unknown_signer`, `malformed`, `not_newer`, `no_build`,
    /// `failed_before` or `other`.
    reason: Option<String>,
    /// The version that its agent had when the rollout began.
    from_version: String,
    changed_at: TimeOut,
}

/// A rollout with its servers.
#[derive(Debug, Serialize, Apiv2Schema)]
pub struct RolloutOut {
    #[serde(flatten)]
    summary: RolloutSummaryOut,
    /// By wave and name.
    servers: Vec<RolloutServerOut>,
}

impl UpdatesOut {
    pub fn new(release: Option<OfferedRelease>, servers: &[Server], rollout: Option<RolloutSummaryOut>) -> Self {
        let version = release.as_ref().map(|release| release.version.as_str());
        let servers = servers.iter().map(|server| UpdatableOut::new(server, version)).collect();
        Self { servers, release: release.map(ReleaseOut::from), rollout }
    }
}

impl From<OfferedRelease> for ReleaseOut {
    fn from(release: OfferedRelease) -> Self {
        let program = |(name, bytes)| ReleasedProgramOut { name, bytes: Bytes(bytes) };
        Self {
            version: release.version,
            programs: release.programs.into_iter().map(program).collect(),
            is_complete: release.missing.is_empty(),
            missing: release.missing,
        }
    }
}

impl UpdatableOut {
    fn new(server: &Server, offered: Option<&str>) -> Self {
        let agent = agent_of(server);
        let takes = agent.as_ref().is_some_and(takes_updates);
        let (version, arch, failed) = match agent {
            Some(AgentInfo { version, arch, failed_update, .. }) => (Some(version), Some(arch), failed_update),
            None => (None, None, None),
        };
        Self {
            server_id: Id(server.record.id),
            name: server.record.name.clone(),
            is_current: version.is_some() && version.as_deref() == offered,
            version,
            arch,
            status: Status(server.status()),
            updates: UpdatesWord(if takes { "signed" } else { "off" }),
            failed_update: failed.map(|failed| FailedUpdateOut { version: failed.version, reason: failed.reason }),
        }
    }
}

impl RolloutSummaryOut {
    pub fn new<'a>(row: UpdateRollout, counted: impl Iterator<Item = (&'a str, i64)>) -> Self {
        let waves: Vec<Vec<String>> = serde_json::from_str(&row.waves).unwrap_or_default();
        Self {
            id: Id(row.id),
            version: row.version,
            status: RolloutStatusOut(row.status),
            stopped_reason: row.stopped_reason,
            waves: waves.into_iter().map(|tags| WaveOut { tags }).collect(),
            wave: row.wave,
            wave_since: TimeOut(row.wave_since.into()),
            pause_minutes: row.pause_seconds / 60,
            max_failed: row.max_failed,
            created_by: row.created_by,
            created_at: TimeOut(row.created_at.into()),
            ended_at: row.ended_at.map(|at| TimeOut(at.into())),
            counts: CountsOut::of(counted),
        }
    }
}

impl CountsOut {
    fn of<'a>(counted: impl Iterator<Item = (&'a str, i64)>) -> Self {
        let mut counts = Self::default();
        for (state, count) in counted {
            let sum = match state {
                rollout::WAITING => &mut counts.waiting,
                rollout::OFFERED => &mut counts.offered,
                rollout::UPDATED => &mut counts.updated,
                rollout::FAILED => &mut counts.failed,
                rollout::REFUSED => &mut counts.refused,
                _ => continue,
            };
            *sum += count;
        }
        counts
    }
}

impl RolloutOut {
    pub fn new(row: UpdateRollout, servers: Vec<RolloutServer>) -> Self {
        let summary = RolloutSummaryOut::new(row, servers.iter().map(|server| (server.state.as_str(), 1)));
        let server = |server: RolloutServer| RolloutServerOut {
            server_id: Id(server.server_id),
            name: server.name,
            wave: server.wave,
            state: MemberStateOut(server.state),
            reason: server.reason,
            from_version: server.from_version,
            changed_at: TimeOut(server.changed_at.into()),
        };
        Self { summary, servers: servers.into_iter().map(server).collect() }
    }
}

/// What the last agent of a server said of itself.
pub fn agent_of(server: &Server) -> Option<AgentInfo> {
    serde_json::from_str(server.record.agent.as_deref()?).ok()
}
