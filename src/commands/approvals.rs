//! Signed commands that wait until enough people have signed them.
//!
//! What somebody asks for is stored with the bytes that are signed. Others add signatures of the same bytes. As soon as there
//! are as many as the agents ask for, the command runs as a batch, for the user who asked for it. The first batch has the id of the
//! approval. The row's status and the batch are written in one transaction, so that of several requests and instances one starts it.
//!
//! The service counts signatures to know when to send. It decides nothing with them: agents know the signers, and refuse what
//! too few of them have signed. If all agents do, the command waits again, for one signature more than there are: the store decides
//! that when it ends the batch.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use signalbox_protocol::Timestamp;
use signalbox_protocol::signed::{Signature, Signed};
use signalbox_signing::{Author, FormError, Payload, form};
use uuid::Uuid;

use super::batch::{BatchServer, Batches, NewBatch};
use super::jobs::RunError;
use crate::audit::{Actor, Entry, action};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::periodic::every;
use crate::store::{Approval, ApprovalSignature, NewApproval, Once, Signing, Store, StoreError};

/// How soon an expiry shows, and how soon another instance starts what the one that was asked did not.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The status of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalStatus {
    Waiting,
    /// It has all its signatures, and runs or has run as a batch. If agents refuse them, it waits again.
    Approved,
    Expired,
    Withdrawn,
}

impl ApprovalStatus {
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Approved, Self::Expired, Self::Withdrawn];

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "awaiting_approval",
            Self::Approved => "approved",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The status of this name; an unknown one is over.
    pub fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|status| status.name() == name).unwrap_or(Self::Expired)
    }
}

/// What somebody asks others to sign.
#[derive(Debug)]
pub struct NewRequest {
    pub actor: Actor,
    pub user_id: Uuid,
    pub servers: Vec<Uuid>,
    pub command: String,
    pub stdin: Option<String>,
    pub timeout_seconds: u32,
    pub concurrency: u16,
    pub stop_on_failure: bool,
    /// The bytes that are signed, which say the same.
    pub bytes: Vec<u8>,
    pub payload: Payload,
    pub signatures: Vec<Signature>,
    /// How many have to sign.
    pub needed: u32,
}

/// Why a signature was not added.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error(transparent)]
    Form(#[from] FormError),
    #[error("signature {0} is by a signer who has signed already: each person signs once")]
    Twice(usize),
    #[error("this signer has signed already: each person signs once")]
    Again,
    #[error("there are as many signatures as agents take")]
    Full,
    #[error("the command does not wait for signatures any more")]
    Over,
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<StoreError> for SignError {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}

/// Keeps, signs and starts what waits for signatures; cheap to clone.
#[derive(Clone)]
pub struct Approvals {
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) batches: Arc<Batches>,
    pub(super) cluster: Cluster,
}

impl Approvals {
    /// Stores what waits for signatures, and starts it if it has them all. Returns its id.
    pub async fn ask(&self, new: NewRequest) -> Result<Uuid, SignError> {
        let (id, now) = (Uuid::now_v7(), self.clock.now());
        let mut signatures: Vec<ApprovalSignature> = Vec::with_capacity(new.signatures.len());
        for (place, signature) in new.signatures.iter().enumerate() {
            let row = signature_row(id, signature, &new.bytes, &new.actor, now)?;
            if signatures.iter().any(|other| other.signer == row.signer) {
                return Err(SignError::Twice(place + 1));
            }
            signatures.push(row);
        }
        let approval = Approval {
            id,
            user_id: new.user_id,
            login_id: new.actor.login_id,
            username: new.actor.username.to_string(),
            address: new.actor.address.clone(),
            command: new.command,
            stdin: new.stdin,
            timeout_seconds: i32::try_from(new.timeout_seconds).unwrap_or(i32::MAX),
            concurrency: i32::from(new.concurrency),
            stop_on_failure: new.stop_on_failure,
            payload: new.bytes,
            needed: i32::try_from(new.needed).unwrap_or(i32::MAX),
            status: ApprovalStatus::Waiting.name().to_owned(),
            not_before: new.payload.not_before.into(),
            expires_at: new.payload.expires_at.into(),
            created_at: now.into(),
            ended_at: None,
            batch_id: None,
            refused_reason: None,
        };
        let detail = json!({
            "command": approval.command,
            "servers": new.servers.len(),
            "needed": approval.needed,
            "signed": signatures.len(),
            "expires_at": new.payload.expires_at,
        });
        let entry = entry(action::APPROVAL_CREATE, &approval, new.actor).detail(detail);
        let is_complete = signatures.len() >= usize::try_from(new.needed).unwrap_or(usize::MAX);
        let new = NewApproval { approval, servers: new.servers, signatures };
        self.store.create_approval(&new, entry).await?;
        if is_complete {
            self.start_now(id).await;
        }
        Ok(id)
    }

    /// Adds a signature of the same bytes, and starts the command if it has them all now.
    pub async fn sign(&self, approval: &Approval, signature: &Signature, actor: Actor) -> Result<(), SignError> {
        let now = self.clock.now();
        let row = signature_row(approval.id, signature, &approval.payload, &actor, now)?;
        let detail = json!({ "command": approval.command, "signer": row.signer });
        let entry = entry(action::APPROVAL_SIGN, approval, actor).detail(detail);
        match self.store.sign_approval(&row, entry, now).await? {
            Signing::Added => {}
            Signing::Twice => return Err(SignError::Again),
            Signing::Full => return Err(SignError::Full),
            Signing::Over => return Err(SignError::Over),
        }
        self.start_now(approval.id).await;
        Ok(())
    }

    /// Ends the wait, for `actor`. Returns whether it waited.
    pub async fn withdraw(&self, approval: &Approval, actor: Actor) -> Result<bool, StoreError> {
        let entry = entry(action::APPROVAL_WITHDRAW, approval, actor).detail(json!({ "command": approval.command }));
        self.store.end_approval(approval.id, ApprovalStatus::Withdrawn.name(), self.clock.now(), entry).await
    }

    /// Starts what has all its signatures, which were stored: if it cannot start now, an instance tries again soon.
    async fn start_now(&self, id: Uuid) {
        if let Err(error) = self.start_if_complete(id).await {
            tracing::warn!(approval.id = %id, %error, "an approved command could not start, will try again");
        }
    }

    async fn start_if_complete(&self, id: Uuid) -> Result<(), RunError> {
        let Some(approval) = self.store.waiting_approval(id).await? else { return Ok(()) };
        let now = self.clock.now();
        let signatures = self.store.approval_signatures(&[approval.id]).await?;
        let is_complete = signatures.len() >= usize::try_from(approval.needed).unwrap_or(usize::MAX);
        // Agents would refuse what starts too early, and it would be spent.
        let certain = if self.clock.doubt().is_some() { self.clock.certain() } else { now };
        let holds = Timestamp::from(approval.not_before) <= certain && now < Timestamp::from(approval.expires_at);
        if !is_complete || !holds {
            return Ok(());
        }
        let servers = self.store.approval_servers(approval.id).await?;
        if servers.is_empty() {
            return Ok(());
        }
        let asker = Actor {
            user_id: Some(approval.user_id),
            username: approval.username.as_str().into(),
            login_id: approval.login_id,
            address: approval.address.clone(),
            token: None,
        };
        let signers: Vec<&str> = signatures.iter().map(|row| row.signer.as_str()).collect();
        let detail = json!({ "command": approval.command, "signers": signers });
        let entry = entry(action::APPROVAL_RUN, &approval, asker.clone()).detail(detail);
        let new = NewBatch {
            owner_id: approval.user_id,
            actor: asker,
            servers: servers.iter().map(|it| BatchServer { server_id: it.id, owner_id: it.owner_id }).collect(),
            command: approval.command.clone(),
            stdin: approval.stdin.clone(),
            signed: Some(signed(&approval.payload, &signatures)),
            timeout_seconds: u32::try_from(approval.timeout_seconds).unwrap_or(1),
            concurrency: u16::try_from(approval.concurrency).unwrap_or(1),
            stop_on_failure: approval.stop_on_failure,
        };
        let once = Once::Approval { id: approval.id, at: now };
        // The batch whose signatures agents refused stays as it is.
        let batch_id = if approval.batch_id.is_none() { approval.id } else { Uuid::now_v7() };
        if self.batches.start_once(batch_id, new, once, vec![entry]).await? {
            tracing::info!(approval.id = %approval.id, "a command has all its signatures, and runs");
        }
        Ok(())
    }

    /// Starts what is complete, and ends what has expired, for as long as this instance runs.
    pub async fn keep(&self) {
        every(LOOK_EVERY, async || {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "commands that wait for signatures could not be checked, will try again");
            }
        })
        .await;
    }

    async fn look(&self) -> Result<(), StoreError> {
        // A clock that is in doubt may show a time that has not come, and agents would refuse what starts too early.
        if self.cluster.is_draining() || self.clock.doubt().is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        // A wrong clock may not be in doubt yet, and what has expired never waits again.
        for approval in self.store.overdue_approvals(self.clock.certain()).await? {
            let entry = entry(action::APPROVAL_EXPIRE, &approval, Actor::service(""));
            let entry = entry.detail(json!({ "command": approval.command }));
            self.store.end_approval(approval.id, ApprovalStatus::Expired.name(), now, entry).await?;
        }
        for id in self.store.complete_approvals(now).await? {
            self.start_now(id).await;
        }
        Ok(())
    }
}

fn entry(action: &'static str, approval: &Approval, actor: Actor) -> Entry {
    Entry::new(action, approval.user_id, actor).target(approval.id)
}

/// What agents get: the bytes as they came, and every signature.
fn signed(payload: &[u8], signatures: &[ApprovalSignature]) -> Signed {
    use base64::Engine;
    let signatures = signatures.iter().filter_map(|row| serde_json::from_slice(&row.signature).ok()).collect();
    Signed { payload: base64::prelude::BASE64_STANDARD.encode(payload), signatures }
}

fn signature_row(
    approval_id: Uuid,
    signature: &Signature,
    bytes: &[u8],
    actor: &Actor,
    now: Timestamp,
) -> Result<ApprovalSignature, SignError> {
    let user_id = actor.user_id.unwrap_or_default();
    let signer = match form::author(signature, bytes)? {
        Author::Ssh(fingerprint) => fingerprint,
        // Two assertions of one passkey look like those of two, so each account brings one.
        Author::Passkey => format!("passkey of {user_id}"),
    };
    let signature = serde_json::to_vec(signature).unwrap_or_default();
    let username = actor.username.to_string();
    Ok(ApprovalSignature { approval_id, signer, signature, user_id, username, signed_at: now.into() })
}
