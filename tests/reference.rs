//! The generated parts of the reference: `make docs` writes them from the program, and these tests compare them with it.

// The allowances of clippy.toml reach test functions only; here every function is part of a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "reference/flags.rs"]
mod flags;
#[path = "reference/generated.rs"]
mod generated;
#[path = "reference/script.rs"]
mod script;
#[path = "reference/series.rs"]
mod series;

use std::collections::BTreeSet;

use clap::CommandFactory;
use generated::{assert_current, read, table};
use signalbox::http::error::ErrorCode;
use signalbox::observe::describe::{COUNTERS, GAUGES, HISTOGRAMS};

#[test]
fn flags_are_those_of_the_programs() {
    let service = flags::service(&signalbox::cli::Cli::command());
    let agent = flags::agent(&signalbox_agent::cli::Cli::command());

    assert_current("docs/reference/flags.md", &[service, agent].concat());
}

#[test]
fn the_help_names_each_default() {
    let (service, agent) = (signalbox::cli::Cli::command(), signalbox_agent::cli::Cli::command());
    let serve = service.find_subcommand("serve").unwrap();

    for flag in serve.get_arguments().chain(agent.get_arguments()) {
        let is_optional = flag.get_action().takes_values() && !flag.is_required_set();
        let help = flag.get_help().unwrap().to_string();
        let has_default = !flag.get_default_values().is_empty() || help.contains("[default: ");
        assert!(has_default || !is_optional, "{flag}: {help}");
    }
}

#[test]
fn bounds_are_those_that_the_programs_enforce() {
    let service = flags::service(&signalbox::cli::Cli::command());
    let agent = flags::agent(&signalbox_agent::cli::Cli::command());
    let all: String = service.iter().chain(&agent).map(|(_, text)| text.as_str()).collect();

    for (flag, values) in [
        ("`--drain` `SIGNALBOX_DRAIN`", "0 to 5"),
        ("`--workers` `SIGNALBOX_WORKERS`", "1 to 1,024"),
        ("`--memory-budget` `SIGNALBOX_MEMORY_BUDGET`", "at least 64M"),
        ("`--registration` `SIGNALBOX_REGISTRATION`", "`open`, `closed`"),
        ("`--interval` `SIGNALBOX_AGENT_INTERVAL`", "0.5 to 3,600"),
    ] {
        assert!(all.contains(&format!("| {flag} | {values} |")), "{flag}: {all}");
    }
}

#[test]
fn error_codes_are_those_of_the_service() {
    let mut codes = ErrorCode::ALL;
    codes.sort_by_key(|code| (code.status().as_u16(), code.name()));

    let rows = codes.map(|code| {
        vec![code.status().as_u16().to_string(), format!("`{}`", code.name()), format!("{}.", code.meaning())]
    });

    let part = table(&["status", "code", "meaning"], rows);
    assert_current("docs/reference/errors.md", &[("codes".to_owned(), part)]);
}

#[test]
fn close_codes_are_those_of_the_protocol() {
    let constants = read("protocol/src/close.rs");
    let values = constants.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(" = "));
    let numbers: BTreeSet<&str> = values.map(|(_, number)| number.trim_end_matches(';')).collect();
    let document = read("docs/reference/errors.md");
    let (_, close_codes) = document.split_once("## Close codes").unwrap();

    let cells = close_codes.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let listed: BTreeSet<&str> = cells.map(|(code, _)| code).filter(|code| code.parse::<u16>().is_ok()).collect();

    assert!(!numbers.is_empty());
    assert_eq!(listed, numbers, "the table of close codes in docs/reference/errors.md");
}

#[test]
fn metrics_are_those_of_the_service() {
    let kinds: [(&str, &[(&str, &str)]); 3] =
        [("gauges", &GAUGES), ("counters", &COUNTERS), ("histograms", &HISTOGRAMS)];

    let parts = kinds.map(|(kind, metrics)| {
        let rows = metrics.iter().map(|(name, meaning)| vec![format!("`{name}`"), (*meaning).to_owned()]);
        (kind.to_owned(), table(&["metric", "meaning"], rows))
    });

    assert_current("docs/metrics.md", &parts);
}

#[test]
fn series_are_those_of_the_agent() {
    assert_current("docs/series.md", &[("series".to_owned(), series::table_of_all())]);
}

#[test]
fn options_of_the_install_script_are_those_of_its_document() {
    let script = script::options_of_usage(&read("packaging/install.sh"));

    let document = script::options_of_document(&read("docs/guides/agents.md"));

    assert!(!script.is_empty());
    assert_eq!(
        document, script,
        "the options in docs/guides/agents.md, \"Install an agent\", and in packaging/install.sh"
    );
}
