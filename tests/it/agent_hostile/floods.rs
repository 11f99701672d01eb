//! Floods, against a service in a process of its own, whose memory is measured.

use tempfile::TempDir;

use crate::support::agent::sample_aged;
use crate::support::attacks::{self, MAX_GROWTH_MEBIBYTES};
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::raw::RawSocket;

/// Whether the attacker has a key.
#[derive(Debug, Clone, Copy)]
enum Attacker {
    Stranger,
    Agent,
}

impl Attacker {
    async fn socket(self, service: &ServiceProcess, prepared: &Prepared) -> RawSocket {
        match self {
            Self::Stranger => RawSocket::agent(service.address).await,
            Self::Agent => RawSocket::authenticated_agent(service.address, &prepared.key).await,
        }
    }
}

const MESSAGE: &str = r#"{"type":"teleport","data":{}}"#;

/// Runs an attack, and asserts that the service keeps its memory and serves its agents afterwards.
async fn withstand(attacker: Attacker, attack: impl AsyncFnOnce(RawSocket)) {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let memory = service.watch_memory();
    let socket = attacker.socket(&service, &prepared).await;

    attack(socket).await;

    let mut agent = service.agent(&prepared).await;
    agent.store(1, vec![sample_aged(1)]).await;
    memory.expect_growth_below(MAX_GROWTH_MEBIBYTES);
}

#[actix_web::test]
async fn a_strangers_huge_frame_is_not_buffered() {
    withstand(Attacker::Stranger, attacks::send_a_huge_frame).await;
}

#[actix_web::test]
async fn an_agents_huge_frame_is_not_buffered() {
    withstand(Attacker::Agent, attacks::send_a_huge_frame).await;
}

#[actix_web::test]
async fn a_strangers_pings_are_not_buffered() {
    withstand(Attacker::Stranger, attacks::flood_with_pings).await;
}

#[actix_web::test]
async fn an_agents_pings_are_not_buffered() {
    withstand(Attacker::Agent, attacks::flood_with_pings).await;
}

#[actix_web::test]
async fn a_strangers_messages_are_not_buffered() {
    withstand(Attacker::Stranger, async |socket| attacks::flood_with_messages(socket, MESSAGE).await).await;
}

#[actix_web::test]
async fn an_agents_messages_are_not_buffered() {
    withstand(Attacker::Agent, async |socket| attacks::flood_with_messages(socket, MESSAGE).await).await;
}

#[actix_web::test]
async fn batches_faster_than_they_are_stored_are_not_buffered() {
    let batch = serde_json::json!({"type": "metrics", "data": {"seq": 1, "samples": [sample_aged(5)]}}).to_string();

    withstand(Attacker::Agent, async |socket| attacks::flood_with_messages(socket, &batch).await).await;
}

#[actix_web::test]
async fn a_strangers_message_without_end_is_cut() {
    withstand(Attacker::Stranger, async |socket| attacks::continue_without_end(socket, 1).await).await;
    withstand(Attacker::Stranger, async |socket| attacks::continue_without_end(socket, 8_000).await).await;
}

#[actix_web::test]
async fn an_agents_message_without_end_is_cut_however_small_its_fragments() {
    withstand(Attacker::Agent, async |socket| attacks::continue_without_end(socket, 0).await).await;
    withstand(Attacker::Agent, async |socket| attacks::continue_without_end(socket, 1).await).await;
}

#[actix_web::test]
async fn an_agents_message_without_end_is_cut_at_its_total() {
    withstand(Attacker::Agent, async |socket| attacks::continue_without_end(socket, 64_000).await).await;
}
