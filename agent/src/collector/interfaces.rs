//! Which network interfaces count for the machine's traffic, from `/sys/class/net` (sysfs-class-net).
//!
//! Devices of the machine count, where there are any. A container has none; there the plain interfaces count, those that are no
//! bridge, bond, VLAN or tunnel. `signalbox_protocol::traffic` decides when there are none of these either.

use std::fs;
use std::path::{Path, PathBuf};

use signalbox_protocol::sample::NetworkUsage;
use signalbox_protocol::traffic::is_layered;

/// Readings after which it checks again although the names are the same: an interface may be added to a bond, or replaced by
/// another of its name. Five minutes at the default interval.
const LOOK_EVERY: u32 = 60;

/// The `type` of interfaces with Ethernet frames. Tunnels have others.
const ETHERNET: &str = "1";

/// Directories and files of interfaces that the kernel builds on others.
const MADE: &[&str] = &["bridge", "bonding", "tun_flags"];

/// The `DEVTYPE` in their `uevent`. (Not `macvlan`, `ipvlan` and `vlan`: in a container they are the way out.)
const MADE_TYPES: &[&str] = &["bond", "bridge", "geneve", "ppp", "vxlan", "wireguard"];

/// Keeps its result while the same interfaces exist.
#[derive(Debug)]
pub struct Interfaces {
    dir: PathBuf,
    /// By name, in the kernel's order.
    known: Vec<(String, Option<bool>)>,
    readings: u32,
}

/// What the kernel reports about one interface.
#[derive(Debug, Default)]
struct Link {
    /// A device of the machine is behind it.
    is_device: bool,
    /// It is the host's end of a virtual machine or a virtual function, whose bytes another device carries.
    is_port: bool,
    /// It is built on others, or is a tunnel.
    is_made: bool,
    /// The interface that it is a part of.
    master: Option<String>,
    /// The interfaces that it is built on.
    lower: Vec<String>,
}

impl Interfaces {
    pub fn new(sys: &Path) -> Self {
        Self { dir: sys.join("class/net"), known: Vec::new(), readings: 0 }
    }

    /// Marks the interfaces that count for the total.
    pub fn mark(&mut self, rows: &mut [NetworkUsage]) {
        let is_known = self.known.len() == rows.len()
            && self.known.iter().zip(rows.iter()).all(|((name, _), row)| *name == row.interface);
        if !is_known || self.readings >= LOOK_EVERY {
            self.look(rows);
            self.readings = 0;
        }
        self.readings += 1;
        for (row, (_, in_total)) in rows.iter_mut().zip(&self.known) {
            row.in_total = *in_total;
        }
    }

    fn look(&mut self, rows: &[NetworkUsage]) {
        let links: Vec<(&str, Link)> =
            rows.iter().map(|row| (row.interface.as_str(), link(&self.dir.join(&row.interface)))).collect();
        let of = |name: &str| links.iter().find(|(other, _)| other == &name).map(|(_, link)| link);
        let is_physical = |name: &str, link: &Link| {
            link.is_device
                && !link.is_port
                // A virtual function that another device of the machine represents (Azure's, a failover pair).
                && !link.master.as_deref().and_then(of).is_some_and(|master| master.is_device)
                // A port of a switch on a device that carries the bytes of all ports (DSA).
                && !link.lower.iter().filter_map(|lower| of(lower)).any(|lower| {
                    lower.is_device && lower.master.as_deref() != Some(name)
                })
        };
        let is_plain =
            |name: &str, link: &Link| !link.is_made && link.lower.is_empty() && !(link.is_port || is_layered(name));
        let mut found: Vec<bool> = links.iter().map(|(name, link)| is_physical(name, link)).collect();
        if !found.contains(&true) {
            found = links.iter().map(|(name, link)| is_plain(name, link)).collect();
        }
        let is_told = found.contains(&true);
        let names = rows.iter().map(|row| row.interface.clone());
        self.known = names.zip(found).map(|(name, in_total)| (name, is_told.then_some(in_total))).collect();
    }
}

/// Unreadable files count as missing; then the names decide.
fn link(dir: &Path) -> Link {
    let text = |name: &str| fs::read_to_string(dir.join(name)).map(|text| text.trim().to_owned()).unwrap_or_default();
    let target = |name: &str| {
        let path = fs::read_link(dir.join(name)).ok()?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    let entries: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    if entries.is_empty() {
        // The interface has disappeared, or `/sys` belongs to another network namespace.
        return Link { is_made: true, ..Link::default() };
    }
    let has = |name: &str| entries.iter().any(|entry| entry == name);
    let uevent = text("uevent");
    let made_type = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
    // `pf0vf1`, `c1pf0sf88`: the switch's end of a virtual function or a sub-function.
    let port = text("phys_port_name");
    let is_representor = port.contains("pf") && (port.contains("vf") || port.contains("sf"));
    Link {
        is_device: has("device"),
        is_port: is_representor || target("device/subsystem").as_deref() == Some("xen-backend"),
        is_made: text("type") != ETHERNET
            || MADE.iter().any(|name| has(name))
            || made_type.is_some_and(|kind| MADE_TYPES.contains(&kind)),
        master: target("master"),
        lower: entries.iter().filter_map(|entry| entry.strip_prefix("lower_")).map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A `/sys` that a test fills.
    struct Sys(tempfile::TempDir);

    impl Sys {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn dir(&self, name: &str) -> PathBuf {
            self.0.path().join("class/net").join(name)
        }

        /// Adds an interface with Ethernet frames and further entries: `name` is a directory, `name=text` a file,
        /// `name->target` a link.
        fn with(self, name: &str, entries: &[&str]) -> Self {
            let dir = self.dir(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("type"), "1\n").unwrap();
            for entry in entries {
                if let Some((link, target)) = entry.split_once("->") {
                    let link = dir.join(link);
                    fs::create_dir_all(link.parent().unwrap()).unwrap();
                    symlink(format!("../{target}"), link).unwrap();
                } else if let Some((file, text)) = entry.split_once('=') {
                    fs::write(dir.join(file), text).unwrap();
                } else {
                    fs::create_dir_all(dir.join(entry)).unwrap();
                }
            }
            self
        }

        fn interfaces(&self) -> Interfaces {
            Interfaces::new(self.0.path())
        }

        /// The interfaces that count; none where the kernel says nothing.
        fn counted(&self, names: &[&str]) -> Option<Vec<String>> {
            let mut rows = rows(names);
            self.interfaces().mark(&mut rows);
            counted(&rows)
        }
    }

    fn rows(names: &[&str]) -> Vec<NetworkUsage> {
        names.iter().map(|name| NetworkUsage { interface: (*name).to_owned(), ..NetworkUsage::default() }).collect()
    }

    fn counted(rows: &[NetworkUsage]) -> Option<Vec<String>> {
        let told = rows.iter().all(|row| row.in_total.is_some());
        let counted = rows.iter().filter(|row| row.in_total == Some(true)).map(|row| row.interface.clone());
        told.then(|| counted.collect())
    }

    #[test]
    fn on_a_host_devices_count_and_interfaces_on_them_do_not() {
        let sys = Sys::new()
            .with("eno1", &["device", "master->bond0"])
            .with("eno2", &["device", "master->bond0"])
            .with("bond0", &["bonding", "lower_eno1->eno1", "lower_eno2->eno2", "uevent=DEVTYPE=bond\n"])
            .with("bond0.7", &["lower_bond0->bond0"])
            .with("vmbr0", &["bridge", "lower_bond0.7->bond0.7"])
            .with("tap100i0", &["tun_flags=0x1002"])
            .with("usual", &["bridge"]);

        let all = ["eno1", "eno2", "bond0", "bond0.7", "vmbr0", "tap100i0", "usual"];

        assert_eq!(sys.counted(&all).unwrap(), ["eno1", "eno2"]);
    }

    #[test]
    fn in_a_container_plain_interfaces_count() {
        let sys = Sys::new()
            .with("eth0", &[])
            .with("net1", &["uevent=DEVTYPE=macvlan\n"])
            .with("docker0", &["bridge"])
            .with("mesh", &["uevent=DEVTYPE=wireguard\nINTERFACE=mesh\n"])
            .with("dummy0", &[])
            .with("up", &["type=65534\n"]);

        assert_eq!(sys.counted(&["eth0", "net1", "docker0", "mesh", "dummy0", "up"]).unwrap(), ["eth0", "net1"]);
    }

    #[test]
    fn of_devices_that_carry_the_same_bytes_one_counts() {
        let azure = Sys::new().with("eth0", &["device", "lower_enP1->enP1"]).with("enP1", &["device", "master->eth0"]);
        let router = Sys::new()
            .with("eth0", &["device", "upper_lan1->lan1"])
            .with("lan1", &["device", "lower_eth0->eth0", "master->br-lan"])
            .with("br-lan", &["bridge", "lower_lan1->lan1"]);
        let hypervisor = Sys::new()
            .with("eth0", &["device"])
            .with("vif1.0", &["device/subsystem->xen-backend"])
            .with("eth0_0", &["device", "phys_port_name=pf0vf0\n"]);

        assert_eq!(azure.counted(&["eth0", "enP1"]).unwrap(), ["eth0"]);
        assert_eq!(router.counted(&["eth0", "lan1", "br-lan"]).unwrap(), ["eth0"]);
        assert_eq!(hypervisor.counted(&["eth0", "vif1.0", "eth0_0"]).unwrap(), ["eth0"]);
    }

    #[test]
    fn nothing_is_marked_where_the_kernel_says_nothing() {
        assert_eq!(Sys::new().counted(&["eth0", "tun0"]), None);
    }

    #[test]
    fn interfaces_are_checked_when_the_set_changes_and_now_and_then() {
        let mut sys = Sys::new().with("eth0", &["device"]);
        let mut interfaces = sys.interfaces();
        let mut marked = |names: &[&str]| {
            let mut rows = rows(names);
            interfaces.mark(&mut rows);
            counted(&rows).unwrap()
        };
        assert_eq!(marked(&["eth0"]), ["eth0"]);

        sys = sys.with("eth1", &["device"]);
        assert_eq!(marked(&["eth0", "eth1"]), ["eth0", "eth1"]);
        fs::remove_dir(sys.dir("eth1").join("device")).unwrap();
        let looks = (0..2 * LOOK_EVERY).take_while(|_| marked(&["eth0", "eth1"]).len() == 2).count();

        assert_eq!(looks, LOOK_EVERY as usize - 1);
    }
}
