use std::collections::VecDeque;
use std::pin::Pin;

use actix::{Actor, Context, Handler};
use parking_lot::Mutex;
use serde_json::json;
use signalbox_protocol::Timestamp;
use tokio::sync::mpsc;

use super::actor::MAX_REPLACED;
use super::*;
use crate::clock::Clock;
use crate::store::Disconnected;

const SOON: Duration = Duration::from_secs(30);

/// Longer than any test takes.
pub(super) const LONG: Duration = Duration::from_secs(3_600);

/// Records what the registry decides.
#[derive(Default)]
struct Notes {
    said: Mutex<Vec<Said>>,
    /// The outcomes of the next writes; all later writes succeed.
    outcomes: Mutex<VecDeque<oneshot::Receiver<Written>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Replaced { older: Uuid, newer: Uuid },
    Online(Uuid),
    Left { session_id: Uuid, why: Departure },
    Offline(Uuid, Written),
}

impl Notes {
    fn note(&self, said: Said) {
        self.said.lock().push(said);
    }
}

impl Observer for Notes {
    fn replaced(&self, _: Uuid, older: Uuid, newer: Uuid) {
        self.note(Said::Replaced { older, newer });
    }

    fn online(&self, _: Uuid, session_id: Uuid, _: Uuid) {
        self.note(Said::Online(session_id));
    }

    fn last_seen_at(&self, _: Uuid) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn write(&self, gone: Disconnected) -> Writing {
        self.note(Said::Left { session_id: gone.session_id, why: gone.why });
        let outcome = self.outcomes.lock().pop_front();
        Box::pin(async move {
            match outcome {
                Some(outcome) => outcome.await.unwrap(),
                None => Written::Yes,
            }
        })
    }

    fn offline(&self, gone: &Gone, written: Written) {
        self.note(Said::Offline(gone.disconnected.session_id, written));
    }

    fn write_seen(&self) {}
}

/// A session that passes on its orders.
struct Session(mpsc::Sender<Order>);

impl Actor for Session {
    type Context = Context<Self>;
}

impl Handler<Order> for Session {
    type Result = ();

    fn handle(&mut self, order: Order, _: &mut Self::Context) {
        self.0.try_send(order).unwrap();
    }
}

/// Another instance that takes orders.
#[derive(Default)]
struct Other(Mutex<Vec<Uuid>>);

impl RemoteRouter for Other {
    fn take(&self, server_id: Uuid, order: Order) {
        self.0.lock().push(server_id);
        order.fail(CallError::Unreachable);
    }

    fn hold(&self, _: Uuid) -> Pin<Box<dyn Future<Output = Advertisement> + Send + '_>> {
        Box::pin(std::future::ready(Advertisement::default()))
    }
}

pub(super) struct Scene {
    pub(super) registry: RegistryHandle,
    notes: Arc<Notes>,
    pub(super) server_id: Uuid,
    key_id: Uuid,
}

impl Scene {
    fn new() -> Self {
        Self::with(LONG, Arc::new(NoPeers))
    }

    /// A registry that sweeps every second, with a silence limit of four seconds.
    fn sweeping() -> Self {
        Self::with(Duration::from_secs(4), Arc::new(NoPeers))
    }

    pub(super) fn with(silence_limit: Duration, elsewhere: Arc<dyn RemoteRouter>) -> Self {
        let notes = Arc::<Notes>::default();
        let settings = Settings { clock: Clock::default(), silence_limit };
        let registry = RegistryHandle::start(settings, notes.clone(), elsewhere);
        Self { registry, notes, server_id: Uuid::now_v7(), key_id: Uuid::now_v7() }
    }

    /// Makes the next write wait for its outcome.
    fn next_outcome(&self) -> oneshot::Sender<Written> {
        let (sender, outcome) = oneshot::channel();
        self.notes.outcomes.lock().push_back(outcome);
        sender
    }

    /// A session with this id, and its orders.
    fn session(&self, session_id: Uuid) -> (Join, mpsc::Receiver<Order>) {
        let (sender, orders) = mpsc::channel(16);
        let join = Join {
            server_id: self.server_id,
            owner_id: Uuid::nil(),
            session_id,
            key_id: self.key_id,
            key_expires_at: None,
            orders: Session(sender).start().recipient(),
            heartbeat: Arc::default(),
        };
        (join, orders)
    }

    /// A session that holds the server and is known to the database.
    async fn holder(&self) -> (Uuid, mpsc::Receiver<Order>) {
        let session_id = Uuid::now_v7();
        let (join, orders) = self.session(session_id);
        self.registry.join(join).await.unwrap();
        let place = self.registry.place(self.server_id).await;
        self.registry.announce(self.server_id, session_id, place).await.unwrap();
        (session_id, orders)
    }

    async fn call(&self, deadline: Duration) -> Result<Value, CallError> {
        let question = Question { method: "docker.list", params: json!({}), deadline, by: None };
        self.registry.call(self.server_id, question).await
    }

    fn said(&self) -> Vec<Said> {
        self.notes.said.lock().clone()
    }

    /// The decisions so far, once there are `count` of them.
    async fn said_in_all(&self, count: usize) -> Vec<Said> {
        let enough = async {
            while self.said().len() < count {
                tokio::task::yield_now().await;
            }
        };
        in_time(enough).await;
        self.said()
    }
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.unwrap()
}

async fn end_of(orders: &mut mpsc::Receiver<Order>) -> SessionEnd {
    match in_time(orders.recv()).await {
        Some(Order::Close(end)) => end,
        other => panic!("it got {other:?}"),
    }
}

#[actix::test]
async fn a_server_without_a_session_is_offline() {
    let scene = Scene::new();

    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
    assert_eq!(scene.registry.holder(scene.server_id).await, None);
}

#[actix::test]
async fn a_newer_session_replaces_an_older_one_and_not_the_other_way_round() {
    let scene = Scene::new();
    let late = Uuid::now_v7();
    let (older, mut orders) = scene.holder().await;
    let (newer, _newer_orders) = scene.holder().await;

    assert_eq!(end_of(&mut orders).await, SessionEnd::Replaced);
    let (join, _late_orders) = scene.session(late);
    assert_eq!(scene.registry.join(join).await, Err(JoinError::Late));
    // The older session's end changes nothing.
    scene.registry.leave(scene.server_id, older);
    let holder = scene.registry.holder(scene.server_id).await.unwrap();
    assert_eq!(holder.session_id, newer);
    assert_eq!(scene.said(), [Said::Online(older), Said::Replaced { older, newer }, Said::Online(newer)]);
}

#[actix::test]
async fn a_session_is_held_once_the_database_knows_it() {
    let scene = Scene::new();
    let session_id = Uuid::now_v7();
    let (join, _orders) = scene.session(session_id);
    scene.registry.join(join).await.unwrap();

    assert_eq!(scene.registry.held().await, []);

    let place = scene.registry.place(scene.server_id).await;
    scene.registry.announce(scene.server_id, session_id, place).await.unwrap();
    let held = HeldSession { server_id: scene.server_id, session_id, key_id: scene.key_id };
    assert_eq!(scene.registry.held().await, [held]);
}

#[actix::test]
async fn a_call_is_answered_by_the_session() {
    let scene = Scene::new();
    let (_, mut orders) = scene.holder().await;
    let answering = async {
        let Some(Order::Call(call)) = orders.recv().await else { panic!("no call") };
        let (request, answer) = call.into_parts();
        assert_eq!(request.method, "docker.list");
        answer.send(Ok(json!(["web"]))).unwrap();
    };

    let (answer, ()) = tokio::join!(scene.call(SOON), answering);

    assert_eq!(answer, Ok(json!(["web"])));
}

#[actix::test]
async fn a_call_past_its_deadline_is_cancelled() {
    let scene = Scene::new();
    let (_, mut orders) = scene.holder().await;

    assert_eq!(scene.call(Duration::from_millis(1)).await, Err(CallError::Timeout));

    let Some(Order::Call(call)) = in_time(orders.recv()).await else { panic!("no call") };
    let Some(Order::CancelCall(request_id)) = in_time(orders.recv()).await else { panic!("it was not cancelled") };
    assert_eq!(request_id, call.request_id());
}

#[actix::test]
async fn a_call_fails_when_its_session_ends() {
    let scene = Scene::new();
    let (_, mut orders) = scene.holder().await;
    let going = async {
        let Some(Order::Call(call)) = orders.recv().await else { panic!("no call") };
        drop(call);
    };

    let (answer, ()) = in_time(async { tokio::join!(scene.call(LONG), going) }).await;

    assert_eq!(answer, Err(CallError::Disconnected));
}

#[actix::test]
async fn orders_without_a_session_here_go_elsewhere_unless_they_come_from_there() {
    let other = Arc::<Other>::default();
    let scene = Scene::with(LONG, other.clone());

    assert_eq!(scene.call(SOON).await, Err(CallError::Unreachable));
    let question = Question { method: "docker.list", params: json!({}), deadline: SOON, by: None };
    let from_there = scene.registry.here().call(scene.server_id, question).await;

    assert_eq!(from_there, Err(CallError::Offline));
    assert_eq!(*other.0.lock(), [scene.server_id]);
}

#[actix::test]
async fn a_server_is_shown_offline_only_once_that_is_written() {
    let scene = Scene::new();
    let (session_id, _orders) = scene.holder().await;
    let outcome = scene.next_outcome();

    scene.registry.leave(scene.server_id, session_id);
    // Answered after everything sent before it.
    assert_eq!(scene.call(SOON).await, Err(CallError::Offline));
    let left = Said::Left { session_id, why: Departure::Left };
    assert_eq!(scene.said(), [Said::Online(session_id), left.clone()]);

    outcome.send(Written::Yes).unwrap();
    let said = scene.said_in_all(3).await;
    assert_eq!(said, [Said::Online(session_id), left, Said::Offline(session_id, Written::Yes)]);
}

#[actix::test]
async fn a_departure_that_could_not_be_written_is_retried() {
    let scene = Scene::sweeping();
    let (session_id, _orders) = scene.holder().await;
    scene.next_outcome().send(Written::No).unwrap();

    scene.registry.leave(scene.server_id, session_id);
    let said = scene.said_in_all(5).await;

    let left = Said::Left { session_id, why: Departure::Left };
    let offline = |written| Said::Offline(session_id, written);
    assert_eq!(said, [Said::Online(session_id), left.clone(), offline(Written::No), left, offline(Written::Yes)]);
}

#[actix::test]
async fn a_session_that_is_silent_is_ended() {
    let scene = Scene::with(Duration::from_secs(2), Arc::new(NoPeers));
    let (session_id, mut orders) = scene.holder().await;

    assert_eq!(end_of(&mut orders).await, SessionEnd::Silent);

    let said = scene.said_in_all(2).await;
    assert_eq!(said.get(1), Some(&Said::Left { session_id, why: Departure::Silent }));
}

#[actix::test]
async fn a_session_whose_key_expires_is_ended() {
    let scene = Scene::sweeping();
    let heartbeat = Arc::<Heartbeat>::default();
    let (join, mut orders) = scene.session(Uuid::now_v7());
    let join = Join { key_expires_at: Some(Timestamp::from_millis(1)), heartbeat: heartbeat.clone(), ..join };
    scene.registry.join(join).await.unwrap();

    let end = async {
        loop {
            tokio::select! {
                end = end_of(&mut orders) => break end,
                () = tokio::task::yield_now() => heartbeat.beat(),
            }
        }
    };

    assert_eq!(in_time(end).await, SessionEnd::KeyRevoked);
}

#[actix::test]
async fn replacements_before_the_database_knows_any_session_are_bounded() {
    let scene = Scene::new();
    let mut kept = Vec::new();
    for _ in 0..=MAX_REPLACED {
        let (join, orders) = scene.session(Uuid::now_v7());
        scene.registry.join(join).await.unwrap();
        kept.push(orders);
    }

    let (join, _orders) = scene.session(Uuid::now_v7());

    assert_eq!(scene.registry.join(join).await, Err(JoinError::TooMany));
}

#[actix::test]
async fn a_revoked_key_ends_its_session_and_admits_no_other() {
    let scene = Scene::new();
    let (_, mut orders) = scene.holder().await;

    scene.registry.end_key(scene.key_id).await;

    assert_eq!(end_of(&mut orders).await, SessionEnd::KeyRevoked);
    let (join, _orders) = scene.session(Uuid::now_v7());
    assert_eq!(scene.registry.join(join).await, Err(JoinError::Revoked));
}

#[actix::test]
async fn a_stopping_service_ends_its_sessions_and_accepts_no_more() {
    let scene = Scene::new();
    let (_, mut orders) = scene.holder().await;

    scene.registry.end_all(Duration::ZERO).await;

    assert_eq!(end_of(&mut orders).await, SessionEnd::Restarting);
    let (join, _orders) = scene.session(Uuid::now_v7());
    assert_eq!(scene.registry.join(join).await, Err(JoinError::Stopping));
}
