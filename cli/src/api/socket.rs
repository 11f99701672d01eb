//! A WebSocket of the service: opened through the same client as every call, so proxies and authorities work the same, and kept open
//! with a newer token when its own expires.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::{StatusCode, Upgraded, header};
use serde_json::{Value, json};
use signalbox_protocol::frontend::FeedMessage;
use signalbox_protocol::{Decoded, Encoding, MAX_MESSAGE_BYTES, close};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Api, Query, http};
use crate::context::Token;
use crate::error::{Failure, Refusal};

/// The service pings every 20 s.
const SILENCE: Duration = Duration::from_secs(60);
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The end is a courtesy: the service notices the connection's end, too.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// An open socket.
pub struct Socket {
    api: Arc<Api>,
    stream: WebSocketStream<Upgraded>,
    /// The token that the service knows.
    bearer: Token,
    /// Runs on its own: a caller that stops waiting for a message must not lose the new refresh token.
    renewal: Option<JoinHandle<Result<Token, Failure>>>,
    /// Still to be shown to the service.
    fresh: Option<Token>,
    /// When the service last said something. It outlives callers that stop waiting, as for each key that is typed.
    last_heard: Instant,
}

/// Why no message follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The service has said everything.
    Over,
    /// Another attempt may bring the rest.
    Lost(String),
    /// Another attempt would end the same way.
    Refused(String),
}

impl Socket {
    pub async fn open(api: &Arc<Api>, path: &str, query: &Query<'_>) -> Result<Self, Failure> {
        let bearer = api.bearer();
        match connect(api, path, query, &bearer).await {
            Err(failure) if failure.code() == "token_expired" && api.can_renew() => {
                let bearer = api.renew(&bearer).await?;
                let stream = connect(api, path, query, &bearer).await.map_err(|failure| api.with_advice(failure))?;
                Ok(Self::new(api, stream, bearer))
            }
            Err(failure) => Err(api.with_advice(failure)),
            Ok(stream) => Ok(Self::new(api, stream, bearer)),
        }
    }

    fn new(api: &Arc<Api>, stream: WebSocketStream<Upgraded>, bearer: Token) -> Self {
        Self { api: Arc::clone(api), stream, bearer, renewal: None, fresh: None, last_heard: Instant::now() }
    }

    /// The next message. Nothing is lost if the caller stops waiting.
    pub async fn next(&mut self) -> Result<FeedMessage, End> {
        loop {
            self.show_token().await?;
            let frame = tokio::select! {
                renewed = renewed(&mut self.renewal) => {
                    self.renewal = None;
                    match renewed {
                        Ok(token) => self.fresh = Some(token),
                        // The socket works for another minute, and its end says why.
                        Err(failure) => crate::output::complain(&failure.to_string()),
                    }
                    continue;
                }
                frame = timeout_at(self.last_heard + SILENCE, self.stream.next()) => frame,
            };
            let frame = frame.map_err(|_| End::Lost("the service has gone silent".to_owned()))?;
            self.last_heard = Instant::now();
            match frame.ok_or_else(lost)?.map_err(|error| ended(&error))? {
                Message::Text(text) => match Encoding::Json.decode::<FeedMessage>(text.as_bytes()) {
                    Ok(Decoded::Known(FeedMessage::TokenExpiring)) => self.begin_renewal(),
                    Ok(Decoded::Known(message)) => return Ok(message),
                    Ok(Decoded::Unknown) => {}
                    Err(error) => return Err(End::Refused(error.to_string())),
                },
                Message::Close(frame) => return Err(closed(frame)),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    pub async fn send(&mut self, message: &Value) -> Result<(), End> {
        self.stream.send(Message::text(message.to_string())).await.map_err(|error| ended(&error))
    }

    /// Says goodbye.
    pub async fn close(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.stream.close(None)).await;
    }

    fn begin_renewal(&mut self) {
        if self.renewal.is_none() && self.api.can_renew() {
            let (api, spent) = (Arc::clone(&self.api), self.bearer.clone());
            self.renewal = Some(tokio::spawn(async move { api.renew(&spent).await }));
        }
    }

    async fn show_token(&mut self) -> Result<(), End> {
        if let Some(token) = self.fresh.clone() {
            self.send(&json!({"type": "auth", "token": token.reveal()})).await?;
            self.bearer = token;
            self.fresh = None;
        }
        Ok(())
    }
}

/// Never, if no renewal runs.
async fn renewed(renewal: &mut Option<JoinHandle<Result<Token, Failure>>>) -> Result<Token, Failure> {
    match renewal {
        Some(task) => task.await.unwrap_or_else(|ended| Err(Failure::failed(ended.to_string()))),
        None => std::future::pending().await,
    }
}

async fn connect(
    api: &Api,
    path: &str,
    query: &Query<'_>,
    bearer: &Token,
) -> Result<WebSocketStream<Upgraded>, Failure> {
    let key = generate_key();
    let request = api
        .http
        .get(api.target.context.url.api(path))
        .query(query)
        .bearer_auth(bearer.reveal())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, &key);
    let late = || Failure::Unreachable("the service gives no answer in time".to_owned());
    let response = timeout(OPEN_TIMEOUT, request.send()).await.map_err(|_| late())?.map_err(http::unreachable)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // Errors are answered as on every other path.
        let status = response.status().as_u16();
        http::body(response).await?;
        return Err(no_websockets(status));
    }
    let accepted = response.headers().get(header::SEC_WEBSOCKET_ACCEPT);
    if accepted.is_none_or(|value| value.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(no_websockets(101));
    }
    let upgraded = response.upgrade().await.map_err(http::unreachable)?;
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE_BYTES);
    config.max_frame_size = Some(MAX_MESSAGE_BYTES);
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

fn no_websockets(status: u16) -> Failure {
    let detail =
        "no WebSocket was opened: a proxy between here and the service does not pass them on (over HTTPS most do)";
    Failure::Refused(Refusal { status, code: String::new(), detail: detail.to_owned(), reason: None })
}

fn lost() -> End {
    End::Lost("the connection was lost".to_owned())
}

fn ended(error: &Error) -> End {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_) | Error::Protocol(_) => lost(),
        other => End::Refused(other.to_string()),
    }
}

fn closed(frame: Option<CloseFrame>) -> End {
    let Some(frame) = frame else { return lost() };
    let reason =
        if frame.reason.is_empty() { "the service closed the socket".to_owned() } else { frame.reason.to_string() };
    match u16::from(frame.code) {
        1000 => End::Over,
        close::FORBIDDEN | close::SERVER_DELETED | close::MALFORMED | close::TOO_LARGE => End::Refused(reason),
        // Opening it again finds out whether the token can be renewed.
        _ => End::Lost(reason),
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        match end {
            End::Over => Self::failed("the service closed the socket early"),
            End::Lost(reason) => Self::Unreachable(reason),
            End::Refused(reason) => Self::Failed(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

    use super::*;
    use crate::context::{Context, Credential, Target};

    fn end(code: u16) -> End {
        closed(Some(CloseFrame { code: CloseCode::from(code), reason: "why".into() }))
    }

    #[test]
    fn a_close_code_says_whether_another_attempt_makes_sense() {
        assert_eq!(end(1000), End::Over);
        for code in [close::RESTARTING, close::OVERLOADED, close::UNAUTHORIZED, 1006] {
            assert_eq!(end(code), End::Lost("why".to_owned()), "{code}");
        }
        for code in [close::FORBIDDEN, close::SERVER_DELETED] {
            assert_eq!(end(code), End::Refused("why".to_owned()), "{code}");
        }
    }

    /// Accepts a socket, and says nothing over it.
    async fn fall_silent(listener: TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let accepted = derive_accept_key(key.as_bytes());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: {accepted}\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        std::future::pending().await
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_does_not_postpone_the_end_of_a_silent_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let credential = Credential::Token { token: Token::parse("sbt_secret").unwrap() };
        let context = Context { url, ca_file: None, credential };
        let api = Arc::new(Api::new(Target { name: None, context }, None).unwrap());
        tokio::spawn(fall_silent(listener));
        let mut socket = Socket::open(&api, "/ws/fleet", &[]).await.unwrap();
        tokio::time::pause();
        let opened = Instant::now();

        // As for a key that is typed each second.
        let end = loop {
            if let Ok(next) = timeout(Duration::from_secs(1), socket.next()).await {
                break next.unwrap_err();
            }
            assert!(opened.elapsed() < 2 * SILENCE, "it is not noticed");
        };

        assert_eq!(end, End::Lost("the service has gone silent".to_owned()));
        assert!(opened.elapsed() <= SILENCE + Duration::from_secs(1), "{:?}", opened.elapsed());
    }
}
