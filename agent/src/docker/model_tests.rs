use serde_json::json;

use super::*;

#[test]
fn an_entry_of_docker_is_read_in_full() {
    let listed: Listed = serde_json::from_value(json!({
        "Id": "75af", "Names": ["/other/alias", "/web"], "Image": "nginx:1", "Created": 1_795_273_684,
        "Ports": [
            {"IP": "0.0.0.0", "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp"},
            {"PrivatePort": 53, "Type": "udp"},
        ],
        "Labels": {"a": "b"}, "State": "running", "Status": "Up 4 seconds (healthy)", "Mounts": [], "Health": {},
    }))
    .unwrap();

    let expected = Container {
        id: "75af".into(),
        name: "web".into(),
        image: "nginx:1".into(),
        state: "running".into(),
        status: "Up 4 seconds (healthy)".into(),
        created_at: Timestamp::from_millis(1_795_273_684_000),
        ports: vec![
            Port { private_port: 80, public_port: Some(8080), protocol: "tcp".into(), host_ip: Some("0.0.0.0".into()) },
            Port { private_port: 53, public_port: None, protocol: "udp".into(), host_ip: None },
        ],
        labels: [("a".to_owned(), "b".to_owned())].into(),
    };
    assert_eq!(Container::from(listed), expected);
}

#[test]
fn a_state_that_only_podman_has_and_nulls_are_no_obstacle() {
    let listed: Vec<Listed> = serde_json::from_value(json!([
        {"Id": "1", "Names": null, "State": "stopped", "Ports": null, "Labels": null},
        {"Id": "2", "Names": ["two"]},
    ]))
    .unwrap();

    let containers: Vec<Container> = listed.into_iter().map(Container::from).collect();

    assert_eq!(containers[0], Container { id: "1".into(), state: "stopped".into(), ..Container::default() });
    assert_eq!(containers[1], Container { id: "2".into(), name: "two".into(), ..Container::default() });
}

#[test]
fn inspecting_never_reveals_the_value_of_a_variable() {
    let inspected: Inspected = serde_json::from_value(json!({
        "Id": "75af", "Name": "/web", "Created": "2026-11-21T15:08:04.378748494Z", "Path": "sh", "Args": ["-c", "true"],
        "Image": "sha256:28", "RestartCount": 3,
        "State": {
            "Status": "exited", "Running": false, "OOMKilled": true, "Pid": 0, "ExitCode": 137, "Error": "",
            "StartedAt": "2026-11-21T15:12:12Z", "FinishedAt": "2026-11-21T15:12:13+00:00", "Health": {"Status": "unhealthy"},
        },
        "Mounts": [{"Type": "bind", "Source": "/srv", "Destination": "/data", "RW": false}],
        "Config": {
            "Image": "busybox", "Tty": true, "Env": ["TOKEN=hunter2=x", "EMPTY=", "BARE"], "Labels": {"a": "b"},
        },
        "HostConfig": {
            "NetworkMode": "bridge", "LogConfig": {"Type": "json-file"}, "RestartPolicy": {"Name": "always"}, "Memory": 64,
        },
        "NetworkSettings": {
            "Ports": {"80/tcp": [{"HostIp": "::", "HostPort": "8080"}], "53/udp": null, "odd": null},
            "Networks": {"bridge": {"IPAddress": "172.17.0.2"}, "gone": null},
        },
    }))
    .unwrap();

    let detail = ContainerDetail::from(inspected);

    let expected = ContainerDetail {
        id: "75af".into(),
        name: "web".into(),
        image: "busybox".into(),
        image_id: "sha256:28".into(),
        state: "exited".into(),
        health: Some("unhealthy".into()),
        created_at: Timestamp::parse("2026-11-21T15:08:04.378Z").unwrap(),
        started_at: Timestamp::parse("2026-11-21T15:12:12Z"),
        finished_at: Timestamp::parse("2026-11-21T15:12:13Z"),
        exit_code: Some(137),
        oom_killed: true,
        error: None,
        restart_count: 3,
        restart_policy: "always".into(),
        pid: None,
        command: vec!["sh".into(), "-c".into(), "true".into()],
        environment: vec!["TOKEN".into(), "EMPTY".into(), "BARE".into()],
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ports: vec![
            Port { private_port: 53, public_port: None, protocol: "udp".into(), host_ip: None },
            Port { private_port: 80, public_port: Some(8080), protocol: "tcp".into(), host_ip: Some("::".into()) },
        ],
        mounts: vec![Mount {
            kind: "bind".into(),
            source: "/srv".into(),
            destination: "/data".into(),
            read_only: true,
        }],
        network_mode: "bridge".into(),
        networks: vec![
            Network { name: "bridge".into(), ip_address: Some("172.17.0.2".into()) },
            Network { name: "gone".into(), ip_address: None },
        ],
        tty: true,
        privileged: false,
        log_driver: "json-file".into(),
        memory_limit_bytes: Some(64),
    };
    assert_eq!(detail, expected);
}

#[test]
fn a_container_that_never_ran_has_no_exit_code() {
    let inspected: Inspected = serde_json::from_value(json!({
        "Id": "1", "State": {"Status": "created", "ExitCode": 0, "FinishedAt": "0001-01-01T00:00:00Z", "Health": {"Status": ""}},
    }))
    .unwrap();

    let detail = ContainerDetail::from(inspected);

    assert_eq!((detail.exit_code, detail.finished_at, detail.health), (None, None, None));
}
