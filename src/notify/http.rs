//! Sends requests to addresses that users chose.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use signalbox_agent::tls_words;
use signalbox_protocol::Timestamp;

use super::format::Request;
use super::guard::Guard;
use super::hand_over::HandOver;
use super::limits::{DRAIN, Limits, MAX_REDIRECTS};
use super::resolver::{Barred, Resolver};
use super::sender::{Receipt, Refusal, Refused};
use crate::store::{Progress, Standing};

const USER_AGENT: &str = concat!("Signalbox/", env!("CARGO_PKG_VERSION"));

/// The hint in an error about an authority that the system does not trust.
const TRUSTING: &str = "--notification-ca-file names one of your own";

/// The body of a response is not used. A short one is read, so that its connection can be used again.
const DRAINED_BYTES: usize = 4 * 1024;

/// The longest pause that a receiver can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

pub struct Http {
    client: Client,
    guard: Arc<Guard>,
    limits: Limits,
}

/// How a receiver answered one request.
enum Answer {
    Taken(StatusCode),
    Moved(Url),
}

impl Http {
    pub fn new(guard: Arc<Guard>, tls: rustls::ClientConfig, limits: Limits) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(Resolver::new(guard.clone())))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            // A receiver gets one request at a time, so HTTP/2 would bring no gain, only more ways to fail.
            .http1_only()
            .pool_max_idle_per_host(1)
            .user_agent(USER_AGENT)
            .connect_timeout(limits.connect)
            .build()?;
        Ok(Self { client, guard, limits })
    }

    /// Parses a URL and checks whether the service may connect to it. The addresses of a host name are checked when it is
    /// resolved, by the [`Resolver`].
    pub fn admit(&self, url: &str) -> Result<Url, Refused> {
        let misfit = |detail: &str| Refused::new(Refusal::Misconfigured, detail);
        let url = Url::parse(url).map_err(|error| misfit(&format!("the URL is not valid: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(misfit("the URL must begin with http:// or https://"));
        }
        // They would be sent to the receiver, and would end up in logs on the way.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(misfit("the URL must not contain a user name or a password"));
        }
        let host = url.host_str().ok_or_else(|| misfit("the URL has no host"))?;
        // The parser turns notations such as `0x7f.1` into plain addresses. Those never reach the resolver.
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) if !self.guard.allows(address) => Err(barred(host)),
            _ => Ok(url),
        }
    }

    /// Posts a message to `destination`, the name under which the outbox records the delivery.
    pub async fn post(
        &self,
        request: &Request,
        destination: &str,
        before: &Progress,
        hand_over: &dyn HandOver,
    ) -> Result<Receipt, Refused> {
        let perhaps = |progress| Receipt { detail: format!("{destination} never answered"), progress };
        if !before.is_left(destination) {
            return Ok(perhaps(before.clone()));
        }
        let first = self.admit(&request.url).map_err(|refused| refused.with(before.clone()))?;
        let mut begun = before.clone();
        begun.hand_over(destination);
        if !hand_over.begins(&begun).await {
            let unkept = Refused::new(Refusal::Unreachable, "the outbox could not be written");
            return Err(unkept.with(before.clone()));
        }
        match self.follow(first, request).await {
            Ok(detail) => {
                begun.set(destination, Standing::Delivered);
                Ok(Receipt { detail, progress: begun })
            }
            Err(refused) if refused.kind != Refusal::Perhaps => Err(refused.with(before.clone())),
            Err(refused) if begun.is_left(destination) => Err(refused.with(begun)),
            Err(refused) => Ok(Receipt { detail: refused.detail, progress: begun }),
        }
    }

    /// Sends the request to `first`, and to where redirects lead.
    async fn follow(&self, first: Url, request: &Request) -> Result<String, Refused> {
        let mut url = first.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut headers = headers(&request.headers)?;
            if url.origin() == first.origin() {
                headers.extend(secrets(&request.secrets)?);
            }
            match self.call(&url, headers, request).await? {
                Answer::Taken(status) => return Ok(format!("{} answered {}", host(&url), status.as_u16())),
                Answer::Moved(next) => url = next,
            }
        }
        Err(Refused::new(Refusal::Rejected, format!("{} redirects more than {MAX_REDIRECTS} times", host(&first))))
    }

    async fn call(&self, url: &Url, headers: HeaderMap, request: &Request) -> Result<Answer, Refused> {
        let sending = self.client.post(url.clone()).headers(headers).body(request.body.clone());
        // Connecting has its own, shorter limit: when this one expires, the request has been written.
        let sent = tokio::time::timeout(self.limits.hop(), sending.send()).await;
        let response = sent.map_err(|_| silent(url))?.map_err(|error| failed(url, &error))?;
        let status = response.status();
        let answer = if request.gone.contains(&status.as_u16()) {
            Err(answered(Refusal::Gone, url, status))
        } else {
            judge(self, url, &response)
        };
        drain(response).await;
        answer.map(|moved| moved.map_or(Answer::Taken(status), Answer::Moved))
    }

    /// Returns the target of a redirect.
    fn redirected(&self, url: &Url, response: &Response) -> Result<Url, Refused> {
        let lost = || Refused::new(Refusal::Rejected, format!("{} redirects without a valid location", host(url)));
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).ok_or_else(lost)?;
        let next = url.join(location).map_err(|_| lost())?;
        if url.scheme() == "https" && next.scheme() == "http" {
            return Err(Refused::new(Refusal::Forbidden, format!("{} redirects from https to http", host(url))));
        }
        self.admit(next.as_str()).map_err(|refused| Refused {
            kind: Refusal::Forbidden,
            detail: format!("{} redirects: {}", host(url), refused.detail),
            ..refused
        })
    }
}

/// Returns what a response means: `None` if the message was accepted, the next URL after a redirect, or the refusal.
///
/// After 301, 302 and 303 a browser turns a POST into a GET, which would lose the message. RFC 9110 lets a client repeat
/// the POST after 301 and 302, which is what a receiver means that has moved or wants TLS: so these are treated like 307
/// and 308. A 303 leads to a page for people, mostly one to sign in on, so it does not mean that the message was accepted.
fn judge(http: &Http, url: &Url, response: &Response) -> Result<Option<Url>, Refused> {
    let status = response.status();
    match status.as_u16() {
        200..=299 => Ok(None),
        301 | 302 | 307 | 308 => http.redirected(url, response).map(Some),
        // A proxy handed the message to the receiver and got no answer. A 502 says that the proxy did not reach it.
        504 => Err(answered(Refusal::Perhaps, url, status)),
        // The receiver is busy, restarting or broken.
        408 | 425 | 429 | 500.. => {
            Err(Refused { retry_after: retry_after(response.headers()), ..answered(Refusal::Deferred, url, status) })
        }
        413 => Err(answered(Refusal::TooLarge, url, status)),
        _ => Err(answered(Refusal::Rejected, url, status)),
    }
}

fn answered(kind: Refusal, url: &Url, status: StatusCode) -> Refused {
    Refused::new(kind, format!("{} answered {}", host(url), status.as_u16()))
}

fn barred(host: &str) -> Refused {
    let detail = format!("the address of {host} is private or reserved; --notification-networks can allow its network");
    Refused::new(Refusal::Forbidden, detail)
}

fn silent(url: &Url) -> Refused {
    Refused::new(Refusal::Perhaps, format!("{} was sent the message and did not answer in time", host(url)))
}

/// Returns the host, the only part of a URL that may be shown.
fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn headers(pairs: &[(&'static str, String)]) -> Result<HeaderMap, Refused> {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    for (name, value) in pairs {
        headers.insert(header_name(name)?, header_value(value)?);
    }
    Ok(headers)
}

fn secrets(pairs: &[(&'static str, String)]) -> Result<HeaderMap, Refused> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let mut value = header_value(value)?;
        value.set_sensitive(true);
        headers.insert(header_name(name)?, value);
    }
    Ok(headers)
}

fn header_name(name: &'static str) -> Result<HeaderName, Refused> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refused::new(Refusal::Misconfigured, "a header has no name"))
}

fn header_value(value: &str) -> Result<HeaderValue, Refused> {
    HeaderValue::from_str(value).map_err(|_| {
        Refused::new(Refusal::Misconfigured, "the token contains characters that an HTTP header cannot carry")
    })
}

/// Returns the pause that the receiver asks for, in seconds or as a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match value.parse::<f64>() {
        // Discord sends a fraction.
        Ok(seconds) => seconds,
        Err(_) => {
            let date = DateTime::parse_from_rfc2822(value).ok()?;
            Timestamp::from(date.to_utc()).millis_since(Timestamp::now()) as f64 / 1_000.0
        }
    };
    Duration::try_from_secs_f64(seconds.max(0.0)).ok().map(|pause| pause.min(LONGEST_PAUSE))
}

/// Reads a short body. A long, slow or broken one does not matter: the status has decided.
async fn drain(mut response: Response) {
    let reading = async {
        let mut left = DRAINED_BYTES;
        while let Ok(Some(chunk)) = response.chunk().await {
            left = left.saturating_sub(chunk.len());
            if left == 0 {
                break;
            }
        }
    };
    _ = tokio::time::timeout(DRAIN, reading).await;
}

/// Returns why there was no answer.
fn failed(url: &Url, error: &reqwest::Error) -> Refused {
    let host = host(url);
    if find::<Barred>(error).is_some() {
        return barred(host);
    }
    // The connection was established, so the receiver may have read the message before it broke.
    if error.is_request() && !error.is_connect() {
        let detail = format!("{host} was sent the message and closed the connection");
        return Refused::new(Refusal::Perhaps, detail);
    }
    let unreachable = |what: &str| Refused::new(Refusal::Unreachable, format!("{host} {what}"));
    if let Some(error) = find::<rustls::Error>(error) {
        return unreachable(&format!("cannot be trusted: {}", tls_words::of(error, TRUSTING)));
    }
    if error.is_dns() {
        return unreachable("cannot be found");
    }
    if error.is_timeout() {
        return unreachable("did not answer in time");
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => unreachable("refuses connections"),
        Some(kind @ (io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable)) => {
            unreachable(&format!("cannot be reached: {kind}"))
        }
        _ => unreachable("cannot be connected to"),
    }
}

/// Returns the first cause of type `E`. The error that an `io::Error` wraps is not its `source()`, so it is checked too.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}
