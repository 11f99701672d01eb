//! The shape of the code, enforced by tests: which module may name which, how long a file may be, and what is forbidden. A rule
//! that is wrong is changed here, in the same commit as the code that needs it.

// The exceptions of clippy.toml only apply to test functions; here every function is part of a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "tidy/imports.rs"]
mod imports;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/source.rs"]
mod source;

use imports::IMPORTS;
use source::{Source, exists, under};

/// Where the product's code lives.
const PRODUCT: &[&str] = &[
    "src",
    "agent/src",
    "cli/src",
    "history/src",
    "protocol/src",
    "signing/src",
    "entity/src",
    "migration/src",
    "store/src",
    "bench/src",
];

/// A file that fits a few screens has one reason to change.
const LONGEST_FILE: usize = 400;
/// Above this, files are being filled up to their bound.
const LARGEST_MEDIAN: usize = 200;

/// Code that is forbidden, in tests, too, and what to write instead.
const FORBIDDEN_CODE: &[(&str, &str)] = &[
    ("do_send", "never bounded: use try_send and count what was refused"),
    ("unbounded", "every queue is bounded"),
    ("Unbounded", "every queue is bounded"),
    ("#[ignore", "a test runs or is deleted"),
    ("todo!", "finish it or leave it out"),
    ("unimplemented!", "finish it or leave it out"),
    ("dbg!", "use tracing"),
    ("crate::*", "name what is used: a module that is not named is in no layer"),
    ("not(test)", "in CI clippy reads only what is compiled for tests (scripts/rustc-checked)"),
    ("not(any(test", "in CI clippy reads only what is compiled for tests (scripts/rustc-checked)"),
];

/// Words that are forbidden, in comments and tests, too.
const FORBIDDEN_WORDS: &[(&str, &str)] =
    &[("TODO", "do it, or open an issue"), ("FIXME", "fix it, or open an issue"), ("XXX", "say what is meant")];

/// Paths of a developer's machine, in comments and strings of the product.
const LOCAL_PATHS: &[&str] = &["/tmp/", "/home/", "/Users/"];

fn violation(source: &Source, line: usize, rule: &str) -> String {
    format!("{}:{line}: {rule}", source.path)
}

/// `src/fleet` holds `src/fleet.rs` and everything in `src/fleet/`.
fn is_under(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.strip_prefix(place).is_some_and(|rest| rest == ".rs" || rest.starts_with('/')))
}

/// Does a path start with these segments? A lone word is a variable or a field unless it is a whole path of two.
fn begins(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.starts_with("::") || (rest.is_empty() && is_distinct(name)))
}

/// `entity`, `migration` and `bench` are also ordinary words, and as such name no crate.
fn is_distinct(name: &str) -> bool {
    !["entity", "migration", "bench", "signalbox"].contains(&name)
}

fn forbidden_code(source: &Source) -> Vec<String> {
    find(source, &source.code, FORBIDDEN_CODE, |_, _| true)
}

fn forbidden_words(source: &Source) -> Vec<String> {
    find(source, &source.text, FORBIDDEN_WORDS, |line, word| {
        line.split(|c: char| !c.is_alphanumeric()).any(|w| w == word)
    })
}

fn local_paths(source: &Source) -> Vec<String> {
    let rules: Vec<(&str, &str)> = LOCAL_PATHS.iter().map(|path| (*path, "a path of one machine")).collect();
    find(source, &source.product_text, &rules, |_, _| true)
}

fn find(source: &Source, text: &str, rules: &[(&str, &str)], counts: fn(&str, &str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate();
    let hits = lines.flat_map(|(index, line)| {
        let broken = rules.iter().filter(move |(what, _)| line.contains(what) && counts(line, what));
        broken.map(move |(what, rule)| (index + 1, format!("{what}: {rule}")))
    });
    hits.map(|(line, rule)| violation(source, line, &rule)).collect()
}

fn too_long(sources: &[Source]) -> Vec<String> {
    let mut lengths: Vec<usize> = sources.iter().map(Source::product_lines).collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    let long = sources.iter().filter(|source| source.product_lines() > LONGEST_FILE);
    let mut violations: Vec<String> = long
        .map(|source| {
            violation(source, source.product_lines(), &format!("longer than {LONGEST_FILE} lines (median {median})"))
        })
        .collect();
    if median > LARGEST_MEDIAN {
        violations.push(format!("the median file has {median} lines, more than {LARGEST_MEDIAN}"));
    }
    violations
}

/// Every file of the product, of which there are some in every part.
fn product() -> Vec<Source> {
    PRODUCT
        .iter()
        .flat_map(|root| {
            let sources = under(root);
            assert!(!sources.is_empty(), "no sources in {root}");
            sources
        })
        .collect()
}

/// Every file of the tests next to a part of the product.
fn tests() -> Vec<Source> {
    let roots = PRODUCT.iter().map(|root| root.replace("src", "tests")).filter(|root| exists(root));
    roots.flat_map(|root| under(&root)).collect()
}

/// The product and its tests, without these files, because they have to spell what they forbid.
fn everything() -> Vec<Source> {
    let others = tests().into_iter().filter(|source| !source.path.starts_with("tests/tidy"));
    product().into_iter().chain(others).collect()
}

fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn modules_name_only_what_lies_below_them() {
    let sources = product();

    let violations: Vec<String> = sources.iter().flat_map(layers::violations).collect();

    assert_none(&violations);
    assert_none(&layers::misprints(&sources));
}

#[test]
fn modules_name_only_what_is_theirs_to_name() {
    let sources = product();

    let violations: Vec<String> =
        IMPORTS.iter().flat_map(|rule| sources.iter().flat_map(|source| rule.violations(source))).collect();

    assert_none(&violations);
}

#[test]
fn files_are_small() {
    assert_none(&too_long(&product()));
    assert_none(&too_long(&tests()));
}

#[test]
fn nothing_forbidden_is_written() {
    let sources = everything();

    let violations: Vec<String> =
        sources.iter().flat_map(|source| [forbidden_code(source), forbidden_words(source)].concat()).collect();

    assert_none(&violations);
}

#[test]
fn no_path_of_one_machine_is_written() {
    let violations: Vec<String> = product().iter().flat_map(local_paths).collect();

    assert_none(&violations);
}

/// The table of threats says which test holds each line.
#[test]
fn the_tests_that_the_security_document_names_exist() {
    let document = include_str!("../docs/security.md");
    let is_test = |word: &&str| {
        word.matches('_').count() >= 3
            && word.chars().all(|it| it == '_' || it.is_ascii_lowercase() || it.is_ascii_digit())
    };
    let named: Vec<&str> = document.split('`').filter(is_test).collect();
    assert!(named.len() > 20, "{named:?}");
    let sources = everything();
    let missing: Vec<&&str> =
        named.iter().filter(|name| !sources.iter().any(|it| it.text.contains(&format!("fn {name}(")))).collect();

    assert!(missing.is_empty(), "no such tests: {missing:?}");
    let tables = document.split("\n\n").filter(|it| it.lines().next().is_some_and(|head| head.ends_with("| test |")));
    let rows: Vec<&str> = tables.flat_map(|table| table.lines().skip(2)).collect();
    for row in &rows {
        let last = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        assert!(last.split('`').any(|word| is_test(&word)), "no test holds {row}");
    }
    assert!(rows.len() > 20, "{rows:?}");
}

/// The images are built from what `.dockerignore` lets through; a build needs the manifest of every crate of the workspace.
#[test]
fn every_crate_reaches_the_build_of_the_images() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let (manifest, ignored) = (read("Cargo.toml"), read(".dockerignore"));
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
    let members: Vec<&str> = members.split(',').map(|member| member.trim().trim_matches('"')).collect();
    assert!(members.len() > 5, "{members:?}");

    let is_there = |member: &str| {
        let wanted = [format!("!{member}"), format!("!{member}/Cargo.toml")];
        ignored.lines().any(|line| wanted.iter().any(|wanted| line == wanted))
    };
    let missing: Vec<&str> = members.into_iter().filter(|member| *member != "." && !is_there(member)).collect();

    assert_eq!(missing, [""; 0], "crates that .dockerignore leaves out");
}
