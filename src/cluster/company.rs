//! What an instance asks of the others: [`Nobody`] and [`Sole`] where it is alone, [`Others`] where there are several.
//! The choice is made at the start; no caller checks later which one it is.

use std::future::{pending, ready};

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::members::Members;
use super::remote::Remote;
use super::sole::Sole;
use crate::bus::client::BusClient;
use crate::store::{SessionClaim, Store};

/// The state of the message bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BusStatus {
    /// There is no bus, and none is needed.
    None,
    Up,
    Away,
}

/// The other instances, as this one sees them. The default methods are for an instance without others.
pub trait Company: Send + Sync + 'static {
    fn bus(&self) -> BusStatus {
        BusStatus::None
    }

    /// The claim that guards a server whose session has this epoch; `None` if no other instance could take the server.
    fn claim(&self, _epoch: i64) -> Option<SessionClaim> {
        None
    }

    /// The session id that samples carry to prove who holds the server; nil if no other instance could hold it.
    fn holder(&self, _session_id: Uuid) -> Uuid {
        Uuid::nil()
    }

    /// Tells the previous home of a server that its agent has just connected here, and waits for it to end its session.
    fn took_over(&self, _server_id: Uuid) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Whether a session of this instance still holds its server, and no other session took it over.
    fn still_holds(&self, _server_id: Uuid, _session_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(true))
    }

    /// Whether the database says that another instance took a server whose session here has ended. False if that cannot
    /// be determined.
    fn has_taken(&self, _server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    /// Whether another instance holds a server. False if that cannot be determined.
    fn holds(&self, _server_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(ready(false))
    }

    /// Announces that this instance ends soon.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Announces that this instance has ended.
    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Returns when another instance has taken the database from this one, which was to be alone.
    fn displaced(&self) -> BoxFuture<'_, ()> {
        Box::pin(pending())
    }

    /// Whether another instance has taken the database.
    fn is_displaced(&self) -> bool {
        false
    }
}

/// There is no other instance, and there cannot be one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Company for Nobody {}

/// There is no other instance until one replaces this one.
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

/// There are other instances.
#[derive(Clone)]
pub struct Others {
    pub store: Store,
    pub bus_client: BusClient,
    pub members: Members,
    pub remote: Remote,
}

impl Company for Others {
    fn bus(&self) -> BusStatus {
        if self.bus_client.is_up() { BusStatus::Up } else { BusStatus::Away }
    }

    fn claim(&self, epoch: i64) -> Option<SessionClaim> {
        Some(SessionClaim { instance_id: self.bus_client.instance_id, epoch })
    }

    fn holder(&self, session_id: Uuid) -> Uuid {
        session_id
    }

    fn took_over(&self, server_id: Uuid) -> BoxFuture<'_, ()> {
        Box::pin(self.remote.took_over(server_id))
    }

    /// Asks the database.
    fn still_holds(&self, server_id: Uuid, session_id: Uuid) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match self.store.session_rows(&[server_id]).await {
                Ok(rows) => rows.get(&server_id).is_some_and(|row| row.session_id == Some(session_id)),
                Err(error) => {
                    tracing::error!(server.id = %server_id, %error, "cannot look up a server's session");
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
    async fn an_instance_that_is_alone_keeps_its_servers_and_never_waits() {
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
