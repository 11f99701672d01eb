use serde_json::json;

use super::*;

fn docker(access: DockerAccess) -> Docker {
    let docker_host = Some("unix:///nonexistent/engine.sock".to_owned());
    Docker::new(&Policy { docker: access.into(), docker_host, ..Policy::default() }, Gate::default())
}

async fn refusal(access: DockerAccess, method: &str, params: Value) -> String {
    docker(access).call(method, params, None).unwrap().await.unwrap_err().code
}

const READING: [&str; 4] = ["docker.list", "docker.inspect", "docker.stats", "docker.logs"];
const CHANGING: [&str; 5] = ["docker.start", "docker.stop", "docker.restart", "docker.pause", "docker.unpause"];

fn params() -> Value {
    json!({"container_id": "web", "tail": 10, "stdout": true, "stderr": true})
}

#[tokio::test]
async fn the_policy_comes_before_everything_else() {
    for method in READING {
        assert_eq!(refusal(DockerAccess::Off, method, json!("nonsense")).await, "agent_refused", "{method}");
        assert_eq!(refusal(DockerAccess::Read, method, params()).await, "docker_unavailable", "{method}");
    }
    for method in CHANGING {
        for access in [DockerAccess::Off, DockerAccess::Read] {
            assert_eq!(refusal(access, method, json!("nonsense")).await, "agent_refused", "{method}");
        }
        assert_eq!(refusal(DockerAccess::Control, method, params()).await, "docker_unavailable", "{method}");
    }
}

#[tokio::test]
async fn following_a_log_asks_the_policy_too() {
    let (lines, _receiver) = tokio::sync::mpsc::channel(1);

    let refused = docker(DockerAccess::Off).follow("web", 1, lines).await.unwrap_err();

    assert_eq!(refused.code, "agent_refused");
}

#[tokio::test]
async fn nothing_but_a_name_reaches_the_engine() {
    for name in ["..", "../images/json", "web?all=1", ""] {
        for method in ["docker.inspect", "docker.stats", "docker.logs", "docker.start"] {
            let mut params = params();
            params["container_id"] = json!(name);
            assert_eq!(refusal(DockerAccess::Control, method, params).await, "bad_params", "{method} {name}");
        }
    }
}

#[test]
fn unlisted_methods_are_unknown() {
    for method in ["docker.exec", "docker.remove", "docker.", "list"] {
        assert!(docker(DockerAccess::Control).call(method, params(), None).is_none(), "{method}");
    }
}
