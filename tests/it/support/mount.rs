//! Disks that a test mounts for one program.

use std::process::Command;

/// The flags of `unshare` for a program that mounts a disk which only it sees. None where this machine does not permit that: then
/// the test cannot run, and prints why.
pub fn flags_to_mount() -> Option<&'static str> {
    let mut refusals = String::new();
    for flags in ["-m", "-rm"] {
        let trial = Command::new("unshare").args([flags, "--", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
        let refusal = match trial {
            Ok(trial) if trial.status.success() => return Some(flags),
            Ok(trial) => String::from_utf8_lossy(&trial.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        refusals += &format!("\nunshare {flags}: {}", refusal.trim());
    }
    eprintln!("SKIPPED: this test mounts a small disk of its own, which this machine does not permit{refusals}");
    None
}
