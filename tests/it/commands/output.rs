//! The output of a command: in order, each byte once, and at most 1 MiB of it.

use serde_json::Value;
use signalbox_protocol::agent::{AgentMessage, CommandOutput};
use signalbox_protocol::agent::{CommandResult, CommandStatus, Stream};
use uuid::Uuid;

use crate::support::agent::FakeAgent;
use crate::support::site::Site;
use crate::support::text_of;

const MEBIBYTE: usize = 1 << 20;

/// Far longer than the line that says what was omitted.
const MARKER: usize = 256;

/// A site with a command that runs.
async fn scene() -> (Site, FakeAgent, Uuid) {
    let site = Site::start().await;
    let mut agent = site.agent().await;
    let id = site.running(&mut agent, "anything").await;
    (site, agent, id)
}

/// The command after its agent has ended it.
async fn ended(site: &Site, agent: &mut FakeAgent, id: Uuid) -> Value {
    agent.finish(id).await;
    site.command(id).await
}

/// Asserts that a long text was kept as its beginning, a line that says so, and its end.
#[track_caller]
fn assert_cut(text: &str, beginning: &str, end: &str) {
    assert!(text.len() <= MEBIBYTE + MARKER, "{} bytes", text.len());
    assert!(text.len() > MEBIBYTE / 2, "no more is left out than has to be: {} bytes", text.len());
    assert!(text.starts_with(beginning), "begins with {:?}", &text[..40]);
    assert!(text.ends_with(end), "ends with {:?}", &text[text.len() - 40..]);
}

#[actix_web::test]
async fn both_streams_are_shown_in_order_and_separately() {
    let (site, mut agent, id) = scene().await;

    for (stream, text) in [
        (Stream::Stdout, "1\n"),
        (Stream::Stderr, "2\n"),
        (Stream::Stdout, "3\n"),
        (Stream::Stdout, "4"),
        (Stream::Stderr, "5"),
    ] {
        agent.send_output(id, stream, text).await;
    }
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["output"], "1\n2\n3\n45");
    assert_eq!(result["stdout"], "1\n3\n4");
    assert_eq!(result["stderr"], "2\n5");
    assert_eq!(result["truncated"], false);
}

#[actix_web::test]
async fn no_output_is_empty_text() {
    let (site, mut agent, id) = scene().await;
    agent.send_output(id, Stream::Stdout, "").await;

    let result = ended(&site, &mut agent, id).await;

    for field in ["output", "stdout", "stderr"] {
        assert_eq!(result[field], "");
    }
}

#[actix_web::test]
async fn text_of_any_kind_is_kept_as_it_is() {
    let (site, mut agent, id) = scene().await;
    let strange = "nul \0 bell \u{7} escape \u{1b}[31m \u{fffd} \u{fffe} 漢字 🚂\r\n\"quoted\\\"";
    agent.send_output(id, Stream::Stdout, strange).await;

    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["output"], strange);
}

#[actix_web::test]
async fn repeated_output_is_shown_once() {
    let (site, mut agent, id) = scene().await;

    for (offset, data) in
        [(0, "hello "), (6, "brave "), (0, "hello "), (6, "brave "), (3, "lo brave new "), (16, "world")]
    {
        agent.send_output_at(id, offset, data).await;
    }
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["output"], "hello brave new world");
    assert_eq!(result["truncated"], false);
}

#[actix_web::test]
async fn repeated_output_after_a_break_is_shown_once() {
    let (site, mut agent, id) = scene().await;
    agent.send_output_at(id, 0, "before ").await;
    agent.settle(1).await;
    agent.socket.abort();
    let mut agent = site.agent_holding(&[id]).await;

    agent.send_output_at(id, 0, "before ").await;
    agent.send_output_at(id, 7, "after").await;
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["output"], "before after");
}

#[actix_web::test]
async fn what_the_agent_left_out_is_marked() {
    let (site, mut agent, id) = scene().await;

    agent.send_output_at(id, 0, "beginning\n").await;
    agent.send_output_at(id, 100_000_000, "end\n").await;
    let result = ended(&site, &mut agent, id).await;

    let output = text_of(&result["output"]);
    assert!(output.starts_with("beginning\n") && output.ends_with("end\n"), "{output}");
    assert!(output.len() > "beginning\nend\n".len(), "a marker says that something is missing: {output}");
    assert_eq!(result["truncated"], true);
}

#[actix_web::test]
async fn impossible_offsets_do_no_harm() {
    let (site, mut agent, id) = scene().await;

    agent.send_output_at(id, 0, "ää").await;
    for offset in [1, 3, u64::MAX, u64::MAX - 1, i64::MAX as u64, 1] {
        agent.send_output_at(id, offset, "ö").await;
    }
    let result = ended(&site, &mut agent, id).await;

    assert!(text_of(&result["output"]).starts_with('ä'), "{result}");
    site.running(&mut agent, "the service continues").await;
}

#[actix_web::test]
async fn a_flood_is_cut_in_the_middle() {
    let (site, mut agent, id) = scene().await;
    let line = "0123456789abcdef".repeat(4_096);

    agent.send_output(id, Stream::Stdout, "beginning\n").await;
    for _ in 0..64 {
        agent.send_output(id, Stream::Stdout, &line).await;
    }
    agent.send_output(id, Stream::Stdout, "\nend").await;
    agent.settle(1).await;
    let running = [site.command(id).await, site.commands().await[0].clone()];
    assert!(running.iter().all(|it| it["status"] == "running" && it["truncated"] == true), "{}", running[1]);
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["truncated"], true);
    assert_cut(&text_of(&result["output"]), "beginning\n0123", "cdef\nend");
    assert_cut(&text_of(&result["stdout"]), "beginning\n0123", "cdef\nend");
    assert_eq!(result["stderr"], "");
    assert_eq!(site.commands().await[0]["truncated"], true);
}

#[actix_web::test]
async fn one_message_of_a_flood_is_cut_too() {
    let (site, mut agent, id) = scene().await;
    let data = format!("beginning\n{}\nend", "ä".repeat(MEBIBYTE));

    agent.send_output(id, Stream::Stderr, &data).await;
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(result["truncated"], true);
    assert_cut(&text_of(&result["stderr"]), "beginning\nää", "ä\nend");
    assert_eq!(result["stdout"], "");
}

#[actix_web::test]
async fn exactly_a_mebibyte_is_kept_whole() {
    let (site, mut agent, id) = scene().await;
    let whole = "x".repeat(MEBIBYTE / 16);

    for _ in 0..16 {
        agent.send_output(id, Stream::Stdout, &whole).await;
    }
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(text_of(&result["output"]).len(), MEBIBYTE);
    assert_eq!(result["truncated"], false);

    // A character of three bytes crosses the middle.
    let whole = format!("x{}", "€".repeat(MEBIBYTE / 3));
    let id = site.running(&mut agent, "anything").await;
    agent.send_output(id, Stream::Stdout, &whole).await;
    let result = ended(&site, &mut agent, id).await;

    assert_eq!(whole.len(), MEBIBYTE);
    assert!(text_of(&result["output"]) == whole, "nothing is left out");
    assert_eq!(result["truncated"], false);
}

#[actix_web::test]
async fn many_small_pieces_of_a_flood_are_bounded_too() {
    let (site, mut agent, id) = scene().await;

    for number in 0..20_000 {
        let stream = if number % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
        agent.send_output(id, stream, "x").await;
    }
    let result = ended(&site, &mut agent, id).await;

    let (output, stdout) = (text_of(&result["output"]), text_of(&result["stdout"]));
    assert!(output.len() <= MEBIBYTE + MARKER && !stdout.is_empty(), "{} bytes", output.len());
    assert_eq!((output.len(), stdout.len()), (20_000, 10_000));
}

#[actix_web::test]
async fn output_after_the_end_changes_nothing() {
    let (site, mut agent, id) = scene().await;
    agent.send_output(id, Stream::Stdout, "all").await;
    let before = ended(&site, &mut agent, id).await;

    agent.send_output(id, Stream::Stdout, " and more").await;
    agent.settle(1).await;

    assert_eq!(site.command(id).await, before);
}

#[actix_web::test]
async fn what_the_agent_calls_truncated_is_truncated() {
    let (site, mut agent, id) = scene().await;
    agent.send_output(id, Stream::Stdout, "some").await;
    let status = CommandStatus::Succeeded.name().to_owned();
    let result = CommandResult { command_id: id, status, exit_code: Some(0), duration_ms: 1, truncated: true };

    agent.send(&AgentMessage::CommandResult(result)).await;
    agent.expect_result_ack(id).await;

    assert_eq!(site.command(id).await["truncated"], true);
}

#[actix_web::test]
async fn output_of_no_command_is_ignored() {
    let (site, mut agent, id) = scene().await;
    let stray =
        CommandOutput { command_id: Uuid::now_v7(), stream: Stream::Stdout, data: "stray".into(), offset: None };

    agent.send(&AgentMessage::CommandOutput(stray)).await;

    assert_eq!(ended(&site, &mut agent, id).await["output"], "");
    assert_eq!(site.commands().await.len(), 1);
}
