//! Which agent the script takes: that of the system, which need not be the kernel's.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::{AGENT, KEY, Machine, Shop, TRIVIAL, assert_refused};
use crate::support::command_line::{Outcome, run};

/// Installs where `uname -m` and `getconf LONG_BIT` answer this.
async fn install_on(shop: &Shop, machine: &Machine, kernel: &str, bits: &str) -> Outcome {
    let programs = TempDir::new().unwrap();
    let uname = format!("#!/bin/sh\ncase $1 in -m) echo {kernel} ;; *) echo Linux ;; esac\n");
    for (name, text) in [("uname", uname), ("getconf", format!("#!/bin/sh\n[ \"$1\" = LONG_BIT ] && echo {bits}\n"))] {
        let file = programs.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = machine.pasted(&shop.url(), &["--key", KEY]);
    command.env("PATH", format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap()));
    run(command).await
}

#[actix_web::test]
async fn a_32_bit_system_on_a_64_bit_kernel_gets_its_own_agent() {
    let shop = Shop::empty().await;
    for arch in ["x86_64", "aarch64", "armv7", "i686", "riscv64"] {
        shop.stock(&format!("signalbox-agent-linux-{arch}"), &format!("#!/bin/sh\n# {arch}\nexit 0\n"));
    }
    let cases = [
        ("aarch64", "32", "armv7"),
        ("aarch64", "64", "aarch64"),
        ("armv8l", "32", "armv7"),
        ("x86_64", "32", "i686"),
        ("x86_64", "64", "x86_64"),
        ("i586", "32", "i686"),
        ("riscv64", "64", "riscv64"),
    ];

    for (kernel, bits, arch) in cases {
        let machine = Machine::new();
        let outcome = install_on(&shop, &machine, kernel, bits).await;

        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{kernel} {bits}: {outcome:?}");
        assert_eq!(machine.read(AGENT), format!("#!/bin/sh\n# {arch}\nexit 0\n"), "{kernel} {bits}");
    }
}

#[actix_web::test]
async fn a_32_bit_system_without_an_agent_of_its_own_is_refused() {
    let shop = Shop::empty().await;
    shop.stock("signalbox-agent-linux-x86_64", TRIVIAL);
    let machine = Machine::new();

    let outcome = install_on(&shop, &machine, "x86_64", "32").await;

    let named = "no agent for linux-i686, which this 32-bit system on a kernel for x86_64 needs";
    assert_refused(&outcome, named);
    assert_refused(&outcome, "(releases have agents for x86_64, aarch64, armv7 and riscv64)");
    assert_eq!(machine.files(), []);
}
