//! A real service whose whole database was in an attacker's hands, and an agent whose owner has switched on nothing.

use serde_json::{Value, json};

use crate::support::dashboard::{Dashboard, Pass};
use crate::support::eventually;
use crate::support::machine::{Machine, has_had_child};
use crate::support::site::Site;

/// Makes the service believe that the agent may do everything, and that each command still waits or runs.
const EDITS: [&str; 4] = [
    r#"UPDATE servers SET agent = REPLACE(agent, '"metrics"', '"metrics","commands","terminal","docker_control"')"#,
    "UPDATE commands SET status = 'running', finished_at = NULL, error_code = NULL WHERE batch_id IS NULL",
    "UPDATE commands SET status = 'queued', started_at = NULL, finished_at = NULL, error_code = NULL
        WHERE batch_id IS NOT NULL",
    "UPDATE command_batches SET finished_at = NULL, is_cancelled = FALSE",
];

#[actix_web::test]
async fn a_database_that_says_so_runs_nothing() {
    let (site, machine) = (Site::start().await, Machine::new());
    let agent = machine.agent(site.service.address, &site.key, &[]);
    site.until_status("online").await;
    let touch = json!({"command": format!("touch {}", machine.path("ran").display())});
    site.post(site.commands_path()).json(touch.clone()).expect_error(400, "agent_refused").await;
    let mut batch = touch.clone();
    batch["server_ids"] = json!([site.server_id]);
    site.post("/commands").json(batch).expect(201).await;
    until_ended(&site).await;
    assert!(!has_had_child(agent.id()), "it started a program");
    agent.signal("TERM");
    agent.outcome().await;

    let site = site.restart_after(&EDITS).await;
    let agent = machine.agent(site.service.address, &site.key, &[]);
    let commands = until_ended(&site).await;

    // The agent does not hold the one that is said to run, and refuses the one that is said to wait.
    let mut ends: Vec<&str> = commands.iter().map(|command| command["status"].as_str().unwrap()).collect();
    ends.sort_unstable();
    assert_eq!(ends, ["failed", "lost"]);
    site.post(site.commands_path()).json(touch).expect_error(400, "agent_refused").await;
    let stop = format!("/docker/{}/containers/web/stop", site.server_id);
    site.post(stop).expect_error(400, "agent_refused").await;
    let path = format!("/api/v1/ws/terminal/{}", site.server_id);
    let pass = Pass::Header(&site.owner.token);
    let mut terminal = Dashboard::open(site.service.address, &path, pass, &[]).await.unwrap();
    assert_eq!(terminal.expect("error").await["code"], "agent_refused");
    assert!(!has_had_child(agent.id()), "it started a program");
    assert!(!machine.path("ran").exists(), "it ran");
}

/// The commands, as soon as none of them waits or runs.
async fn until_ended(site: &Site) -> Vec<Value> {
    eventually("all commands have ended", async || {
        let commands = site.commands().await;
        let have_ended = commands.iter().all(|command| command["finished_at"].is_string());
        (have_ended && commands.len() == 2).then_some(commands)
    })
    .await
}
