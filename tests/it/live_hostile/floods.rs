//! Floods of a dashboard, against a service in a process of its own, whose memory is measured.

use serde_json::json;
use tempfile::TempDir;

use crate::support::agent::sample_aged;
use crate::support::attacks::{self, MAX_GROWTH_MEBIBYTES};
use crate::support::dashboard::Dashboard;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::raw::RawSocket;

/// Runs an attack, and asserts that the service's memory stays bounded and other dashboards are served afterwards.
async fn withstand(attack: impl AsyncFnOnce(RawSocket)) {
    withstand_owner(async move |socket, _: &Prepared| attack(socket).await).await;
}

/// The same of somebody who has what the owner of the server has.
async fn withstand_owner(attack: impl AsyncFnOnce(RawSocket, &Prepared)) {
    let directory = TempDir::new().unwrap();
    let service = ServiceProcess::start(directory.path()).await;
    let prepared = service.prepare().await;
    let memory = service.watch_memory();
    let socket = RawSocket::dashboard(service.address, prepared.server_id, &prepared.token).await;

    attack(socket, &prepared).await;

    let mut dashboard = Dashboard::watch(service.address, prepared.server_id, &prepared.token).await;
    dashboard.expect("status").await;
    let mut agent = service.agent(&prepared).await;
    agent.store(1, vec![sample_aged(1)]).await;
    dashboard.until("metrics").await;
    memory.expect_growth_below(MAX_GROWTH_MEBIBYTES);
}

#[actix_web::test]
async fn a_huge_frame_is_not_buffered() {
    withstand(attacks::send_a_huge_frame).await;
}

#[actix_web::test]
async fn pings_are_not_buffered() {
    withstand(attacks::flood_with_pings).await;
}

#[actix_web::test]
async fn messages_are_not_buffered() {
    withstand(async |socket| attacks::flood_with_messages(socket, r#"{"type":"teleport","data":{}}"#).await).await;
}

#[actix_web::test]
async fn a_message_without_end_is_cut() {
    withstand(async |socket| attacks::continue_without_end(socket, 0).await).await;
    withstand(async |socket| attacks::continue_without_end(socket, 1).await).await;
    withstand(async |socket| attacks::continue_without_end(socket, 64_000).await).await;
}

#[actix_web::test]
async fn renewals_with_a_valid_token_are_not_checked_all_at_once() {
    withstand_owner(async |socket, prepared| {
        let renewal = json!({"type": "auth", "token": prepared.token}).to_string();
        attacks::flood_with_messages(socket, &renewal).await;
    })
    .await;
}
