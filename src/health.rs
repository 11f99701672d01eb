//! Asks a running service for its health, on behalf of supervisors that have no HTTP client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect};
use serde::Deserialize;

use crate::tls;

/// Container engines ask every few seconds and wait no longer themselves.
const PATIENCE: Duration = Duration::from_secs(4);

/// The question to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether the process is up.
    Alive,
    /// Whether it can serve.
    Ready,
}

#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    #[error("--listen {0} has no port to ask: use --url")]
    NoPort(SocketAddr),
    #[error("--url {url}: {detail}")]
    Url { url: String, detail: String },
    #[error("cannot create an HTTP client: {0}")]
    NoClient(String),
    #[error("{url} does not answer: {detail}")]
    Silent { url: Url, detail: String },
    #[error("{url} answers {status}{}", .detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default())]
    Unwell { url: Url, status: StatusCode, detail: Option<String> },
}

impl HealthError {
    /// Whether the configuration is wrong, and not the service.
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::NoPort(_) | Self::Url { .. } | Self::NoClient(_) => true,
            Self::Silent { .. } | Self::Unwell { .. } => false,
        }
    }
}

/// The fields of interest in the body of a 503.
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

/// The address of a service on this machine that listens on `listen`. A service that listens on all addresses also
/// listens on loopback.
pub fn url_of(listen: SocketAddr) -> Result<String, HealthError> {
    if listen.port() == 0 {
        return Err(HealthError::NoPort(listen));
    }
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}", SocketAddr::new(ip, listen.port())))
}

/// Asks the service at this address. Returns the URL that answered.
pub async fn ask(service: &str, question: Question) -> Result<Url, HealthError> {
    let misfit = |detail: &str| HealthError::Url { url: service.to_owned(), detail: detail.to_owned() };
    let path = match question {
        Question::Alive => "healthz",
        Question::Ready => "readyz",
    };
    let url = Url::parse(&format!("{}/{path}", service.trim_end_matches('/')));
    let url = url.map_err(|_| misfit("an address is needed, such as http://127.0.0.1:8000"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(misfit("begins with neither http:// nor https://"));
    }
    let response = client()?.get(url.clone()).send().await.map_err(|error| silent(&url, &error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(url);
    }
    // A proxy in front of the service may answer with a body of its own.
    let body = response.bytes().await.unwrap_or_default();
    let detail = serde_json::from_slice::<Problem>(&body).ok().map(|problem| problem.detail);
    Err(HealthError::Unwell { url, status, detail })
}

fn client() -> Result<Client, HealthError> {
    let tls = tls::client_config(None).map_err(|error| HealthError::NoClient(error.to_string()))?;
    let client = Client::builder().tls_backend_preconfigured(tls).no_proxy().http1_only();
    let client = client.redirect(redirect::Policy::none()).timeout(PATIENCE).build();
    client.map_err(|error| HealthError::NoClient(error.to_string()))
}

/// The deepest cause of an error names the reason.
fn silent(url: &Url, error: &reqwest::Error) -> HealthError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let detail =
        if error.is_timeout() { format!("no answer within {} s", PATIENCE.as_secs()) } else { cause.to_string() };
    HealthError::Silent { url: url.clone(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_listens_on_all_addresses_is_asked_on_loopback() {
        let cases = [
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000"),
            ("[::]:8000", "http://[::1]:8000"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ];

        for (listen, expected) in cases {
            assert_eq!(url_of(listen.parse().unwrap()).unwrap(), expected);
        }
        assert!(url_of("127.0.0.1:0".parse().unwrap()).is_err());
    }
}
