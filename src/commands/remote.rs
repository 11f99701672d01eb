//! Sends messages about commands to the instances to which their agents are connected.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::peer_messages::{CommandRequest, CommandUpdate, Follow, Followed, Start, WantedCommand};
use crate::bus::{BusError, Subscription};
use crate::cluster::remote::message::{Demand, Sent};
use crate::cluster::remote::{PROMPT, Remote, TAKEN_WITHIN};

/// How long an owner may take to answer which commands it has: a viewer may be waiting.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// The pause before the owner of a server is looked for again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// A client for the instances that own servers; cheap to clone.
#[derive(Clone)]
pub(super) struct Homes {
    remote: Remote,
    /// The latest outage of the bus that a question met: how often the bus had connected before it, and when the first one met it.
    outage: Arc<Mutex<Option<(u64, Instant)>>>,
}

impl Homes {
    pub fn new(remote: Remote) -> Self {
        Self { remote, outage: Arc::default() }
    }

    /// Returns the id under which other instances publish to this one.
    pub fn reader(&self) -> Uuid {
        self.remote.bus_client().instance_id
    }

    /// Returns whether any instance has the server's agent.
    pub async fn is_there(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.remote.is_there(server_id).await
    }

    /// Returns whether one more command may run on a server. `is_held` says whether an instance has its agent.
    pub async fn has_room(&self, server_id: Uuid, is_held: impl Future<Output = bool>) -> Result<bool, BusError> {
        self.ask(server_id, &CommandRequest::Room, is_held).await
    }

    /// Asks the owner of a server to send a command. If the answer is lost, it may have been sent. `is_held` says whether an
    /// instance has the agent.
    pub async fn start(
        &self,
        server_id: Uuid,
        start: Start,
        is_held: impl Future<Output = bool>,
    ) -> Result<Sent, BusError> {
        self.ask(server_id, &CommandRequest::Start(Box::new(start)), is_held).await
    }

    /// Asks the owner of a server, and once more if nobody got the question although an instance has the agent: one of the two
    /// reconnects to the bus. A question that may have arrived is not repeated.
    async fn ask<A: DeserializeOwned>(
        &self,
        server_id: Uuid,
        question: &CommandRequest,
        is_held: impl Future<Output = bool>,
    ) -> Result<A, BusError> {
        let asked_at = Instant::now();
        let answer = self.remote.home(server_id, question).await;
        if !matches!(answer, Err(BusError::Away | BusError::NoResponder)) {
            return answer;
        }
        let patient_until = self.patient_until(asked_at);
        if patient_until <= Instant::now() {
            return answer;
        }
        let looked = async {
            let is_held = is_held.await;
            if is_held {
                // Looked for with a small question, because this one may have a megabyte.
                self.until_there(server_id).await;
            }
            is_held
        };
        if timeout_at(patient_until, looked).await == Ok(false) {
            return answer;
        }
        match self.remote.home(server_id, question).await {
            // An instance has the agent, which is not offline.
            Err(BusError::NoResponder) => Err(BusError::Away),
            answer => answer,
        }
    }

    /// Returns until when a question may wait for its way. While the bus is away from here, all questions wait until the same
    /// moment: otherwise a batch would wait for each of its servers, however long the outage lasts.
    fn patient_until(&self, asked_at: Instant) -> Instant {
        let bus_client = self.remote.bus_client();
        // Read first: if the bus is away after that, it is still away, or again.
        let connects = bus_client.connects();
        if bus_client.is_up() {
            return asked_at + PROMPT;
        }
        let mut outage = self.outage.lock();
        let met_at = match *outage {
            Some((known, met_at)) if known == connects => met_at,
            Some(_) | None => asked_at,
        };
        *outage = Some((connects, met_at));
        met_at + PROMPT
    }

    async fn until_there(&self, server_id: Uuid) {
        while self.is_there(server_id).await != Ok(true) {
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    /// Asks the owner of a server to publish commands. Returns those that it has.
    pub async fn follow(&self, server_id: Uuid, wanted: Vec<WantedCommand>) -> Result<Vec<Followed>, BusError> {
        let follow = Follow { reader: self.reader(), wanted };
        let bus_client = self.remote.bus_client();
        bus_client.ask(bus_client.subjects.agent(server_id), &CommandRequest::Follow(follow), FOLLOWED_WITHIN).await
    }

    /// Sends a reader what happened to a command.
    pub async fn tell_of(&self, reader: Uuid, happened: &CommandUpdate) -> Result<Demand, BusError> {
        let bus_client = self.remote.bus_client();
        bus_client.ask(bus_client.subjects.stream(reader), happened, TAKEN_WITHIN).await
    }

    /// Receives what happens to commands of other instances, for as long as this instance runs, one message after the other.
    pub async fn hear(&self, take: impl Fn(CommandUpdate) -> Demand) {
        let (bus_client, take) = (self.remote.bus_client(), &take);
        let hear = |mut heard: Subscription| async move {
            while let Some(delivery) = heard.next().await {
                let (payload, reply) = delivery.into_parts();
                let taken = bus_client.read(payload).await.map_or(Demand::Enough, take);
                bus_client.answer(reply, &taken);
            }
        };
        bus_client.serve(bus_client.subjects.stream(bus_client.instance_id), hear).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use signalbox_protocol::Timestamp;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::bus::client::BusClient;
    use crate::bus::local::LocalBus;
    use crate::bus::subject::Subjects;
    use crate::commands::{JobStatus, NewJob};

    async fn bus_client(bus: &LocalBus) -> BusClient {
        BusClient::open(Arc::new(bus.clone()), Subjects::new("test"), Uuid::now_v7()).await.unwrap()
    }

    async fn homes(bus: &LocalBus) -> Homes {
        Homes::new(Remote::new(bus_client(bus).await))
    }

    fn start(server_id: Uuid) -> Start {
        let new = NewJob::of_make(server_id, Uuid::nil());
        let row = new.into_row(JobStatus::Running, None, Timestamp::now());
        Start { reader: Uuid::nil(), row: (&row).into(), stdin: None }
    }

    /// Plays the owner of a server. Returns how many commands it has sent.
    async fn own(owner: BusClient, server_id: Uuid) -> Arc<AtomicUsize> {
        let mut asked = owner.listen(owner.subjects.agent(server_id)).await.unwrap();
        let sent = Arc::<AtomicUsize>::default();
        let count = sent.clone();
        tokio::spawn(async move {
            while let Some(delivery) = asked.next().await {
                let (payload, reply) = delivery.into_parts();
                match owner.whole(payload).await.unwrap().read_as::<CommandRequest>() {
                    Some(_) => {
                        count.fetch_add(1, Ordering::Relaxed);
                        owner.answer(reply, &Sent::Ok(()));
                    }
                    None => owner.answer(reply, &owner.instance_id),
                }
            }
        });
        sent
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_is_sent_once_the_bus_is_back() {
        let bus = LocalBus::default();
        let (homes, owner, server_id) = (homes(&bus).await, bus_client(&bus).await, Uuid::now_v7());
        let sent = own(owner, server_id).await;
        bus.cut(true);

        let heal = async {
            sleep(PROMPT / 2).await;
            bus.cut(false);
        };
        let (started, ()) = tokio::join!(homes.start(server_id, start(server_id), ready(true)), heal);

        assert_eq!(started, Ok(Ok(())));
        assert_eq!(sent.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_is_sent_once_its_owner_listens_again() {
        let bus = LocalBus::default();
        let (homes, owner, server_id) = (homes(&bus).await, bus_client(&bus).await, Uuid::now_v7());

        let listen = async {
            sleep(PROMPT / 2).await;
            own(owner, server_id).await
        };
        let (started, sent) = tokio::join!(homes.start(server_id, start(server_id), ready(true)), listen);

        assert_eq!(started, Ok(Ok(())));
        assert_eq!(sent.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_an_agent_that_no_instance_has() {
        let bus = LocalBus::default();
        let (homes, server_id, began) = (homes(&bus).await, Uuid::now_v7(), Instant::now());

        let nowhere = homes.has_room(server_id, ready(false)).await;
        bus.cut(true);
        let away = homes.has_room(server_id, ready(false)).await;

        assert_eq!([nowhere, away], [Err(BusError::NoResponder), Err(BusError::Away)]);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_bus_that_stays_away_is_waited_for_once_in_each_outage() {
        let bus = LocalBus::default();
        let (homes, server_id) = (homes(&bus).await, Uuid::now_v7());

        for outage in 1..=2 {
            let began = Instant::now();
            bus.cut(true);
            for _ in 0..3 {
                assert_eq!(homes.has_room(server_id, ready(true)).await, Err(BusError::Away));
            }
            bus.cut(false);

            assert!((PROMPT..2 * PROMPT).contains(&began.elapsed()), "{outage}: {:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_whose_owner_stays_away_is_not_offline() {
        let bus = LocalBus::default();
        let (homes, server_id, began) = (homes(&bus).await, Uuid::now_v7(), Instant::now());

        assert_eq!(homes.has_room(server_id, ready(true)).await, Err(BusError::Away));

        assert!((PROMPT..2 * PROMPT).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_may_have_arrived_is_not_sent_again() {
        let bus = LocalBus::default();
        let (homes, owner, server_id) = (homes(&bus).await, bus_client(&bus).await, Uuid::now_v7());
        let mut asked = owner.listen(owner.subjects.agent(server_id)).await.unwrap();

        let take = async { drop(asked.next().await) };
        let (started, ()) = tokio::join!(homes.start(server_id, start(server_id), ready(true)), take);

        assert_eq!(started, Err(BusError::Timeout));
        assert!(timeout(2 * PROMPT, asked.next()).await.is_err());
    }
}
