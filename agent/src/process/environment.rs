//! The private part of the agent's own environment.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The agent's own settings, including its key.
const PREFIX: &[u8] = b"SIGNALBOX";
/// What a service manager gave only to the agent: a child that inherits it could speak in the agent's name or read its secrets.
const FROM_THE_SERVICE_MANAGER: &[&str] = &[
    "CREDENTIALS_DIRECTORY",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "STATE_DIRECTORY",
    "SYSTEMD_EXEC_PID",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// The variables that a program which the service asked for does not get.
pub fn names_to_leave_out() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| is_private(name.as_bytes()))
}

fn is_private(name: &[u8]) -> bool {
    name.starts_with(PREFIX) || FROM_THE_SERVICE_MANAGER.iter().any(|private| private.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_settings_are_private_and_the_users_are_not() {
        for name in ["SIGNALBOX_AGENT_KEY", "SIGNALBOX", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"] {
            assert!(is_private(name.as_bytes()), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "MY_SIGNALBOX", "NOTIFY_SOCKETS"] {
            assert!(!is_private(name.as_bytes()), "{name}");
        }
    }
}
