//! Swagger UI and ReDoc, with all their files in the binary: no request leaves the service.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};

use super::error::ApiError;
use super::openapi::Document;

/// What both pages need: their own scripts, inline styles, and embedded images.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                                       worker-src blob:; frame-ancestors 'none'; base-uri 'none'";

/// A file that is compiled in.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    is_compressed: bool,
    bytes: &'static [u8],
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

const ASSETS: [Asset; 5] = [
    Asset {
        name: "swagger-ui-bundle.js",
        content_type: JAVASCRIPT,
        is_compressed: true,
        bytes: include_bytes!("assets/swagger-ui-bundle.js.gz"),
    },
    Asset {
        name: "swagger-ui.css",
        content_type: CSS,
        is_compressed: true,
        bytes: include_bytes!("assets/swagger-ui.css.gz"),
    },
    Asset {
        name: "redoc.standalone.js",
        content_type: JAVASCRIPT,
        is_compressed: true,
        bytes: include_bytes!("assets/redoc.standalone.js.gz"),
    },
    Asset {
        name: "swagger-init.js",
        content_type: JAVASCRIPT,
        is_compressed: false,
        bytes: include_bytes!("assets/swagger-init.js"),
    },
    Asset {
        name: "redoc-init.js",
        content_type: JAVASCRIPT,
        is_compressed: false,
        bytes: include_bytes!("assets/redoc-init.js"),
    },
];

pub async fn swagger() -> HttpResponse {
    page(include_str!("assets/swagger.html"))
}

pub async fn redoc() -> HttpResponse {
    page(include_str!("assets/redoc.html"))
}

pub async fn openapi(document: web::Data<Document>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(document.bytes())
}

pub async fn asset(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let wanted = request.match_info().get("name").unwrap_or_default();
    let asset = ASSETS.iter().find(|asset| asset.name == wanted).ok_or(ApiError::not_found("Not found"))?;
    let mut response = HttpResponse::Ok();
    response.content_type(asset.content_type).insert_header((header::CACHE_CONTROL, "public, max-age=3600"));
    if asset.is_compressed {
        // Every browser accepts it; the compression middleware skips responses with an encoding.
        response.insert_header((header::CONTENT_ENCODING, "gzip"));
    }
    Ok(response.body(asset.bytes))
}

fn page(html: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .body(html)
}
