use std::collections::HashSet;

use signalbox_protocol::sample::{ContainerUsage, DiskIo, DiskUsage, NetworkUsage, Temperature, TopProcesses};

use super::*;

fn target(name: &str, id: u128, is_online: bool, sample: Option<Sample>) -> Target {
    described(name, id, is_online, Some("{}"), sample)
}

fn described(name: &str, id: u128, is_online: bool, agent: Option<&str>, sample: Option<Sample>) -> Target {
    let server_id = Uuid::from_u128(id);
    let latest = sample.map(|sample| Arc::new(Snapshot::new(server_id, sample)));
    let last_seen_at = Some(now().plus_millis(-1_000));
    let server = Described { server_id, name, agent, clock_offset_ms: None, is_online, last_seen_at };
    Target::new(server, latest, now())
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_795_166_130_120)
}

fn sample() -> Sample {
    Sample { timestamp: now().plus_millis(-2_000), cpu_percent: 12.34, ..Sample::default() }
}

fn text_of(targets: Vec<Target>) -> String {
    Exposition::new(targets).map(|chunk| String::from_utf8(chunk.to_vec()).unwrap()).collect()
}

/// Returns the lines that are samples of this family.
fn samples_of<'a>(text: &'a str, family: &str) -> Vec<&'a str> {
    let lines = text.lines().filter(|line| line.split('{').next() == Some(family));
    lines.collect()
}

#[test]
fn all_known_values_of_a_server_are_written() {
    let agent = r#"{"hostname": "web-1.example", "os": "Debian GNU/Linux 12", "kernel": "6.1.0", "arch": "x86_64"}"#;
    let sample = Sample {
        cpu_per_core: vec![0.07, 100.0],
        load_average: [0.5, 1.25, 2.0],
        memory_total: u64::MAX,
        memory_used: 5,
        swap_total: 100,
        swap_used: 30,
        disk_usage: vec![DiskUsage { path: "/srv".into(), total: 1000, used: 600, free: 300, percent: 66.67 }],
        disk_io: vec![DiskIo { device: "sda".into(), read_bytes: 7, write_bytes: 8 }],
        network: vec![NetworkUsage { interface: "eth0".into(), bytes_sent: 9, bytes_recv: 10, in_total: None }],
        temperatures: vec![
            Temperature { label: "coretemp Package id 0".into(), celsius: 45.5 },
            Temperature { label: "coretemp Core 0".into(), celsius: -3.0 },
            Temperature { label: "acpitz".into(), celsius: 30.0 },
        ],
        uptime_seconds: 60,
        process_count: 321,
        containers: vec![ContainerUsage {
            id: "4f5c".into(),
            name: "db".into(),
            cpu_percent: 250.0,
            memory_bytes: 11,
            network_rx_bytes: 12,
            network_tx_bytes: 13,
        }],
        processes: Some(TopProcesses::default()),
        ..sample()
    };

    let text = text_of(vec![described("web-1", 1, true, Some(agent), Some(sample))]);

    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let labels = r#"instance="web-1",server_id="00000000-0000-0000-0000-000000000001""#;
    let expected = [
        "signalbox_server_up{*} 1",
        "signalbox_server_last_sample_timestamp_seconds{*} 1795166128.12",
        r#"node_uname_info{*,machine="x86_64",nodename="web-1.example",release="6.1.0",sysname="Linux"} 1"#,
        r#"node_os_info{*,pretty_name="Debian GNU/Linux 12"} 1"#,
        "node_time_seconds{*} 1795166128",
        "node_boot_time_seconds{*} 1795166068",
        "node_load1{*} 0.5",
        "node_load5{*} 1.25",
        "node_load15{*} 2",
        "signalbox_cpu_usage_ratio{*} 0.1234",
        r#"signalbox_cpu_core_usage_ratio{*,cpu="0"} 0.0007"#,
        r#"signalbox_cpu_core_usage_ratio{*,cpu="1"} 1"#,
        "node_memory_MemTotal_bytes{*} 18446744073709551615",
        "node_memory_MemAvailable_bytes{*} 18446744073709551610",
        "node_memory_SwapTotal_bytes{*} 100",
        "node_memory_SwapFree_bytes{*} 70",
        r#"node_filesystem_size_bytes{*,mountpoint="/srv"} 1000"#,
        r#"node_filesystem_free_bytes{*,mountpoint="/srv"} 400"#,
        r#"node_filesystem_avail_bytes{*,mountpoint="/srv"} 300"#,
        r#"node_disk_read_bytes_total{*,device="sda"} 7"#,
        r#"node_disk_written_bytes_total{*,device="sda"} 8"#,
        r#"node_network_receive_bytes_total{*,device="eth0"} 10"#,
        r#"node_network_transmit_bytes_total{*,device="eth0"} 9"#,
        r#"node_hwmon_chip_names{*,chip="coretemp",chip_name="coretemp"} 1"#,
        r#"node_hwmon_chip_names{*,chip="acpitz",chip_name="acpitz"} 1"#,
        r#"node_hwmon_temp_celsius{*,chip="coretemp",sensor="Package id 0"} 45.5"#,
        r#"node_hwmon_temp_celsius{*,chip="coretemp",sensor="Core 0"} -3"#,
        r#"node_hwmon_temp_celsius{*,chip="acpitz",sensor="acpitz"} 30"#,
        "node_processes_pids{*} 321",
        r#"signalbox_container_cpu_usage_cores{*,id="4f5c",name="db"} 2.5"#,
        r#"container_memory_usage_bytes{*,id="4f5c",name="db"} 11"#,
        r#"container_network_receive_bytes_total{*,id="4f5c",name="db"} 12"#,
        r#"container_network_transmit_bytes_total{*,id="4f5c",name="db"} 13"#,
    ];
    assert_eq!(lines, expected.map(|line| line.replacen('*', labels, 1)));
}

#[test]
fn unread_values_are_not_written_as_zero() {
    let text = text_of(vec![target("web-1", 1, true, Some(sample()))]);

    let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let expected = [
        "signalbox_server_up gauge",
        "signalbox_server_last_sample_timestamp_seconds gauge",
        "node_uname_info gauge",
        "node_time_seconds gauge",
        "signalbox_cpu_usage_ratio gauge",
    ];
    assert_eq!(families, expected);
}

#[test]
fn a_family_is_contiguous_across_servers_with_one_header() {
    let text = text_of(vec![target("a", 1, true, Some(sample())), target("b", 2, true, Some(sample()))]);

    let expected = "\
# HELP node_time_seconds When the sample was taken, in unixtime, by the server's clock.
# TYPE node_time_seconds gauge
node_time_seconds{instance=\"a\",server_id=\"00000000-0000-0000-0000-000000000001\"} 1795166128
node_time_seconds{instance=\"b\",server_id=\"00000000-0000-0000-0000-000000000002\"} 1795166128
# HELP ";
    assert!(text.contains(expected), "{text}");
    assert_eq!(text.matches("# HELP node_time_seconds ").count(), 1);
}

#[test]
fn the_values_of_labels_are_escaped() {
    let disk = DiskUsage { path: "/mnt/a \"b\"\\c\nd\\\\".into(), total: 1, ..DiskUsage::default() };
    let sample = Sample { disk_usage: vec![disk], ..sample() };

    let text = text_of(vec![target("web \"1\"\\", 1, true, Some(sample))]);

    let expected = r#"node_filesystem_size_bytes{instance="web \"1\"\\",server_id="00000000-0000-0000-0000-000000000001",mountpoint="/mnt/a \"b\"\\c\nd\\\\"} 1"#;
    assert_eq!(samples_of(&text, "node_filesystem_size_bytes"), [expected]);
}

#[test]
fn a_disconnected_server_has_only_its_status() {
    let text = text_of(vec![target("gone", 1, false, Some(sample())), target("new", 2, false, None)]);

    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        r#"signalbox_server_up{instance="gone",server_id="00000000-0000-0000-0000-000000000001"} 0"#,
        r#"signalbox_server_up{instance="new",server_id="00000000-0000-0000-0000-000000000002"} 0"#,
        r#"signalbox_server_last_sample_timestamp_seconds{instance="gone",server_id="00000000-0000-0000-0000-000000000001"} 1795166128.12"#,
        // Without a sample, this is when it was last seen.
        r#"signalbox_server_last_sample_timestamp_seconds{instance="new",server_id="00000000-0000-0000-0000-000000000002"} 1795166129.12"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_connected_server_is_up_while_its_latest_sample_is_fresh() {
    // The agent's description, the age of its latest sample in seconds, whether the server is up.
    let cases = [
        ("{}", 60, true),
        ("{}", 61, false),
        ("{}", -60, true),
        ("{}", -61, false),
        ("not JSON", 60, true),
        (r#"{"sample_interval_seconds": 1}"#, 60, true),
        (r#"{"sample_interval_seconds": 300}"#, 900, true),
        (r#"{"sample_interval_seconds": 300}"#, 901, false),
        (r#"{"clock_offset_ms": -3600000}"#, 3_660, true),
        (r#"{"clock_offset_ms": -3600000}"#, 3_661, false),
        (r#"{"clock_offset_ms": 3600000}"#, -3_540, true),
        // The clock has been corrected since.
        (r#"{"clock_offset_ms": 3600000}"#, 5, true),
        (r#"{"clock_offset_ms": 3600000}"#, 3_600, false),
    ];

    for (agent, age_seconds, is_up) in cases {
        let sample = Sample { timestamp: now().plus_millis(-1000 * age_seconds), ..sample() };

        let text = text_of(vec![described("web-1", 1, true, Some(agent), Some(sample))]);

        let up = samples_of(&text, "signalbox_server_up");
        assert!(up[0].ends_with(if is_up { " 1" } else { " 0" }), "{agent} {age_seconds}: {up:?}");
        assert_eq!(samples_of(&text, "signalbox_cpu_usage_ratio").len(), usize::from(is_up), "{agent} {age_seconds}");
    }
}

#[test]
fn a_duplicate_series_is_written_once() {
    let disk = |path: &str, total| DiskUsage { path: path.into(), total, ..DiskUsage::default() };
    let sensor = |label: &str| Temperature { label: label.into(), celsius: 1.0 };
    let sample = Sample {
        disk_usage: vec![disk("/", 1), disk("/data", 2), disk("/", 3)],
        temperatures: vec![sensor("a"), sensor("a a"), sensor("a b")],
        ..sample()
    };

    let text = text_of(vec![target("web-1", 1, true, Some(sample))]);

    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series: Vec<&str> = lines.filter_map(|line| line.rsplit_once(' ').map(|(series, _)| series)).collect();
    let distinct: HashSet<&str> = series.iter().copied().collect();
    assert_eq!(distinct.len(), series.len(), "{text}");
    assert!(samples_of(&text, "node_filesystem_size_bytes")[0].ends_with(" 1"), "the first counts: {text}");
    assert_eq!(samples_of(&text, "node_filesystem_size_bytes").len(), 2);
    assert_eq!(samples_of(&text, "node_hwmon_temp_celsius").len(), 2);
}

#[test]
fn a_fleet_comes_in_chunks() {
    let targets: Vec<Target> = (0..3_000).map(|id| target("one of many", id, true, Some(sample()))).collect();

    let chunks: Vec<Bytes> = Exposition::new(targets).collect();

    assert!(chunks.len() > 10, "{}", chunks.len());
    assert!(chunks.iter().all(|chunk| chunk.len() < 2 * CHUNK_BYTES));
    let text = String::from_utf8(chunks.concat()).unwrap();
    assert_eq!(text.matches("# HELP ").count(), 5);
    assert_eq!(samples_of(&text, "node_time_seconds").len(), 3_000);
    assert!(text.ends_with('\n'));
}

#[test]
fn without_servers_there_is_no_text() {
    assert_eq!(text_of(Vec::new()), "");
}

#[test]
fn every_family_is_valid_and_unique() {
    let names: HashSet<&str> = FAMILIES.iter().map(|family| family.name).collect();

    assert_eq!(names.len(), FAMILIES.len());
    for family in FAMILIES.iter() {
        assert!(family.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{}", family.name);
        assert!(!family.help.contains(['\\', '\n']), "{}: a HELP that would have to be escaped", family.name);
        let is_counter = matches!(family.kind, families::Kind::Counter);
        assert_eq!(is_counter, family.name.ends_with("_total"), "{}", family.name);
    }
}
