//! A machine's `/proc` and `/sys` in a directory, so that sampling costs the same on every machine.

use std::fmt::Write;
use std::fs;

use signalbox_agent::policy::{Policy, Switch};
use signalbox_agent::{Config, Roots, Timing};
use tempfile::TempDir;

use crate::service::LONG;

const CORES: u64 = 4;

/// Files that are the same at each reading.
const FILES: &[(&str, &str)] = &[
    (
        "proc/meminfo",
        "MemTotal:       16000000 kB\nMemFree:         4000000 kB\nMemAvailable:    9000000 kB\nBuffers:          300000 kB\n\
         Cached:          4500000 kB\nSwapCached:            0 kB\nDirty:              1200 kB\nWriteback:             0 kB\n\
         SReclaimable:     250000 kB\nSwapTotal:       2000000 kB\nSwapFree:        1900000 kB\n",
    ),
    ("proc/loadavg", "0.15 0.92 1.69 2/320 4711\n"),
    ("proc/uptime", "105397.97 210152.52\n"),
    ("proc/self/mountinfo", "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"),
    (
        "proc/diskstats",
        " 259       0 nvme0n1 53641 10610 4654778 32675 10384 45370 6088904 26622 0 10012 60066 8743 27 642976 755 398 12\n \
         259       1 nvme0n1p1 10 0 100 0 10 0 200 0 0 0 0 0 0 0 0 0 0\n",
    ),
    (
        "proc/net/dev",
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
         lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0          0\n  \
         eth0:152112748    6604    0    0    0     0          0         0   412213    3809    0    0    0     0       0          0\n",
    ),
    (
        "proc/net/sockstat",
        "sockets: used 80\nTCP: inuse 33 orphan 1 tw 144 alloc 35 mem 7\nUDP: inuse 2 mem 3\nUDPLITE: inuse 0\n\
         RAW: inuse 0\nFRAG: inuse 0 memory 0\n",
    ),
    ("proc/pressure/cpu", PRESSURE),
    ("proc/pressure/memory", PRESSURE),
    ("proc/pressure/io", PRESSURE),
    ("proc/sys/fs/file-nr", "1984\t0\t9223372036854775807\n"),
    ("proc/sys/kernel/random/entropy_avail", "256\n"),
    ("sys/block/nvme0n1/size", "1000215216\n"),
    ("sys/class/net/eth0/type", "1\n"),
    ("sys/class/net/eth0/uevent", "INTERFACE=eth0\nIFINDEX=2\n"),
    ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
    ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
    ("sys/class/hwmon/hwmon0/temp1_input", "45000\n"),
];

const PRESSURE: &str =
    "some avg10=0.12 avg60=0.08 avg300=0.02 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=123456\n";

/// Directories of `/proc` that are processes.
const PROCESSES: u32 = 200;

pub struct Machine {
    directory: TempDir,
    steps: u64,
}

impl Machine {
    pub fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap(), steps: 0 };
        FILES.iter().for_each(|(path, text)| machine.write(path, text));
        for pid in 1..=PROCESSES {
            fs::create_dir(machine.directory.path().join(format!("proc/{pid}"))).unwrap();
        }
        machine
    }

    /// An agent that monitors it. Processes are read once a minute, and so are omitted.
    pub fn config(&self) -> Config {
        let at = |name: &str| self.directory.path().join(name);
        let (proc, sys, etc) = (at("proc"), at("sys"), at("etc"));
        Config {
            roots: Roots { proc, sys, etc, var: at("var"), run: at("run"), bin: at("bin") },
            policy: Policy { processes: Switch::Off, ..Policy::default() },
            timing: Timing { collector: LONG, ..Timing::default() },
            ..Config::default()
        }
    }

    /// Time passes: its processors have done something. Texts are as long as before.
    pub fn work(&mut self) {
        self.steps += 1;
        let line = |name: &str, ticks: u64| {
            let [user, idle] = [10_000_000 + ticks, 80_000_000 + 3 * ticks];
            format!("{name} {user} 1200 2000000 {idle} 34000 0 56000 0 0 0\n")
        };
        let mut stat = line("cpu ", CORES * 125 * self.steps);
        for core in 0..CORES {
            stat.push_str(&line(&format!("cpu{core}"), 125 * self.steps));
        }
        let switches = 100_000_000 + 1_000 * self.steps;
        writeln!(stat, "intr 500000000 0 9 0\nctxt {switches}\nbtime 1763600000\nprocesses 400000").unwrap();
        writeln!(stat, "procs_running 2\nprocs_blocked 0\nsoftirq 700000000 1 2 3 4 5 6 7 8 9 10").unwrap();
        self.write("proc/stat", &stat);
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}
