//! Sends messages about commands to the instances to which their agents are connected.

use std::time::Duration;

use uuid::Uuid;

use super::peer_messages::{CommandRequest, CommandUpdate, Follow, Followed, Start, WantedCommand};
use crate::bus::{BusError, Subscription};
use crate::cluster::remote::message::{Demand, Sent};
use crate::cluster::remote::{Remote, TAKEN_WITHIN};

/// How long an owner may take to answer which commands it has: a viewer may be waiting.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// A client for the instances that own servers; cheap to clone.
#[derive(Clone)]
pub(super) struct Homes(Remote);

impl Homes {
    pub fn new(remote: Remote) -> Self {
        Self(remote)
    }

    /// Returns the id under which other instances publish to this one.
    pub fn reader(&self) -> Uuid {
        self.0.bus_client().instance_id
    }

    /// Returns whether any instance has the server's agent.
    pub async fn is_there(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.is_there(server_id).await
    }

    /// Returns whether one more command may run on a server.
    pub async fn has_room(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.home(server_id, &CommandRequest::Room).await
    }

    /// Asks the owner of a server to send a command. If the answer is lost, it may have been sent.
    pub async fn start(&self, server_id: Uuid, start: Start) -> Result<Sent, BusError> {
        self.0.home(server_id, &CommandRequest::Start(Box::new(start))).await
    }

    /// Asks the owner of a server to publish commands. Returns those that it has.
    pub async fn follow(&self, server_id: Uuid, wanted: Vec<WantedCommand>) -> Result<Vec<Followed>, BusError> {
        let follow = Follow { reader: self.reader(), wanted };
        let bus_client = self.0.bus_client();
        bus_client.ask(bus_client.subjects.agent(server_id), &CommandRequest::Follow(follow), FOLLOWED_WITHIN).await
    }

    /// Sends a reader what happened to a command.
    pub async fn tell_of(&self, reader: Uuid, happened: &CommandUpdate) -> Result<Demand, BusError> {
        let bus_client = self.0.bus_client();
        bus_client.ask(bus_client.subjects.stream(reader), happened, TAKEN_WITHIN).await
    }

    /// Receives what happens to commands of other instances, for as long as this instance runs, one message after the other.
    pub async fn hear(&self, take: impl Fn(CommandUpdate) -> Demand) {
        let (bus_client, take) = (self.0.bus_client(), &take);
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
