//! A fresh service with an account and servers whose agents may connect.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use crate::report::progress;
use crate::rest::{Rest, TAG};
use crate::service::{Service, ServiceOptions};

/// Requests at a time while servers are made: enough to keep both sides busy.
const CONCURRENT_REQUESTS: usize = 16;

#[derive(Debug)]
pub struct Fixture {
    pub service: Service,
    pub rest: Rest,
    pub fleet: Vec<Enrolled>,
}

/// A server and a key of it.
#[derive(Debug, Clone)]
pub struct Enrolled {
    pub server_id: Uuid,
    pub key: Arc<str>,
}

impl Fixture {
    /// Starts a service and makes `servers` servers with a key each.
    pub async fn start(options: &ServiceOptions, servers: usize) -> anyhow::Result<Self> {
        Self::start_tagged(options, servers, |_| Vec::new()).await
    }

    /// The same with further tags, by the number of the server.
    pub async fn start_tagged(
        options: &ServiceOptions,
        servers: usize,
        tags: impl Fn(usize) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        let service = Service::start(options).await?;
        let rest = Rest::register(service.address()).await?;
        progress(format_args!("service at {}, making {servers} servers", service.address()));
        let fleet = stream::iter(0..servers)
            .map(|number| enrol(rest.clone(), number, tags(number)))
            .buffered(CONCURRENT_REQUESTS)
            .try_collect()
            .await?;
        Ok(Self { service, rest, fleet })
    }
}

async fn enrol(rest: Rest, number: usize, mut tags: Vec<String>) -> anyhow::Result<Enrolled> {
    tags.push(TAG.to_owned());
    let server_id = rest.create_server(&format!("server-{number:05}"), &tags).await?;
    let key = rest.create_key(server_id).await?;
    Ok(Enrolled { server_id, key: key.into() })
}
