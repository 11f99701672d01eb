//! The user's browser.

use std::process::{Command, Stdio};

/// Opens an address. Returns whether something took it; what it does with it nobody knows.
pub fn open(address: &str) -> bool {
    let Some(mut command) = opener() else { return false };
    // A browser in the terminal would take the keys that are meant for this program.
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

#[cfg(target_os = "macos")]
fn opener() -> Option<Command> {
    Some(Command::new("open"))
}

#[cfg(windows)]
fn opener() -> Option<Command> {
    let mut command = Command::new("rundll32");
    command.arg("url.dll,FileProtocolHandler");
    Some(command)
}

/// Nothing without a desktop, as over ssh.
#[cfg(not(any(target_os = "macos", windows)))]
fn opener() -> Option<Command> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set).then(|| Command::new("xdg-open"))
}
