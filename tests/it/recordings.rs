//! Terminals that the agent records, and what the audit log says of them.

mod hostile;
mod real;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::dashboard::{Dashboard, Pass};
use crate::support::eventually;
use crate::support::rest::Answer;
use crate::support::site::Site;

/// A browser with a terminal of 100 by 30 characters.
struct Browser {
    socket: Dashboard,
    /// Output that was not searched yet.
    shown: String,
}

impl Browser {
    async fn open(site: &Site) -> Self {
        let path = format!("/api/v1/ws/terminal/{}?columns=100&rows=30", site.server_id);
        let pass = Pass::Subprotocol(&site.owner.token);
        let socket = Dashboard::open(site.service.address, &path, pass, &[]).await.unwrap();
        Self { socket, shown: String::new() }
    }

    async fn type_in(&mut self, text: &str) {
        self.socket.send(json!({"type": "input", "data": {"data": text}})).await;
    }

    /// Reads until this is shown.
    async fn until(&mut self, wanted: &str) {
        loop {
            if let Some(place) = self.shown.find(wanted) {
                self.shown.drain(..place + wanted.len());
                return;
            }
            let output = self.socket.expect("output").await;
            self.shown.push_str(output["data"].as_str().unwrap());
        }
    }
}

fn recordings(site: &Site) -> String {
    format!("/servers/{}/recordings", site.server_id)
}

/// The entries of this action in the audit log, oldest first.
async fn entries(site: &Site, action: &str) -> Vec<Value> {
    let entries = site.read(&format!("/audit?action={action}")).await;
    entries.as_array().unwrap().iter().rev().cloned().collect()
}

/// The entries of recordings, as soon as there are this many.
async fn until_recorded(site: &Site, count: usize) -> Vec<Value> {
    eventually("the audit log has the recording", async || {
        let recorded = entries(site, "terminal.recorded").await;
        (recorded.len() >= count).then_some(recorded)
    })
    .await
}

/// What a recording contains.
async fn read(site: &Site, id: &Value) -> Answer {
    let path = format!("{}/{}", recordings(site), id.as_str().unwrap());
    site.service.client.get(path).bearer(&site.owner.token).expect_answer(200).await
}

/// As `sha256sum` prints it.
fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
