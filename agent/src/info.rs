//! What the agent says of itself and its machine when it connects.

use std::fs;

use signalbox_protocol::agent::AgentInfo;

use crate::collector::cgroup::Cgroups;
use crate::config::Roots;
use crate::policy::Policy;

/// The longest text that the service keeps.
const MOST_BYTES: usize = 256;

/// Reads the machine's description. What cannot be read stays empty.
pub fn read(roots: &Roots, policy: &Policy) -> AgentInfo {
    let kernel_file = |name: &str| bounded(fs::read_to_string(roots.proc.join("sys/kernel").join(name)).ok());
    let os_release = fs::read_to_string(roots.etc.join("os-release"))
        .or_else(|_| fs::read_to_string("/usr/lib/os-release"))
        .ok()
        .and_then(|text| pretty_name(&text));
    AgentInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: kernel_file("hostname"),
        os: bounded(os_release.or_else(|| Some("Linux".to_owned()))),
        kernel: kernel_file("osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_count: cpu_count(roots),
        boot_id: kernel_file("random/boot_id"),
        capabilities: policy.capabilities(),
    }
}

/// The processors that the machine, or the agent's cgroup, may use; a part of one counts as one.
fn cpu_count(roots: &Roots) -> u32 {
    let stat = fs::read_to_string(roots.proc.join("stat")).unwrap_or_default();
    let cores = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    match Cgroups::new(roots).cpu_limit(cores) {
        Some(limit) => limit.cores.ceil() as u32,
        None => u32::try_from(cores).unwrap_or(u32::MAX),
    }
}

fn bounded(text: Option<String>) -> String {
    let mut text = text.unwrap_or_default().trim().replace('\0', "");
    text.truncate(text.floor_char_boundary(MOST_BYTES));
    text
}

/// `PRETTY_NAME` of os-release(5).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let name = quoted.or_else(|| value.strip_prefix('\'')?.strip_suffix('\'')).unwrap_or(value);
    Some(name.replace("\\\"", "\"")).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distributions_name_is_unquoted() {
        let name = |value: &str| pretty_name(&format!("NAME=x\nPRETTY_NAME={value}\nID=x\n"));

        assert_eq!(name("\"Debian GNU/Linux 12 (bookworm)\""), Some("Debian GNU/Linux 12 (bookworm)".to_owned()));
        assert_eq!(name("'Arch Linux'"), Some("Arch Linux".to_owned()));
        assert_eq!(name("Void"), Some("Void".to_owned()));
        assert_eq!(name("\"\""), None);
        assert_eq!(pretty_name("NAME=x\n"), None);
    }

    #[test]
    fn a_fixture_machine_is_described_in_full() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "web-1\n");
        write("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
        write("proc/sys/kernel/random/boot_id", "3f0c8a1e-0000-4000-8000-000000000000\n");
        write("proc/stat", "cpu  1 1 1 1\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nintr 1\n");
        write("etc/os-release", "PRETTY_NAME=\"Debian\"\n");
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            etc: dir.path().join("etc"),
            ..Roots::default()
        };

        let info = read(&roots, &Policy::default());

        let expected = AgentInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: "web-1".to_owned(),
            os: "Debian".to_owned(),
            kernel: "6.1.0-18-amd64".to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpu_count: 2,
            boot_id: "3f0c8a1e-0000-4000-8000-000000000000".to_owned(),
            capabilities: Policy::default().capabilities(),
        };
        assert_eq!(info, expected);
        assert!(info.is_bounded());
    }
}
