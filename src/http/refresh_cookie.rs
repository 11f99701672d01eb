//! The refresh token as a cookie, which browsers keep out of reach of scripts.
//!
//! Browsers send a cookie with every request, whichever page caused it. So the cookie counts only together with a
//! header that pages of other sites cannot send: their browser would first need permission (a preflight), which the
//! service never gives. Their origin is checked as well, and without the header the cookie is ignored.

use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, Responder};
use paperclip::actix::OperationModifier;
use paperclip::v2::models::{DataType, DefaultOperationRaw, DefaultSchemaRaw, Either, Parameter, ParameterIn};
use paperclip::v2::schema::Apiv2Schema;
use secrecy::SecretString;
use signalbox_protocol::Timestamp;

use super::error::ApiError;
use super::extract::Subject;
use super::extract::fault::Faults;
use super::origin::check_origin;
use super::path::API;
use crate::auth::account::TokenPair;
use crate::state::State;

/// The header that requests the cookie.
const HEADER: &str = "X-Refresh-Cookie";

/// The values of the header. Any other value is a fault: a client that made a mistake would get the token where scripts
/// can read it.
const WANTED: &str = "1";
/// The same, and a refresh without any cookie is no error: a page asks so when it does not know whether somebody is signed
/// in, and browsers report every error.
const IF_ANY: &str = "if-any";

/// The beginning of the cookie's name. An identifier of the service's key follows: cookies ignore ports, so two
/// services on one host would otherwise overwrite each other's.
const NAME: &str = "signalbox_refresh";

/// With this prefix a browser accepts the cookie only over HTTPS, from this very host and for all its paths: no other
/// host of the domain can add one.
const OF_THIS_HOST: &str = "__Host-";

/// The most cookies of one name that are tried.
const MAX_COOKIES: usize = 8;

/// The caller, and the cookie if they want their refresh token in one.
pub struct Browser<S> {
    pub who: S,
    pub jar: Option<Jar>,
}

/// The cookie of a browser's refresh token.
#[derive(Debug, Clone)]
pub struct Jar {
    name: String,
    /// The cookies that the browser has sent.
    kept: Vec<SecretString>,
    is_secure: bool,
    /// Whether it is no error if the browser has no token.
    is_optional: bool,
    /// The present time of the tokens' clock.
    now: Timestamp,
}

impl Jar {
    pub fn of(request: &HttpRequest, state: &State) -> Self {
        let is_secure = is_https(request, state);
        let name = name_of(NAME, is_secure, state);
        let is_optional = request.headers().get(HEADER).is_some_and(|value| value == IF_ANY);
        Self { kept: kept_by(request, &name), name, is_secure, is_optional, now: state.accounts.tokens.now() }
    }

    /// Whether the browser has sent no token and said that it may have none.
    pub fn is_empty_as_announced(&self) -> bool {
        self.is_optional && self.kept.is_empty()
    }

    /// The tokens that the browser has sent. Without HTTPS another host of the domain may have added some.
    pub fn tokens(&self) -> &[SecretString] {
        &self.kept
    }

    /// Moves the refresh token out of a pair that is about to be returned.
    pub fn keep(&self, pair: &mut TokenPair) -> Cookie<'static> {
        let lifetime = pair.refresh_expires_at.as_seconds().saturating_sub(self.now.as_seconds());
        self.cookie(std::mem::take(&mut pair.refresh_token), lifetime)
    }

    /// Makes the browser delete the token.
    pub fn clear(&self) -> Cookie<'static> {
        self.cookie(String::new(), 0)
    }

    fn cookie(&self, value: String, lifetime_seconds: i64) -> Cookie<'static> {
        // Only these paths need the cookie, so no other path gets it; but the prefix requires all paths.
        let path = if self.is_secure { "/".to_owned() } else { format!("{API}/auth") };
        Cookie::build(self.name.clone(), value)
            .http_only(true)
            .same_site(SameSite::Strict)
            .secure(self.is_secure)
            .path(path)
            .max_age(Duration::seconds(lifetime_seconds))
            .finish()
    }
}

/// The name of a cookie that only this service sets.
pub fn name_of(name: &str, is_secure: bool, state: &State) -> String {
    let prefix = if is_secure { OF_THIS_HOST } else { "" };
    format!("{prefix}{name}_{}", state.accounts.tokens.mark())
}

/// The values of a request's cookies with this name. Read as bytes, because other sites' cookies need not be text.
pub fn kept_by(request: &HttpRequest, name: &str) -> Vec<SecretString> {
    let headers = request.headers().get_all(header::COOKIE);
    let cookies = headers.flat_map(|header| header.as_bytes().split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
    let ours = cookies.filter_map(|cookie| cookie.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    ours.take(MAX_COOKIES).map(|value| String::from_utf8_lossy(value).into_owned().into()).collect()
}

/// Whether the browser uses HTTPS, judged by the origin of its page. A client that forges a proxy's headers only gets a
/// cookie that its browser does not send without HTTPS.
pub fn is_https(request: &HttpRequest, state: &State) -> bool {
    let origin = request.headers().get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    if let Some((scheme, _)) = origin.and_then(|origin| origin.split_once("://")) {
        return scheme.eq_ignore_ascii_case("https");
    }
    let public = state.config.public_url.as_deref().and_then(|url| url.split_once("://")).map(|(scheme, _)| scheme);
    let connection = request.connection_info();
    [public.unwrap_or_default(), connection.scheme()].iter().any(|scheme| scheme.eq_ignore_ascii_case("https"))
}

impl<S: Subject> Subject for Browser<S> {
    type Identity = S::Identity;
    type Path = S::Path;

    async fn identify(state: &State, request: &HttpRequest) -> Result<S::Identity, ApiError> {
        S::identify(state, request).await
    }

    fn check_headers(request: &HttpRequest) -> Result<(), Faults> {
        match request.headers().get(HEADER) {
            Some(value) if value != WANTED && value != IF_ANY => {
                let msg = format!("value is not a valid enumeration member; permitted: '{WANTED}', '{IF_ANY}'");
                Err(Faults::of_header(HEADER, "type_error.enum", msg))
            }
            _ => S::check_headers(request),
        }
    }

    async fn authorize(
        state: &State,
        identity: S::Identity,
        path: S::Path,
        request: &HttpRequest,
    ) -> Result<Self, ApiError> {
        let mut jar = None;
        if request.headers().contains_key(HEADER) {
            check_origin(request, state)?;
            jar = Some(Jar::of(request, state));
        }
        Ok(Self { who: S::authorize(state, identity, path, request).await?, jar })
    }

    fn document(op: &mut DefaultOperationRaw) {
        S::document(op);
        let description = format!(
            "For browsers: sends the refresh token in a cookie (`{NAME}_...`, over HTTPS `{OF_THIS_HOST}{NAME}_...`), \
             which scripts cannot read; `refresh_token` is then empty in responses. Signing out clears the cookie. Refused for pages of \
             other sites (403 `origin_not_allowed`). With `{IF_ANY}`, refreshing without a cookie returns `data: null` and a message \
             instead of an error."
        );
        op.parameters.push(Either::Right(Parameter {
            in_: ParameterIn::Header,
            name: HEADER.to_owned(),
            description: Some(description),
            data_type: Some(DataType::String),
            enum_: vec![WANTED.into(), IF_ANY.into()],
            ..Parameter::default()
        }));
    }
}

/// A response that may set the cookie.
pub struct WithCookie<T> {
    pub answer: T,
    pub cookie: Option<Cookie<'static>>,
}

impl<T: Responder> Responder for WithCookie<T> {
    type Body = T::Body;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse<T::Body> {
        let mut response = self.answer.respond_to(request);
        if let Some(cookie) = &self.cookie {
            // Cannot fail: tokens are base64 and dots.
            _ = response.add_cookie(cookie);
        }
        response
    }
}

impl<T> Apiv2Schema for WithCookie<T> {}

impl<T: OperationModifier> OperationModifier for WithCookie<T> {
    fn update_response(op: &mut DefaultOperationRaw) {
        T::update_response(op);
    }

    fn update_definitions(map: &mut std::collections::BTreeMap<String, DefaultSchemaRaw>) {
        T::update_definitions(map);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn cookies_are_found_among_any_others() {
        let found = |headers: &[&[u8]]| -> Vec<String> {
            let mut request = TestRequest::default();
            for header in headers {
                request = request.append_header((header::COOKIE, HeaderValue::from_bytes(header).unwrap()));
            }
            let kept = kept_by(&request.to_http_request(), "ours");
            kept.iter().map(|value| value.expose_secret().to_owned()).collect()
        };

        assert_eq!(found(&[b"other=\xff\xfe; ours=a.b-c"]), ["a.b-c"]);
        assert_eq!(found(&[b"a=b;ours=1", b"ours_2=x; theirs=ours; yours=y; ours; ours=2; Ours=z"]), ["1", "2"]);
        assert_eq!(found(&[b"ours="]), [""]);
        assert_eq!(found(&[b"ours=1; ".repeat(50).as_slice()]).len(), MAX_COOKIES);
        assert!(found(&[]).is_empty());
    }
}
