//! A REST client whose calls state the answer they expect, and print the whole exchange when they get another.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::Location;

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::PATIENCE;

/// `("body", "email", "value_error.email")`: the place of a fault, and its type. Deeper places are joined by dots (`tags.3`),
/// the whole is `""`, and a type that ends with `*` matches all with that beginning.
pub type Fault<'a> = (&'a str, &'a str, &'a str);

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    pub fn new(base: String) -> Self {
        Self::with_address(base, None)
    }

    /// A client at this address of the loopback, to be distinguishable by it.
    pub fn from_address(base: String, from: Ipv4Addr) -> Self {
        Self::with_address(base, Some(from.into()))
    }

    fn with_address(base: String, from: Option<IpAddr>) -> Self {
        // Whether reqwest includes one depends on what else is built with it.
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let http = reqwest::Client::builder()
            // A graceful stop would wait for connections that are kept for later.
            .pool_max_idle_per_host(0)
            // Nor is anything here fetched by TLS: reading the system's authorities takes longer than a test's calls.
            .tls_certs_only([])
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .local_address(from)
            .timeout(PATIENCE)
            .build()
            .unwrap();
        Self { http, base }
    }

    pub fn get(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::GET, path.as_ref())
    }

    pub fn post(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::POST, path.as_ref())
    }

    pub fn put(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::PUT, path.as_ref())
    }

    pub fn delete(&self, path: impl AsRef<str>) -> Call {
        self.call(Method::DELETE, path.as_ref())
    }

    pub fn call(&self, method: Method, path: &str) -> Call {
        let url = format!("{}{path}", self.base);
        Call { name: format!("{method} {url}"), request: self.http.request(method, url) }
    }
}

/// A request that is being written.
pub struct Call {
    name: String,
    request: RequestBuilder,
}

impl Call {
    pub fn bearer(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn header(self, name: &str, value: &str) -> Self {
        Self { request: self.request.header(name, value), ..self }
    }

    pub fn query(self, pairs: &[(&str, &str)]) -> Self {
        Self { request: self.request.query(pairs), ..self }
    }

    pub fn json(self, body: Value) -> Self {
        Self { request: self.request.json(&body), ..self }
    }

    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        Self { request: self.request.form(pairs), ..self }
    }

    /// Bytes as they are, whatever they hold.
    pub fn raw(self, content_type: &str, body: impl Into<reqwest::Body>) -> Self {
        Self { request: self.request.header("Content-Type", content_type).body(body), ..self }
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> impl Future<Output = Value> {
        let answer = self.expect_answer(status);
        async move { answer.await.json() }
    }

    /// An answer with this status, headers included.
    #[track_caller]
    pub fn expect_answer(self, status: u16) -> impl Future<Output = Answer> {
        let caller = Location::caller();
        async move {
            let answer = self.send().await;
            assert_eq!(answer.status, status, "{answer} (expected at {caller})");
            answer
        }
    }

    /// The body of an error with this status and machine-readable code.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            let answer = self.send().await;
            answer.assert_error(status, caller);
            let body = answer.json();
            assert_eq!(body["code"], code, "{answer} (expected at {caller})");
            body
        }
    }

    /// An error with this status, whatever its code.
    #[track_caller]
    pub fn expect_refusal(self, status: u16) -> impl Future<Output = Answer> {
        let caller = Location::caller();
        async move {
            let answer = self.send().await;
            answer.assert_error(status, caller);
            answer
        }
    }

    /// A validation error with exactly these faults, in any order.
    #[track_caller]
    pub fn expect_faults(self, status: u16, faults: &[Fault<'_>]) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            let answer = self.send().await;
            assert_eq!(answer.status, status, "{answer} (expected at {caller})");
            let body = answer.json();
            assert_eq!(body["status_code"], status, "{answer} (expected at {caller})");
            assert!(are_same(faults_of(&body), faults), "{answer} (expected {faults:?} at {caller})");
            body
        }
    }

    /// A validation error with at least these faults.
    #[track_caller]
    pub fn expect_some_faults(self, status: u16, faults: &[(&str, &str)]) -> impl Future<Output = Value> {
        let caller = Location::caller();
        async move {
            let answer = self.send().await;
            assert_eq!(answer.status, status, "{answer} (expected at {caller})");
            let body = answer.json();
            let actual = faults_of(&body);
            for (place, kind) in faults {
                let is_there = actual.contains(&((*place).to_owned(), (*kind).to_owned()));
                assert!(is_there, "{answer} (expected {kind} of {place} at {caller})");
            }
            body
        }
    }

    /// The answer, whatever it is.
    pub async fn send(self) -> Answer {
        let name = self.name.clone();
        self.try_send().await.unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    /// The answer, whatever it is, or why none came.
    pub async fn try_send(self) -> reqwest::Result<Answer> {
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        Ok(Answer { name: self.name, status, headers, text })
    }
}

/// The service's answer.
pub struct Answer {
    name: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} answered {}: {}", self.name, self.status, self.text)
    }
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.header("Content-Type"), "application/json", "{self}");
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{self}: {error}"))
    }

    /// The value of a header, empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn assert_error(&self, status: u16, caller: &Location<'_>) {
        assert_eq!(self.status, status, "{self} (expected at {caller})");
        let body = self.json();
        let is_filled = |field: &str| body[field].as_str().is_some_and(|text| !text.is_empty());
        assert_eq!(body["status_code"], status, "{self} (expected at {caller})");
        assert!(is_filled("detail") && is_filled("code"), "{self} (expected at {caller})");
        assert!(!self.header("X-Request-Id").is_empty(), "{self} has no X-Request-Id (expected at {caller})");
        if status == 401 {
            assert!(self.header("WWW-Authenticate").starts_with("Bearer"), "{self} ({caller})");
        }
    }
}

/// The faults of a validation error, each as its place joined by dots and its type.
#[track_caller]
pub fn faults_of(body: &Value) -> Vec<(String, String)> {
    let entries = body["detail"].as_array().unwrap_or_else(|| panic!("not a list of faults: {body}"));
    let fault = |entry: &Value| {
        let place: Vec<String> = entry["loc"].as_array()?.iter().map(part_of).collect();
        let (message, kind) = (entry["msg"].as_str()?, entry["type"].as_str()?);
        let says_what = if kind == "value_error.missing" { message == "field required" } else { !message.is_empty() };
        says_what.then(|| (place.join("."), kind.to_owned()))
    };
    entries.iter().map(|entry| fault(entry).unwrap_or_else(|| panic!("not a fault: {entry}"))).collect()
}

/// A field's name, or the index of a list's entry.
fn part_of(part: &Value) -> String {
    part.as_str().map_or_else(|| part.to_string(), str::to_owned)
}

/// Whether these are the expected faults and no other.
fn are_same(mut actual: Vec<(String, String)>, expected: &[Fault<'_>]) -> bool {
    for (place, field, kind) in expected {
        let path = format!("{place}.{field}");
        let path = path.trim_end_matches('.');
        let is_kind = |actual: &str| match kind.strip_suffix('*') {
            Some(beginning) => actual.starts_with(beginning),
            None => actual == *kind,
        };
        let found = actual.iter().position(|(actual_path, actual_kind)| actual_path == path && is_kind(actual_kind));
        let Some(index) = found else { return false };
        actual.remove(index);
    }
    actual.is_empty()
}
