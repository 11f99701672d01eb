//! The objects that calls name. A refused call leaves its object, so that the next one can have it; after one that was allowed there
//! is a new one.

use serde_json::{Value, json};
use signalbox::audit::{Actor, Entry, action};
use signalbox::store::rollouts::RolloutStep;
use signalbox::store::{Approval, NewApproval};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::bodies::{dashboard, schedule, view};
use super::scene::{Scene, TAG};
use crate::support::rows::{member, rollout};
use crate::support::uuid_of;

/// What a call names in its path. All belong to the owner of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// Nothing besides the server.
    None,
    /// Something that does not exist.
    Nowhere,
    /// Another server with the same grants.
    Server,
    /// An alert of the server, the only one.
    Alert,
    /// A command that ran on the server, the only one.
    Command,
    Threshold,
    ThresholdOfTag,
    Silence,
    SilenceOfTag,
    Note,
    Key,
    Batch,
    /// A command of the owner that waits for signatures.
    Approval,
    Schedule,
    /// A rollout of the owner, the only one that has not ended.
    Rollout,
    /// Of somebody who does not manage the server.
    Grant,
    /// The same, by a tag that the server has.
    GrantOfTag,
    /// The same, by a tag that no server has.
    GrantOfOtherTag,
    /// A team with a member.
    Team,
    /// The same, and the account that is named is a member.
    TeamWithSpare,
    Channel,
    View,
    SharedView,
    Dashboard,
    SharedDashboard,
    Session,
    /// Of a program.
    Token,
    Enrolment,
    /// An account.
    User,
    /// Of the administrator.
    Invitation,
}

impl Scene {
    /// An object for a call that may do something to it, or may not.
    pub async fn object(&mut self, object: Object, is_used: bool) -> Uuid {
        let id = match self.spares.remove(&object) {
            Some(id) => id,
            None => self.make(object).await,
        };
        if !is_used {
            self.spares.insert(object, id);
        }
        id
    }

    async fn make(&mut self, object: Object) -> Uuid {
        let name = self.name();
        let server_id = self.server_id;
        let of_server = json!({"server_id": server_id});
        match object {
            Object::None => server_id,
            Object::Nowhere => Uuid::now_v7(),
            Object::Alert => self.alert_id,
            Object::Command => self.command_id,
            Object::Server => self.granted_server().await,
            Object::Threshold => self.make_threshold(&of_server).await,
            Object::ThresholdOfTag => self.make_threshold(&json!({"tag": "db"})).await,
            Object::Silence => self.make_silence(&of_server).await,
            Object::SilenceOfTag => self.make_silence(&json!({"tag": "db"})).await,
            Object::Note => {
                let note = json!({"kind": "note", "text": "New disks"});
                self.by_owner(&format!("/servers/{server_id}/events"), note).await
            }
            Object::Key => self.by_owner("/api-keys", json!({"server_id": server_id, "name": name})).await,
            Object::Batch => self.by_owner("/commands", json!({"server_ids": [server_id], "command": "true"})).await,
            Object::Approval => self.make_approval().await,
            Object::Schedule => self.by_owner("/schedules", schedule(server_id, name)).await,
            Object::Rollout => self.make_rollout().await,
            Object::Grant => {
                let grant = self.grant(of_server);
                self.by_owner("/grants", grant).await
            }
            Object::GrantOfTag => {
                let grant = self.grant(json!({"tag": TAG}));
                self.by_owner("/grants", grant).await
            }
            Object::GrantOfOtherTag => {
                let grant = self.grant(json!({"tag": "db"}));
                self.by_owner("/grants", grant).await
            }
            Object::Team => self.make_team(&[]).await,
            Object::TeamWithSpare => self.make_team(&[self.spare.id]).await,
            Object::Channel => {
                let settings = json!({"url": "https://hooks.invalid/signalbox"});
                let channel = json!({"name": name, "type": "webhook", "settings": settings});
                self.by_owner("/notifications/channels", channel).await
            }
            Object::View => self.by_owner("/views", view(name, "nobody")).await,
            Object::SharedView => self.by_owner("/views", view(name, "everyone")).await,
            Object::Dashboard => self.by_owner("/dashboards", dashboard(name, "nobody")).await,
            Object::SharedDashboard => self.by_owner("/dashboards", dashboard(name, "everyone")).await,
            Object::Session => self.session_of_owner().await,
            Object::Token => self.by_owner("/tokens", json!({"name": name, "scope": {"all": true}})).await,
            Object::Enrolment => self.by_owner("/enrolments", json!({"name": name, "uses": 1})).await,
            Object::User => self.service.register(&name).await.id,
            Object::Invitation => {
                let administrator = self.administrator.clone();
                let invitation = self.client().post("/users/invitations").bearer(&administrator.token).json(json!({}));
                uuid_of(&invitation.expect(201).await["id"])
            }
        }
    }

    /// The id of what the owner makes.
    async fn by_owner(&self, path: &str, body: Value) -> Uuid {
        uuid_of(&self.client().post(path).bearer(&self.owner.token).json(body).expect(201).await["id"])
    }

    /// Stored as if somebody had signed it already: no agent is here that asks for signatures.
    async fn make_approval(&self) -> Uuid {
        let (id, now) = (Uuid::now_v7(), Timestamp::now());
        let approval = Approval {
            id,
            user_id: self.owner.id,
            login_id: None,
            username: "owner".to_owned(),
            address: String::new(),
            command: "true".to_owned(),
            stdin: None,
            timeout_seconds: 60,
            concurrency: 1,
            stop_on_failure: false,
            payload: b"{}".to_vec(),
            needed: 2,
            status: "awaiting_approval".to_owned(),
            not_before: now.into(),
            expires_at: now.plus_millis(3_600_000).into(),
            created_at: now.into(),
            ended_at: None,
            batch_id: None,
            refused_reason: None,
        };
        let new = NewApproval { approval, servers: vec![self.server_id], signatures: Vec::new() };
        let entry = Entry::new(action::APPROVAL_CREATE, self.owner.id, Actor::command_line());
        self.service.state.store.create_approval(&new, entry).await.unwrap();
        id
    }

    /// Stored as if there were a release, and an agent that takes it. The one before ends: an account has one at a time.
    async fn make_rollout(&self) -> Uuid {
        let store = &self.service.state.store;
        let (id, owner_id, now) = (Uuid::now_v7(), self.owner.id, Timestamp::now());
        let entry = || Entry::new(action::ROLLOUT_CANCEL, owner_id, Actor::command_line());
        for (owner_id, open) in store.open_rollouts().await.unwrap() {
            store.step_rollout(owner_id, open, RolloutStep::Cancel, now, entry()).await.unwrap();
        }
        let rollout = rollout(id, owner_id, now);
        let member = member(id, self.server_id, now);
        assert!(store.create_rollout(&rollout, &[member], entry()).await.unwrap());
        id
    }

    async fn make_threshold(&self, scope: &Value) -> Uuid {
        self.by_owner("/alerts/thresholds", super::table::threshold(scope)).await
    }

    async fn make_silence(&self, scope: &Value) -> Uuid {
        self.by_owner("/alerts/silences", super::table::silence(scope)).await
    }

    async fn make_team(&mut self, more: &[Uuid]) -> Uuid {
        let name = self.name();
        let team = self.by_owner("/teams", json!({"name": name})).await;
        let members: Vec<Uuid> = [self.member_id].into_iter().chain(more.iter().copied()).collect();
        for member in members {
            let path = format!("/teams/{team}/members/{member}");
            self.client().put(path).bearer(&self.owner.token).expect(200).await;
        }
        team
    }

    async fn session_of_owner(&self) -> Uuid {
        let other = self.service.sign_in(&self.owner).await;
        let sessions = self.client().get("/auth/sessions").bearer(&other.token).expect(200).await;
        let current = sessions.as_array().unwrap().iter().find(|session| session["current"] == true);
        uuid_of(&current.unwrap()["id"])
    }
}
