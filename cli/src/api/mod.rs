//! Calls of the API.

pub mod backoff;
pub mod find;
pub mod http;
pub mod renewal;
pub mod socket;
pub mod tls;
pub mod types;

use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::{Store, Target, Token};
use crate::error::Failure;
use http::ANSWER_TIMEOUT;
use renewal::Unwritten;

/// Entries of a page of a list, the most that the service gives.
const PAGE: usize = 500;
/// Of a list as a whole: more are not for people, and each page is a request.
pub const MAX_LISTED: usize = 20_000;

/// A service, as one caller.
pub struct Api {
    http: Client,
    target: Target,
    /// Changes when the login is renewed.
    bearer: Mutex<Token>,
    /// Held while the login is renewed; the renewed one, if it could not be written.
    renewing: tokio::sync::Mutex<Option<Unwritten>>,
    /// The place of the target's context; none if it has no name.
    store: Option<Store>,
}

/// A page's query, and everything else of it.
pub type Query<'a> = [(&'a str, String)];

impl Api {
    pub fn new(target: Target, store: Option<Store>) -> Result<Self, Failure> {
        let http = http::client(&target.context.url, target.context.ca_file.as_deref())?;
        Ok(Self::over(http, target, store))
    }

    /// Over the client that has been made for the target's service.
    pub fn over(http: Client, target: Target, store: Option<Store>) -> Self {
        let bearer = Mutex::new(target.context.credential.bearer().clone());
        Self { http, target, bearer, renewing: tokio::sync::Mutex::default(), store }
    }

    /// The address of the service, for people.
    pub fn service(&self) -> String {
        self.target.context.url.to_string()
    }

    pub async fn get(&self, path: &str, query: &Query<'_>) -> Result<Value, Failure> {
        self.call(Method::GET, path, query, None::<&()>, ANSWER_TIMEOUT).await
    }

    pub async fn post<B: Serialize>(&self, path: &str, body: &B) -> Result<Value, Failure> {
        self.call(Method::POST, path, &[], Some(body), ANSWER_TIMEOUT).await
    }

    /// A post that has no body.
    pub async fn act(&self, path: &str, query: &Query<'_>) -> Result<Value, Failure> {
        self.call(Method::POST, path, query, None::<&()>, ANSWER_TIMEOUT).await
    }

    /// A post that may have a body, and whose answer may take this long.
    pub async fn post_within<B: Serialize>(
        &self,
        path: &str,
        query: &Query<'_>,
        body: Option<&B>,
        limit: Duration,
    ) -> Result<Value, Failure> {
        self.call(Method::POST, path, query, body, limit).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, &[], None::<&()>, ANSWER_TIMEOUT).await
    }

    /// An answer that is read in pieces, with [`http::chunk`].
    pub async fn open(&self, path: &str) -> Result<Response, Failure> {
        let url = self.target.context.url.api(path);
        let mut bearer = self.bearer();
        let mut is_renewed = false;
        loop {
            let asked = self.http.get(&url).bearer_auth(bearer.reveal()).send();
            let response = http::in_time(asked).await?;
            if response.status().is_success() {
                return Ok(response);
            }
            let failure = match http::body(response).await {
                Ok(_) => Failure::failed("the answer is not one of Signalbox's API"),
                Err(failure) => self.with_advice(failure),
            };
            if failure.code() != "token_expired" || is_renewed || !self.can_renew() {
                return Err(failure);
            }
            bearer = self.renew(&bearer).await?;
            is_renewed = true;
        }
    }

    /// All pages of a list.
    pub async fn list(&self, path: &str, query: &Query<'_>) -> Result<Vec<Value>, Failure> {
        let mut entries: Vec<Value> = Vec::new();
        while entries.len() < MAX_LISTED {
            let mut page_query = query.to_vec();
            page_query.push(("limit", PAGE.to_string()));
            page_query.push(("offset", entries.len().to_string()));
            let page: Vec<Value> = parsed(self.get(path, &page_query).await?)?;
            let is_last = page.len() < PAGE;
            entries.extend(page);
            if is_last {
                break;
            }
        }
        Ok(entries)
    }

    /// Asks once more if only the access token had expired.
    async fn call<B: Serialize>(
        &self,
        method: Method,
        path: &str,
        query: &Query<'_>,
        body: Option<&B>,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let url = self.target.context.url.api(path);
        let mut bearer = self.bearer();
        let mut is_renewed = false;
        loop {
            let mut request = self.http.request(method.clone(), &url).query(query).timeout(limit);
            if let Some(body) = body {
                request = request.json(body);
            }
            match self.send(request, &bearer).await {
                Err(failure) if failure.code() == "token_expired" && !is_renewed && self.can_renew() => {
                    bearer = self.renew(&bearer).await?;
                    is_renewed = true;
                }
                answer => return answer,
            }
        }
    }

    async fn send(&self, request: RequestBuilder, bearer: &Token) -> Result<Value, Failure> {
        let response = request.bearer_auth(bearer.reveal()).send().await.map_err(http::unreachable)?;
        let body = http::body(response).await.map_err(|failure| self.with_advice(failure))?;
        serde_json::from_slice(&body).map_err(|error| not_ours(&error))
    }

    fn bearer(&self) -> Token {
        self.bearer.lock().clone()
    }
}

/// The fields of an answer that a command needs.
pub fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| not_ours(&error))
}

/// A text of an object; empty if there is none.
pub fn text_of<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn not_ours(error: &serde_json::Error) -> Failure {
    Failure::failed(format!("the answer is not one of Signalbox's API: {error}"))
}

/// A part of a path.
pub fn segment(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encoded = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_path_cannot_become_more_of_it() {
        assert_eq!(segment("web-1_a.b~c"), "web-1_a.b~c");
        assert_eq!(segment("a/../b?c=ä"), "a%2F..%2Fb%3Fc%3D%C3%A4");
    }
}
