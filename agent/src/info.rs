//! The agent's description of itself and its machine when it connects.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use signalbox_protocol::agent::AgentInfo;

use crate::collector::cgroup::Cgroups;
use crate::config::Roots;
use crate::identity;
use crate::policy::Policy;
use crate::signed::Demands;

/// Uptimes that differ by more are different ones, because both are read within milliseconds.
const UPTIMES_DIFFER_BY: Duration = Duration::from_secs(2);

/// The longest text that the service stores.
const MAX_BYTES: usize = 256;

/// Reads the machine's description. What cannot be read stays empty.
pub fn read(roots: &Roots, policy: &Policy, demands: Option<&Demands>) -> AgentInfo {
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
        boot_id: boot_id(roots, kernel_file("random/boot_id"), boot_time()),
        machine_id: identity::machine_id(roots),
        capabilities: policy.capabilities(),
        signing: demands.map(|demands| Box::new(demands.info())),
        failed_update: None,
    }
}

/// Changes whenever the machine starts. A system container (LXC) has its host's kernel and thus the host's boot id, but an
/// uptime of its own (lxcfs): there it is the start of the container, which its first process shows. Application containers
/// have their host's uptime, and so its boots: updating an agent in one is not a reboot.
fn boot_id(roots: &Roots, of_kernel: String, since_boot: Duration) -> String {
    let uptime = fs::read_to_string(roots.proc.join("uptime")).ok().and_then(|text| uptime(&text));
    let is_younger = uptime.is_some_and(|uptime| since_boot.saturating_sub(uptime) > UPTIMES_DIFFER_BY);
    let first_process = || fs::read_to_string(roots.proc.join("1/stat")).ok();
    match first_process().filter(|_| is_younger && !of_kernel.is_empty()).as_deref().and_then(started_at) {
        Some(started_at) => format!("{of_kernel}.{started_at}"),
        None => of_kernel,
    }
}

/// How long the kernel has been running, suspended or not.
fn boot_time() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos)
}

/// The first number of `/proc/uptime`.
fn uptime(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.split_whitespace().next()?.parse().ok()?).ok()
}

/// `starttime` of proc_pid_stat(5), the twenty-second field, in ticks since the kernel's boot. The second field is a name,
/// which may contain spaces and brackets.
fn started_at(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

/// The processors that the machine, or the agent's cgroup, may use; a fraction counts as one.
fn cpu_count(roots: &Roots) -> u32 {
    let stat = fs::read_to_string(roots.proc.join("stat")).unwrap_or_default();
    let cores = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    match Cgroups::new(roots).cpu_limit(cores) {
        Some(limit) => limit.cores.ceil() as u32,
        None => u32::try_from(cores).unwrap_or(u32::MAX),
    }
}

pub fn bounded(text: Option<String>) -> String {
    let mut text = text.unwrap_or_default().trim().replace('\0', "");
    text.truncate(text.floor_char_boundary(MAX_BYTES));
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
    fn a_container_with_an_uptime_of_its_own_boots_on_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        fs::create_dir(dir.path().join("1")).unwrap();
        let boots = |uptime: &str, started_at: u64| {
            fs::write(dir.path().join("uptime"), uptime).unwrap();
            let stat =
                format!("1 (in (it) 1) S 0 1 1 0 -1 4194560 80 119 0 3 0 0 0 0 20 0 1 0 {started_at} 2654208 404");
            fs::write(dir.path().join("1/stat"), stat).unwrap();
            boot_id(&roots, "kernel".to_owned(), Duration::from_secs(86_400))
        };

        assert_eq!(boots("86400.00 1.00\n", 5), "kernel", "a machine, or a container that shows its host's uptime");
        assert_eq!(boots("86398.50 1.00\n", 5), "kernel");
        assert_eq!(boots("600.25 1.00\n", 8_580_000), "kernel.8580000");
        assert_eq!(boots("700.25 1.00\n", 8_580_000), "kernel.8580000", "the same start, later");
        assert_eq!(boots("5.00 1.00\n", 8_639_500), "kernel.8639500");
        fs::remove_file(dir.path().join("1/stat")).unwrap();
        assert_eq!(boot_id(&roots, "kernel".to_owned(), Duration::from_secs(86_400)), "kernel");
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

        let info = read(&roots, &Policy::default(), None);

        let expected = AgentInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: "web-1".to_owned(),
            os: "Debian".to_owned(),
            kernel: "6.1.0-18-amd64".to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpu_count: 2,
            boot_id: "3f0c8a1e-0000-4000-8000-000000000000".to_owned(),
            machine_id: String::new(),
            capabilities: Policy::default().capabilities(),
            signing: None,
            failed_update: None,
        };
        assert_eq!(info, expected);
        assert!(info.is_bounded());
    }
}
