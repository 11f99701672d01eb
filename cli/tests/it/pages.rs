//! What packages need.

use std::fs;

use crate::support::{Running, Site};

#[tokio::test]
async fn every_shell_has_completions_and_every_command_a_page() {
    let site = Site::start().await;
    let pages = site.home.path().join("man");

    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(site.run_plain(&["completions", shell]).await.done().contains("containers"), "{shell}");
    }
    let page = site.run_plain(&["man"]).await;
    site.run_plain(&["man", "--directory", pages.to_str().unwrap()]).await.done();

    assert!(page.done().contains(".TH signalboxctl 1"), "{page:?}");
    assert!(fs::read_to_string(pages.join("signalboxctl-exec.1")).unwrap().contains("signalboxctl\\-exec"));
    assert!(pages.join("signalboxctl-containers-restart.1").exists());
    assert!(fs::read_to_string(pages.join("signalboxctl-mcp.1")).unwrap().contains("Model Context Protocol"));
}

#[tokio::test]
async fn bash_takes_the_completions() {
    let site = Site::start().await;
    let script = site.run_plain(&["completions", "bash"]).await;
    let file = site.secret_file("completions", script.done());
    let mut command = std::process::Command::new("bash");
    command.args(["-c", "source \"$1\"; COMP_WORDS=(signalboxctl con); COMP_CWORD=1; _signalboxctl signalboxctl con signalboxctl; printf '%s ' \"${COMPREPLY[@]}\"", "bash", &file]);

    let outcome = Running::start(command).outcome().await;

    assert_eq!(outcome.done(), "context containers ");
}
