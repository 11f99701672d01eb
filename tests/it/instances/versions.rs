//! An instance of the first version among those of this one: it sends what the first version sent, byte for byte, and reads
//! what it read. Its messages are defined here a second time and never change.

use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use signalbox::bus::nats::{NatsBus, NatsConfig};
use signalbox::bus::{Bus, Subscription};
use signalbox_protocol::Timestamp;
use uuid::Uuid;

use super::{A, Scene};
use crate::support::agent::sample_at;
use crate::support::cluster::Cluster;
use crate::support::{PATIENCE, eventually, in_time, text_of};

/// A request that is lost on the way is repeated after this time.
const SOON: Duration = Duration::from_secs(10);

/// A message on a topic.
#[derive(Debug, Serialize, Deserialize)]
struct TopicMessage<T> {
    from: Uuid,
    what: T,
}

#[derive(Debug, Serialize, Deserialize)]
enum RelayEvent {
    Metrics(String),
    Event(String),
    Notice,
    Nudge,
    Status { server_id: Uuid, status: String, of: Uuid },
    Sample { server_id: Uuid, sample: Bin },
}

/// The interest in topics: 17 bytes each.
#[derive(Debug, Serialize, Deserialize)]
enum Interest {
    Watched(Bin),
    Left(Bin),
    Ask,
}

/// The requests to the owner of a server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PeerRequest {
    There,
    TakenOver,
    Call { request_id: Uuid, method: String, params: Value, timeout_ms: u64 },
    Cancel { request_id: Uuid },
    Room,
    Follow { reader: Uuid, wanted: Vec<WantedCommand> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WantedCommand {
    id: Uuid,
    place: u64,
    is_called_off: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum CallError {
    Offline,
    Timeout,
    Busy,
    Disconnected,
    Unreachable,
    Agent { code: String, detail: String },
}

/// Bytes as MessagePack has them.
#[derive(Debug)]
struct Bin(Vec<u8>);

impl Serialize for Bin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bin;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bin, E> {
                Ok(Bin(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

pub(super) fn written(message: &impl Serialize) -> Bytes {
    let mut buffer = vec![0];
    let mut serializer = rmp_serde::Serializer::new(&mut buffer).with_struct_map().with_human_readable();
    message.serialize(&mut serializer).unwrap();
    buffer.into()
}

pub(super) fn read<T: DeserializeOwned>(message: &[u8]) -> T {
    assert_eq!(message[0], 0, "a whole message");
    T::deserialize(&mut rmp_serde::Deserializer::from_read_ref(&message[1..]).with_human_readable()).unwrap()
}

/// An instance of the first version, as far as others see it.
struct First {
    bus: NatsBus,
    id: Uuid,
}

impl First {
    async fn beside(cluster: &Cluster) -> Self {
        let url = cluster.nats.url();
        let config = NatsConfig { url: url.as_str().into(), credentials_file: None, ca_file: None };
        Self { bus: NatsBus::connect(&config, "first").await.unwrap(), id: Uuid::now_v7() }
    }

    async fn tell<T: Serialize>(&self, subject: &str, what: T) {
        let told = written(&TopicMessage { from: self.id, what });
        self.bus.publish(format!("signalbox.v1.{subject}"), told).await.unwrap();
    }

    async fn listen(&self, subject: &str) -> Subscription {
        self.bus.subscribe(format!("signalbox.v1.{subject}")).await.unwrap()
    }

    async fn ask<T: DeserializeOwned>(&self, server_id: Uuid, ask: PeerRequest) -> T {
        let subject = format!("signalbox.v1.agent.{server_id}");
        read(&self.bus.request(subject, written(&ask), PATIENCE).await.unwrap())
    }

    /// Says that a topic is watched here.
    async fn watches(&self, kind: u8, id: Uuid) {
        self.tell("interest", Interest::Watched(Bin([&[kind], id.as_bytes().as_slice()].concat()))).await;
    }
}

async fn next<T: DeserializeOwned>(heard: &mut Subscription) -> T {
    let delivery = in_time("a message", heard.next()).await.unwrap();
    read(&delivery.payload)
}

async fn scene() -> (Scene, First) {
    let scene = Scene::on(Cluster::start(1).await).await;
    let first = First::beside(&scene.cluster).await;
    (scene, first)
}

#[actix_web::test]
async fn it_hears_what_happens_to_a_server_that_is_watched_there() {
    let (scene, first) = scene().await;
    let mut agent = scene.agent(A).await;
    let mut heard = first.listen(&format!("feed.server.{}", scene.server_id())).await;

    // From when that instance knows that this one watches. The interest expires, and so is repeated.
    let mut seq = 0;
    let first_told = async {
        loop {
            seq += 1;
            first.watches(1, scene.server_id()).await;
            agent.store(seq, vec![sample_at(Timestamp::now())]).await;
            let soon = tokio::time::timeout(Duration::from_millis(100), next::<TopicMessage<RelayEvent>>(&mut heard));
            if let Ok(told) = soon.await {
                break told;
            }
        }
    };
    let told = in_time("a sample is published", first_told).await;

    assert_ne!(told.from, first.id);
    let RelayEvent::Metrics(message) = told.what else { panic!("{told:?}") };
    let message: Value = serde_json::from_str(&message).unwrap();
    assert_eq!((&message["type"], &message["data"]["server_id"]), (&json!("metrics"), &json!(scene.server_id())));
    assert_eq!(message["data"]["cpu_percent"], 12.5);
    first.watches(1, scene.server_id()).await;
    agent.socket.abort();
    let status = async {
        loop {
            let told: TopicMessage<RelayEvent> = next(&mut heard).await;
            if let RelayEvent::Status { server_id, status, .. } = told.what {
                break (server_id, status);
            }
        }
    };
    let gone = in_time("that the agent went", status).await;
    assert_eq!(gone, (scene.server_id(), "offline".to_owned()));
}

#[actix_web::test]
async fn what_it_tells_is_shown() {
    let (scene, first) = scene().await;
    let subject = format!("feed.server.{}", scene.server_id());
    let mut dashboard = scene.watch(A).await;
    assert_eq!(dashboard.expect("status").await["status"], "pending");

    let server_id = scene.server_id();
    let status = || RelayEvent::Status { server_id, status: "online".to_owned(), of: first.id };
    // When the topic is subscribed is unknown: a dashboard that opens waits for that only a moment.
    let online = in_time("the status is shown", async {
        loop {
            first.tell(&subject, status()).await;
            if let Some(shown) = dashboard.next_if_any().await {
                break shown;
            }
        }
    })
    .await;
    assert_eq!((&online["type"], &online["data"]["status"]), (&json!("status"), &json!("online")));
    let snapshot = json!({"type": "metrics", "data": {"server_id": server_id, "cpu_percent": 42.0}});
    first.tell(&subject, RelayEvent::Metrics(snapshot.to_string())).await;
    // Each published status is shown.
    assert_eq!(dashboard.until("metrics").await["cpu_percent"], 42.0);
}

#[actix_web::test]
async fn its_samples_are_part_of_what_somebody_watches_of_all_servers() {
    let (scene, first) = scene().await;
    let owner = scene.read(A, "/auth/me").await;
    let owner_id: Uuid = text_of(&owner["id"]).parse().unwrap();
    let mut view = scene.open(A, "/ws/fleet").await;
    let expected = crate::support::fixtures::json::<Value>("sample-v1.json");
    let (subject, server_id) = (format!("feed.presence.{owner_id}"), scene.server_id());

    let told = async {
        loop {
            // When the topic is subscribed is unknown, and the latest status is repeated at each beat anyway.
            let status = RelayEvent::Status { server_id, status: "online".to_owned(), of: first.id };
            first.tell(&subject, status).await;
            let sample = Bin(crate::support::fixtures::bytes("sample-v1.bin"));
            first.tell(&subject, RelayEvent::Sample { server_id, sample }).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let shown = async {
        loop {
            let message = view.until("fleet").await;
            // In its own field: a time may have the same digits.
            let has_sample = |server: &&Value| server["cpu_percent"] == expected["cpu_percent"];
            if let Some(server) = message["servers"].as_array().unwrap().iter().find(has_sample) {
                break server.clone();
            }
        }
    };
    let shown = tokio::select! { () = told => unreachable!(), shown = in_time("the sample", shown) => shown };
    assert_eq!(shown["server_id"], json!(server_id), "{shown}");
}

#[actix_web::test]
async fn what_it_asks_of_an_agent_is_answered() {
    let (scene, first) = scene().await;
    let mut agent = scene.agent(A).await;
    let server_id = scene.server_id();

    let home: Uuid = eventually("the home listens", async || {
        let subject = format!("signalbox.v1.agent.{server_id}");
        first.bus.request(subject, written(&PeerRequest::There), SOON).await.ok().map(|answer| read(&answer))
    })
    .await;
    assert_ne!(home, first.id);
    assert!(first.ask::<bool>(server_id, PeerRequest::Room).await);
    let follow = PeerRequest::Follow {
        reader: first.id,
        wanted: vec![WantedCommand { id: first.id, place: 0, is_called_off: false }],
    };
    assert_eq!(first.ask::<Vec<Value>>(server_id, follow).await, Vec::<Value>::new());

    let call = |request_id: Uuid| PeerRequest::Call {
        request_id,
        method: "docker.list".to_owned(),
        params: json!({"all": true}),
        timeout_ms: 50_000,
    };
    let asked = first.ask::<Result<Value, CallError>>(server_id, call(Uuid::now_v7()));
    let answers = async {
        let request = agent.expect_request().await;
        assert_eq!((request.method.as_str(), &request.params), ("docker.list", &json!({"all": true})));
        agent.answer(&request, Ok(json!([{"id": "75af"}]))).await;
    };
    let (answered, ()) = tokio::join!(asked, answers);
    assert_eq!(answered.unwrap(), json!([{"id": "75af"}]));
}

#[actix_web::test]
async fn what_its_agents_are_asked_reaches_it() {
    let (scene, first) = scene().await;
    let mut asked = first.listen(&format!("agent.{}", scene.server_id())).await;
    let call = scene.get(A, format!("/docker/{}/containers", scene.server_id()));
    let waiting = actix_web::rt::spawn(call.send());

    let method = loop {
        let (payload, reply) = in_time("a question", asked.next()).await.unwrap().into_parts();
        match read::<PeerRequest>(&payload) {
            PeerRequest::There => reply(written(&first.id)),
            PeerRequest::Call { method, .. } => {
                reply(written(&Ok::<_, CallError>(json!([]))));
                break method;
            }
            other => panic!("{other:?}"),
        }
    };

    assert_eq!(method, "docker.list");
    let answer = in_time("the answer", waiting).await.unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!([])));
}
