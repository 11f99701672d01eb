//! The sockets: the only module that names actix-web-actors.
//!
//! It is deprecated upstream and has two holes through which one client could exhaust the memory; [`gate`] closes
//! both. A socket's actor runs inside the response's body, so a peer that stops reading makes it stand still: what
//! must happen all the same (liveness, eviction, the end of a session) is decided outside, in `registry` and `feeds`,
//! and the kernel cuts a connection whose peer acknowledges nothing.

pub mod agent_session;
pub mod alert_subscription;
mod assembly;
mod authenticate;
pub mod command_subscription;
pub mod dashboard;
pub mod fleet_subscription;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
pub mod handover;
pub mod log_subscription;
pub mod metrics_subscription;
mod outlet;
pub mod terminal;

use actix_web_actors::ws;
use signalbox_protocol::close;

use gate::{GateControl, Violation};

/// The close code for what a peer did wrong.
fn code_of(gate: &GateControl) -> u16 {
    match gate.violation() {
        Some(Violation::TooLarge) => close::TOO_LARGE,
        Some(Violation::Malformed) | None => close::MALFORMED,
    }
}

fn reason(code: u16, description: &str) -> Option<ws::CloseReason> {
    Some(ws::CloseReason { code: ws::CloseCode::from(code), description: Some(description.to_owned()) })
}
