//! The live table.

use crate::support::Site;
use crate::terminal::Terminal;

#[tokio::test]
async fn the_table_is_live_and_leaves_the_terminal_as_it_was() {
    let site = Site::start().await;
    let _agent = site.agent("web-1", &["production"], &[]).await;

    let mut terminal = Terminal::start(&site, &["top", "--sort", "name"]);
    // A terminal gets only what has changed, so not every line is there as a whole.
    terminal.until("web-1").await;
    terminal.until("online").await;
    // The list is read again when a server is added.
    site.add_server("zz-new", &[]).await;
    terminal.until("zz-new").await;
    terminal.enter("/zz");
    terminal.until("filter:").await;
    terminal.enter("\rq");

    assert_eq!(terminal.ended().await, Some(0));
    // The first screen is back.
    terminal.until("\x1b[?1049l").await;
}

#[tokio::test]
async fn a_signal_restores_the_terminal() {
    let site = Site::start().await;
    site.add_server("web-1", &[]).await;
    let mut terminal = Terminal::start(&site, &["top"]);
    terminal.until("web-1").await;

    terminal.signal("TERM");

    assert_eq!(terminal.ended().await, Some(0));
    // The first screen is back.
    terminal.until("\x1b[?1049l").await;
}

#[tokio::test]
async fn programs_get_the_table_once() {
    let site = Site::start().await;
    site.add_server("web-2", &["production"]).await;
    site.add_server("web-1", &["production"]).await;
    site.add_server("db-1", &[]).await;

    let table = site.run(&["top", "--once", "--tag", "production", "--sort", "name"]).await;
    let json = site.run(&["top", "--once", "-o", "json"]).await;
    let live = site.run(&["top"]).await;

    let lines: Vec<&str> = table.done().lines().collect();
    assert_eq!(lines.len(), 3, "{table:?}");
    assert!(lines[1].starts_with("web-1  pending  "), "{table:?}");
    assert_eq!(json.json()[2]["state"]["status"], "pending");
    live.refused(2, "use --once");
}
