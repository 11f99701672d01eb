//! The way of commands to the instances that hold their agents.

use std::time::Duration;

use uuid::Uuid;

use super::shared::{Ask, Follow, Followed, Happened, Start, Wanted};
use crate::bus::{BusError, Subscription};
use crate::cluster::remote::message::{Sent, Taken};
use crate::cluster::remote::{Remote, TAKEN_WITHIN};

/// How long a home may take to say which commands it knows: somebody looks at one of them.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// The homes of servers, as commands reach them, behind cheap clones.
#[derive(Clone)]
pub(super) struct Homes(Remote);

impl Homes {
    pub fn new(remote: Remote) -> Self {
        Self(remote)
    }

    /// This instance, as the others know it.
    pub fn reader(&self) -> Uuid {
        self.0.post().instance_id
    }

    /// Whether an instance holds a server.
    pub async fn is_there(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.is_there(server_id).await
    }

    /// Whether one more command may run on a server.
    pub async fn has_room(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.0.home(server_id, &Ask::Room).await
    }

    /// Has the home of a server send a command. Where the answer was lost, it may have been sent.
    pub async fn start(&self, server_id: Uuid, start: Start) -> Result<Sent, BusError> {
        self.0.home(server_id, &Ask::Start(Box::new(start))).await
    }

    /// Has the home of a server tell of commands, and gives those that it knows.
    pub async fn follow(&self, server_id: Uuid, wanted: Vec<Wanted>) -> Result<Vec<Followed>, BusError> {
        let follow = Follow { reader: self.reader(), wanted };
        let post = self.0.post();
        post.ask(post.subjects.agent(server_id), &Ask::Follow(follow), FOLLOWED_WITHIN).await
    }

    /// Tells a reader what happened to a command here.
    pub async fn tell_of(&self, reader: Uuid, happened: &Happened) -> Result<Taken, BusError> {
        let post = self.0.post();
        post.ask(post.subjects.stream(reader), happened, TAKEN_WITHIN).await
    }

    /// Listens to what happens to commands elsewhere, for as long as this instance lives. In order: each is taken before
    /// the next is looked at.
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
