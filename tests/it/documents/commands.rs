//! Commands of the documents, each read by the program that a person would give it to. Nothing runs that changes anything.

use std::process::Command;

use clap::{CommandFactory, Parser};

use super::blocks::{read, root};
use super::calls;
use super::shell::Simple;

/// What a reader's machine brings: what these do with their arguments is not ours to check.
const OTHERS: [&str; 32] = [
    "apt",
    "apt-get",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cp",
    "createdb",
    "createuser",
    "dnf",
    "echo",
    "export",
    "git",
    "grep",
    "install",
    "journalctl",
    "mkdir",
    "mv",
    "openssl",
    "printf",
    "read",
    "rm",
    "sed",
    "set",
    "sha256sum",
    "sleep",
    "ssh-keygen",
    "stty",
    "systemctl",
    "umask",
    "uname",
    "vite",
];

/// Variables of the environment that no flag has: of install.sh, of builds, of the tests and of the interface's development.
const VARIABLES: [&str; 7] = [
    "SIGNALBOX_AGENT_KEY",
    "SIGNALBOX_ENROLMENT_TOKEN",
    "SIGNALBOX_ROOT",
    "SIGNALBOX_TOKEN",
    "SIGNALBOX_URL",
    "SIGNALBOX_WEB_DIST",
    "SIGNALBOX_WEB_FRONT",
];

/// What stands for something of the reader's, and what a program takes in its place.
const PLACEHOLDERS: [(&str, &str); 2] = [
    // A directory has to be there.
    ("/usr/share/signalbox/agents", "/"),
    ("5f0c...", "5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c5f0c"),
];

/// Options of `docker run` that have a value.
const DOCKER_VALUES: [&str; 10] =
    ["--cap-drop", "--env", "--name", "--network", "--pid", "--restart", "--stop-timeout", "-e", "-p", "-v"];
const DOCKER_FLAGS: [&str; 4] = ["--read-only", "--rm", "-d", "-it"];

/// What is wrong with a command, if anything.
pub fn faults_of(command: &Simple) -> Vec<String> {
    let mut faults: Vec<String> =
        command.assignments.iter().filter_map(|(name, value)| variable(name, value).err()).collect();
    if let Some(text) = &command.here {
        faults.extend(environment_file(text));
    }
    let words: Vec<&str> = command.words.iter().map(|word| filled(word)).collect();
    if let Some((program, arguments)) = words.split_first() {
        faults.extend(call(program, arguments).err());
    }
    faults.extend(command.words.iter().filter_map(|word| missing_file(word)));
    faults
}

/// Lines `NAME=value`, as a file of the environment has them.
pub fn environment_file(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let checked = lines.map(|line| match line.split_once('=') {
        Some((name, value)) => variable(name, value),
        None => Err(format!("`{line}` sets no variable")),
    });
    checked.filter_map(Result::err).collect()
}

fn filled(word: &str) -> &str {
    PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == word).map_or(word, |(_, value)| *value)
}

/// What is wrong with a command line that no shell reads.
pub fn fault_of_program(program: &str, arguments: &[String]) -> Option<String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    call(program, &arguments).err()
}

fn call(program: &str, arguments: &[&str]) -> Result<(), String> {
    let name = program.rsplit('/').next().unwrap_or_default();
    match name {
        "signalbox" => service(arguments),
        "signalbox-agent" => parsed::<signalbox_agent::cli::Cli>("signalbox-agent", arguments),
        "signalboxctl" => parsed::<signalboxctl::cli::Cli>("signalboxctl", arguments),
        "curl" => calls::check(arguments),
        "sudo" => sudo(arguments),
        "sh" => script(arguments),
        "docker" => docker(arguments),
        "make" => make(arguments),
        "cargo" => cargo(arguments),
        "npm" => npm(arguments),
        "npx" | "env" => arguments.split_first().map_or(Ok(()), |(inner, rest)| call(inner, rest)),
        _ if OTHERS.contains(&name) && !program.contains('/') => Ok(()),
        _ if is_ours(program) => Ok(()),
        _ => Err(format!(
            "{program}: say in tests/it/documents/commands.rs what checks it, or that nothing has to (OTHERS)"
        )),
    }
}

/// A program of the repository: by its path, or where a document says to install it.
fn is_ours(program: &str) -> bool {
    match program.strip_prefix("/usr/local/bin/") {
        Some(name) => root().join("scripts").join(name).is_file(),
        None if program.starts_with('/') || !program.contains('/') => false,
        None => root().join(program.trim_start_matches("../").trim_start_matches("./")).is_file(),
    }
}

/// A word that names a file of the repository which is not there.
fn missing_file(word: &str) -> Option<String> {
    let path = word.trim_start_matches("../").trim_start_matches("./");
    let is_of_repository = ["packaging/", "scripts/", "tests/", "docs/"].iter().any(|folder| path.starts_with(folder));
    (is_of_repository && !root().join(path).exists()).then(|| format!("{path} is not in the repository"))
}

fn parsed<P: Parser>(program: &str, arguments: &[&str]) -> Result<(), String> {
    let line = [program].into_iter().chain(arguments.iter().copied());
    match P::try_parse_from(line) {
        Err(refusal) if refusal.use_stderr() => Err(format!("{program} refuses: {refusal}")),
        _ => Ok(()),
    }
}

fn service(arguments: &[&str]) -> Result<(), String> {
    let mut arguments = arguments.to_vec();
    if arguments.first() == Some(&"import") {
        // The one flag that is required. The documents export its variable, because its value contains a password.
        arguments.extend(["--database-url", "postgres://db.internal/signalbox"]);
    }
    parsed::<signalbox::cli::Cli>("signalbox", &arguments)
}

/// One of ours must be known to a program, and its value must be one that its flag takes.
fn variable(name: &str, value: &str) -> Result<(), String> {
    if !name.starts_with("SIGNALBOX_") || VARIABLES.contains(&name) {
        return Ok(());
    }
    let flag_of = |command: &clap::Command| {
        let found = command.get_arguments().find(|arg| arg.get_env().is_some_and(|known| known == name));
        found.and_then(|arg| arg.get_long()).map(|long| format!("--{long}={}", filled(value)))
    };
    if let Some(flag) = flag_of(&signalbox::cli::Cli::command()) {
        return service(&["serve", &flag]);
    }
    if let Some(flag) = flag_of(&signalbox_agent::cli::Cli::command()) {
        return parsed::<signalbox_agent::cli::Cli>("signalbox-agent", &["--url", "http://127.0.0.1:8000", &flag]);
    }
    Err(format!("no program has the variable {name}"))
}

fn sudo(arguments: &[&str]) -> Result<(), String> {
    let at = arguments.iter().position(|word| !word.starts_with('-'));
    let (program, rest) = at.and_then(|at| arguments[at..].split_first()).ok_or("sudo runs nothing")?;
    call(program, rest)
}

/// The install script, from a pipe: it reads all its options before it does the first of them.
fn script(arguments: &[&str]) -> Result<(), String> {
    let options = match arguments {
        [] => arguments,
        ["-s", "--", options @ ..] => options,
        _ => return Err(format!("sh {}: only a script from a pipe is expected", arguments.join(" "))),
    };
    let mut command = Command::new("sh");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let output = command.arg(root().join("packaging/install.sh")).args(options).arg("--help").output().unwrap();
    let refusal = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(refusal) }
}

fn docker(arguments: &[&str]) -> Result<(), String> {
    let Some((&"run", mut rest)) = arguments.split_first() else { return Ok(()) };
    while let Some((word, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        if !DOCKER_FLAGS.contains(word) && !DOCKER_VALUES.contains(word) {
            return Err(format!("docker run {word}: say in DOCKER_FLAGS or DOCKER_VALUES whether it has a value"));
        }
        let values = usize::from(DOCKER_VALUES.contains(word));
        rest = after.get(values..).unwrap_or_default();
    }
    match rest.split_first() {
        Some((&"signalbox", inner)) => service(inner),
        Some((&"signalbox-agent", inner)) => parsed::<signalbox_agent::cli::Cli>("signalbox-agent", inner),
        other => Err(format!("docker runs {other:?}, which is none of our images")),
    }
}

fn make(arguments: &[&str]) -> Result<(), String> {
    let makefile = read("Makefile");
    let is_target =
        |word: &str| word.contains('=') || makefile.lines().any(|line| line.starts_with(&format!("{word}:")));
    match arguments.iter().find(|word| !is_target(word)) {
        Some(word) => Err(format!("the Makefile has no target {word}")),
        None => Ok(()),
    }
}

/// Packages and profiles that a build names must be there.
fn cargo(arguments: &[&str]) -> Result<(), String> {
    let manifest = read("Cargo.toml");
    let packages = ["signalbox", "signalbox-agent", "signalboxctl", "bench"];
    for pair in arguments.windows(2) {
        let is_there = match pair[0] {
            "-p" | "--package" => packages.contains(&pair[1]),
            "--profile" => manifest.contains(&format!("\n[profile.{}]\n", pair[1])),
            "--features" => {
                pair[1].split_once('/').is_some_and(|(_, feature)| manifest.contains(&format!("\n{feature} = [")))
            }
            _ => true,
        };
        if !is_there {
            return Err(format!("cargo {} {}: there is no such thing", pair[0], pair[1]));
        }
    }
    Ok(())
}

fn npm(arguments: &[&str]) -> Result<(), String> {
    let scripts: serde_json::Value = serde_json::from_str(&read("web/package.json")).unwrap();
    let mut after_run = arguments.iter().skip_while(|word| **word != "run").skip(1);
    match after_run.find(|word| !word.starts_with('-')) {
        Some(name) if scripts["scripts"][*name].is_null() => Err(format!("web/package.json has no script {name}")),
        _ => Ok(()),
    }
}

#[test]
fn what_no_program_knows_is_a_fault() {
    for (script, named) in [
        ("signalbox serve --data-directory ./data", "--data-directory"),
        ("SIGNALBOX_LISTN=127.0.0.1:0 signalbox", "SIGNALBOX_LISTN"),
        ("target/release/signalbox-agent --url http://a --key-fil agent.key", "--key-fil"),
        ("curl -fsSL https://signalbox.example.com/install.sh | sudo sh -s -- --kee sbk_...", "--kee"),
        ("docker run -d --name signalbox signalbox backup", "FILE"),
        ("docker run --nmae signalbox signalbox", "--nmae"),
        ("signalboxctl exec web-1 --tga a -- true", "--tga"),
        ("make doc", "doc"),
        ("scripts/no-such", "scripts/no-such"),
        ("frobnicate", "frobnicate"),
        ("cat >a.env <<END\nSIGNALBOX_DRAIN=99\nEND", "from 0 to 5"),
    ] {
        let faults: Vec<String> = super::shell::commands_of(script).iter().flat_map(faults_of).collect();

        assert!(faults.iter().any(|fault| fault.contains(named)), "{script}: {faults:?}");
    }
}
