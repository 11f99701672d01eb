//! Identifies the machine, so that a copy of it is distinguishable.
//!
//! A clone of a machine has copies of `/etc/machine-id`, the agent's key and its state. It does not have a copy of the
//! hardware, mostly a network card, or a board. So one number is derived from both, and reveals neither.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_protocol::traffic::is_layered;

use crate::config::Roots;

/// Separates this hash from any other use of the id, as machine-id(5) requires.
const PURPOSE: &str = "signalbox-agent machine 1";

/// How many bytes of the hash the agent sends.
const BYTES: usize = 16;

/// Below `/sys`: numbers of the board. Only root may read most of them.
const BOARD: &[&str] = &["class/dmi/id/product_uuid", "class/dmi/id/product_serial", "class/dmi/id/board_serial"];

/// Below `/sys`: the number of an ARM board, which everybody may read.
const DEVICE_TREE_SERIAL: &str = "firmware/devicetree/base/serial-number";

/// `addr_assign_type`: the card came with its address.
const PERMANENT: &str = "0";

/// `addr_assign_type`: the address was configured, as for a container.
const SET: &str = "3";

/// The `type` of a network interface with an address of six bytes.
const ETHERNET: &str = "1";

/// The machine's number, in hexadecimal; empty where nothing is known. Read once, because an additional card does not make
/// another machine.
pub fn machine_id(roots: &Roots) -> String {
    let mut parts = BTreeSet::new();
    for path in [roots.etc.join("machine-id"), roots.sys.join(DEVICE_TREE_SERIAL)] {
        parts.extend(text(&path));
    }
    parts.extend(BOARD.iter().filter_map(|path| text(&roots.sys.join(path))));
    parts.extend(addresses(&roots.sys.join("class/net")));
    if parts.is_empty() {
        return String::new();
    }
    let all: Vec<&str> = [PURPOSE].into_iter().chain(parts.iter().map(String::as_str)).collect();
    let hash = digest(&SHA256, all.join("\n").as_bytes());
    hash.as_ref().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The addresses of the machine's own cards; in a container, which has none, those configured for its plain interfaces.
fn addresses(net: &Path) -> Vec<String> {
    let interfaces: Vec<_> = fs::read_dir(net).into_iter().flatten().filter_map(Result::ok).collect();
    let is_device = |dir: &Path| dir.join("device").exists();
    let has_devices = interfaces.iter().any(|entry| is_device(&entry.path()));
    let own = |entry: &fs::DirEntry| {
        let dir = entry.path();
        let says = |file: &str, value: &str| text(&dir.join(file)).as_deref() == Some(value);
        let is_own = if has_devices {
            // A USB device may be in another machine tomorrow. A bond gives its parts one address.
            let is_plugged = fs::read_link(dir.join("device/subsystem")).is_ok_and(|bus| bus.ends_with("usb"));
            is_device(&dir) && says("addr_assign_type", PERMANENT) && !is_plugged && !dir.join("master").exists()
        } else {
            says("addr_assign_type", SET) && !is_layered(&entry.file_name().to_string_lossy())
        };
        if is_own && says("type", ETHERNET) { text(&dir.join("address")) } else { None }
    };
    interfaces.iter().filter_map(own).collect()
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim_matches(['\0', '\n', ' ']).to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Fixture(tempfile::TempDir);

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Self {
            let fixture = Self(tempfile::tempdir().unwrap());
            fixture.write(files);
            fixture
        }

        fn write(&self, files: &[(&str, &str)]) {
            for (path, text) in files {
                let path = self.0.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }

        fn interface(&self, name: &str, address: &str, assigned: &str, is_device: bool) {
            let dir = format!("sys/class/net/{name}");
            let files = [("type", "1\n"), ("address", address), ("addr_assign_type", assigned)];
            self.write(
                &files.map(|(file, text)| (format!("{dir}/{file}"), text)).each_ref().map(|(p, t)| (p.as_str(), *t)),
            );
            if is_device {
                fs::create_dir_all(self.0.path().join(dir).join("device")).unwrap();
            }
        }

        fn id(&self) -> String {
            let path = |name| self.0.path().join(name);
            machine_id(&Roots { etc: path("etc"), sys: path("sys"), ..Roots::default() })
        }
    }

    const MACHINE_ID: (&str, &str) = ("etc/machine-id", "b08dfa6083e7567a1921a715000001fb\n");

    #[test]
    fn a_copy_of_the_disk_in_another_machine_is_another_machine() {
        let [original, copy, same] = [1, 2, 1].map(|card| {
            let fixture = Fixture::new(&[MACHINE_ID]);
            fixture.interface("eth0", &format!("52:54:00:00:00:0{card}\n"), "0\n", true);
            fixture.id()
        });

        assert_eq!(original, same);
        assert_ne!(original, copy);
        assert_eq!(original.len(), 2 * BYTES);
        assert!(!original.contains("b08dfa60"), "the machine's own number is not revealed");
    }

    #[test]
    fn containers_of_one_image_differ_by_the_address_that_each_was_given() {
        let ids = [1, 2].map(|container| {
            let fixture = Fixture::new(&[MACHINE_ID]);
            fixture.interface("eth0", &format!("02:42:ac:11:00:0{container}\n"), "3\n", false);
            fixture.id()
        });

        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn addresses_that_come_and_go_make_no_other_machine() {
        let fixture = Fixture::new(&[MACHINE_ID]);
        fixture.interface("eth0", "52:54:00:00:00:01\n", "0\n", true);
        let before = fixture.id();

        fixture.interface("docker0", "02:42:00:00:00:01\n", "3\n", false);
        fixture.interface("wlan0", "aa:bb:cc:00:00:01\n", "3\n", true);
        fixture.interface("eth1", "52:54:00:00:00:02\n", "0\n", true);
        symlink("../bond0", fixture.0.path().join("sys/class/net/eth1/master")).unwrap();
        fs::create_dir_all(fixture.0.path().join("sys/class/net/bond0")).unwrap();
        fixture.interface("usb0", "52:54:00:00:00:03\n", "0\n", true);
        symlink("../../../bus/usb", fixture.0.path().join("sys/class/net/usb0/device/subsystem")).unwrap();

        assert_eq!(fixture.id(), before);
    }

    #[test]
    fn a_boards_number_counts_and_without_any_there_is_no_id() {
        let serial = |text| Fixture::new(&[("sys/firmware/devicetree/base/serial-number", text)]).id();

        assert_ne!(serial("10000000abcdef01\0"), serial("10000000abcdef02\0"));
        assert_eq!(Fixture::new(&[]).id(), "");
    }
}
