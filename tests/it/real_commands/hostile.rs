//! A service in an attacker's hands, and an agent whose owner has switched on nothing.
//!
//! The attacker has the agent's key and speaks as the service. Nothing may run, nothing may be read, and the agent keeps
//! sending its samples.

mod siege;

use serde_json::{Value, json};
use signalbox_protocol::Encoding;
use signalbox_protocol::agent::{Execute, LogsStart, Request, ServiceMessage, TerminalSize, TerminalStart};
use uuid::Uuid;

use siege::{ENCODINGS, Siege};

fn request(method: &str, params: Value) -> impl Fn(Uuid) -> ServiceMessage {
    move |request_id| {
        let (method, params) = (method.to_owned(), params.clone());
        ServiceMessage::Request(Request { request_id, method, params, timeout_ms: None, by: None })
    }
}

fn terminal(stream_id: Uuid) -> ServiceMessage {
    let size = TerminalSize { columns: 80, rows: 24 };
    ServiceMessage::TerminalStart(TerminalStart { stream_id, size, credit: None, by: None, asker: None, signed: None })
}

fn log(source: &str, path: Option<&str>) -> impl Fn(Uuid) -> ServiceMessage {
    move |stream_id| {
        let (source, path) = (source.to_owned(), path.map(str::to_owned));
        let container_id = None;
        ServiceMessage::LogsStart(LogsStart {
            stream_id,
            source,
            container_id,
            path,
            tail: Some(10),
            credit: None,
            by: None,
        })
    }
}

#[actix_web::test]
async fn nothing_runs_whatever_the_service_sends() {
    let mut siege = Siege::start().await;
    assert_eq!(siege.capabilities, ["metrics", "processes", "docker"]);

    let execute = siege.execute(Uuid::nil());
    siege.expect_refusal("agent_refused", |id| with_id(&execute, id)).await;
    siege.expect_refusal("agent_refused", terminal).await;
    // Messages about things that were never started.
    for encoding in ENCODINGS {
        let (id, data) = (Uuid::now_v7(), format!("{}\n", siege.touch()));
        siege.captive.say(encoding, &terminal(id)).await;
        siege.captive.say(encoding, &ServiceMessage::TerminalInput { stream_id: id, data }).await;
        let size = TerminalSize { columns: 1, rows: 1 };
        siege.captive.say(encoding, &ServiceMessage::TerminalResize { stream_id: id, size }).await;
        siege.captive.say(encoding, &ServiceMessage::Credit { stream_id: id, bytes: u64::MAX }).await;
        siege.captive.say(encoding, &ServiceMessage::Cancel { command_id: id }).await;
        siege.captive.say(encoding, &ServiceMessage::ResultAck { command_id: id }).await;
        assert_eq!(siege.captive.answer(id).await.unwrap_err().code, "agent_refused");
    }

    siege.expect_no_harm().await;
}

fn with_id(execute: &ServiceMessage, command_id: Uuid) -> ServiceMessage {
    let ServiceMessage::Execute(execute) = execute else { unreachable!() };
    ServiceMessage::Execute(Execute { command_id, ..execute.clone() })
}

#[actix_web::test]
async fn no_container_is_touched_and_no_method_runs_anything() {
    let mut siege = Siege::start().await;
    let (shell, image) = (siege.touch(), "busybox");

    for verb in ["start", "stop", "restart", "pause", "unpause"] {
        let params = json!({"container_id": "web", "timeout_seconds": 0});
        siege.expect_refusal("agent_refused", request(&format!("docker.{verb}"), params)).await;
    }
    let unknown = [
        "docker.exec",
        "docker.create",
        "docker.run",
        "docker.kill",
        "docker.remove",
        "docker.START",
        "docker.start ",
        "docker",
        "execute",
        "commands.run",
        "shell.run",
        "terminal.start",
        "agent.set_policy",
        "agent.set_version",
        "",
    ];
    for method in unknown {
        let params = json!({"container_id": "web", "command": shell, "cmd": ["sh", "-c", shell], "image": image});
        siege.expect_refusal("unknown_method", request(method, params)).await;
    }
    for params in [
        Value::Null,
        json!({"command": shell}),
        json!({"release": "e30=", "signature": "-----BEGIN SSH SIGNATURE-----"}),
    ] {
        siege.expect_refusal("agent_refused", request("agent.update", params)).await;
    }
    for params in [Value::Null, json!([]), json!("web"), json!({"container_id": "../../exec/web/start"}), json!(1e300)]
    {
        siege.expect_refusal("agent_refused", request("docker.start", params.clone())).await;
        let inspected = request("docker.inspect", params);
        let id = Uuid::now_v7();
        siege.captive.ask(Encoding::MessagePack, &inspected(id), id).await.expect_err("no such container");
    }

    siege.expect_no_harm().await;
}

#[actix_web::test]
async fn no_file_and_no_log_is_read() {
    let mut siege = Siege::start().await;

    for path in ["/etc/passwd", "/var/log/../../etc/passwd", "/proc/self/environ", "passwd", "", "\0"] {
        siege.expect_refusal("agent_refused", log("file", Some(path))).await;
        let params = json!({"source": "file", "path": path, "q": ".*", "regex": true});
        siege.expect_refusal("agent_refused", request("logs.query", params)).await;
    }
    siege.expect_refusal("agent_refused", log("system", None)).await;
    siege.expect_refusal("agent_refused", request("logs.query", json!({"source": "system"}))).await;

    siege.expect_no_harm().await;
}

#[actix_web::test]
async fn no_message_changes_the_policy() {
    let mut siege = Siege::start().await;
    let policy = json!({"commands": "on", "terminal": "on", "docker": "control", "logs": "on", "log_paths": ["/"]});
    let id = Uuid::now_v7();
    let accepted = json!({"success": true, "server_id": id, "session_id": id, "policy": policy, "capabilities":
        ["commands", "terminal", "docker_control", "logs"]});
    let command = siege.touch();
    let execute = json!({"command_id": id, "command": command, "timeout_seconds": 0, "commands": "on",
        "policy": policy, "force": true});

    for encoding in ENCODINGS {
        for kind in ["policy", "set_policy", "config", "capabilities", "update", "exec", "shell", "run"] {
            let data = json!({"policy": policy, "commands": "on", "command": command, "url": "http://127.0.0.1/x"});
            siege.captive.say_value(encoding, &json!({"type": kind, "data": data})).await;
        }
        siege.captive.say_value(encoding, &json!({"type": "auth_response", "data": accepted})).await;
        siege.captive.say_value(encoding, &json!({"type": "execute", "data": execute})).await;
        siege.captive.say_value(encoding, &json!({"type": "execute", "data": [id, command, null, 60]})).await;
    }
    // Whatever a field is called, the answer is the owner's.
    assert_eq!(siege.captive.answer(id).await.unwrap_err().code, "agent_refused");
    let execute = siege.execute(id);
    siege.expect_refusal("agent_refused", |id| with_id(&execute, id)).await;
    siege.expect_refusal("agent_refused", terminal).await;
    let id = Uuid::now_v7();
    let told = siege.captive.ask(Encoding::Json, &request("agent.policy", policy)(id), id).await.unwrap();
    assert_eq!((&told["commands"], &told["terminal"], &told["docker"]), (&json!("off"), &json!("off"), &json!("read")));

    siege.expect_no_harm().await;
}

#[actix_web::test]
async fn another_connection_changes_nothing_either() {
    let mut siege = Siege::start().await;
    let id = Uuid::now_v7();
    let execute = siege.execute(id);
    siege.captive.say(Encoding::Json, &execute).await;
    assert_eq!(siege.captive.answer(id).await.unwrap_err().code, "agent_refused");

    let (captive, auth) = {
        drop(siege.captive);
        siege.hostile.accept().await
    };
    let mut siege = Siege { captive, ..siege };
    siege.captive.say(Encoding::MessagePack, &execute).await;

    assert_eq!(siege.captive.answer(id).await.unwrap_err().code, "agent_refused");
    assert_eq!((auth.agent.capabilities, auth.commands), (siege.capabilities.clone(), Some(Vec::new())));
    siege.expect_no_harm().await;
}
