//! Commands on real agents.

use std::io::Write;
use std::process::Stdio;

use crate::relay::Relay;
use crate::support::{Running, Site, eventually};

#[tokio::test]
async fn output_and_exit_code_are_those_of_the_command() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;

    let success = site.run(&["exec", "web-1", "--", "echo", "a  b", "$HOME", "it's"]).await;
    let script = site.run(&["exec", &agent.server_id, "--", "echo out; echo err >&2; exit 7"]).await;
    let killed = site.run(&["exec", "web-1", "--", "kill -TERM $$"]).await;

    assert_eq!(success.done(), "a  b $HOME it's\n");
    assert_eq!((script.code, script.stdout.as_str(), script.stderr.as_str()), (Some(7), "out\n", "err\n"));
    assert_eq!((killed.code, killed.stdout.as_str()), (Some(143), ""));
}

#[tokio::test]
async fn standard_input_reaches_the_command() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let run = async |input: &[u8]| {
        let mut command = site.command(&["exec", "-i", "web-1", "--", "tr a-z A-Z"]);
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        running.child.stdin.take().unwrap().write_all(input).unwrap();
        running.outcome().await
    };

    let text = run("größe\n".as_bytes()).await;
    let binary = run(&[0xff, 0xfe]).await;

    assert_eq!(text.done(), "GRößE\n");
    binary.refused(1, "not UTF-8");
}

#[tokio::test]
async fn output_is_shown_as_it_comes_and_ctrl_c_cancels_the_command() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let ended = agent.state.path().join("ended");
    // Only what the shell does itself: it has two seconds, in which a machine under load may start no program.
    let script = format!("trap 'echo bye >{}; exit 9' TERM; echo begun; sleep 1000 & wait", ended.display());

    let running = Running::start(site.command(&["exec", "web-1", "--timeout", "10m", "--", &script]));
    running.until("begun\n").await;
    running.signal("INT");
    let outcome = running.outcome().await;

    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("cancelled"), "{outcome:?}");
    assert!(ended.exists(), "the command itself has ended");
}

#[tokio::test]
async fn a_timeout_ends_the_command() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &["--commands", "on"]).await;

    let outcome = site.run(&["exec", "web-1", "--timeout", "1s", "--", "sleep 1000"]).await;
    let too_long = site.run(&["exec", "web-1", "--timeout", "2h", "--", "true"]).await;

    outcome.refused(124, "the command was ended after 1 s");
    too_long.refused(2, "between 1s and 1h");
}

#[tokio::test]
async fn a_refusal_says_what_to_run_where() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &[]).await;
    site.add_server("new-1", &[]).await;

    let refused = site.run(&["exec", "web-1", "--", "true"]).await;
    let pending = site.run(&["exec", "new-1", "--", "true"]).await;

    refused.refused(1, "web-1's agent does not allow commands. On web-1, run:\n");
    let line = format!("curl -fsSL {}/install.sh | sudo sh -s -- --commands on", site.url);
    assert!(refused.stderr.contains(&line), "{refused:?}");
    pending.refused(1, "new-1 has no agent yet");
}

#[tokio::test]
async fn json_has_the_whole_result() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &["--commands", "on"]).await;

    let outcome = site.run(&["exec", "web-1", "-o", "json", "--", "echo out; exit 3"]).await;

    let result: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((outcome.code, &result["exit_code"], &result["stdout"]), (Some(3), &3.into(), &"out\n".into()));
}

#[tokio::test]
async fn large_output_arrives_in_order_and_a_closed_pipe_is_no_failure() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &["--commands", "on"]).await;

    let whole = site.run(&["exec", "web-1", "--", "seq 1 50000"]).await;
    let mut command = site.command(&["exec", "web-1", "--", "seq 1 200000"]);
    let mut piped = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(piped.stdout.take());
    let status = piped.wait().unwrap();

    let expected: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    assert!(whole.done() == expected, "{} bytes", whole.stdout.len());
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn how_a_command_ends_counts_also_where_nobody_reads_its_output() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &["--commands", "on"]).await;

    let mut codes = Vec::new();
    for arguments in [
        &["exec", "web-1", "--", "seq 1 200000; exit 3"][..],
        &["exec", "web-1", "-o", "json", "--", "exit 4"],
        &["exec", "--tag", "production", "--", "seq 1 10; exit 5"],
        &["exec", "--tag", "production", "--", "seq 1 10"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = site.command(arguments).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        codes.push(eventually("it ends", async || child.try_wait().unwrap()).await.code());
    }

    assert_eq!(codes, [Some(3), Some(4), Some(1), Some(0)]);
}

#[tokio::test]
async fn after_a_lost_connection_nothing_new_is_missing_of_an_output_that_the_service_does_not_keep_whole() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--commands", "on"]).await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;
    let gate = |number: u32| agent.state.path().join(format!("gate-{number}"));
    // Six parts of 282 KiB, of which the service keeps the first and the last half MiB. Each was shown before the next begins.
    let script = format!(
        "for i in 1 2 3 4 5 6; do seq 1 50000; echo part-$i; until [ -e {}/gate-$i ]; do sleep 0.05; done; done; echo end",
        agent.state.path().display()
    );
    let mut command = site.command(&["exec", "web-1", "--timeout", "10m", "--", &script]);
    command.env("SIGNALBOX_URL", relay.url());
    let running = Running::start(command);
    for number in 1..=6 {
        running.until(&format!("part-{number}\n")).await;
        if number == 6 {
            relay.cut();
        }
        std::fs::write(gate(number), "").unwrap();
    }

    let outcome = running.outcome().await;

    let lines: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    let parts: String = (1..=6).map(|number| format!("{lines}part-{number}\n")).collect();
    assert!(outcome.done() == parts + "end\n", "{} bytes", outcome.stdout.len());
}

#[tokio::test]
async fn servers_of_a_tag_are_grouped_by_their_output() {
    let site = Site::start().await;
    let mut agents = Vec::new();
    for name in ["web-1", "web-2", "db-1"] {
        agents.push(site.agent(name, &["production"], &["--commands", "on"]).await);
    }
    let fails = agents[2].state.path().join("state").canonicalize().unwrap();
    let script = format!(
        "if ls -d /proc/$PPID/cwd -l | grep -q {}; then echo broken; exit 3; fi; seq 1 2000",
        fails.parent().unwrap().display()
    );

    let outcome = site.run(&["exec", "--tag", "production", "--concurrency", "2", "--", &script]).await;

    let long: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    let expected = format!("── 2 servers: web-1, web-2\n{long}\n── db-1 (failed, exit code 3)\nbroken\n");
    assert_eq!(outcome.stdout, expected);
    outcome.refused(1, "it did not succeed on 1 of 3 servers");
}

#[tokio::test]
async fn after_a_failure_the_rest_is_skipped_and_no_server_is_an_error() {
    let site = Site::start().await;
    let mut agents = Vec::new();
    for name in ["a-1", "a-2", "a-3"] {
        agents.push(site.agent(name, &["canary"], &["--commands", "on"]).await);
    }
    let arguments =
        ["exec", "--tag", "canary", "--concurrency", "1", "--stop-on-failure", "-o", "json", "--", "exit 1"];

    let outcome = site.run(&arguments).await;
    let nobody = site.run(&["exec", "--tag", "nothing", "--", "true"]).await;

    let batch: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        (outcome.code, &batch["counts"]["failed"], &batch["counts"]["skipped"]),
        (Some(1), &1.into(), &2.into())
    );
    nobody.refused(1, "tag \"nothing\": ");
}
