//! Terminals on real agents.

use crate::relay::Relay;
use crate::support::{Running, Site, eventually};
use crate::terminal::Terminal;

async fn opened(site: &Site) -> (crate::support::Agent, Terminal) {
    let agent = site.agent("web-1", &[], &["--terminal", "on"]).await;
    let terminal = Terminal::start(site, &["shell", "web-1"]);
    // What is typed is shown, too: only a shell has the result.
    terminal.enter("echo begun-$((40+2))\r");
    terminal.until("begun-42").await;
    (agent, terminal)
}

#[tokio::test]
async fn a_shell_takes_keys_sizes_and_its_own_end() {
    let site = Site::start().await;
    let (_agent, mut terminal) = opened(&site).await;

    terminal.enter("stty size; echo size-$((1+1))\r");
    terminal.until("size-2").await;
    assert!(terminal.shown().contains("30 100"), "{}", terminal.shown());
    terminal.resize(40, 120);
    // A shell that is about to start a program may take the signal for itself: here it is the program that says it runs.
    terminal.enter("sh -c 'echo sleeping-$((1+2)); exec sleep 1000'\r");
    terminal.until("sleeping-3").await;
    terminal.enter("\u{3}");
    terminal.until("^C").await;
    terminal.enter("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.05; done; echo interrupted-$((2+2))\r");
    terminal.until("interrupted-4").await;
    terminal.enter("exit\r");

    assert_eq!(terminal.ended().await, Some(0));
}

#[tokio::test]
async fn the_escape_sequence_and_a_signal_restore_the_terminal() {
    let site = Site::start().await;
    let (_agent, mut left) = opened(&site).await;
    left.enter("\r~?");
    left.until("~~  type ~").await;
    left.enter("\r~.");
    assert_eq!(left.ended().await, Some(0));
    left.until("The terminal has ended.").await;

    let mut ended = Terminal::start(&site, &["shell", "web-1"]);
    ended.enter("echo begun-$((40+2))\r");
    ended.until("begun-42").await;
    ended.signal("TERM");

    assert_eq!(ended.ended().await, Some(0));
}

#[tokio::test]
async fn a_shell_survives_a_lost_connection_and_shows_what_it_missed_once() {
    let site = Site::start().await;
    let agent = site.agent("web-1", &[], &["--terminal", "on"]).await;
    let relay = Relay::start(site.url.trim_start_matches("http://")).await;
    let mut command = site.command(&["shell", "web-1"]);
    command.env("SIGNALBOX_URL", relay.url());
    let mut terminal = Terminal::of(&command);
    let gate = agent.state.path().join("gate");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    terminal.enter(&format!("echo begun-$((40+2)); {waits}; echo missed-$((20+3))\r"));
    terminal.until("begun-42").await;

    relay.cut();
    terminal.until("reconnecting for up to 120 s, Ctrl-C gives up").await;
    std::fs::write(gate, "").unwrap();
    terminal.until("[connected again]").await;
    terminal.until("missed-23").await;
    relay.cut();
    eventually("it is connected again", async || (terminal.shown().matches("again]").count() == 2).then_some(())).await;
    terminal.enter("echo still-$((30+1)); exit\r");

    assert_eq!(terminal.ended().await, Some(0));
    terminal.until("still-31").await;
    let shown = terminal.shown();
    for once in ["begun-42", "missed-23", "still-31"] {
        assert_eq!(shown.matches(once).count(), 1, "{once} in {shown}");
    }
}

#[tokio::test]
async fn who_does_not_want_to_wait_for_the_service_leaves_with_ctrl_c() {
    let mut site = Site::start().await;
    let (_agent, mut terminal) = opened(&site).await;

    site.crash();
    terminal.until("reconnecting").await;
    terminal.enter("\u{3}");

    assert_eq!(terminal.ended().await, Some(1));
    terminal.until("given up: the terminal ends within").await;
}

#[tokio::test]
async fn a_service_that_was_started_again_has_no_terminal_any_more() {
    let mut site = Site::start().await;
    let (_agent, mut terminal) = opened(&site).await;

    site.crash();
    terminal.until("reconnecting").await;
    site.begin_again().await;

    assert_eq!(terminal.ended().await, Some(1));
    terminal.until("no such terminal").await;
}

#[tokio::test]
async fn without_a_terminal_or_the_right_there_is_a_reason() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &[], &[]).await;

    let piped = Running::start(site.command(&["shell", "web-1"])).outcome().await;
    let mut refused = Terminal::start(&site, &["shell", "web-1"]);

    piped.refused(2, "a shell needs a terminal");
    assert_eq!(refused.ended().await, Some(1));
    refused.until("web-1's agent does not allow terminals. On web-1, run:").await;
}
