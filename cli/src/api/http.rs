//! HTTP to the service, before anybody has signed in: connections, sizes, and what faults mean.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, redirect};

use super::tls;
use crate::context::ServiceUrl;
use crate::error::{Failure, Refusal};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The service closes a connection after 5 s without a request. One that is sent at that moment would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Beyond the 90 s after which the service answers whatever it has.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(100);
/// The largest answers are those of histories and batches of a thousand servers, of some MiB.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// Somebody waits: a service that wants more time is asked too early.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A client for one service, through the proxy that the environment names.
pub fn client(url: &ServiceUrl, ca_file: Option<&Path>) -> Result<Client, Failure> {
    let tls = match ca_file {
        None if !url.is_secure() => tls::without_roots()?,
        file => tls::client_config(file)?,
    };
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        // WebSockets begin as HTTP/1.1.
        .http1_only()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // A redirection would take the token elsewhere.
        .redirect(redirect::Policy::none())
        .user_agent(concat!("signalboxctl/", env!("CARGO_PKG_VERSION")));
    if url.is_loopback() {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| Failure::usage(format!("cannot use the proxy of the environment: {}", causes(&error))))
}

/// What a request leads to within the time for an answer.
pub async fn in_time<T>(asked: impl Future<Output = reqwest::Result<T>>) -> Result<T, Failure> {
    match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        Ok(answer) => answer.map_err(unreachable),
        Err(_) => Err(Failure::Unreachable("the service gives no answer in time".to_owned())),
    }
}

/// The next piece of a body; none after the last one.
pub async fn chunk(response: &mut Response) -> Result<Option<Vec<u8>>, Failure> {
    Ok(in_time(response.chunk()).await?.map(Vec::from))
}

/// The body of an answer that is not an error.
pub async fn body(response: Response) -> Result<Vec<u8>, Failure> {
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get("location").and_then(|place| place.to_str().ok()).unwrap_or("elsewhere");
        return Err(Failure::failed(format!("the service sends to {to}: log in with that address")));
    }
    let retry_after = retry_after(response.headers());
    let body = bounded(response).await?;
    if status.is_success() {
        return Ok(body);
    }
    let refusal = Refusal::of(status.as_u16(), &body);
    Err(match retry_after {
        Some(retry_after) if status.is_server_error() || status.as_u16() == 429 => {
            Failure::Deferred { refusal, retry_after }
        }
        _ => Failure::Refused(refusal),
    })
}

/// How long to wait before another attempt, at most a minute (RFC 9110, 10.2.3). A date is ignored: clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

/// The whole body, unless it is too large. Each piece has a time limit: requests of sockets and downloads have none.
async fn bounded(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = in_time(response.chunk()).await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(Failure::failed("the answer is larger than 64 MiB: ask for less"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A fault of the way to the service. The address is left out: it is the user's own.
#[allow(clippy::needless_pass_by_value)]
pub fn unreachable(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let causes = causes(&error);
    let text = if causes.contains("UnknownIssuer") {
        "the service's certificate is of an authority that this machine does not trust: name it with --ca-file"
            .to_owned()
    } else if error.is_timeout() {
        "the service gives no answer in time".to_owned()
    } else {
        format!("cannot reach the service: {causes}")
    };
    if error.is_connect() { Failure::NotSent(text) } else { Failure::Unreachable(text) }
}

/// The reason at the bottom: what is above says only that a request failed.
fn causes(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers with a part of a body, and keeps the connection open.
    async fn stop_in_the_middle(listener: TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
        }
        let answer = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 9\r\n\r\nhalf";
        stream.write_all(answer).await.unwrap();
        std::future::pending().await
    }

    #[tokio::test]
    async fn nobody_waits_forever_for_the_rest_of_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(stop_in_the_middle(listener));
        let response = client(&url.parse().unwrap(), None).unwrap().get(&url).send().await.unwrap();
        tokio::time::pause();

        let read = tokio::time::timeout(2 * ANSWER_TIMEOUT, body(response)).await.unwrap();

        assert_eq!(read.unwrap_err().to_string(), "the service gives no answer in time");
    }

    #[test]
    fn a_service_says_how_long_to_wait_but_not_for_hours() {
        let asked = |value: &str| retry_after(&[(RETRY_AFTER, value.parse().unwrap())].into_iter().collect());

        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("86400"), Some(MAX_RETRY_AFTER));
        assert_eq!(asked("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
