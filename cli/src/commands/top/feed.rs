//! Where the table's news comes from: the list of servers, and their states as they change.

use std::sync::Arc;

use signalbox_protocol::frontend::{FeedMessage, FleetServer};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::api::backoff::Backoff;
use crate::api::parsed;
use crate::api::socket::Socket;
use crate::api::types::Server;
use crate::error::Failure;

/// News for the table.
#[derive(Debug)]
pub enum Update {
    /// All servers that the table is about.
    Servers(Vec<Server>),
    /// Some of the caller's servers.
    States(Vec<FleetServer>),
    Connected,
    /// Why nothing changes now.
    Lost(String),
    /// It makes no sense to continue.
    Failed(Failure),
}

/// Sends news until nobody takes it.
pub async fn run(api: Arc<Api>, tag: Option<String>, sender: mpsc::Sender<Update>) {
    let mut backoff = Backoff::default();
    let mut was_connected = false;
    loop {
        let update = match follow(&api, tag.as_deref(), &sender, &mut backoff, &mut was_connected).await {
            Ok(()) => return,
            Err(failure) if was_connected && failure.is_passing() => Update::Lost(failure.to_string()),
            Err(failure) => Update::Failed(failure),
        };
        let is_over = matches!(update, Update::Failed(_));
        if sender.send(update).await.is_err() || is_over {
            return;
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}

/// Until the connection is lost, or nobody takes the news.
async fn follow(
    api: &Arc<Api>,
    tag: Option<&str>,
    sender: &mpsc::Sender<Update>,
    backoff: &mut Backoff,
    was_connected: &mut bool,
) -> Result<(), Failure> {
    // First the socket: what changes after the list was read is then sent.
    let mut socket = Socket::open(api, "/ws/fleet", &[]).await?;
    let mut next = Update::Servers(servers(api, tag).await?);
    *was_connected = true;
    backoff.reset();
    if sender.send(Update::Connected).await.is_err() {
        return Ok(());
    }
    loop {
        if sender.send(next).await.is_err() {
            return Ok(());
        }
        next = loop {
            match socket.next().await.map_err(Failure::from)? {
                FeedMessage::Fleet { servers } => break Update::States(servers),
                FeedMessage::Servers {} => break Update::Servers(servers(api, tag).await?),
                _ => {}
            }
        };
    }
}

async fn servers(api: &Api, tag: Option<&str>) -> Result<Vec<Server>, Failure> {
    let query: Vec<_> = tag.map(|tag| ("tag", tag.to_owned())).into_iter().collect();
    api.list("/servers", &query).await?.into_iter().map(parsed).collect()
}
