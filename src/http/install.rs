//! `/install` and `/install.sh`: what a machine needs to become a server of this service. No token is needed, because
//! nothing here is secret.

use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::header::{self, ETag, EntityTag, Header, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use serde_json::json;

use super::client_address::client_address;
use super::error::{ApiError, ErrorCode};
use crate::address::{is_address, is_authority};
use crate::install::{InstallError, Opened, Platform};
use crate::shares::Share;
use crate::state::State;

const SCRIPT: &str = include_str!("../../packaging/install.sh");

/// The placeholder of the service's address in the script.
const ADDRESS: &str = "@SERVICE_URL@";

/// The suffix of a checksum's name.
const CHECKSUM: &str = ".sha256";

/// How long a download waits for others to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The script, with the address that the client used.
pub async fn script(request: HttpRequest, state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let address = address(&request, &state)?;
    Ok(HttpResponse::Ok()
        .content_type("text/x-shellscript; charset=utf-8")
        // A shared cache would give other clients an address that only one client used.
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(SCRIPT.replacen(ADDRESS, &address, 1)))
}

/// Lists the available programs.
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

/// A program, or its checksum in the format of `sha256sum --check`.
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
        format!("This service has no agent for {}-{}; /install lists the available ones", platform.os, platform.arch);
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
    let share = Share::of_written(&client_address(request, state));
    let place = state.limits.shares.downloads.enter_within(share, PATIENCE).await?;
    let download = state.programs.download(opened, place);
    let pieces = stream::unfold(download, |mut download| async move { Some((download.next().await?, download)) });
    Ok(HttpResponse::Ok()
        .content_type("application/octet-stream")
        .insert_header(ETag(tag))
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // The compression middleware skips responses with an encoding: so the length is known, and the checksum
        // matches.
        .insert_header((header::CONTENT_ENCODING, "identity"))
        .body(SizedStream::new(bytes, Box::pin(pieces))))
}

/// The address at which people reach this service: the configured one, or else the one that the request used.
///
/// It becomes part of a script that root runs, so it must not contain anything that a shell would interpret.
pub(super) fn address(request: &HttpRequest, state: &State) -> Result<String, ApiError> {
    if let Some(url) = &state.config.public_url {
        let url = url.trim_end_matches('/');
        return if is_address(url) {
            Ok(url.to_owned())
        } else {
            Err(ApiError::internal(format!("--public-url {url:?} cannot be used in a script")))
        };
    }
    let connection = request.connection_info();
    let (scheme, host) = (connection.scheme(), connection.host());
    // Without any of these, the library would make up a name.
    let is_named = request.uri().authority().is_some()
        || ["forwarded", "x-forwarded-host", "host"].iter().any(|name| request.headers().contains_key(*name));
    if is_named && matches!(scheme, "http" | "https") && is_authority(host) {
        return Ok(format!("{scheme}://{host}"));
    }
    let detail = "The request has no usable host name: set --public-url";
    Err(ApiError::Refused { code: ErrorCode::BadRequest, detail: detail.into() })
}

impl From<InstallError> for ApiError {
    fn from(error: InstallError) -> Self {
        Self::internal(error)
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
