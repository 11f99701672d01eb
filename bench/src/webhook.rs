//! A webhook that notes when it was called.

use std::time::Instant;

use actix_web::web::{self, Bytes, Data, PayloadConfig};
use actix_web::{HttpResponse, Responder};
use serde::Deserialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::loopback::Loopback;

/// More than comes while the reader is busy with something else.
const WAITING_CALLS: usize = 10_000;

/// A burst of alerts is one message of several hundred kilobytes; actix refuses bodies over 256 KiB.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A call of the webhook.
#[derive(Debug)]
pub struct Call {
    /// When its body was there.
    pub at: Instant,
    pub body: Bytes,
}

/// A webhook on loopback.
#[derive(Debug)]
pub struct Webhook {
    server: Loopback,
    calls: mpsc::Receiver<Call>,
}

/// The part of the service's message that is read.
#[derive(Debug, Deserialize)]
pub struct Message {
    pub alerts: Vec<Item>,
}

#[derive(Debug, Deserialize)]
pub struct Item {
    pub event: String,
    pub alert: Alert,
}

#[derive(Debug, Deserialize)]
pub struct Alert {
    pub id: Uuid,
    pub server_id: Uuid,
}

impl Webhook {
    pub fn start() -> anyhow::Result<Self> {
        let (sender, calls) = mpsc::channel(WAITING_CALLS);
        let server = Loopback::start(move |config| {
            config
                .app_data(Data::new(sender.clone()))
                .app_data(PayloadConfig::new(MAX_BODY_BYTES))
                .route("/alerts", web::post().to(note));
        })?;
        Ok(Self { server, calls })
    }

    pub fn url(&self) -> String {
        format!("http://{}/alerts", self.server.address())
    }

    /// The next call. Cancel safe.
    pub async fn next(&mut self) -> anyhow::Result<Call> {
        self.calls.recv().await.ok_or_else(|| anyhow::anyhow!("the webhook has ended"))
    }
}

async fn note(body: Bytes, calls: Data<mpsc::Sender<Call>>) -> impl Responder {
    let call = Call { at: Instant::now(), body };
    // The reader is gone only at the end of a run.
    calls.send(call).await.ok();
    HttpResponse::NoContent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_is_noted_with_its_body() {
        let mut webhook = Webhook::start().unwrap();

        let body = r#"{"id":"x","alerts":[{"event":"triggered","alert":{"id":"00000000-0000-0000-0000-000000000001","server_id":"00000000-0000-0000-0000-000000000002","value":97.5}}]}"#;
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        reqwest::Client::new().post(webhook.url()).body(body).send().await.unwrap();

        let call = webhook.next().await.unwrap();
        let message: Message = serde_json::from_slice(&call.body).unwrap();
        let item = &message.alerts[0];
        assert_eq!(item.event, "triggered");
        assert_eq!((item.alert.id, item.alert.server_id), (Uuid::from_u128(1), Uuid::from_u128(2)));
    }

    #[tokio::test]
    async fn the_body_of_a_large_burst_is_noted_whole() {
        let mut webhook = Webhook::start().unwrap();

        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let sending = reqwest::Client::new().post(webhook.url()).body("x".repeat(MAX_BODY_BYTES)).send();
        let answer = sending.await.unwrap();

        assert_eq!((answer.status().as_u16(), webhook.next().await.unwrap().body.len()), (204, MAX_BODY_BYTES));
    }
}
