//! Concurrent work of several instances on one database, below the API. Only PostgreSQL supports several, so on SQLite there is
//! nothing to test.

use std::time::Duration;

use futures_util::future::join;
use signalbox::audit::Actor;
use signalbox::store::history::{FreshSample, LeftOut, Why};
use signalbox::store::{
    Alert, AlertAudience, AlertChange, AlertChanges, Commit, Committed, Connected, Departure, Disconnected, Fence,
    Reach, RuleScope, ServerPatch, SessionClaim, Share, Store, ThresholdTerms, shard_of,
};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use crate::support::Storage;
use crate::support::rows::{alert, owner, server};

/// How often each race is run: the interesting order occurs in a few of them.
const ROUNDS: usize = 40;

struct Scene {
    _storage: Storage,
    /// Of two instances.
    one: Store,
    other: Store,
    owner_id: Uuid,
    server_id: Uuid,
}

impl Scene {
    /// None on a database that has one instance.
    async fn set() -> Option<Self> {
        let storage = Storage::fresh().await;
        let url = storage.config().database_url();
        if !url.starts_with("postgres://") {
            return None;
        }
        let (one, other) = (storage.store().await, storage.store().await);
        let owner_id = owner(&one).await;
        let server_id = server(&one, owner_id, "web-1", "web").await;
        Some(Self { _storage: storage, one, other, owner_id, server_id })
    }

    /// An agent comes, and is heard of at this time.
    async fn connect(&self, store: &Store, at: i64) -> Uuid {
        self.connect_as(store, at, None).await.0
    }

    /// The same for an instance with this knowledge of others. Returns the session, and its result.
    async fn connect_as(&self, store: &Store, at: i64, claim: Option<SessionClaim>) -> (Uuid, Committed) {
        let session_id = Uuid::now_v7();
        let (key_id, agent) = (Uuid::nil(), "{}".to_owned());
        let at = Timestamp::from_millis(at);
        let connected = Connected { server_id: self.server_id, session_id, key_id, agent, at, claim };
        let commit = Commit { connected: vec![connected], ..Commit::default() };
        (session_id, store.commit(Uuid::nil(), &commit).await.unwrap())
    }

    /// A sample comes by a session.
    async fn sample(&self, store: &Store, session_id: Uuid, at: i64) -> Vec<LeftOut> {
        let samples = vec![FreshSample { server_id: self.server_id, session_id, at, data: vec![1] }];
        let commit = Commit { samples, ..Commit::default() };
        store.commit(Uuid::nil(), &commit).await.unwrap().left_out
    }

    async fn disconnect(&self, session_id: Uuid, at: i64) {
        let (server_id, last_seen_at) = (self.server_id, Timestamp::from_millis(at));
        let gone = Disconnected { server_id, session_id, replaced: Vec::new(), last_seen_at, why: Departure::Left };
        let commit = Commit { disconnected: vec![gone], ..Commit::default() };
        self.one.commit(Uuid::nil(), &commit).await.unwrap();
    }

    /// Returns the alert that is open then; none where the fence refuses.
    async fn open(&self, store: &Store, fence: Fence, alert: &Alert) -> Option<Alert> {
        let opened = AlertChange::Opened { alert: Box::new(alert.clone()), audience: AlertAudience::default() };
        let changes = AlertChanges { server_id: self.server_id, fence, changes: vec![opened] };
        let mut written = store.change_alerts_of(&[changes]).await.unwrap();
        Some(written.remove(0)?.remove(0).unwrap())
    }

    fn alert(&self, threshold_id: Uuid) -> Alert {
        alert(self.owner_id, self.server_id, threshold_id)
    }

    /// The alerts that an instance finds when it begins to watch now.
    async fn unsettled(&self, store: &Store) -> Vec<Uuid> {
        let servers = store.watched_servers(RuleScope::Servers(&[self.server_id])).await.unwrap();
        servers.into_iter().flat_map(|server| server.unsettled).map(|alert| alert.id).collect()
    }

    async fn threshold(&self, reach: Reach) {
        let terms = ThresholdTerms {
            reach,
            metric_type: "offline".to_owned(),
            series: None,
            threshold_value: 5.0,
            clear_value: None,
            comparison: "gt".to_owned(),
            duration_seconds: 0,
            target: None,
            states: None,
            severity: "warning".to_owned(),
            enabled: true,
        };
        self.one.create_threshold(self.owner_id, terms, Actor::command_line()).await.unwrap();
    }

    async fn unattended(&self, share: &Share) -> Vec<Uuid> {
        self.other.unattended(share).await.unwrap().servers.into_keys().collect()
    }
}

#[actix_web::test]
async fn an_instance_that_lost_the_session_can_raise_nothing() {
    let Some(scene) = Scene::set().await else { return };
    let old = scene.connect(&scene.one, 1_000).await;
    let opened = scene.open(&scene.one, Fence::Session(old), &scene.alert(Uuid::from_u128(1))).await.unwrap();
    let new = scene.connect(&scene.other, 2_000).await;

    let refused = scene.open(&scene.one, Fence::Session(old), &scene.alert(Uuid::from_u128(2))).await;
    let again = scene.open(&scene.other, Fence::Session(new), &scene.alert(Uuid::from_u128(1))).await.unwrap();

    assert_eq!(refused, None);
    assert_eq!(again.id, opened.id, "what was open is taken over");
    assert_eq!(scene.unsettled(&scene.other).await, [opened.id]);
}

#[actix_web::test]
async fn an_instance_that_evaluates_an_absence_raises_nothing_once_the_agent_was_back() {
    let Some(scene) = Scene::set().await else { return };
    let session = scene.connect(&scene.one, 1_000).await;
    scene.disconnect(session, 1_500).await;
    let absent = Fence::Absent(Some(Timestamp::from_millis(1_500)));
    assert!(scene.open(&scene.other, absent, &scene.alert(Uuid::from_u128(1))).await.is_some());

    let session = scene.connect(&scene.one, 2_000).await;
    let while_back = scene.open(&scene.other, absent, &scene.alert(Uuid::from_u128(2))).await;
    scene.disconnect(session, 2_500).await;
    let since = scene.open(&scene.other, absent, &scene.alert(Uuid::from_u128(2))).await;

    assert_eq!((while_back, since), (None, None));
    assert_eq!(scene.unsettled(&scene.one).await.len(), 1);
}

#[actix_web::test]
async fn an_instance_that_begins_after_a_session_is_written_finds_every_earlier_alert() {
    let Some(scene) = Scene::set().await else { return };
    let mut last_seen = 1_000;
    let session = scene.connect(&scene.one, last_seen).await;
    scene.disconnect(session, last_seen).await;
    for round in 0..ROUNDS {
        let fence = Fence::Absent(Some(Timestamp::from_millis(last_seen)));
        let alert = scene.alert(Uuid::from_u128(round as u128));
        last_seen += 1_000;
        let comes = async {
            let session = scene.connect(&scene.other, last_seen).await;
            (session, scene.unsettled(&scene.other).await)
        };

        let (opened, (session, found)) = join(scene.open(&scene.one, fence, &alert), comes).await;

        assert_eq!(opened.is_some(), found.contains(&alert.id), "round {round}");
        assert_eq!(scene.unsettled(&scene.other).await.contains(&alert.id), opened.is_some(), "round {round}");
        scene.disconnect(session, last_seen).await;
    }
}

#[actix_web::test]
async fn one_that_is_refused_holds_up_nobody() {
    let Some(scene) = Scene::set().await else { return };
    let session = scene.connect(&scene.one, 1_000).await;
    let second = server(&scene.one, scene.owner_id, "web-2", "web").await;
    let opened = |server_id| {
        let alert = Box::new(alert(scene.owner_id, server_id, Uuid::from_u128(1)));
        vec![AlertChange::Opened { alert, audience: AlertAudience::default() }]
    };
    let batch = [
        AlertChanges { server_id: second, fence: Fence::Session(session), changes: opened(second) },
        AlertChanges { server_id: scene.server_id, fence: Fence::Session(session), changes: opened(scene.server_id) },
    ];

    let written = scene.one.change_alerts_of(&batch).await.unwrap();

    assert!(written[0].is_none() && written[1].is_some(), "{written:?}");
}

#[actix_web::test]
async fn an_alert_that_was_resolved_by_hand_keeps_its_place_on_every_instance() {
    let Some(scene) = Scene::set().await else { return };
    let session = scene.connect(&scene.one, 1_000).await;
    let (fence, threshold) = (Fence::Session(session), Uuid::from_u128(1));
    let first = scene.open(&scene.one, fence, &scene.alert(threshold)).await.unwrap();
    let (actor, now) = (Actor::command_line(), Timestamp::now());
    scene.other.resolve_alert(scene.owner_id, first.id, &actor, now).await.unwrap().unwrap();

    let meanwhile = scene.open(&scene.one, fence, &scene.alert(threshold)).await.unwrap();
    let rearmed = AlertChange::Rearmed { id: first.id, sample_at: now, at: now };
    scene.one.change_alerts(&[rearmed]).await.unwrap();
    let after = scene.open(&scene.one, fence, &scene.alert(threshold)).await.unwrap();

    assert_eq!((meanwhile.id, meanwhile.status.as_str()), (first.id, "resolved"));
    assert_ne!(after.id, first.id);
}

#[actix_web::test]
async fn instances_that_change_the_same_alerts_in_any_order_do_not_block_each_other_for_good() {
    let Some(scene) = Scene::set().await else { return };
    let mut batch = Vec::new();
    for name in ["web-2", "web-3", "web-4"] {
        let server_id = server(&scene.one, scene.owner_id, name, "web").await;
        let alert = alert(scene.owner_id, server_id, Uuid::from_u128(1));
        let worsened = AlertChange::Worsened { id: alert.id, value: 99.0 };
        let opened = AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() };
        scene.one.change_alerts(&[opened]).await.unwrap();
        batch.push(AlertChanges { server_id, fence: Fence::Open, changes: vec![worsened] });
    }
    let backwards: Vec<AlertChanges> = batch.iter().rev().cloned().collect();
    let patch = || ServerPatch { tags: Some(vec!["db".to_owned()]), ..ServerPatch::default() };

    for _ in 0..ROUNDS {
        let (actor, now) = (Actor::command_line(), Timestamp::now());
        let tagged = scene.other.update_server(scene.owner_id, batch[1].server_id, patch(), actor, now);
        let changed = join(scene.one.change_alerts_of(&batch), scene.other.change_alerts_of(&backwards));
        let ((one, other), tagged) = join(changed, tagged).await;

        assert!(one.unwrap().iter().chain(&other.unwrap()).all(Option::is_some));
        assert!(tagged.unwrap().is_some());
    }
}

#[actix_web::test]
async fn a_watched_server_without_a_session_is_found_by_the_owner_of_its_shard() {
    let Some(scene) = Scene::set().await else { return };
    let own = Share::Of(vec![shard_of(scene.server_id)]);
    let rest = Share::Of((0..64).filter(|shard| *shard != shard_of(scene.server_id)).collect());
    scene.threshold(Reach { server_id: None, tag: Some("db".to_owned()) }).await;
    assert!(scene.unattended(&own).await.is_empty(), "it has never had an agent");
    let session = scene.connect(&scene.one, 1_000).await;
    scene.disconnect(session, 1_500).await;
    assert!(scene.unattended(&own).await.is_empty(), "nothing is watched on it");

    scene.threshold(Reach { server_id: None, tag: Some("web".to_owned()) }).await;

    assert_eq!(scene.unattended(&own).await, [scene.server_id]);
    assert!(scene.unattended(&rest).await.is_empty());
    let found = scene.other.unattended(&Share::All).await.unwrap();
    assert_eq!(found.servers.get(&scene.server_id), Some(&Some(Timestamp::from_millis(1_500))));
    scene.connect(&scene.one, 2_000).await;
    assert!(scene.unattended(&own).await.is_empty(), "a session looks after it");
}

#[actix_web::test]
async fn raised_alerts_are_still_evaluated_though_nothing_is_watched_any_more() {
    let Some(scene) = Scene::set().await else { return };
    let session = scene.connect(&scene.one, 1_000).await;
    scene.open(&scene.one, Fence::Session(session), &scene.alert(Uuid::from_u128(1))).await.unwrap();
    scene.disconnect(session, 1_500).await;

    assert_eq!(scene.unattended(&Share::All).await, [scene.server_id]);
}

#[actix_web::test]
async fn instances_that_tidy_at_once_remove_everything_once() {
    let Some(scene) = Scene::set().await else { return };
    let now = Timestamp::now();
    for threshold in 0..20 {
        let alert = scene.alert(Uuid::from_u128(threshold));
        let ended = AlertChange::Resolved { id: alert.id, by: "recovery", sample_at: now, at: now };
        let opened = AlertChange::Opened { alert: Box::new(alert), audience: AlertAudience::default() };
        scene.one.change_alerts(&[opened, ended]).await.unwrap();
    }
    let later = now.plus_millis(i64::try_from(Duration::from_secs(60).as_millis()).unwrap());

    let (one, other) = join(scene.one.forget_alerts(later), scene.other.forget_alerts(later)).await;

    assert_eq!(one.unwrap() + other.unwrap(), 20);
    assert_eq!(scene.one.forget_alerts(later).await.unwrap(), 0);
}

#[actix_web::test]
async fn of_two_instances_that_take_hold_of_a_server_one_is_refused() {
    let Some(scene) = Scene::set().await else { return };
    let claim = |epoch| Some(SessionClaim { instance_id: Uuid::now_v7(), epoch });

    let (first, taken) = scene.connect_as(&scene.one, 1, claim(0)).await;
    let (late, refused) = scene.connect_as(&scene.other, 2, claim(0)).await;
    let (next, taken_over) = scene.connect_as(&scene.other, 3, claim(1)).await;

    assert_eq!((taken.refused, refused.refused, taken_over.refused), (vec![], vec![late], vec![]));
    assert_eq!(scene.sample(&scene.one, next, 1).await, []);
    assert_eq!(scene.sample(&scene.one, first, 2).await.len(), 1);
}

#[actix_web::test]
async fn a_session_that_lost_its_server_writes_no_samples() {
    let Some(scene) = Scene::set().await else { return };
    let first = scene.connect(&scene.one, 1).await;
    assert_eq!(scene.sample(&scene.one, first, 1).await, []);
    let second = scene.connect(&scene.other, 2).await;

    let late = scene.sample(&scene.one, first, 2).await;
    scene.disconnect(second, 3).await;
    let later = scene.sample(&scene.one, second, 3).await;

    let left_out = |session_id, why| [LeftOut { server_id: scene.server_id, session_id, why }];
    assert_eq!(late, left_out(first, Why::Replaced));
    assert_eq!(later, left_out(second, Why::Released));
    let kept = scene.one.samples(scene.server_id, (0, 10), 10).await.unwrap();
    assert_eq!(kept.iter().map(|sample| sample.at).collect::<Vec<_>>(), [1]);
}

/// As after a failover that lost the last commits: the session that the database names was there before.
#[actix_web::test]
async fn a_session_that_the_database_has_forgotten_was_not_replaced() {
    let Some(scene) = Scene::set().await else { return };
    let earlier = scene.connect(&scene.one, 1).await;
    // Ten seconds later: the id of a session begins with milliseconds.
    let forgotten = Uuid::from_u128(earlier.as_u128() + (10_000 << 80));

    let left_out = scene.sample(&scene.other, forgotten, 1).await;

    let expected = LeftOut { server_id: scene.server_id, session_id: forgotten, why: Why::Released };
    assert_eq!(left_out, [expected]);
}
