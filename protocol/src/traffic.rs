//! Which network interfaces make up the traffic of a machine.
//!
//! A byte that a machine forwards passes several of them: the card, a bond or a VLAN on it, a bridge, a tunnel, a container's
//! virtual cable. A sum over all of them counts it once for each. The agent marks those that count
//! ([`NetworkUsage::in_total`]). Where none is marked, by an older agent or in the history, the names decide.

use crate::sample::NetworkUsage;

/// The interface on which a machine talks to itself. It counts only where a caller asks for it by name.
pub const LOOPBACK: &str = "lo";

/// Prefixes of the names of interfaces that are built on others, or lead into containers and virtual machines.
const LAYERED: &[&str] = &[
    "azv",
    "bond",
    "br-",
    "cali",
    "cilium",
    "cni",
    "docker",
    "dummy",
    "eni",
    "erspan",
    "flannel",
    "fwbr",
    "fwln",
    "fwpr",
    "geneve",
    "genev_sys",
    "gke",
    "gre",
    "ifb",
    "incusbr",
    "ip6",
    "ip_vti",
    "kube-",
    "lxc",
    "lxdbr",
    "macvtap",
    "nlmon",
    "nodelocaldns",
    "ovs-",
    "podman",
    "sit",
    "tailscale",
    "tap",
    "team",
    "tun",
    "veth",
    "vif",
    "virbr",
    "vlan",
    "vmbr",
    "vnet",
    "vxlan",
    "wg",
    "xenbr",
    "zt",
];

/// Decides for each of these interfaces whether it counts: those that are marked; without marks those whose names do not say
/// that they are layered; without such names, as in a container with nothing but a tunnel, all but the loopback.
pub fn in_total(network: &[NetworkUsage]) -> impl Fn(&NetworkUsage) -> bool + Copy + use<> {
    let is_marked = network.iter().any(|one| one.in_total == Some(true));
    let has_plain = network.iter().any(|one| !is_layered(&one.interface));
    move |one| match (is_marked, has_plain) {
        (true, _) => one.in_total == Some(true),
        (false, true) => !is_layered(&one.interface),
        (false, false) => one.interface != LOOPBACK,
    }
}

/// Whether an interface of this name carries no bytes of its own: the loopback, and interfaces built on others. Names of VLANs
/// have a dot (`eth0.100`).
pub fn is_layered(name: &str) -> bool {
    let is_bridge = |rest: &str| rest.is_empty() || rest.bytes().all(|byte| byte.is_ascii_digit());
    name == LOOPBACK
        || name.contains('.')
        || name.strip_prefix("br").is_some_and(is_bridge)
        || LAYERED.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(network: &[(&str, Option<bool>)]) -> Vec<String> {
        let network: Vec<NetworkUsage> = network
            .iter()
            .map(|(name, in_total)| NetworkUsage {
                interface: (*name).to_owned(),
                in_total: *in_total,
                ..NetworkUsage::default()
            })
            .collect();
        let counts = in_total(&network);
        network.iter().filter(|one| counts(one)).map(|one| one.interface.clone()).collect()
    }

    fn by_name<'a>(names: &[&'a str]) -> Vec<(&'a str, Option<bool>)> {
        names.iter().map(|name| (*name, None)).collect()
    }

    #[test]
    fn what_the_agent_marked_counts_and_nothing_else() {
        let marked = [("bond0", Some(false)), ("docker0", Some(true)), ("eth0", None), ("eth1", Some(true))];

        assert_eq!(counted(&marked), ["docker0", "eth1"]);
    }

    #[test]
    fn without_marks_names_tell_what_lies_on_others() {
        let cases: [(&[&str], &[&str]); 6] = [
            (&["eno1", "vmbr0", "tap100i0", "fwbr100i0", "fwln100i0", "fwpr100p0"], &["eno1"]),
            (&["lo", "bond0", "bond0.100", "eth0", "eth1"], &["eth0", "eth1"]),
            (&["ens3", "docker0", "br-1f2e", "wg0", "tun0", "flannel.1", "cni0", "virbr0", "lxdbr0"], &["ens3"]),
            (&["enp5s0", "wlan0", "br0", "vnet3", "eth0.100"], &["enp5s0", "wlan0"]),
            (&["brcm0", "broadband"], &["brcm0", "broadband"]),
            (&["eth0", "docker0"], &["eth0"]),
        ];

        for (all, expected) in cases {
            assert_eq!(counted(&by_name(all)), *expected, "{all:?}");
        }
    }

    #[test]
    fn where_nothing_else_is_there_all_but_the_loopback_counts() {
        assert_eq!(counted(&by_name(&["lo", "tun0"])), ["tun0"]);
        assert_eq!(counted(&[("lo", Some(false)), ("wg0", Some(false))]), ["wg0"]);
        assert_eq!(counted(&by_name(&["lo"])), [""; 0]);
    }
}
