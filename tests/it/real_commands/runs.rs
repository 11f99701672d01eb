//! Commands that nothing disturbs.

use futures_util::future::join_all;
use serde_json::json;

use super::Scene;
use crate::support::commands::answered;
use crate::support::machine::{has_had_child, threads_of_its_user};
use crate::support::{eventually, text_of};

/// How much output of a command is kept.
const KEPT_BYTES: usize = 1 << 20;

/// As many as an agent runs at once, and fewer than it may.
const MANY: usize = 200;

#[actix_web::test]
async fn exit_codes_and_signals_are_reported() {
    let scene = Scene::start().await;
    let cases = [
        ("true", "succeeded", 0),
        ("exit 7", "failed", 7),
        ("/etc", "failed", 126),
        ("no-such-program", "failed", 127),
        ("kill -TERM $$", "failed", 143),
        ("kill -KILL $$", "failed", 137),
        ("sh -c 'kill -SEGV $$'; exit $?", "failed", 139),
    ];

    for (command, status, exit_code) in cases {
        let result = scene.run(command).await;

        assert_eq!((&result["status"], &result["exit_code"]), (&json!(status), &json!(exit_code)), "{command}");
        assert_eq!(result["truncated"], false, "{command}");
    }
    // So that other tests may rely on it.
    assert!(has_had_child(scene.agent.id()));
}

#[actix_web::test]
async fn input_reaches_the_command_and_both_streams_come_back() {
    let scene = Scene::start().await;
    let input = "grüße, 0123456789 \u{1F600}\n".repeat(2_000);

    let body = json!({"command": "cat; echo done >&2", "stdin": input});
    let with_input = answered(scene.site.run_body("", body)).await.json();
    let without = scene.run("wc -c").await;

    assert!(with_input["stdout"] == input.as_str(), "{} bytes", text_of(&with_input["stdout"]).len());
    assert_eq!((&with_input["stderr"], &with_input["exit_code"]), (&json!("done\n"), &json!(0)));
    assert_eq!(without["stdout"], "0\n");
}

#[actix_web::test]
async fn what_is_no_utf8_is_replaced() {
    let scene = Scene::start().await;

    let result = scene.run(r"printf 'a\377b\303'; printf '\360\237\230' >&2").await;

    assert_eq!(result["stdout"], "a\u{FFFD}b\u{FFFD}");
    assert_eq!(result["stderr"], "\u{FFFD}");
    assert_eq!(result["status"], "succeeded");
}

#[actix_web::test]
async fn of_100_mb_the_beginning_and_the_end_are_kept() {
    let scene = Scene::start().await;

    let result = scene.run("echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end").await;

    assert_eq!((&result["status"], &result["truncated"]), (&json!("succeeded"), &json!(true)));
    let output = text_of(&result["output"]);
    assert!(output.starts_with("begin\nxxx") && output.ends_with("xxx\nend\n"));
    let kept = output.bytes().filter(|byte| *byte == b'x').count();
    assert!((KEPT_BYTES * 9 / 10..=KEPT_BYTES).contains(&kept), "{kept} bytes");
    let marker = output.trim_matches(|letter| "begin\nxd".contains(letter));
    assert!(marker.len() < 100 && output.len() <= KEPT_BYTES + 200, "{marker}");
    // What is reported as omitted, and what is stored, is all there was.
    let digits: String = marker.chars().filter(char::is_ascii_digit).collect();
    let whole = "begin\n\nend\n".len() + 100_000_000;
    assert_eq!(digits.parse::<usize>().unwrap() + kept + "begin\n\nend\n".len(), whole, "{marker}");
}

#[actix_web::test]
async fn what_runs_on_in_the_background_is_not_waited_for_and_left_alone() {
    let scene = Scene::start().await;

    let result = scene.run(&format!("X={} sleep 1000 & echo $!", scene.machine.marker)).await;

    assert_eq!(result["status"], "succeeded");
    assert!(result["duration_ms"].as_u64().unwrap() < 30_000, "{result}");
    let pid: u32 = text_of(&result["stdout"]).trim().parse().unwrap();
    // The shell may have ended before its background process became that program.
    eventually("the program runs on", async || {
        let running = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        (running == "sleep\x001000\0").then_some(())
    })
    .await;
}

#[actix_web::test]
async fn a_timeout_leaves_no_process() {
    let scene = Scene::start().await;
    let stubborn = "trap '' TERM; sleep 1000 & (sleep 1000; :) & echo begun; sleep 1000; :";
    let body = json!({"command": format!("X={}; export X; {stubborn}", scene.machine.marker), "timeout_seconds": 30});

    let pending = scene.site.run_body("", body);
    scene.machine.until_processes(4).await;
    let result = answered(pending).await.json();

    assert_eq!((&result["status"], &result["exit_code"]), (&json!("timed_out"), &json!(124)), "{result}");
    assert_eq!(result["stdout"], "begun\n");
    scene.machine.until_no_process().await;
}

#[actix_web::test]
async fn a_fork_bomb_within_limits_ends_with_its_command() {
    let scene = Scene::start().await;
    let limit = threads_of_its_user(scene.agent.id()) + 100;
    let bomb = format!("prlimit --nproc={limit} sh -c 'bomb() {{ while :; do (bomb) & (bomb); done; }}; bomb'");
    let command = format!("sleep 1000 & last=$!; {bomb} {} & wait $last", scene.machine.marker);

    let id = scene.site.begin(&command).await;
    eventually("the limit is reached", async || {
        text_of(&scene.site.command(id).await["stderr"]).contains("fork").then_some(())
    })
    .await;
    answered(scene.site.cancel(id)).await;
    scene.site.until_command(id, "cancelled").await;

    scene.machine.until_no_process().await;
    assert_eq!(scene.run("true").await["status"], "succeeded");
}

#[actix_web::test]
async fn a_cancelled_command_leaves_no_process() {
    let scene = Scene::start().await;
    let id = scene.site.begin(&format!("X={} sleep 1000 | sleep 1000; echo never", scene.machine.marker)).await;
    scene.machine.until_processes(2).await;

    answered(scene.site.cancel(id)).await;
    let result = scene.site.until_command(id, "cancelled").await;

    assert_eq!((&result["stdout"], &result["exit_code"]), (&json!(""), &json!(143)));
    scene.machine.until_no_process().await;
}

#[actix_web::test]
async fn two_hundred_at_once_each_have_their_own_result() {
    let scene = Scene::start().await;
    let (gate, marker) = (scene.machine.gate(), &scene.machine.marker);
    let command = |number| format!("echo out-{number}; {}; echo err-{number} >&2 # {marker}", gate.wait());

    let all: Vec<_> = (0..MANY).map(|number| scene.site.run(&command(number))).collect();
    scene.machine.until_processes(MANY).await;
    gate.open();
    let results = join_all(all.into_iter().map(answered)).await;

    for (number, answer) in results.iter().enumerate() {
        assert_eq!(answer.status, 200, "{number}: {answer}");
        let result = answer.json();
        assert_eq!(result["status"], "succeeded", "{number}");
        assert_eq!(result["stdout"], format!("out-{number}\n"));
        assert_eq!(result["stderr"], format!("err-{number}\n"));
    }
}
