use super::*;

fn nowhere_special() -> Guard {
    Guard::new(Vec::new())
}

fn allows(guard: &Guard, address: &str) -> bool {
    guard.allows(address.parse().unwrap_or_else(|_| panic!("not an address: {address}")))
}

#[test]
fn public_addresses_are_allowed() {
    let public = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2606:4700:4700::1111",
        "2a00:1450:4001:82b::200e",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ];
    for address in public {
        assert!(allows(&nowhere_special(), address), "{address}");
    }
}

#[test]
fn addresses_that_are_not_public_are_refused() {
    let refused = [
        ("0.0.0.0", "this host"),
        ("0.255.255.255", "this network"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "shared"),
        ("100.100.100.200", "Alibaba's metadata"),
        ("100.127.255.255", "shared"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("169.254.0.0", "link-local"),
        ("169.254.169.254", "metadata"),
        ("169.254.170.2", "metadata of containers"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "protocols"),
        ("192.0.0.192", "Oracle's metadata"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "relays of 6to4"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("198.18.0.0", "benchmarking"),
        ("198.19.255.255", "benchmarking"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.0", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::7f00:1", "compatible, loopback"),
        ("::1.1.1.1", "compatible, a form that is not routed"),
        ("::ffff:0:1.1.1.1", "translated"),
        ("::ffff:127.0.0.1", "mapped, loopback"),
        ("::ffff:a9fe:a9fe", "mapped, metadata"),
        ("::ffff:10.1.2.3", "mapped, private"),
        ("64:ff9b::7f00:1", "NAT64, loopback"),
        ("64:ff9b::a9fe:a9fe", "NAT64, metadata"),
        ("64:ff9b::c0a8:1", "NAT64, private"),
        ("64:ff9b:1::1", "NAT64 of one network"),
        ("64:ff9b:1::101:101", "NAT64 of one network"),
        ("100::1", "discarded"),
        ("2001::1", "Teredo"),
        ("2001:0:4136:e378:8000:63bf:f5ff:fffe", "Teredo, private"),
        ("2001:2::1", "benchmarking"),
        ("2001:10::1", "hashes"),
        ("2001:20::1", "hashes"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::1", "6to4, loopback"),
        ("2002:a9fe:a9fe::1", "6to4, metadata"),
        ("2002:c0a8:101::1", "6to4, private"),
        ("3fff::1", "documentation"),
        ("4000::1", "not allocated"),
        ("5f00::1", "segment routing"),
        ("fc00::1", "unique-local"),
        ("fd00:ec2::254", "Amazon's metadata"),
        ("fdff:ffff::1", "unique-local"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("ff0e::1", "multicast"),
    ];
    for (address, what) in refused {
        assert!(!allows(&nowhere_special(), address), "{address} ({what})");
    }
}

#[test]
fn a_configured_network_is_allowed_and_its_neighbours_are_not() {
    let guard = Guard::new(vec!["10.1.0.0/16".parse().unwrap(), "fd12::/16".parse().unwrap()]);

    for address in ["10.1.0.1", "::ffff:10.1.0.1", "64:ff9b::10.1.0.1", "2002:a01:1::1", "fd12::1", "1.1.1.1"] {
        assert!(allows(&guard, address), "{address}");
    }
    for address in ["10.2.0.1", "127.0.0.1", "::ffff:10.2.0.1", "64:ff9b::10.2.0.1", "2002:a02:1::1", "fd13::1"] {
        assert!(!allows(&guard, address), "{address}");
    }
}
