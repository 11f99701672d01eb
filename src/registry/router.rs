//! The way to servers whose agents are connected to other instances.

use std::future::Future;
use std::pin::Pin;

use tokio::task::AbortHandle;
use uuid::Uuid;

use super::{CallError, Order};

/// Takes orders for servers that have no session here.
pub trait RemoteRouter: Send + Sync + 'static {
    /// Takes an order for a server. The outcome comes from a separate task, or never.
    fn take(&self, server_id: Uuid, order: Order);

    /// Announces this instance as the home of a server until the returned place is dropped.
    fn hold(&self, server_id: Uuid) -> Pin<Box<dyn Future<Output = Advertisement> + Send + '_>>;
}

/// How other instances reach a server. Dropping it ends that.
#[derive(Debug, Default)]
pub struct Advertisement(Option<AbortHandle>);

impl Advertisement {
    /// A place that a task keeps: dropping the place aborts the task.
    pub fn kept_by(task: AbortHandle) -> Self {
        Self(Some(task))
    }
}

impl Drop for Advertisement {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// There are no other instances.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPeers;

impl RemoteRouter for NoPeers {
    fn take(&self, _: Uuid, order: Order) {
        order.fail(CallError::Offline);
    }

    fn hold(&self, _: Uuid) -> Pin<Box<dyn Future<Output = Advertisement> + Send + '_>> {
        Box::pin(std::future::ready(Advertisement::default()))
    }
}
