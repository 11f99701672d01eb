//! Commands while the service, the connection or the agent goes away.

use serde_json::json;
use uuid::Uuid;

use super::{Scene, WILLING};
use crate::support::commands::answered;
use crate::support::machine::{Gate, Machine};
use crate::support::port::Port;
use crate::support::process::{Prepared, ServiceProcess};
use crate::support::site::Site;
use crate::support::storage::Storage;
use crate::support::wire::Wire;
use crate::support::{eventually, uuid_of};

/// A command that says when it has begun, waits at the gate, and leaves a line for each time that it ran.
fn waiting(machine: &Machine, gate: &Gate) -> String {
    let runs = machine.path("runs");
    format!("echo before; echo run >>{}; {}; echo after; echo late >&2", runs.display(), gate.wait())
}

/// Begins a command on a service that is a program.
async fn begin(service: &ServiceProcess, prepared: &Prepared, command: &str) -> Uuid {
    let path = format!("/commands/{}?wait=0", prepared.server_id);
    let call = service.client.post(path).bearer(&prepared.token).json(json!({ "command": command }));
    uuid_of(&call.expect(200).await["command_id"])
}

async fn until_online(service: &ServiceProcess, prepared: &Prepared) {
    let path = format!("/servers/{}", prepared.server_id);
    eventually("online", async || (service.read(prepared, &path).await["status"] == "online").then_some(())).await;
}

#[actix_web::test]
async fn the_result_of_a_command_arrives_after_kill_9_of_the_service() {
    let (storage, machine) = (Storage::fresh().await, Machine::new());
    let port = Port::reserve();
    let service = ServiceProcess::start_on(&storage, &port.address.to_string()).await;
    let prepared = service.prepare().await;
    let _agent = machine.agent(port.address, &prepared.key, &WILLING);
    until_online(&service, &prepared).await;
    let gate = machine.gate();
    let id = begin(&service, &prepared, &waiting(&machine, &gate)).await;
    machine.until_written("runs").await;

    service.kill().await;
    gate.open();
    let service = ServiceProcess::start_on(&storage, &port.address.to_string()).await;
    let path = format!("/commands/{}/{id}", prepared.server_id);
    let result = eventually("the result", async || {
        let command = service.read(&prepared, &path).await;
        (command["status"] != "running").then_some(command)
    })
    .await;

    assert_eq!((&result["status"], &result["exit_code"]), (&json!("succeeded"), &json!(0)), "{result}");
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("before\nafter\n"), &json!("late\n")));
    assert_eq!(machine.until_written("runs").await, "run\n");
    let history = service.read(&prepared, &format!("/commands/{}", prepared.server_id)).await;
    assert_eq!(history.as_array().unwrap().len(), 1, "{history}");
}

#[actix_web::test]
async fn a_waiting_caller_gets_the_result_of_a_command_whose_connection_was_cut() {
    let (site, machine) = (Site::start().await, Machine::new());
    let wire = Wire::to(site.service.address).await;
    let _agent = machine.agent(wire.address, &site.key, &WILLING);
    site.until_status("online").await;
    let gate = machine.gate();
    let pending = site.run(&waiting(&machine, &gate));
    machine.until_written("runs").await;

    wire.cut();
    site.until_status("offline").await;
    gate.open();
    wire.mend();
    let answer = answered(pending).await;

    assert_eq!(answer.status, 200, "{answer}");
    let result = answer.json();
    assert_eq!((&result["status"], &result["stdout"]), (&json!("succeeded"), &json!("before\nafter\n")));
    assert_eq!(machine.until_written("runs").await, "run\n");
}

#[actix_web::test]
async fn a_command_whose_agent_was_killed_is_lost_and_leaves_no_process() {
    let Scene { site, machine, agent } = Scene::start().await;
    let (gate, marker) = (machine.gate(), &machine.marker);
    let id = site.begin(&format!("X={marker}; export X; {}", waiting(&machine, &gate))).await;
    machine.until_processes(2).await;
    // The agent sends output after it has noted the shell's process: one that is killed before that leaves the process alone.
    eventually("its first output", async || {
        let so_far = site.read(&format!("{}/{id}", site.commands_path())).await;
        (so_far["stdout"] == "before\n").then_some(())
    })
    .await;

    agent.signal("KILL");
    agent.outcome().await;
    site.until_status("offline").await;
    let orphans = machine.processes();
    let second = machine.agent(site.service.address, &site.key, &WILLING);
    let result = site.until_command(id, "lost").await;

    assert!(!orphans.is_empty(), "nothing ends a command while its agent is away");
    machine.until_no_process().await;
    assert_eq!(result["exit_code"], json!(null));
    let scene = Scene { site, machine, agent: second };
    assert_eq!(scene.run("true").await["status"], "succeeded");
    assert_eq!(scene.machine.until_written("runs").await, "run\n");
}
