//! A socket before authentication, and how it becomes a session.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use signalbox_protocol::agent::{AgentMessage, Auth, AuthResponse, ServiceMessage};
use signalbox_protocol::{Decoded, Encoding, FrameError};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::dial::Socket;
use super::ended::Ended;
use crate::exit::Exit;
use crate::wire;

/// Refusals that another attempt cannot change.
const FINAL_REFUSALS: &[&str] = &["unauthorized", "revoked"];

/// An open socket without authentication.
pub struct Connecting {
    socket: Socket,
}

/// A socket whose key the service accepted.
pub struct Authenticated {
    pub socket: Socket,
    pub response: AuthResponse,
}

impl Connecting {
    pub fn new(socket: Socket) -> Self {
        Self { socket }
    }

    /// Shows the key and waits for the answer.
    pub async fn authenticate(mut self, auth: Auth, limit: Duration) -> Result<Authenticated, Ended> {
        let message =
            wire::ENCODING.encode(&AgentMessage::Auth(auth)).map_err(|error| Ended::Broken(error.to_string()))?;
        let answered = timeout(limit, async {
            self.socket.send(Message::Binary(message)).await.map_err(|error| Ended::Broken(error.to_string()))?;
            self.answer().await
        });
        let response = answered.await.map_err(|_| Ended::NoAuthResponse(limit))??;
        Ok(Authenticated { socket: self.socket, response })
    }

    /// Waits for the acceptance. A temporary refusal is followed by a close frame, which says what to do.
    async fn answer(&mut self) -> Result<AuthResponse, Ended> {
        let mut refusal = None;
        loop {
            let frame = match self.socket.next().await {
                Some(Ok(Message::Close(frame))) => return Err(better_of(refusal, Ended::by_close(frame))),
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(better_of(refusal, Ended::Broken(error.to_string()))),
                None => return Err(better_of(refusal, Ended::Broken("closed".to_owned()))),
            };
            match decode(&frame) {
                Some(Ok(Decoded::Known(ServiceMessage::AuthResponse(response)))) if response.success => {
                    return Ok(response);
                }
                Some(Ok(Decoded::Known(ServiceMessage::AuthResponse(response)))) => {
                    let code = response.code.unwrap_or_default();
                    let detail = response.detail.unwrap_or_else(|| code.clone());
                    if FINAL_REFUSALS.contains(&code.as_str()) {
                        return Err(Ended::ForGood(Exit::KeyRefused(detail)));
                    }
                    refusal = Some(detail);
                }
                _ => tracing::debug!("ignored what the service said before it answered to the key"),
            }
        }
    }
}

/// A decisive close code counts more than the refusal before it, and the refusal more than any other end.
fn better_of(refusal: Option<String>, ended: Ended) -> Ended {
    match (refusal, ended) {
        (Some(detail), Ended::Broken(_) | Ended::Closed { .. }) => Ended::Refused(detail),
        (_, ended) => ended,
    }
}

/// Reads a frame in either encoding. None for frames without a message.
pub fn decode(frame: &Message) -> Option<Result<Decoded<ServiceMessage>, FrameError>> {
    match frame {
        Message::Text(text) => Some(Encoding::Json.decode(text.as_bytes())),
        Message::Binary(bytes) => Some(Encoding::MessagePack.decode(bytes)),
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => None,
    }
}
