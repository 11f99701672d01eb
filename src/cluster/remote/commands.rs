//! Commands whose agents other instances hold.

use std::time::Duration;

use uuid::Uuid;

use super::message::{Ask, Sent, Taken};
use super::{Remote, TAKEN_WITHIN};
use crate::bus::BusError;
use crate::commands::shared::{Follow, Followed, Happened, Start};

/// How long a home may take to say which commands it knows: somebody looks at one of them.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(2);

/// When to listen again on a subject that could not be listened on.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Remote {
    /// Whether one more command may run on a server.
    pub async fn has_room(&self, server_id: Uuid) -> Result<bool, BusError> {
        self.home(server_id, Ask::Room).await
    }

    /// Has the home of a server send a command. Where the answer was lost, it may have been sent.
    pub async fn start(&self, server_id: Uuid, start: Start) -> Result<Sent, BusError> {
        self.home(server_id, Ask::Start(Box::new(start))).await
    }

    /// Has the home of a server tell of commands, and gives those that it knows.
    pub async fn follow(&self, server_id: Uuid, follow: Follow) -> Result<Vec<Followed>, BusError> {
        let subject = self.post.subjects.agent(server_id);
        self.post.ask(subject, &Ask::Follow(follow), FOLLOWED_WITHIN).await
    }

    /// Tells a reader what happened to a command here.
    pub async fn tell_of(&self, reader: Uuid, happened: &Happened) -> Result<Taken, BusError> {
        self.post.ask(self.post.subjects.stream(reader), happened, TAKEN_WITHIN).await
    }

    /// Listens to what happens to commands elsewhere, for as long as this instance lives. In order: each is taken before
    /// the next is looked at.
    pub async fn hear(&self, take: impl Fn(Happened) -> Taken) {
        loop {
            match self.post.listen(self.post.subjects.stream(self.post.instance_id)).await {
                Ok(mut heard) => {
                    while let Some(delivery) = heard.next().await {
                        let (payload, reply) = delivery.into_parts();
                        let taken = self.post.read(payload).await.map_or(Taken::Enough, &take);
                        self.post.answer(reply, &taken);
                    }
                }
                Err(error) => tracing::error!(%error, "commands of other instances cannot be heard of"),
            }
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
        }
    }
}
