//! Disks and files that a test mounts for one program.

use std::process::Command;

/// The flags of `unshare` for a program that mounts what only it sees. Where this machine does not permit that, its refusals, a line each.
pub fn may_mount() -> Result<&'static str, String> {
    let mut refusals = String::new();
    for flags in ["-m", "-rm"] {
        let trial = Command::new("unshare").args([flags, "--", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
        let refusal = match trial {
            Ok(trial) if trial.status.success() => return Ok(flags),
            Ok(trial) => String::from_utf8_lossy(&trial.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        refusals += &format!("\nunshare {flags}: {}", refusal.trim());
    }
    Err(refusals)
}

/// The same for a test that cannot run without them: where they are not permitted, it prints why.
pub fn flags_to_mount() -> Option<&'static str> {
    let refused = |refusals: String| {
        eprintln!("SKIPPED: this test mounts a small disk of its own, which this machine does not permit{refusals}");
    };
    may_mount().map_err(refused).ok()
}
