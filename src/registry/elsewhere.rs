//! The way to servers whose sessions other instances hold.

use std::future::Future;
use std::pin::Pin;

use tokio::task::AbortHandle;
use uuid::Uuid;

use super::{CallError, Order};

/// Takes what no session here is for.
pub trait Elsewhere: Send + Sync + 'static {
    /// Takes an order for a server: it comes to something in a task of its own, or to nothing.
    fn take(&self, server_id: Uuid, order: Order);

    /// Makes this instance known as the one that holds a server, until the place is dropped.
    fn hold(&self, server_id: Uuid) -> Pin<Box<dyn Future<Output = Place> + Send + '_>>;
}

/// What other instances reach a server by.
#[derive(Debug, Default)]
pub struct Place(Option<AbortHandle>);

impl Place {
    /// A place that a task keeps, which ends with it.
    pub fn kept_by(task: AbortHandle) -> Self {
        Self(Some(task))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// There is no other instance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Elsewhere for Nowhere {
    fn take(&self, _: Uuid, order: Order) {
        order.fail(CallError::Offline);
    }

    fn hold(&self, _: Uuid) -> Pin<Box<dyn Future<Output = Place> + Send + '_>> {
        Box::pin(std::future::ready(Place::default()))
    }
}
