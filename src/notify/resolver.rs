//! Resolves host names to addresses that may be reached. The client connects to exactly these addresses, without a second
//! lookup whose answer could differ.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::Guard;

/// The service may reach none of a name's addresses.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("all addresses of this name are private or reserved")]
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
        // The caller sets the port.
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
