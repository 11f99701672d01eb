//! Requests to the identity provider: bounded in time and size, and only to where it says.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use openidconnect::http::{Response, StatusCode};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::{Client, Url, redirect};

use super::settings::OidcSetupError;

const USER_AGENT: &str = concat!("Signalbox/", env!("CARGO_PKG_VERSION"));

/// The longest answer: documents and keys of providers have some 10 KB, tokens with hundreds of groups some 100.
const MAX_ANSWER: usize = 512 * 1024;

/// Why the provider gave no usable answer. Says no more than the log may know: no path, no body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("{host} cannot be reached: {reason}")]
    Unreachable { host: String, reason: String },
    #[error("{0} did not answer in time")]
    Silent(String),
    #[error("the answer of {0} is longer than 512 KiB")]
    TooLong(String),
    #[error("the provider names an address that is none")]
    BadAddress,
    #[error("the provider names an address without TLS")]
    NoTls,
}

/// Asks the provider; cheap to clone.
#[derive(Clone)]
pub struct Http {
    client: Client,
    answer_within: Duration,
    /// Whether addresses without TLS are used: only where the operator named one, on this machine.
    may_be_plain: bool,
}

impl Http {
    pub fn new(
        tls: rustls::ClientConfig,
        answer_within: Duration,
        may_be_plain: bool,
    ) -> Result<Arc<Self>, OidcSetupError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            // An answer counts as the provider's, so nobody else may give it.
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| OidcSetupError::Client(error.to_string()))?;
        Ok(Arc::new(Self { client, answer_within, may_be_plain }))
    }

    /// Gets a JSON document with a token.
    pub async fn get_with_token(&self, url: &Url, token: &str) -> Result<(StatusCode, Vec<u8>), AskError> {
        let request = self.client.get(url.clone()).bearer_auth(token).header("Accept", "application/json");
        let request = request.build().map_err(|_| AskError::BadAddress)?;
        let response = self.ask(request).await?;
        Ok((response.status(), response.into_body()))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, AskError> {
        let request = reqwest::Request::try_from(request).map_err(|_| AskError::BadAddress)?;
        self.ask(request).await
    }

    async fn ask(&self, request: reqwest::Request) -> Result<HttpResponse, AskError> {
        let url = request.url().clone();
        if url.scheme() != "https" && !(self.may_be_plain && url.scheme() == "http") {
            return Err(AskError::NoTls);
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let answered = tokio::time::timeout(self.answer_within, self.read(request, &host)).await;
        answered.map_err(|_| AskError::Silent(host))?
    }

    async fn read(&self, request: reqwest::Request, host: &str) -> Result<HttpResponse, AskError> {
        let lost = |error: reqwest::Error| AskError::Unreachable { host: host.to_owned(), reason: cause_of(&error) };
        let mut answer = self.client.execute(request).await.map_err(lost)?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(AskError::TooLong(host.to_owned()));
            }
            body.extend_from_slice(&chunk);
        }
        response.body(body).map_err(|_| AskError::BadAddress)
    }
}

/// The innermost reason, which names no address.
fn cause_of(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if std::ptr::addr_eq(cause, error) { "the connection failed".to_owned() } else { cause.to_string() }
}

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = AskError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, AskError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
