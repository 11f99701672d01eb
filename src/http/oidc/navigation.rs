//! Browsers that go from page to page: where they are sent, and the cookie that they carry.

use actix_web::body::BoxBody;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, Responder};
use paperclip::actix::OperationModifier;
use paperclip::v2::models::{DefaultOperationRaw, DefaultSchemaRaw, Either, Response};
use paperclip::v2::schema::Apiv2Schema;
use secrecy::ExposeSecret;
use uuid::Uuid;

use crate::auth::token::TokenKind;
use crate::http::error::{ApiError, ErrorCode};
use crate::http::extract::{Anyone, NoPath, Subject, bearer_token, identify};
use crate::http::path::API;
use crate::http::refresh_cookie::{Jar, is_https, name_of};
use crate::shares::Share;
use crate::state::State;

/// The beginning of the cookie's name; the service's mark and the beginning of the state follow, so that several tabs can
/// sign in at the same time.
const COOKIE: &str = "signalbox_oidc";

/// Characters of the state in the cookie's name.
const IN_NAME: usize = 12;

/// A browser that goes from page to page.
pub struct Navigation {
    pub anyone: Anyone,
    pub request: HttpRequest,
}

impl Subject for Navigation {
    type Identity = ();
    type Path = NoPath;

    async fn identify(_: &State, _: &HttpRequest) -> Result<(), ApiError> {
        Ok(())
    }

    async fn authorize(state: &State, (): (), path: NoPath, request: &HttpRequest) -> Result<Self, ApiError> {
        Ok(Self { anyone: Anyone::authorize(state, (), path, request).await?, request: request.clone() })
    }
}

impl Navigation {
    /// On whose behalf the provider is asked.
    pub fn share(&self) -> Share {
        Share::of_written(&self.anyone.address)
    }

    /// The address of this service, as the browser knows it. Without a public one the service is for this machine alone,
    /// and its host name was checked (`host`).
    pub fn base(&self, state: &State) -> Result<String, ApiError> {
        if let Some(url) = &state.config.public_url {
            return Ok(url.clone());
        }
        let in_header = self.request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let host = in_header.or_else(|| self.request.uri().authority().map(|authority| authority.as_str()));
        let host = host.ok_or(ApiError::code(ErrorCode::BadRequest))?;
        Ok(format!("http://{host}"))
    }

    /// The login of the browser: by the token of the request, or by the cookie, which comes along only if a page of this
    /// service leads here.
    pub async fn login(&self, state: &State) -> Result<Option<Uuid>, ApiError> {
        if bearer_token(&self.request).is_some() {
            return Ok(Some(identify(state, &self.request).await?.login_id));
        }
        let site = self.request.headers().get("Sec-Fetch-Site").map(header::HeaderValue::as_bytes);
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return Ok(None);
        }
        for token in Jar::of(&self.request, state).tokens() {
            let Ok(claims) = state.accounts.tokens.check(token.expose_secret(), TokenKind::Refresh) else { continue };
            // A token that was replaced may be a copy.
            if state.store.is_current_token(claims.sid, claims.jti).await? {
                return Ok(Some(claims.sid));
            }
        }
        Ok(None)
    }

    pub fn cookie_name(&self, state: &State, attempt_state: &str) -> String {
        let tail: String = attempt_state.chars().filter(char::is_ascii_alphanumeric).take(IN_NAME).collect();
        format!("{}_{tail}", name_of(COOKIE, is_https(&self.request, state), state))
    }

    /// The cookie of an attempt. A provider's page leads back here, so it must come along then (`Lax`).
    pub fn cookie(&self, state: &State, name: String, sealed: String, seconds: i64) -> Cookie<'static> {
        let is_secure = is_https(&self.request, state);
        let path = if is_secure { "/".to_owned() } else { format!("{API}/auth/oidc") };
        Cookie::build(name, sealed)
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(is_secure)
            .path(path)
            .max_age(Duration::seconds(seconds))
            .finish()
    }
}

/// A redirect of a browser.
pub struct Redirect {
    location: String,
    cookies: Vec<Cookie<'static>>,
}

impl Redirect {
    pub fn to(location: impl Into<String>) -> Self {
        Self { location: location.into(), cookies: Vec::new() }
    }

    pub fn with(mut self, cookie: Cookie<'static>) -> Self {
        self.cookies.push(cookie);
        self
    }
}

impl Responder for Redirect {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = HttpResponse::Found();
        response
            .insert_header((header::LOCATION, self.location))
            .insert_header((header::REFERRER_POLICY, "no-referrer"));
        self.cookies.into_iter().for_each(|cookie| _ = response.cookie(cookie));
        response.finish()
    }
}

impl Apiv2Schema for Redirect {}

impl OperationModifier for Redirect {
    fn update_response(op: &mut DefaultOperationRaw) {
        let description = Some("The next page for the browser".to_owned());
        let redirect = Response { description, ..Response::default() };
        op.responses.insert(StatusCode::FOUND.as_str().to_owned(), Either::Right(redirect));
    }

    fn update_definitions(_: &mut std::collections::BTreeMap<String, DefaultSchemaRaw>) {}
}
