//! The whole way: a signed release beside the service, a rollout of it, and the real agent.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use sha2::{Digest, Sha256};
use signalbox_protocol::agent::RELEASE_NAMESPACE;
use tempfile::TempDir;

use super::Scene;
use crate::real_agent::agent_program;
use crate::support::command_line::Launched;
use crate::support::keygen::Keygen;
use crate::support::{eventually, machine};

/// What the program of this build is released as.
const VERSION: &str = "99.0.0";

/// Replaces the release of a service with the agent's program, signed by this key. Returns what pins the key.
fn release(scene: &Scene, keygen: &Keygen, key: &str) -> String {
    let pinned = format!("release@example.org {}\n", keygen.generate(key, "ed25519", ""));
    let (program, name) =
        (fs::read(agent_program()).unwrap(), format!("signalbox-agent-linux-{}", std::env::consts::ARCH));
    let sha256: String = Sha256::digest(&program).iter().map(|byte| format!("{byte:02x}")).collect();
    let released =
        json!({ "v": 1, "version": VERSION, "programs": { &name: { "bytes": program.len(), "sha256": sha256 } } });
    let released = released.to_string();
    fs::write(scene.programs.path().join(name), program).unwrap();
    let signature = keygen.sign(key, RELEASE_NAMESPACE, released.as_bytes());
    fs::write(scene.programs.path().join("agent-release.json.sig"), signature).unwrap();
    fs::write(scene.programs.path().join("agent-release.json"), released).unwrap();
    pinned
}

/// The agent of a server, whose owner has pinned these keys.
fn agent(scene: &Scene, machine: &machine::Machine, files: &TempDir, pinned: &str) -> Launched {
    // The agent is another user, who may read the owner's files.
    fs::set_permissions(files, Permissions::from_mode(0o755)).unwrap();
    let (keys, policy) = (files.path().join("release_signers"), files.path().join("policy.toml"));
    fs::write(&keys, pinned).unwrap();
    fs::write(&policy, format!("updates = \"signed\"\nrelease_signers = \"{}\"\n", keys.display())).unwrap();
    machine.agent(scene.service.address, &scene.web.key, &["--policy", &policy.display().to_string()])
}

/// Waits until the build runs in place of the program that took it, and catches SIGTERM. For the service the server is updated
/// as soon as the trial of the build connects.
async fn until_replaced(agent: &Launched) {
    const TERM: u64 = 1 << 14;
    let installed = fs::canonicalize(agent_program()).unwrap();
    eventually("the build runs in place of the agent", async || {
        let running = fs::read_link(format!("/proc/{}/exe", agent.id())).ok()?;
        let status = fs::read_to_string(format!("/proc/{}/status", agent.id())).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        (running != installed && caught & TERM != 0).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn the_real_agent_runs_the_release_that_was_rolled_out() {
    let (scene, keygen) = (Scene::start().await, Keygen::new());
    let (machine, files) = (machine::Machine::new(), TempDir::new().unwrap());
    let pinned = release(&scene, &keygen, "release");
    let agent = agent(&scene, &machine, &files, &pinned);
    scene.until_online(&scene.web).await;

    let rollout = scene.roll_out(json!({ "waves": [{ "tags": [] }], "pause_minutes": 0 })).await;

    let done = scene.until_status(&rollout, "done").await;
    assert_eq!(done["counts"]["updated"], 1, "{done}");
    until_replaced(&agent).await;
    let path = format!("/servers/{}", scene.web.id);
    let server = eventually("the build is connected", async || {
        let server = scene.read(&path).await;
        (server["status"] == "online").then_some(server)
    })
    .await;
    assert_eq!(server["agent"]["version"], VERSION);
    agent.signal("TERM");
    assert_eq!(agent.outcome().await.code, Some(0), "it is the same process");
}

#[actix_web::test]
async fn the_real_agent_refuses_what_a_key_has_signed_that_its_owner_did_not_pin() {
    let (scene, keygen) = (Scene::start().await, Keygen::new());
    let (machine, files) = (machine::Machine::new(), TempDir::new().unwrap());
    let pinned = release(&scene, &keygen, "release");
    release(&scene, &keygen, "of-the-thief");
    let _agent = agent(&scene, &machine, &files, &pinned);
    scene.until_online(&scene.web).await;

    let rollout = scene.roll_out(json!({ "waves": [{ "tags": [] }] })).await;

    let member = scene.until_state(&rollout, &scene.web, "refused").await;
    assert_eq!(member["reason"], "unknown_signer", "{member}");
    let server = scene.read(&format!("/servers/{}", scene.web.id)).await;
    assert_eq!((&server["status"], &server["agent"]["version"]), (&json!("online"), &json!(env!("CARGO_PKG_VERSION"))));
}
