//! Sends messages about commands to the instances to which their agents are connected.

use std::time::Duration;

use uuid::Uuid;

use super::shared::{Ask, Follow, Followed, Happened, Start, Wanted};
use crate::bus::{BusError, Subscription};
use crate::cluster::remote::message::{Sent, Taken};
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
        self.0.post().instance_id
    }

    /// Returns whether any instance has the server's agent.
    pub async fn is_there(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.is_there(server_id).await
    }

    /// Returns whether one more command may run on a server.
    pub async fn has_room(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.home(server_id, &Ask::Room).await
    }

    /// Asks the owner of a server to send a command. If the answer is lost, it may have been sent.
    pub async fn start(&self, server_id: Uuid, start: Start) -> Result<Sent, BusError> {
        self.0.home(server_id, &Ask::Start(Box::new(start))).await
    }

    /// Asks the owner of a server to publish commands. Returns those that it has.
    pub async fn follow(&self, server_id: Uuid, wanted: Vec<Wanted>) -> Result<Vec<Followed>, BusError> {
        let follow = Follow { reader: self.reader(), wanted };
        let post = self.0.post();
        post.ask(post.subjects.agent(server_id), &Ask::Follow(follow), FOLLOWED_WITHIN).await
    }

    /// Sends a reader what happened to a command.
    pub async fn tell_of(&self, reader: Uuid, happened: &Happened) -> Result<Taken, BusError> {
        let post = self.0.post();
        post.ask(post.subjects.stream(reader), happened, TAKEN_WITHIN).await
    }

    /// Receives what happens to commands of other instances, for as long as this instance runs, one message after the other.
    pub async fn hear(&self, take: impl Fn(Happened) -> Taken) {
        let (post, take) = (self.0.post(), &take);
        let hear = |mut heard: Subscription| async move {
            while let Some(delivery) = heard.next().await {
                let (payload, reply) = delivery.into_parts();
                let taken = post.read(payload).await.map_or(Taken::Enough, take);
                post.answer(reply, &taken);
            }
        };
        post.serve(post.subjects.stream(post.instance_id), hear).await;
    }
}
