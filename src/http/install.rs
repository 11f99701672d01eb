//! `/install` and `/install.sh`: what a machine needs to become a server of this service. No token: it holds no secret.

use actix_web::body::SizedStream;
use actix_web::http::header::{self, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use serde_json::json;

use super::error::{ApiError, ErrorCode};
use crate::address::{is_address, is_authority};
use crate::install::{InstallError, Opened, Platform};
use crate::state::State;

const SCRIPT: &str = include_str!("../../packaging/install.sh");

/// Where the script wants the service's address.
const ADDRESS: &str = "@SERVICE_URL@";

/// What a checksum's name ends with.
const CHECKSUM: &str = ".sha256";

/// The script, with the address that it came from.
pub async fn script(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let address = address(&request, &state)?;
    Ok(HttpResponse::Ok()
        .content_type("text/x-shellscript; charset=utf-8")
        // Whoever kept it for others would give them an address that was somebody's own.
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(SCRIPT.replacen(ADDRESS, &address, 1)))
}

/// Which programs there are.
pub async fn list(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let address = address(&request, &state)?;
    let programs = state.programs.list().await?;
    let agents: Vec<_> = programs
        .iter()
        .map(|program| {
            let Platform { os, arch } = &program.platform;
            json!({ "os": os, "arch": arch, "bytes": program.bytes, "sha256": program.sha256 })
        })
        .collect();
    Ok(HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(json!({ "agents": agents, "script": format!("{address}/install.sh") })))
}

/// A program, or its checksum as `sha256sum --check` reads it.
pub async fn file(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let name = request.match_info().get("name").unwrap_or_default();
    let (program, is_checksum) = name.strip_suffix(CHECKSUM).map_or((name, false), |program| (program, true));
    let platform = Platform::of_program(program).ok_or(ApiError::code(ErrorCode::NotFound))?;
    let opened = state.programs.find(platform.clone()).await?.ok_or_else(|| missing(&platform))?;
    if is_checksum {
        let line = format!("{}  {program}\n", opened.program.sha256);
        return Ok(HttpResponse::Ok()
            .content_type("text/plain; charset=utf-8")
            .insert_header((header::CACHE_CONTROL, "no-cache"))
            .body(line));
    }
    send(&request, &state, opened).await
}

fn missing(platform: &Platform) -> ApiError {
    let detail =
        format!("This service has no agent for {}-{}; /install lists those that it has", platform.os, platform.arch);
    ApiError::Refused { code: ErrorCode::NotFound, detail: detail.into() }
}

async fn send(request: &HttpRequest, state: &State, opened: Opened) -> Result<HttpResponse, ApiError> {
    let bytes = opened.program.bytes;
    let tag = EntityTag::new_strong(opened.program.sha256.clone());
    let known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|of| of.weak_eq(&tag)),
        Err(_) => false,
    };
    if known {
        return Ok(HttpResponse::NotModified().insert_header(ETag(tag)).finish());
    }
    let download = state.programs.download(opened).await?;
    let pieces = stream::unfold(download, |mut download| async move { Some((download.next().await?, download)) });
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header(ETag(tag))
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // The compression middleware leaves alone what has an encoding: the length is told, and the checksum is of this.
        .insert_header((header::CONTENT_ENCODING, "identity"))
        .body(SizedStream::new(bytes, Box::pin(pieces))))
}

/// Where people reach this service: what it was told, or else what the request was sent to.
///
/// It becomes a part of a script that root runs, so it may hold nothing that a shell would read as more than text.
fn address(request: &HttpRequest, state: &State) -> Result<String, ApiError> {
    if let Some(url) = &state.config.public_url {
        let url = url.trim_end_matches('/');
        return if is_address(url) {
            Ok(url.to_owned())
        } else {
            Err(ApiError::internal(format!("--public-url {url:?} is no address that fits into a script")))
        };
    }
    let connection = request.connection_info();
    let (scheme, host) = (connection.scheme(), connection.host());
    // Without any of these it would be a name that the library makes up.
    let is_named = request.uri().authority().is_some()
        || ["forwarded", "x-forwarded-host", "host"].iter().any(|name| request.headers().contains_key(*name));
    if is_named && matches!(scheme, "http" | "https") && is_authority(host) {
        return Ok(format!("{scheme}://{host}"));
    }
    let detail = "The request names no host of which an address could be made: see --public-url";
    Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() })
}

impl From<InstallError> for ApiError {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Io(_) => Self::internal(error),
            InstallError::Busy => Self::code(ErrorCode::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_one_place_for_the_address() {
        assert_eq!(SCRIPT.matches(ADDRESS).count(), 1);
    }
}
