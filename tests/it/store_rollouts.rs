//! Rollouts of the agent's releases, below the API: what two instances at once must not break.

use signalbox::audit::{Actor, Entry, action};
use signalbox::store::rollouts::{
    KEPT_ROLLOUTS, MemberKey, OpenMember, RolloutEnd, RolloutStep, UpdateRollout, rollout,
};
use signalbox::store::{AuditFilter, Commit, Connected, Departure, Disconnected, PageRequest, Store};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{member, owner, rollout as row, server};

/// How often each race is run: the interesting order occurs in a few of them.
const ROUNDS: i64 = 20;

struct Scene {
    _storage: Storage,
    /// Of two instances.
    one: Store,
    other: Store,
    owner_id: Uuid,
    server_id: Uuid,
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + millis)
}

impl Scene {
    /// With a server whose agent is connected.
    async fn set() -> Self {
        let storage = Storage::fresh().await;
        let (one, other) = (storage.store().await, storage.store().await);
        let owner_id = owner(&one).await;
        let server_id = server(&one, owner_id, "web-1", "web").await;
        let scene = Self { _storage: storage, one, other, owner_id, server_id };
        scene.connect(server_id).await;
        scene
    }

    async fn connect(&self, server_id: Uuid) {
        let agent = r#"{"version":"1.2.3"}"#.to_owned();
        let (session_id, key_id) = (Uuid::now_v7(), Uuid::nil());
        let connected = Connected { server_id, session_id, key_id, agent, at: at(0), claim: None };
        let commit = Commit { connected: vec![connected], ..Commit::default() };
        self.one.commit(Uuid::nil(), &commit).await.unwrap();
    }

    fn entry(&self) -> Entry {
        Entry::new(action::ROLLOUT_CREATE, self.owner_id, Actor::command_line())
    }

    async fn create(&self) -> UpdateRollout {
        let row = row(Uuid::now_v7(), self.owner_id, at(0));
        let members = [member(row.id, self.server_id, at(0))];
        assert!(self.one.create_rollout(&row, &members, self.entry()).await.unwrap());
        row
    }

    async fn open_member(&self, row: &UpdateRollout) -> OpenMember {
        let mut members = self.other.open_members(row, row.wave).await.unwrap();
        assert_eq!(members.len(), 1, "{members:?}");
        members.remove(0)
    }

    async fn key(&self, row: &UpdateRollout) -> MemberKey {
        self.open_member(row).await.key(row.id)
    }

    /// How many servers are in each state.
    async fn counts(&self, row: &UpdateRollout) -> Vec<(i32, String, i64)> {
        self.other.rollout_counts(&[row.id]).await.unwrap().remove(&row.id).unwrap_or_default()
    }

    async fn cancel(&self, row: &UpdateRollout) {
        let step = RolloutStep::Cancel;
        assert!(self.one.step_rollout(self.owner_id, row.id, step, at(1), self.entry()).await.unwrap());
    }
}

#[actix_web::test]
async fn what_is_stored_is_read_as_it_was() {
    let scene = Scene::set().await;

    let created = scene.create().await;

    assert_eq!(scene.other.find_rollout(scene.owner_id, created.id).await.unwrap(), Some(created.clone()));
    assert_eq!(scene.other.find_rollout(Uuid::now_v7(), created.id).await.unwrap(), None);
    assert_eq!(scene.other.open_rollouts().await.unwrap(), [(scene.owner_id, created.id)]);
    let listed = scene.other.rollout_servers(&created).await.unwrap();
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].from_version.as_str()), (1, "web-1", "1.2.3"));
    let open = scene.open_member(&created).await;
    assert_eq!((open.offers, open.offered_session), (0, None));
    assert_eq!(open.agent.as_deref(), Some(r#"{"version":"1.2.3"}"#));
    assert_eq!(scene.counts(&created).await, [(0, "waiting".to_owned(), 1)]);
}

#[actix_web::test]
async fn of_two_rollouts_of_an_account_one_begins() {
    let scene = Scene::set().await;

    for _ in 0..ROUNDS {
        let rows = [row(Uuid::now_v7(), scene.owner_id, at(0)), row(Uuid::now_v7(), scene.owner_id, at(0))];
        let (one, other) = tokio::join!(
            scene.one.create_rollout(&rows[0], &[], scene.entry()),
            scene.other.create_rollout(&rows[1], &[], scene.entry())
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one != other, "{one} {other}");
        scene.cancel(if one { &rows[0] } else { &rows[1] }).await;
    }
}

#[actix_web::test]
async fn of_two_instances_one_offers_a_release_to_a_server() {
    let scene = Scene::set().await;
    let created = scene.create().await;

    for round in 0..ROUNDS {
        let (key, now) = (scene.key(&created).await, at(1 + round));
        let session_id = Uuid::now_v7();
        let (one, other) =
            tokio::join!(scene.one.claim_offer(key, session_id, now), scene.other.claim_offer(key, session_id, now));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.is_some() != other.is_some(), "{one:?} {other:?}");
        let claimed = one.or(other).unwrap();
        assert_eq!(scene.key(&created).await, claimed);
        assert_eq!(scene.open_member(&created).await.offered_session, Some(session_id));
    }
    assert_eq!(i64::from(scene.key(&created).await.offers), ROUNDS);
}

#[actix_web::test]
async fn an_offer_that_did_not_arrive_does_not_count() {
    let scene = Scene::set().await;
    let created = scene.create().await;
    let key = scene.key(&created).await;
    let claimed = scene.one.claim_offer(key, Uuid::now_v7(), at(1)).await.unwrap().unwrap();

    scene.other.take_back_offer(claimed, at(2)).await.unwrap();

    let open = scene.open_member(&created).await;
    assert_eq!((open.state.as_str(), open.offers), (rollout::WAITING, 0));
    // What was read before counts no more.
    assert_eq!(scene.one.claim_offer(key, Uuid::now_v7(), at(3)).await.unwrap(), None);
}

#[actix_web::test]
async fn an_open_server_tells_when_its_agent_was_last_there() {
    let scene = Scene::set().await;
    let created = scene.create().await;
    let open = scene.open_member(&created).await;
    assert_eq!(open.last_seen_at.map(Timestamp::from), Some(at(0)));
    let (server_id, session_id) = (scene.server_id, open.session_id.unwrap());
    assert!(scene.one.claim_offer(open.key(created.id), session_id, at(1)).await.unwrap().is_some());

    let disconnected =
        Disconnected { server_id, session_id, replaced: Vec::new(), last_seen_at: at(9), why: Departure::Left };
    let commit = Commit { disconnected: vec![disconnected], ..Commit::default() };
    scene.one.commit(Uuid::nil(), &commit).await.unwrap();

    let gone = scene.open_member(&created).await;
    assert_eq!((gone.session_id, gone.last_seen_at.map(Timestamp::from)), (None, Some(at(9))));
    assert_eq!(Timestamp::from(gone.changed_at), at(1));
}

#[actix_web::test]
async fn nothing_is_offered_once_a_rollout_is_paused_or_has_ended() {
    let scene = Scene::set().await;
    let created = scene.create().await;
    let (owner_id, id) = (scene.owner_id, created.id);
    let step = async |step| scene.one.step_rollout(owner_id, id, step, at(1), scene.entry()).await.unwrap();

    assert!(step(RolloutStep::Pause).await);
    assert!(!step(RolloutStep::Pause).await);
    let key = scene.key(&created).await;
    assert_eq!(scene.other.claim_offer(key, Uuid::now_v7(), at(2)).await.unwrap(), None);
    assert!(!scene.other.advance_rollout(&created, 1, at(2)).await.unwrap());
    assert!(step(RolloutStep::Resume).await);
    assert!(scene.other.claim_offer(key, Uuid::now_v7(), at(2)).await.unwrap().is_some());

    let key = scene.key(&created).await;
    let stopped = RolloutEnd::Stopped("1 server failed".to_owned());
    assert!(scene.other.end_rollout(id, stopped, at(3), scene.entry()).await.unwrap());
    assert!(!scene.one.end_rollout(id, RolloutEnd::Done, at(4), scene.entry()).await.unwrap());
    for ended in [RolloutStep::Pause, RolloutStep::Resume, RolloutStep::Cancel] {
        assert!(!step(ended).await, "{ended:?}");
    }
    assert_eq!(scene.one.claim_offer(key, Uuid::now_v7(), at(5)).await.unwrap(), None);
    let read = scene.one.find_rollout(owner_id, id).await.unwrap().unwrap();
    assert_eq!((read.status.as_str(), read.stopped_reason.as_deref()), (rollout::STOPPED, Some("1 server failed")));
    assert_eq!(read.ended_at.map(Timestamp::from), Some(at(3)));
}

#[actix_web::test]
async fn a_wave_begins_once() {
    let scene = Scene::set().await;

    for _ in 0..ROUNDS {
        let created = scene.create().await;
        let (one, other) = tokio::join!(
            scene.one.advance_rollout(&created, 1, at(10)),
            scene.other.advance_rollout(&created, 1, at(20))
        );
        assert!(one.unwrap() != other.unwrap());
        scene.cancel(&created).await;
    }
}

#[actix_web::test]
async fn an_outcome_is_noted_once_with_one_entry() {
    let scene = Scene::set().await;
    let created = scene.create().await;
    let key = scene.key(&created).await;
    let entry = || Entry::new(action::AGENT_UPDATE, scene.owner_id, Actor::service("")).on_server(scene.server_id);

    let (one, other) = tokio::join!(
        scene.one.settle_member(key, rollout::UPDATED, None, at(1), entry()),
        scene.other.settle_member(key, rollout::FAILED, Some("it exited"), at(1), entry())
    );

    assert!(one.unwrap() != other.unwrap());
    assert!(!scene.one.settle_member(key, rollout::UPDATED, None, at(2), entry()).await.unwrap());
    assert_eq!(scene.other.open_members(&created, 0).await.unwrap(), []);
    let filter = AuditFilter { action: Some("agent.update".to_owned()), ..Default::default() };
    let noted = scene.one.list_audit(filter, PageRequest { limit: 10, offset: 0 }).await.unwrap();
    assert_eq!(noted.total, 1);
}

#[actix_web::test]
async fn servers_that_do_not_exist_any_more_are_left_out() {
    let scene = Scene::set().await;
    let row = row(Uuid::now_v7(), scene.owner_id, at(0));
    let members = [member(row.id, Uuid::now_v7(), at(0)), member(row.id, scene.server_id, at(0))];

    assert!(scene.one.create_rollout(&row, &members, scene.entry()).await.unwrap());

    assert_eq!(scene.counts(&row).await, [(0, "waiting".to_owned(), 1)]);
    assert!(scene.one.delete_server(scene.owner_id, scene.server_id, Actor::command_line()).await.unwrap());
    assert_eq!(scene.counts(&row).await, []);
}

#[actix_web::test]
async fn an_account_keeps_its_newest_rollouts() {
    let scene = Scene::set().await;
    let mut ids = Vec::new();
    for number in 0..=KEPT_ROLLOUTS {
        let row = row(Uuid::now_v7(), scene.owner_id, at(i64::try_from(number).unwrap()));
        let members = [member(row.id, scene.server_id, at(0))];
        assert!(scene.one.create_rollout(&row, &members, scene.entry()).await.unwrap());
        scene.cancel(&row).await;
        ids.push(row.id);
    }

    let page = PageRequest { limit: 500, offset: 0 };
    let kept = scene.other.list_rollouts(scene.owner_id, page).await.unwrap();

    let expected: Vec<Uuid> = ids.iter().rev().copied().take(KEPT_ROLLOUTS as usize).collect();
    assert_eq!(kept.items.iter().map(|row| row.id).collect::<Vec<_>>(), expected);
    assert_eq!(kept.total, KEPT_ROLLOUTS);
}
