//! Typed messages on a bus, as MessagePack. A message that is too large for the bus stays here until the receiver has
//! fetched it in parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dashmap::DashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use signalbox_protocol::codec::MAX_DEPTH;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::subject::Subjects;
use super::{Bus, BusError, Delivery, Subscription};

/// The largest message between instances, in one or several parts. An agent's message has at most 4 MiB.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of large messages that may wait to be fetched.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// How long a large message waits to be fetched.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// How long fetching one part of a large message may take.
const PART_WITHIN: Duration = Duration::from_secs(5);

/// The pause before listening again on a subject after a failure.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The first byte of a message: its kind.
const WHOLE: u8 = 0;
const PARCEL: u8 = 1;
/// There is an answer, but no room to keep it.
const LOST: u8 = 2;

/// Bytes of a message in addition to the part that it carries.
const OVERHEAD: usize = 1_024;

/// Sends and reads messages. Clones are cheap.
#[derive(Clone)]
pub struct BusClient {
    bus: Arc<dyn Bus>,
    pub subjects: Subjects,
    /// The id of this instance.
    pub instance_id: Uuid,
    large_messages: Arc<LargeMessages>,
}

#[derive(Default)]
struct LargeMessages {
    kept: DashMap<Uuid, LargeMessage>,
    bytes: AtomicUsize,
}

struct LargeMessage {
    whole: Bytes,
    /// Only the caller fetches an answer, and only once.
    is_answer: bool,
}

impl LargeMessages {
    fn remove(&self, parcel_id: Uuid) {
        if let Some((_, message)) = self.kept.remove(&parcel_id) {
            self.bytes.fetch_sub(message.whole.len(), Ordering::Relaxed);
        }
    }
}

/// Says where a large message can be fetched.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LargeMessageRef {
    instance_id: Uuid,
    parcel_id: Uuid,
    bytes: u64,
}

/// What other instances ask on this instance's own subject.
#[derive(Debug, Serialize, Deserialize)]
enum ToInstance {
    /// Asks for the bytes of a large message from an offset on.
    Fetch { parcel_id: Uuid, from: u64 },
}

impl BusClient {
    /// Opens the post, and listens on the subject of this instance from then on.
    pub async fn open(bus: Arc<dyn Bus>, subjects: Subjects, instance_id: Uuid) -> Result<Self, BusError> {
        let bus_client = Self { bus, subjects, instance_id, large_messages: Arc::default() };
        let fetched = bus_client.listen(bus_client.subjects.instance(instance_id)).await?;
        tokio::spawn(hand_out(bus_client.clone(), fetched));
        Ok(bus_client)
    }

    /// Whether the bus can carry messages at this moment.
    pub fn is_up(&self) -> bool {
        self.bus.is_up()
    }

    /// How often the bus has connected: what was sent before the last time may be lost.
    pub fn connects(&self) -> u64 {
        self.bus.connects()
    }

    /// How many messages that arrived were lost, because their receivers were too slow.
    pub fn lost(&self) -> u64 {
        self.bus.lost()
    }

    /// Publishes to the listeners of a subject. What cannot be carried is lost.
    pub async fn tell(&self, subject: String, message: &impl Serialize) -> Result<(), BusError> {
        let (payload, _) = self.pack(message, false)?;
        self.count(&subject, &payload);
        self.bus.publish(subject, payload).await
    }

    /// Asks a listener of a subject, and returns its answer. [`BusError::Away`] and [`BusError::NoResponder`] mean that nobody got
    /// the question.
    pub async fn ask<A: DeserializeOwned>(
        &self,
        subject: String,
        question: &impl Serialize,
        deadline: Duration,
    ) -> Result<A, BusError> {
        let (payload, parcel_id) = self.pack(question, false)?;
        self.count(&subject, &payload);
        let answer = self.bus.request(subject, payload, deadline).await;
        if let Some(parcel_id) = parcel_id {
            // Every instance that answers has fetched the question, and further answers count for nothing.
            self.large_messages.remove(parcel_id);
        }
        self.whole(answer?).await?.read()
    }

    fn count(&self, subject: &str, payload: &Bytes) {
        let kind = self.subjects.kind(subject);
        metrics::counter!("signalbox_bus_messages_sent_total", "kind" => kind).increment(1);
        metrics::counter!("signalbox_bus_bytes_sent_total", "kind" => kind).increment(payload.len() as u64);
    }

    pub async fn listen(&self, subject: String) -> Result<Subscription, BusError> {
        self.bus.subscribe(subject).await
    }

    /// Listens on a subject for as long as the task lives, and listens again after a pause when that fails or a
    /// subscription ends. `hear` gets each subscription and reads it until it ends.
    pub async fn serve<F>(&self, subject: String, mut hear: impl FnMut(Subscription) -> F)
    where
        F: Future<Output = ()>,
    {
        loop {
            match self.listen(subject.clone()).await {
                Ok(subscription) => hear(subscription).await,
                Err(error) => {
                    tracing::warn!(bus.subject = subject, %error, "cannot listen to other instances, will retry");
                }
            }
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
        }
    }

    /// Reads a delivery as a message.
    pub async fn read<T: DeserializeOwned>(&self, payload: Bytes) -> Result<T, BusError> {
        self.whole(payload).await?.read()
    }

    /// Answers a delivery, if the sender asked for an answer.
    pub fn answer(&self, reply: impl FnOnce(Bytes), answer: &impl Serialize) {
        let payload = self.pack(answer, true).map_or_else(
            |error| {
                tracing::error!(%error, "cannot send an answer to another instance");
                Bytes::from_static(&[LOST])
            },
            |(payload, _)| payload,
        );
        reply(payload);
    }

    /// Encodes a message. A large one is kept here, and the bus carries only where to fetch it: with its id then.
    fn pack(&self, message: &impl Serialize, is_answer: bool) -> Result<(Bytes, Option<Uuid>), BusError> {
        let whole = written(WHOLE, message)?;
        if whole.len() <= self.bus.most_bytes() {
            return Ok((whole, None));
        }
        let kept = self.keep(whole, is_answer)?;
        Ok((written(PARCEL, &kept)?, Some(kept.parcel_id)))
    }

    fn keep(&self, whole: Bytes, is_answer: bool) -> Result<LargeMessageRef, BusError> {
        let (parcel_id, size) = (Uuid::now_v7(), whole.len());
        if size > MAX_BYTES {
            return Err(BusError::TooLarge);
        }
        if self.large_messages.bytes.fetch_add(size, Ordering::Relaxed) + size > MAX_KEPT_BYTES {
            self.large_messages.bytes.fetch_sub(size, Ordering::Relaxed);
            return Err(BusError::TooLarge);
        }
        self.large_messages.kept.insert(parcel_id, LargeMessage { whole, is_answer });
        let large_messages = self.large_messages.clone();
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            large_messages.remove(parcel_id);
        });
        Ok(LargeMessageRef { instance_id: self.instance_id, parcel_id, bytes: size as u64 })
    }

    /// The complete delivery: fetches it if it is too large for one message.
    pub async fn whole(&self, payload: Bytes) -> Result<Message, BusError> {
        match payload.first() {
            Some(&WHOLE) => Ok(Message(payload)),
            Some(&PARCEL) => Ok(Message(self.fetch(Message(payload).read()?).await?)),
            Some(&LOST) => Err(BusError::TooLarge),
            _ => Err(BusError::Malformed),
        }
    }

    async fn fetch(&self, parcel: LargeMessageRef) -> Result<Bytes, BusError> {
        let size = usize::try_from(parcel.bytes).ok().filter(|size| *size <= MAX_BYTES).ok_or(BusError::TooLarge)?;
        let mut whole = BytesMut::new();
        while whole.len() < size {
            let fetch = ToInstance::Fetch { parcel_id: parcel.parcel_id, from: whole.len() as u64 };
            let subject = self.subjects.instance(parcel.instance_id);
            let part = self.bus.request(subject, written(WHOLE, &fetch)?, PART_WITHIN).await;
            // The question arrived, or this would not be reached, so no error here may say that it did not.
            let part = part.map_err(|_| BusError::Timeout)?;
            if part.is_empty() || whole.len() + part.len() > size {
                return Err(BusError::Malformed);
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole.freeze())
    }

    /// The bytes of a large message from an offset on, as many as fit in one message; empty once it is removed: an answer with
    /// its last part, any other message when it expires.
    fn part(&self, parcel_id: Uuid, from: u64) -> Bytes {
        let found = self.large_messages.kept.get(&parcel_id).map(|entry| (entry.whole.clone(), entry.is_answer));
        let Some((whole, is_answer)) = found else { return Bytes::new() };
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(whole.len());
        let until = whole.len().min(from + self.bus.most_bytes().saturating_sub(OVERHEAD).max(OVERHEAD));
        if is_answer && until == whole.len() {
            self.large_messages.remove(parcel_id);
        }
        whole.slice(from..until)
    }
}

/// Encodes a message after a byte that says its kind. Ids are text, as in the agents' MessagePack: where serde buffers
/// a part of a message, it forgets which form the ids have.
fn written(kind: u8, message: &impl Serialize) -> Result<Bytes, BusError> {
    let mut buffer = Vec::with_capacity(256);
    buffer.push(kind);
    let mut serializer = rmp_serde::Serializer::new(&mut buffer).with_struct_map().with_human_readable();
    message.serialize(&mut serializer).map_err(|error| {
        tracing::error!(%error, "cannot encode a message for another instance");
        BusError::Malformed
    })?;
    Ok(buffer.into())
}

/// A message after the byte that says its kind.
pub struct Message(Bytes);

impl Message {
    fn read<T: DeserializeOwned>(&self) -> Result<T, BusError> {
        self.parse().map_err(|error| {
            tracing::warn!(%error, "cannot read a message of another instance");
            BusError::Malformed
        })
    }

    /// The message as a `T`, or `None` if it is of another kind: a subject may carry several kinds of messages.
    pub fn read_as<T: DeserializeOwned>(&self) -> Option<T> {
        self.parse().ok()
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, rmp_serde::decode::Error> {
        let message = self.0.get(1..).unwrap_or_default();
        let mut deserializer = rmp_serde::Deserializer::from_read_ref(message).with_human_readable();
        deserializer.set_max_depth(MAX_DEPTH);
        T::deserialize(&mut deserializer)
    }
}

/// Answers requests for parts of large messages, for as long as the bus lasts.
async fn hand_out(bus_client: BusClient, mut fetched: Subscription) {
    while let Some(delivery) = fetched.next().await {
        let (payload, reply) = delivery.into_parts();
        match bus_client.read(payload).await {
            Ok(ToInstance::Fetch { parcel_id, from }) => reply(bus_client.part(parcel_id, from)),
            Err(_) => reply(Bytes::new()),
        }
    }
}

/// Handles each delivery of a subscription in its own task, at most `most` at a time; more wait in the subscription.
pub async fn attend<F>(mut subscription: Subscription, most: Arc<Semaphore>, attend: impl Fn(Delivery) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    while let Some(delivery) = subscription.next().await {
        let Ok(place) = most.clone().acquire_owned().await else { return };
        let attended = attend(delivery);
        tokio::spawn(async move {
            attended.await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;
    use crate::bus::BusFuture;
    use crate::bus::local::LocalBus;

    const SOON: Duration = Duration::from_secs(10);

    async fn bus_client(bus: &LocalBus) -> BusClient {
        BusClient::open(Arc::new(bus.clone()), Subjects::new("test"), Uuid::now_v7()).await.unwrap()
    }

    /// Answers each request with the request itself.
    async fn echo(bus_client: BusClient, subject: &str) {
        let mut asked = bus_client.listen(subject.to_owned()).await.unwrap();
        tokio::spawn(async move {
            while let Some(delivery) = asked.next().await {
                let (payload, reply) = delivery.into_parts();
                let question: Vec<String> = bus_client.read(payload).await.unwrap();
                bus_client.answer(reply, &question);
            }
        });
    }

    #[tokio::test]
    async fn a_message_larger_than_the_limit_arrives_whole_both_ways() {
        let bus = LocalBus::default();
        let (asking, answering) = (bus_client(&bus).await, bus_client(&bus).await);
        echo(answering, "echo").await;
        let large: Vec<String> = (0..50_000).map(|number| format!("{number}: {}", "x".repeat(60))).collect();
        assert!(large.iter().map(String::len).sum::<usize>() > 3 * bus.most_bytes());

        let answer: Vec<String> = asking.ask("echo".to_owned(), &large, SOON).await.unwrap();

        assert!(answer == large);
    }

    #[tokio::test]
    async fn large_questions_and_answers_leave_their_room_to_the_next() {
        let bus = LocalBus::default();
        let (asking, answering) = (bus_client(&bus).await, bus_client(&bus).await);
        echo(answering.clone(), "echo").await;
        let large = vec!["x".repeat(MAX_BYTES - OVERHEAD)];

        for round in 0..=MAX_KEPT_BYTES / MAX_BYTES {
            let answer: Vec<String> = asking.ask("echo".to_owned(), &large, SOON).await.unwrap();
            assert!(answer == large, "{round}");
        }

        let kept = [asking, answering].map(|client| client.large_messages.bytes.load(Ordering::Relaxed));
        assert_eq!(kept, [0, 0]);
    }

    #[tokio::test]
    async fn a_large_message_waits_for_every_listener() {
        let bus = LocalBus::default();
        let (telling, listening) = (bus_client(&bus).await, bus_client(&bus).await);
        let large = vec!["x".repeat(2 * bus.most_bytes())];
        let mut subscriptions = Vec::new();
        for _ in 0..2 {
            subscriptions.push(listening.listen("anything".to_owned()).await.unwrap());
        }

        telling.tell("anything".to_owned(), &large).await.unwrap();

        for mut subscription in subscriptions {
            let delivery = subscription.next().await.unwrap();
            assert!(listening.read::<Vec<String>>(delivery.payload).await.unwrap() == large);
        }
    }

    #[tokio::test]
    async fn a_large_answer_that_cannot_be_fetched_does_not_count_as_a_question_that_nobody_got() {
        let bus = LocalBus::default();
        let (asking, answering) = (bus_client(&bus).await, bus_client(&bus).await);
        let mut asked = answering.listen("anything".to_owned()).await.unwrap();
        let large = vec!["x".repeat(2 * bus.most_bytes())];
        tokio::spawn(async move {
            let (_, reply) = asked.next().await.unwrap().into_parts();
            // The answer is on its way, and the bus away when it is fetched.
            answering.answer(reply, &large);
            bus.cut(true);
        });

        let answer = asking.ask::<Vec<String>>("anything".to_owned(), &(), SOON).await;

        assert_eq!(answer, Err(BusError::Timeout));
    }

    /// A bus on which the first attempt to listen on [`SHAKY`] fails, and each subscription ends after one message.
    #[derive(Default)]
    struct ShakyBus {
        tries: AtomicUsize,
    }

    const SHAKY: &str = "shaky";

    impl Bus for ShakyBus {
        fn publish(&self, _: String, _: Bytes) -> BusFuture<'_, ()> {
            Box::pin(async { Err(BusError::Away) })
        }

        fn request(&self, _: String, _: Bytes, _: Duration) -> BusFuture<'_, Bytes> {
            Box::pin(async { Err(BusError::Away) })
        }

        fn subscribe(&self, subject: String) -> BusFuture<'_, Subscription> {
            Box::pin(async move {
                if subject == SHAKY && self.tries.fetch_add(1, Ordering::Relaxed) == 0 {
                    return Err(BusError::Away);
                }
                let (sender, deliveries) = mpsc::channel(1);
                _ = sender.try_send(Delivery::new(Bytes::new(), None));
                Ok(Subscription { deliveries, _ends: oneshot::channel().0 })
            })
        }

        fn is_up(&self) -> bool {
            true
        }

        fn connects(&self) -> u64 {
            1
        }

        fn lost(&self) -> u64 {
            0
        }

        fn most_bytes(&self) -> usize {
            1_024
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_subscription_is_renewed_after_it_failed_or_ended() {
        let bus_client =
            BusClient::open(Arc::new(ShakyBus::default()), Subjects::new("test"), Uuid::now_v7()).await.unwrap();
        let heard = AtomicUsize::new(0);

        let heed = |mut subscription: Subscription| {
            let heard = &heard;
            async move {
                while subscription.next().await.is_some() {
                    heard.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let served = bus_client.serve(SHAKY.to_owned(), heed);
        _ = tokio::time::timeout(LISTEN_AGAIN_AFTER * 7 / 2, served).await;

        assert_eq!(heard.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn a_message_that_no_receiver_could_take_is_refused() {
        let bus = LocalBus::default();
        let bus_client = bus_client(&bus).await;

        let told = bus_client.tell("anything".to_owned(), &"x".repeat(MAX_BYTES + 1)).await;

        assert_eq!(told, Err(BusError::TooLarge));
        assert_eq!(bus_client.large_messages.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn malformed_messages_are_errors() {
        let bus = LocalBus::default();
        let bus_client = bus_client(&bus).await;

        for nonsense in [&b""[..], &b"\x00\xc1"[..], &b"\x01\x00"[..], &b"\x09abc"[..]] {
            let read = bus_client.read::<Vec<String>>(Bytes::copy_from_slice(nonsense)).await;
            assert_eq!(read, Err(BusError::Malformed), "{nonsense:?}");
        }
    }
}
