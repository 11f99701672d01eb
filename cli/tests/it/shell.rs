//! Terminals on real agents.

use crate::support::{Running, Site};
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
    terminal.enter("echo sleeping-$((1+2)); sleep 1000\r");
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
async fn a_service_that_goes_away_ends_the_shell_and_restores_the_terminal() {
    let mut site = Site::start().await;
    let (_agent, mut terminal) = opened(&site).await;

    site.crash();

    assert_eq!(terminal.ended().await, Some(1));
    terminal.until("the terminal has ended").await;
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
