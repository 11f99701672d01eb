//! Looks names up, and gives only addresses that may be reached. What it gives is what is connected to: nothing is
//! looked up a second time, when the answer could be another one.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::Guard;

/// None of a name's addresses may be reached.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no address of this name may be reached")]
pub struct Barred;

#[derive(Debug, Clone)]
pub struct Resolver {
    guard: Arc<Guard>,
}

impl Resolver {
    pub fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    async fn look_up(self, name: String) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        // The port is the caller's affair.
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
        let allowed: Vec<SocketAddr> =
            found.iter().copied().filter(|address| self.guard.allows(address.ip())).collect();
        if allowed.is_empty() && !found.is_empty() {
            return Err(Box::new(Barred));
        }
        Ok(Box::new(allowed.into_iter()))
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(self.clone().look_up(name.as_str().to_owned()))
    }
}
