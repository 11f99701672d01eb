//! REST: one file per resource, thin handlers, and the OpenAPI document. Only this module names paperclip.

mod alerts;
mod annotations;
mod answered;
mod api_keys;
mod audit;
mod auth;
mod client_address;
mod commands;
mod docker;
mod docs;
mod enrol;
mod enrolments;
pub mod error;
pub mod extract;
mod factors;
mod field_out;
mod fleet_availability;
#[doc(hidden)]
pub mod fuzzing;
mod grants;
mod grants_in;
mod health;
mod host;
mod install;
mod invitations;
mod logs;
mod metrics;
pub mod middleware;
mod notifications;
mod oidc;
pub mod openapi;
mod origin;
mod own_account;
mod path;
mod people_out;
mod program_tokens;
mod prometheus;
mod quotas;
mod recordings;
mod refresh_cookie;
mod reply;
mod request_id;
mod routes;
mod schedules;
mod selection;
mod server_events;
mod server_filter;
mod servers;
mod service;
mod sessions;
mod signed_in;
mod sockets;
mod task;
mod teams;
mod token_terms;
mod unread;
mod updates;
mod users;
mod views;
mod web;

use paperclip::actix::web::Resource;

pub use routes::configure;

/// The documented routes. Paths are matched in this order: fixed ones come before those with parameters, and the most
/// frequent requests of dashboards and scripts come early.
const RESOURCES: &[fn() -> Vec<Resource>] = &[
    prometheus::routes,
    metrics::routes,
    prometheus::routes_of_server,
    logs::routes,
    auth::routes,
    sessions::routes,
    factors::routes,
    oidc::routes,
    quotas::routes,
    fleet_availability::routes,
    servers::routes,
    schedules::routes,
    updates::routes,
    grants::routes,
    teams::routes,
    server_events::routes,
    recordings::routes,
    commands::routes,
    docker::routes,
    alerts::routes,
    api_keys::routes,
    program_tokens::routes,
    enrol::routes,
    enrolments::routes,
    notifications::routes,
    audit::routes,
    invitations::routes,
    users::routes,
    views::routes,
    service::routes,
];

/// Every documented route, by its full path. The same list serves requests and generates the document.
fn documented() -> Vec<Resource> {
    RESOURCES.iter().flat_map(|routes| routes()).collect()
}
