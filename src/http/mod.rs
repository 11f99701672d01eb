//! REST: one file a resource, thin handlers, and the document that describes them. The only module that names
//! paperclip.

mod alerts;
mod api_keys;
mod audit;
mod auth;
mod client_address;
mod commands;
mod docker;
mod docs;
pub mod error;
pub mod extract;
mod field_out;
mod health;
mod install;
mod logs;
mod metrics;
pub mod middleware;
mod notifications;
pub mod openapi;
mod origin;
mod prometheus;
mod refresh_cookie;
mod reply;
mod routes;
mod servers;
mod service;
mod sockets;
mod task;
mod web;

pub use routes::configure;
