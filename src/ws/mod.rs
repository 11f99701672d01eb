//! WebSockets. Only this module names actix-web-actors.
//!
//! That crate is deprecated upstream and has two holes through which one client could exhaust the memory; [`gate`]
//! closes both. A socket's actor runs inside the response's body, so it stands still when its peer stops reading. What
//! must happen all the same (liveness, eviction, the end of a session) is decided outside, in `registry` and `feeds`,
//! and the kernel cuts a connection whose peer acknowledges nothing.

pub mod agent_session;
pub mod alert_subscription;
mod assembly;
mod authenticate;
pub mod command_subscription;
pub mod dashboard;
mod end;
pub mod fleet_subscription;
#[doc(hidden)]
pub mod fuzzing;
mod gate;
pub mod handover;
pub mod log_subscription;
pub mod metrics_subscription;
mod next_head;
mod outlet;
pub mod terminal;
mod unwritten;

use actix_web_actors::ws;
use signalbox_protocol::close;

use gate::{GateControl, Violation};

/// The close code for a peer's violation.
fn code_of(gate: &GateControl) -> u16 {
    match gate.violation() {
        Some(Violation::TooLarge) => close::TOO_LARGE,
        Some(Violation::Malformed) | None => close::MALFORMED,
    }
}

fn reason(code: u16, description: &str) -> Option<ws::CloseReason> {
    Some(ws::CloseReason { code: ws::CloseCode::from(code), description: Some(description.to_owned()) })
}
