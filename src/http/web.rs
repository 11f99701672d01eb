//! The web interface: its files, its page under every address that it knows, and the help.

use actix_web::http::header::{self, Accept, AcceptEncoding, Encoding, Header, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_web::{Asset, Content};

use super::error::{ApiError, ErrorCode};
use crate::config::WebInterface;
use crate::state::State;

/// The addresses of the interface's pages: `web/src/pages/pages.ts`. All other unknown addresses are 404.
const PAGES: [&str; 19] = [
    "/",
    "/servers",
    "/sign-in",
    "/register",
    "/servers/{id}",
    "/servers/{id}/{tab}",
    "/timeline",
    "/alerts",
    "/alerts/{id}",
    "/logs",
    "/run",
    "/run/{id}",
    "/account",
    "/account/{tab}",
    "/wall",
    "/explore",
    "/dashboards",
    "/dashboards/{id}",
    "/dashboards/{id}/wall",
];

/// The prefixes of programs' addresses: an unknown address below them is an error of the API, whatever `Accept` says.
const FOR_PROGRAMS: [&str; 11] = [
    "/api",
    "/ws",
    "/agents",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/install",
    "/assets",
    "/healthz",
    "/readyz",
    "/metrics",
];

/// The documents, which `web/build/help` makes pages of: all of them under one route, however many there are.
const HELP: [&str; 2] = ["/help", "/help/{page:.*}"];

/// Files whose names do not depend on their content, which may change with the next version.
const FILES: [&str; 11] = [
    "/theme.js",
    "/sw.js",
    "/manifest.webmanifest",
    "/favicon.svg",
    "/favicon-alert.svg",
    "/favicon.ico",
    "/apple-touch-icon.png",
    "/badge-96.png",
    "/icon-192.png",
    "/icon-512.png",
    "/icon-maskable-512.png",
];

/// Scripts run only if they come from this service, and no other page may embed it in a frame. Inline styles are
/// allowed, because the terminal writes its own.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                       worker-src 'self'; manifest-src 'self'; \
                                       img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; \
                                       frame-ancestors 'none'; base-uri 'none'";

/// Files whose names change with their content may be cached forever; the others are revalidated each time, but for
/// pictures, of which a day's delay harms nobody.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const FOR_A_DAY: &str = "public, max-age=86400";
const ASK_EACH_TIME: &str = "no-cache";

/// Mounts the interface.
pub fn configure(config: &mut ServiceConfig) {
    for path in PAGES {
        config.service(web::resource(path).route(web::get().to(page)));
    }
    for path in FILES {
        config.service(web::resource(path).route(web::get().to(file)));
    }
    config.service(web::resource("/assets/{name}").route(web::get().to(file)));
    for path in HELP {
        config.service(web::resource(path).route(web::get().to(help)));
    }
}

/// The page, or a redirect to the API's documentation if there is no interface.
async fn page(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    match page_at(&state, request.path()).or_else(|| find(&state, signalbox_web::INDEX)) {
        Some(asset) => send(asset, &request),
        None if request.path() == "/" => {
            Ok(HttpResponse::TemporaryRedirect().insert_header((header::LOCATION, "/docs")).finish())
        }
        None => Err(ApiError::code(ErrorCode::NotFound)),
    }
}

/// The page of an address, with links to the files that the address needs: its own, or with `_` in the place of an id the
/// one of all such addresses. `web/build/pages.ts` writes them.
fn page_at(state: &State, path: &str) -> Option<&'static Asset> {
    let named = |name: &str| find(state, &format!("pages/{name}.html"));
    let name = path.trim_matches('/');
    if name.is_empty() {
        return named("index");
    }
    named(name).or_else(|| {
        let mut parts = name.splitn(3, '/');
        let kind = parts.next()?;
        parts.next()?;
        match parts.next() {
            Some(tab) => named(&format!("{kind}/_/{tab}")),
            None => named(&format!("{kind}/_")),
        }
    })
}

/// Handles unknown addresses: the interface's page for people who mistyped an address, an error in the usual format for
/// programs.
pub async fn unknown(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    not_found(signalbox_web::INDEX, &request, &state)
}

/// A page of the help by its address, which is the path of its file without the ending.
async fn help(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let page_at = |address: &str| find(&state, &format!("{address}.html"));
    let address = request.path().trim_start_matches('/');
    if let Some(document) = page_at(address) {
        return send(document, &request);
    }
    let without_slash = address.trim_end_matches('/');
    if page_at(without_slash).is_some() {
        let location = (header::LOCATION, format!("/{without_slash}"));
        return Ok(HttpResponse::TemporaryRedirect().insert_header(location).finish());
    }
    not_found(signalbox_web::UNKNOWN_HELP, &request, &state)
}

/// A page with status 404 for people, an error for programs.
fn not_found(path: &str, request: &HttpRequest, state: &State) -> Result<HttpResponse, ApiError> {
    let asset = find(state, path).filter(|_| is_for_person(request));
    let mut response = send(asset.ok_or(ApiError::code(ErrorCode::NotFound))?, request)?;
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// Whether a browser requests a page: it accepts HTML, which programs do not ask for.
fn is_for_person(request: &HttpRequest) -> bool {
    let is_page = !FOR_PROGRAMS.iter().any(|own| {
        let rest = request.path().strip_prefix(own);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let names_html = || {
        let accept = Accept::parse(request);
        accept.is_ok_and(|accept| accept.iter().any(|wanted| wanted.item.essence_str() == "text/html"))
    };
    is_page && request.method() == Method::GET && names_html()
}

async fn file(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let path = request.path().trim_start_matches('/');
    let asset = find(&state, path).ok_or(ApiError::code(ErrorCode::NotFound))?;
    send(asset, &request)
}

/// A file of the interface, if the interface is enabled.
fn find(state: &State, path: &str) -> Option<&'static Asset> {
    match state.config.web {
        WebInterface::On => signalbox_web::asset(path),
        WebInterface::Off => None,
    }
}

fn send(asset: &'static Asset, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
    let cache = match asset.path.rsplit_once('.') {
        _ if asset.is_immutable() => FOR_EVER,
        Some((_, "png" | "ico")) => FOR_A_DAY,
        _ => ASK_EACH_TIME,
    };
    let mut response = HttpResponse::Ok();
    response
        .content_type(content_type(asset.path))
        .insert_header((header::VARY, "accept-encoding"))
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header(("cross-origin-opener-policy", "same-origin"));
    Ok(match compressed(asset, request) {
        Some((encoding, bytes)) => response.insert_header((header::CONTENT_ENCODING, encoding.to_string())).body(bytes),
        None => response.body(asset.plain().map_err(ApiError::internal)?),
    })
}

/// The smallest encoding that the browser accepts.
fn compressed(asset: &Asset, request: &HttpRequest) -> Option<(Encoding, &'static [u8])> {
    let Content::Compressed { brotli, gzip, .. } = &asset.content else { return None };
    let available = [(Encoding::brotli(), *brotli), (Encoding::gzip(), *gzip)];
    let wanted = AcceptEncoding::parse(request).ok()?.negotiate(available.iter().map(|(encoding, _)| encoding))?;
    available.into_iter().find(|(encoding, _)| *encoding == wanted)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("webp") => "image/webp",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
