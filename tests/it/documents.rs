//! The documents: every block of theirs is read by what it is for, and what can be run safely is run.

mod blocks;
mod calls;
mod commands;
mod formats;
mod running;
mod shell;
mod signing;

use std::collections::BTreeSet;

use blocks::{Block, all, documents, prose_of, read};
use clap::CommandFactory;

/// Blocks that nothing reads, by a line of each, and why not.
const FOR_PEOPLE: [(&str, &str, &str); 11] = [
    ("CONTRIBUTING.md", "make check    ruled-out words", "two commands with what they do, in columns"),
    ("docs/guides/signalboxctl.md", "$ signalboxctl login", "a recorded session, with what the program printed"),
    ("docs/guides/signalboxctl.md", "Signing:\n  servers    web-1", "what the program prints before it signs"),
    ("docs/guides/signalboxctl.md", "The command waits for 1 more", "the same, of a command that waits"),
    ("docs/operate/instances.md", "load balancer ──HTTP──", "a drawing"),
    ("docs/operate/agent-updates.md", "release@example.com namespaces", "a file of ssh-keygen, with a key cut short"),
    ("docs/guides/signed-commands.md", "ada@example.org ssh-ed25519", "a file of ssh-keygen, with keys cut short"),
    (
        "docs/guides/signed-commands.md",
        "\"servers\": [\"web-1\"",
        "a payload, which the tests of agent/tests/signed make",
    ),
    ("docs/guides/signed-commands.md", "ssh-keygen -Y sign", "programs of others, which signing.rs runs"),
    ("docs/guides/signed-commands.md", "jq -n --slurpfile signed signed.json --arg server", "the same"),
    ("docs/guides/schedules.md", "\"repeat\": {", "a part of a payload, which tests/it/schedules/signed.rs makes"),
];

/// Flags that documents name in their sentences, and that are neither of our programs nor of install.sh.
const FLAGS_OF_OTHERS: [&str; 13] = [
    // cargo
    "--profile",
    "--release",
    "--test",
    "--tests",
    "--workspace",
    // docker
    "--network",
    "--pid",
    "--stop-timeout",
    // git, npm, sudo
    "--before",
    "--grep",
    "--preserve-env",
    // scripts/guard
    "--write",
    // systemctl
    "--now",
];

/// What is wrong with a block, by its language. Another language needs an arm here.
fn faults_of(block: &Block) -> Vec<String> {
    match block.language.as_str() {
        "sh" | "bash" => script(block),
        "toml" => formats::toml(block),
        "json" => formats::json(block),
        "yaml" => formats::yaml(block),
        "nginx" => formats::proxy(block, "packaging/proxies/nginx.conf"),
        "caddy" => formats::proxy(block, "packaging/proxies/Caddyfile"),
        "haproxy" => formats::proxy(block, "packaging/proxies/haproxy.cfg"),
        "ini" => formats::ini(block),
        "env" => formats::env(block),
        "crontab" => formats::crontab(block),
        "python" => formats::python(block),
        "text" if is_for_people(block) => Vec::new(),
        "text" => vec!["a block of no language: give it one, or say in FOR_PEOPLE why nothing can read it".to_owned()],
        "" => vec![
            "its fence needs a language: sh, toml, json, yaml, nginx, caddy, haproxy, ini, env, crontab, python; or \
                    text, with a reason in FOR_PEOPLE of tests/it/documents.rs"
                .to_owned(),
        ],
        other => vec![format!("nothing reads {other} yet: add what does to tests/it/documents.rs")],
    }
}

fn is_for_people(block: &Block) -> bool {
    FOR_PEOPLE.iter().any(|(path, line, _)| block.path == *path && block.text.contains(line))
}

fn script(block: &Block) -> Vec<String> {
    match formats::grammar(&block.language, &block.text) {
        Some(fault) => vec![fault],
        None => shell::commands_of(&block.text).iter().flat_map(commands::faults_of).collect(),
    }
}

#[test]
fn every_block_is_what_its_language_says() {
    let blocks = all();

    let faults: Vec<String> = blocks
        .iter()
        .flat_map(|block| faults_of(block).into_iter().map(|fault| format!("{}: {fault}", block.place())))
        .collect();

    assert!(blocks.len() > 40, "the documents have only {} blocks", blocks.len());
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    for (path, line, _) in FOR_PEOPLE {
        assert!(
            blocks.iter().any(|block| block.path == path && block.text.contains(line)),
            "{path} has no block `{line}`"
        );
    }
}

#[test]
fn every_flag_and_variable_of_the_sentences_exists() {
    let mut known: BTreeSet<String> = FLAGS_OF_OTHERS.map(str::to_owned).into();
    known.extend(["--help", "--version"].map(str::to_owned));
    collect(&signalbox::cli::Cli::command(), &mut known);
    collect(&signalbox_agent::cli::Cli::command(), &mut known);
    collect(&signalbox_agent::signed::explain::Owner::command(), &mut known);
    collect(&signalboxctl::cli::Cli::command(), &mut known);
    let script = read("packaging/install.sh");
    known
        .extend(script.lines().filter_map(|line| line.strip_prefix("  --")).map(|line| format!("--{}", word_of(line))));
    // Decisions are of their day.
    let paths = documents().into_iter().filter(|path| !path.starts_with("docs/decisions/"));

    let unknown: Vec<String> = paths
        .flat_map(|path| {
            let unknown = flags_in(&prose_of(&read(&path))).into_iter().filter(|flag| !known.contains(flag));
            unknown.map(|flag| format!("{path}: {flag}")).collect::<Vec<_>>()
        })
        .collect();

    assert!(unknown.is_empty(), "no program has these (or name them in FLAGS_OF_OTHERS):\n{}\n", unknown.join("\n"));
}

/// The long flags of a program and of its commands.
fn collect(command: &clap::Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")));
    command.get_subcommands().for_each(|subcommand| collect(subcommand, known));
}

/// Every `--flag` that begins a word of code in a text.
fn flags_in(text: &str) -> Vec<String> {
    let code = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = code.flat_map(|span| span.split([' ', '/', '(']));
    let flags = words.filter_map(|word| word.strip_prefix("--")).map(word_of);
    flags.filter(|name| !name.is_empty()).map(|name| format!("--{name}")).collect()
}

/// The name at the beginning of a text.
fn word_of(text: &str) -> &str {
    let end =
        text.find(|character: char| !character.is_ascii_lowercase() && !character.is_ascii_digit() && character != '-');
    &text[..end.unwrap_or(text.len())]
}
