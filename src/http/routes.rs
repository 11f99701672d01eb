//! Which address leads where.

use actix_web::web as plain;
use paperclip::actix::web::{Resource, delete, get, post, put, resource};

use super::error::{ApiError, ErrorCode};
use super::{
    alerts, api_keys, audit, auth, commands, docker, docs, health, install, logs, metrics, notifications, prometheus,
    servers, service, sockets, web,
};

/// Where the REST API begins.
pub const API: &str = "/api/v1";

/// Whether the service can serve.
pub const READINESS: &str = "/readyz";

/// Every documented route, by its full path. The same list serves requests and makes the document.
///
/// Fixed paths stand before those with parameters that they would match.
pub fn documented() -> Vec<Resource> {
    let at = |path: &str| resource(&format!("{API}{path}"));
    vec![
        at("/metrics/prometheus").route(get().to(prometheus::all)),
        at("/metrics/fleet").route(get().to(metrics::fleet)),
        // Early, because dashboards and scripts ask for it most.
        at("/metrics/{server_id}").route(get().to(metrics::latest)),
        at("/metrics/{server_id}/history").route(get().to(metrics::history)),
        at("/metrics/{server_id}/series").route(get().to(metrics::columns)),
        at("/metrics/{server_id}/names").route(get().to(metrics::names)),
        at("/metrics/{server_id}/processes").route(get().to(metrics::processes)),
        at("/metrics/{server_id}/prometheus").route(get().to(prometheus::one)),
        at("/logs/{server_id}").route(get().to(logs::search)),
        at("/auth/register").route(post().to(auth::register)),
        at("/auth/login").route(post().to(auth::login)),
        at("/auth/refresh").route(post().to(auth::refresh)),
        at("/auth/me").route(get().to(auth::read_me)).route(put().to(auth::update_me)),
        at("/auth/change-password").route(post().to(auth::change_password)),
        at("/auth/logout").route(post().to(auth::logout)),
        at("/auth/sessions").route(get().to(auth::list_sessions)),
        at("/auth/sessions/{id}").route(delete().to(auth::end_session)),
        at("/servers").route(get().to(servers::list)).route(post().to(servers::create)),
        at("/servers/{id}")
            .route(get().to(servers::read))
            .route(put().to(servers::update))
            .route(delete().to(servers::delete)),
        at("/commands").route(post().to(commands::start_batch)),
        at("/commands/batches").route(get().to(commands::list_batches)),
        at("/commands/batches/{id}").route(get().to(commands::read_batch)),
        at("/commands/batches/{id}/cancel").route(post().to(commands::cancel_batch)),
        at("/commands/{server_id}").route(get().to(commands::list)).route(post().to(commands::run)),
        at("/commands/{server_id}/{command_id}").route(get().to(commands::read)),
        at("/commands/{server_id}/{command_id}/cancel").route(post().to(commands::cancel)),
        at("/docker/{server_id}/containers").route(get().to(docker::list)),
        at("/docker/{server_id}/containers/{container_id}").route(get().to(docker::inspect)),
        at("/docker/{server_id}/containers/{container_id}/logs").route(get().to(docker::logs)),
        at("/docker/{server_id}/containers/{container_id}/stats").route(get().to(docker::stats)),
        at("/docker/{server_id}/containers/{container_id}/start").route(post().to(docker::start)),
        at("/docker/{server_id}/containers/{container_id}/stop").route(post().to(docker::stop)),
        at("/docker/{server_id}/containers/{container_id}/restart").route(post().to(docker::restart)),
        at("/docker/{server_id}/containers/{container_id}/pause").route(post().to(docker::pause)),
        at("/docker/{server_id}/containers/{container_id}/unpause").route(post().to(docker::unpause)),
        at("/alerts").route(get().to(alerts::list)),
        at("/alerts/summary").route(get().to(alerts::summary)),
        at("/alerts/thresholds").route(get().to(alerts::thresholds::list)).route(post().to(alerts::thresholds::create)),
        at("/alerts/thresholds/{id}")
            .route(get().to(alerts::thresholds::read))
            .route(put().to(alerts::thresholds::update))
            .route(delete().to(alerts::thresholds::delete)),
        at("/alerts/silences").route(get().to(alerts::silences::list)).route(post().to(alerts::silences::create)),
        at("/alerts/silences/{id}")
            .route(get().to(alerts::silences::read))
            .route(put().to(alerts::silences::update))
            .route(delete().to(alerts::silences::delete)),
        at("/alerts/{id}").route(get().to(alerts::read)),
        at("/alerts/{id}/acknowledge").route(post().to(alerts::acknowledge)),
        at("/alerts/{id}/resolve").route(post().to(alerts::resolve)),
        at("/api-keys/me").route(get().to(api_keys::list)),
        at("/api-keys").route(post().to(api_keys::create)),
        at("/api-keys/{id}").route(delete().to(api_keys::revoke)),
        at("/notifications/channels")
            .route(get().to(notifications::list_channels))
            .route(post().to(notifications::create_channel)),
        at("/notifications/channels/{id}")
            .route(get().to(notifications::read_channel))
            .route(put().to(notifications::update_channel))
            .route(delete().to(notifications::delete_channel)),
        at("/notifications/channels/{id}/test").route(post().to(notifications::test_channel)),
        at("/notifications/deliveries").route(get().to(notifications::list_deliveries)),
        at("/audit").route(get().to(audit::list)),
        at("/service").route(get().to(service::read)),
    ]
}

/// Mounts every route.
pub fn configure(config: &mut plain::ServiceConfig) {
    for resource in documented() {
        config.service(resource);
    }
    for prefix in [API, ""] {
        let at = |path: &str| format!("{prefix}{path}");
        config
            .service(plain::resource(at("/agents/ws")).route(plain::get().to(sockets::agents)))
            .service(plain::resource(at("/ws/metrics/{server_id}")).route(plain::get().to(sockets::metrics)))
            .service(plain::resource(at("/ws/alerts")).route(plain::get().to(sockets::alerts)))
            .service(plain::resource(at("/ws/fleet")).route(plain::get().to(sockets::fleet)))
            .service(plain::resource(at("/ws/logs/{server_id}")).route(plain::get().to(sockets::logs)))
            .service(
                plain::resource(at("/ws/commands/{server_id}/{command_id}")).route(plain::get().to(sockets::commands)),
            )
            .service(plain::resource(at("/ws/terminal/{server_id}")).route(plain::get().to(sockets::terminal)))
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
        .default_service(plain::to(|| async { Err::<String, _>(ApiError::code(ErrorCode::NotFound)) }));
}
