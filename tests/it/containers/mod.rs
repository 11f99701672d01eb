//! Containers, with the real agent on a real Docker and a real Podman. `scripts/with-engines` provides both.

mod events;
mod follow;
mod logs;
mod samples;
mod states;
mod verbs;
mod watched;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use tempfile::TempDir;

use crate::real_agent::{agent_program, unprivileged};
use crate::support::command_line::Launched;
use crate::support::engine::{Container, Engine, could_not_freeze};
use crate::support::site::Site;
use crate::support::{Answer, Call, eventually};

/// Whether the agent got no answer from its engine in time.
fn is_late(answer: &Answer) -> bool {
    answer.status == 400 && answer.json()["detail"] == "the container engine gave no answer in time"
}

/// A service, and the real agent of its server with an engine.
struct Host {
    site: Site,
    engine: Engine,
    agent: Launched,
    _state_dir: TempDir,
}

impl Host {
    /// With an agent that permits the service to control containers.
    async fn start(engine: Engine) -> Self {
        Self::with_policy(engine, "control").await
    }

    async fn with_policy(engine: Engine, docker: &str) -> Self {
        let (site, state_dir) = (Site::start().await, TempDir::new().unwrap());
        // The agent's user is another one than the test's.
        fs::set_permissions(&state_dir, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = unprivileged(&agent_program());
        command
            .env_clear()
            .args(["--url", &format!("http://{}", site.service.address), "--key", &site.key, "--interval", "1"])
            .args(["--docker", docker, "--docker-host", &engine.address(), "--state-dir"])
            .arg(state_dir.path().join("state"));
        let agent = Launched::start(command);
        site.until_status("online").await;
        Self { site, engine, agent, _state_dir: state_dir }
    }

    fn get(&self, path: &str) -> Call {
        let path = format!("/docker/{}/containers{path}", self.site.server_id);
        self.site.service.client.get(path).bearer(&self.site.owner.token)
    }

    fn post(&self, path: &str) -> Call {
        let path = format!("/docker/{}/containers{path}", self.site.server_id);
        self.site.service.client.post(path).bearer(&self.site.owner.token)
    }

    /// The answer to a call that may be repeated: on a busy machine an engine may be too slow for the agent.
    async fn answer(&self, call: impl Fn() -> Call) -> Answer {
        eventually("the engine is in time", async || Some(call().send().await).filter(|answer| !is_late(answer))).await
    }

    async fn read(&self, path: &str) -> Value {
        let answer = self.answer(|| self.get(path)).await;
        assert_eq!(answer.status, 200, "{path}: {answer}");
        answer.json()
    }

    /// Performs an action on a container, where a second time does no harm. Returns the state in the answer. On a busy
    /// machine runc may fail to freeze a container, and is asked again.
    async fn act(&self, container: &Container, verb: &str) -> String {
        let answer = eventually(verb, async || {
            let answer = self.answer(|| self.post(&format!("/{}/{verb}", container.id))).await;
            let body = answer.json();
            let is_busy = body["detail"].as_str().is_some_and(could_not_freeze);
            assert!(is_busy || answer.status == 200, "{}: {body}", answer.status);
            (!is_busy).then_some(body)
        })
        .await;
        let action = verb.split('?').next().unwrap();
        assert_eq!((&answer["container_id"], &answer["action"]), (&Value::from(container.id.as_str()), &action.into()));
        answer["state"].as_str().unwrap().to_owned()
    }

    /// The entry of a container in the list, if there is one.
    async fn listed(&self, container: &Container, query: &str) -> Option<Value> {
        let list = self.read(query).await;
        list.as_array().unwrap().iter().find(|entry| entry["id"] == container.id.as_str()).cloned()
    }
}
