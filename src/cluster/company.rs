//! What an instance asks of the others, and owes them: [`Nobody`] and [`Sole`] where it is alone, [`Others`] where there are
//! several. Which of them it is, is chosen at the start; nobody asks for that later.

use std::future::{pending, ready};

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::members::Members;
use super::remote::Remote;
use super::sole::Sole;
use crate::bus::post::Post;
use crate::store::{SessionClaim, Store};

/// How the message bus is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusStatus {
    /// There is none, and nobody needs one.
    None,
    Up,
    Away,
}

/// The other instances, as this one sees them. What is not said otherwise is so where there are none.
pub trait Company: Send + Sync + 'static {
    fn bus(&self) -> BusStatus {
        BusStatus::None
    }

    /// For whom a server is taken whose session has this number; none where nobody else could take it.
    fn claim(&self, _epoch: i64) -> Option<SessionClaim> {
        None
    }

    /// By what samples of a session say whose they are; nothing where nobody else could hold the server.
    fn holder(&self, _session_id: Uuid) -> Uuid {
        Uuid::nil()
    }

    /// A server that an agent has just connected for: the instance that held it before lets go.
    fn took_over(&self, _server_id: Uuid) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Whether a session of this instance holds its server still: no other one took it over meanwhile.
    fn still_holds(&self, _server_id: Uuid, _session_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(true))
    }

    /// Whether another instance took a server whose session here has ended, by the database. Where that cannot be known,
    /// none did.
    fn has_taken(&self, _server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    /// Whether another instance holds a server. Where that cannot be known, it does not.
    fn holds(&self, _server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    /// This instance ends soon.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// This instance has ended.
    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Comes back when another instance has taken the database from this one, which was to be alone.
    fn displaced(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Whether one has.
    fn is_displaced(&self) -> bool {
        false
    }
}

/// There is no other instance, and there cannot be one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Company for Nobody {}

/// There is no other instance, until one takes the place of this one.
impl Company for Sole {
    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.give_up())
    }

    fn displaced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lost())
    }

    fn is_displaced(&self) -> bool {
        self.is_lost()
    }
}

/// There are others.
#[derive(Clone)]
pub struct Others {
    pub store: Store,
    pub post: Post,
    pub members: Members,
    pub remote: Remote,
}

impl Company for Others {
    fn bus(&self) -> BusStatus {
        if self.post.is_up() { BusStatus::Up } else { BusStatus::Away }
    }

    fn claim(&self, epoch: i64) -> Option<SessionClaim> {
        Some(SessionClaim { instance_id: self.post.instance_id, epoch })
    }

    fn holder(&self, session_id: Uuid) -> Uuid {
        session_id
    }

    fn took_over(&self, server_id: Uuid) -> BoxFuture<'_, ()> {
        Box::pin(self.remote.took_over(server_id))
    }

    /// As the database says.
    fn still_holds(&self, server_id: Uuid, session_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match self.store.session_rows(&[server_id]).await {
                Ok(rows) => rows.get(&server_id).is_some_and(|row| row.session_id == Some(session_id)),
                Err(error) => {
                    tracing::error!(server.id = %server_id, %error, "a server's session could not be looked up");
                    false
                }
            }
        })
    }

    fn has_taken(&self, server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let rows = self.store.session_rows(&[server_id]).await.unwrap_or_default();
            rows.get(&server_id).is_some_and(|row| row.session_id.is_some())
        })
    }

    fn holds(&self, server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(async move { self.remote.is_there(server_id).await == Ok(true) })
    }

    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.members.drain())
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.members.leave())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn who_is_alone_holds_what_it_took_and_waits_for_nobody() {
        let (nobody, server_id) = (Nobody, Uuid::nil());

        assert_eq!((nobody.bus(), nobody.claim(3).is_some()), (BusStatus::None, false));
        assert_eq!(nobody.holder(Uuid::from_u128(1)), Uuid::nil());
        assert!(nobody.still_holds(server_id, Uuid::nil()).await && !nobody.holds(server_id).await);
        assert!(!nobody.has_taken(server_id).await);
        nobody.took_over(server_id).await;
        nobody.drain().await;
        nobody.leave().await;
        assert!(nobody.displaced().now_or_never().is_none() && !nobody.is_displaced());
    }
}
