//! Tables of the flags and variables of both programs, from what their command lines know of themselves.

use clap::{Arg, Command};
use signalbox::config::PASSWORD_ITERATIONS;

use super::generated::table;

/// What a program shows without a heading.
const NO_HEADING: &str = "Service";
/// Above this a bound is only there so that a number fits.
const NO_REAL_BOUND: f64 = 1e9;

/// A command that does something: `audit verify`, not `audit`.
struct Leaf<'a> {
    words: Vec<&'a str>,
    command: &'a Command,
}

/// Flags under one heading.
struct Group<'a> {
    heading: &'a str,
    args: Vec<&'a Arg>,
}

/// The parts about the service, by name.
pub fn service(program: &Command) -> Vec<(String, String)> {
    let mut leaves = Vec::new();
    find_leaves(program, &[], &mut leaves);
    let serve = leaves.iter().find(|leaf| leaf.words == ["serve"]).expect("there is a command `serve`");
    let groups = groups_of(serve.command);

    let mut parts = vec![("commands".to_owned(), commands(program, &leaves))];
    parts.extend(groups.iter().map(|group| {
        let users = leaves.iter().filter(|leaf| has_all(leaf, group));
        let users: Vec<String> = users.map(|leaf| format!("`{}`", leaf.words.join(" "))).collect();
        let rows = flags(program, &["serve"], &group.args);
        (format!("serve: {}", group.heading), format!("These flags belong to {}.\n\n{rows}", listed(&users)))
    }));
    parts.push(("other commands".to_owned(), others(program, &leaves, &groups)));
    parts
}

/// The parts about the agent, by name.
pub fn agent(program: &Command) -> Vec<(String, String)> {
    let name = |group: &Group<'_>| {
        if group.heading == NO_HEADING { "agent".to_owned() } else { format!("agent: {}", group.heading) }
    };
    groups_of(program).iter().map(|group| (name(group), flags(program, &[], &group.args))).collect()
}

fn find_leaves<'a>(command: &'a Command, words: &[&'a str], found: &mut Vec<Leaf<'a>>) {
    for subcommand in command.get_subcommands() {
        let path = [words, &[subcommand.get_name()]].concat();
        if subcommand.has_subcommands() {
            find_leaves(subcommand, &path, found);
        } else {
            found.push(Leaf { words: path, command: subcommand });
        }
    }
}

fn groups_of(command: &Command) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for arg in command.get_arguments() {
        let heading = arg.get_help_heading().unwrap_or(NO_HEADING);
        match groups.iter_mut().find(|group| group.heading == heading) {
            Some(group) => group.args.push(arg),
            None => groups.push(Group { heading, args: vec![arg] }),
        }
    }
    groups
}

fn commands(program: &Command, leaves: &[Leaf<'_>]) -> String {
    let rows = leaves.iter().map(|leaf| {
        let operands = leaf.command.get_arguments().filter(|arg| arg.is_positional()).map(value_name);
        let words: Vec<String> = leaf.words.iter().map(|word| (*word).to_owned()).chain(operands).collect();
        let about = leaf.command.get_about().map(ToString::to_string).unwrap_or_default();
        vec![format!("`{} {}`", program.get_name(), words.join(" ")), marked(&about)]
    });
    table(&["command", "what it does"], rows)
}

fn flags(program: &Command, words: &[&str], args: &[&Arg]) -> String {
    table(&["flag and variable", "values", "default", "meaning"], args.iter().map(|arg| cells(program, words, arg)))
}

/// What commands other than `serve` take that is in none of the tables before.
fn others(program: &Command, leaves: &[Leaf<'_>], groups: &[Group<'_>]) -> String {
    let mut rows = Vec::new();
    for leaf in leaves.iter().filter(|leaf| leaf.words != ["serve"]) {
        let above: Vec<&Group<'_>> = groups.iter().filter(|group| has_all(leaf, group)).collect();
        let is_above = |arg: &Arg| above.iter().flat_map(|group| &group.args).any(|other| is_same(other, arg));
        for arg in leaf.command.get_arguments().filter(|arg| !is_above(arg)) {
            let command = vec![format!("`{}`", leaf.words.join(" "))];
            rows.push([command, cells(program, &leaf.words, arg)].concat());
        }
    }
    table(&["command", "flag and variable", "values", "default", "meaning"], rows)
}

fn has_all(leaf: &Leaf<'_>, group: &Group<'_>) -> bool {
    group.args.iter().all(|arg| leaf.command.get_arguments().any(|other| is_same(other, arg)))
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    let says = |arg: &Arg| arg.get_help().map(ToString::to_string);
    one.get_long() == other.get_long()
        && one.get_env() == other.get_env()
        && one.get_default_values() == other.get_default_values()
        && says(one) == says(other)
}

/// Flag and variable, values, default, meaning.
fn cells(program: &Command, words: &[&str], arg: &Arg) -> Vec<String> {
    let name = arg.get_long().map_or_else(|| format!("`{}`", value_name(arg)), |long| format!("`--{long}`"));
    let variable = arg.get_env().map(|variable| format!(" `{}`", variable.to_string_lossy())).unwrap_or_default();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    // Defaults that depend on something stand in the text.
    let (meaning, described) = help.split_once(" [default: ").unwrap_or((help.as_str(), ""));
    let described = described.trim_end_matches(']');
    let fixed = arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    let fixed: Vec<String> = fixed.collect();
    let default = if !arg.get_action().takes_values() {
        String::new()
    } else if !fixed.is_empty() {
        fixed.join(", ")
    } else if !described.is_empty() {
        marked(described)
    } else if arg.is_required_set() {
        "required".to_owned()
    } else {
        "none".to_owned()
    };
    vec![format!("{name}{variable}"), values(program, words, arg), default, marked(meaning)]
}

fn value_name(arg: &Arg) -> String {
    arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default()
}

fn values(program: &Command, words: &[&str], arg: &Arg) -> String {
    let Some(long) = arg.get_long().filter(|_| arg.get_action().takes_values()) else { return String::new() };
    let choices: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    if long == "password-iterations" {
        // These tests are a debug build, whose bound is lower.
        return format!("at least {}", grouped(&PASSWORD_ITERATIONS.to_string()));
    }
    let line = [program.get_name()].into_iter().chain(words.iter().copied()).map(str::to_owned);
    let line = line.chain([format!("--{long}"), "?".to_owned()]);
    let refusal = program.clone().try_get_matches_from(line).err().map(|refusal| refusal.to_string());
    refusal.as_deref().and_then(bounds).unwrap_or_else(|| format!("`{}`", value_name(arg)))
}

/// The bounds that a refusal names: `... from 1 to 9 ...`, `... at least 64M ...`.
fn bounds(refusal: &str) -> Option<String> {
    if let Some((_, rest)) = refusal.split_once(" at least ") {
        let least = rest.split([',', ' ', '\n']).next()?;
        return least.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("at least {least}"));
    }
    let (least, rest) = refusal.split_once(" from ")?.1.split_once(" to ")?;
    let most = rest.split_whitespace().next()?;
    least.parse::<f64>().ok()?;
    let is_real = most.parse::<f64>().ok()? <= NO_REAL_BOUND;
    let least = grouped(least);
    Some(if is_real { format!("{least} to {}", grouped(most)) } else { format!("at least {least}") })
}

/// `600000` as `600,000`.
fn grouped(number: &str) -> String {
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut text = String::new();
    for (index, digit) in number.chars().enumerate() {
        if index > 0 && (number.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// A text with its flags, variables, addresses and paths as code.
fn marked(text: &str) -> String {
    text.split(' ').map(marked_word).collect::<Vec<_>>().join(" ")
}

fn marked_word(word: &str) -> String {
    let core = word.trim_start_matches('(').trim_end_matches([',', ';', ':', ')', '?']);
    let core = if core.ends_with("...") { core } else { core.trim_end_matches('.') };
    let begins = ["--", "/", "$", "~/", "signalbox-"].iter().any(|beginning| core.starts_with(beginning));
    let is_network = core.contains('/') && core.starts_with(|first: char| first.is_ascii_digit());
    if begins || is_network || ["://", "_", "=", "@"].iter().any(|part| core.contains(part)) {
        word.replacen(core, &format!("`{core}`"), 1)
    } else {
        word.to_owned()
    }
}

#[test]
fn bounds_are_read_from_a_refusal() {
    for (refusal, expected) in [
        ("a whole number from 2 to 1000 is needed", Some("2 to 1,000")),
        ("a whole number from 600000 to 4294967295 is needed", Some("at least 600,000")),
        ("a size is a number of at least 64M, such as 512M", Some("at least 64M")),
        ("a number of seconds from 0.5 to 3600 is needed", Some("0.5 to 3,600")),
        ("an argument from there to here", None),
        ("no bounds", None),
    ] {
        assert_eq!(bounds(refusal).as_deref(), expected, "{refusal}");
    }
}

#[test]
fn what_is_typed_is_marked() {
    assert_eq!(marked("See (/readyz), --url or 10.0.0.0/8."), "See (`/readyz`), `--url` or `10.0.0.0/8`.");
    assert_eq!(marked("postgres://... or CA certificates (PEM)"), "`postgres://...` or CA certificates (PEM)");
}
