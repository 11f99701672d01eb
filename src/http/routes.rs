//! Which address leads to which handler.

use actix_web::web as plain;

use super::path::API;
use super::{docs, documented, health, install, sockets, web};

/// The path of readiness checks.
pub const READINESS: &str = "/readyz";

/// Mounts every route.
pub fn configure(config: &mut plain::ServiceConfig) {
    for resource in documented() {
        config.service(resource);
    }
    for prefix in [API, ""] {
        let at = |path: &str| format!("{prefix}{path}");
        for (path, route) in sockets::routes() {
            config.service(plain::resource(at(path)).route(route));
        }
        config
            .service(plain::resource(at("/docs")).route(plain::get().to(docs::swagger)))
            .service(plain::resource(at("/redoc")).route(plain::get().to(docs::redoc)))
            .service(plain::resource(at("/openapi.json")).route(plain::get().to(docs::openapi)));
    }
    web::configure(config);
    config
        .service(plain::resource("/docs/assets/{name}").route(plain::get().to(docs::asset)))
        .service(plain::resource("/install.sh").route(plain::get().to(install::script)))
        .service(plain::resource("/install").route(plain::get().to(install::list)))
        .service(plain::resource("/install/{name}").route(plain::get().to(install::file)))
        .service(plain::resource("/healthz").route(plain::get().to(health::live)))
        .service(plain::resource(READINESS).route(plain::get().to(health::ready)))
        .service(plain::resource("/metrics").route(plain::get().to(health::metrics)))
        .default_service(plain::to(web::unknown));
}
