//! A program's settings from its environment: each flag is a variable, and an empty variable counts as not set. A variable that
//! looks like a flag's and is none is refused, because a misspelt setting without effect is worse than one that ends the
//! program.

use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::{Arg, Command, CommandFactory, FromArgMatches};

/// The names of a program's variables.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The prefix of the program's own variables.
    pub prefix: &'static str,
    /// Names with that prefix that belong to other programs. One that ends in `_` covers all that begin with it.
    pub others: &'static [&'static str],
}

/// A variable without effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} sets nothing; {}", instead(.nearest.as_deref()))]
pub struct UnknownVariable {
    pub name: String,
    /// The one that may have been meant.
    pub nearest: Option<String>,
}

/// How many letters a misspelt name may differ from the one that was meant; beyond that the nearest is arbitrary.
const MAX_MISSPELT: usize = 2;

/// How many letters a name needs for each wrong one: `FOO` is not a misspelt `LOG`.
const LETTERS_FOR_EACH: usize = 3;

fn instead(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("the nearest that does is {nearest}"),
        None => "--help names those that do".to_owned(),
    }
}

/// Reads the command line and the environment of this process.
pub fn parse<P: CommandFactory + FromArgMatches>() -> Result<P, clap::Error> {
    let mut command = prepared(P::command());
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    P::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Finds variables of this process that are meant for the program `P` and that it does not know.
pub fn check<P: CommandFactory>(names: Names) -> Result<(), UnknownVariable> {
    let mut known = Vec::new();
    collect(&P::command(), &mut known);
    first_unknown(names, &known, std::env::vars_os()).map_or(Ok(()), Err)
}

fn prepared(command: Command) -> Command {
    // Otherwise a command without its verb prints its help as an error, whose first line says nothing.
    command.arg_required_else_help(false).mut_args(prepared_argument).mut_subcommands(prepared)
}

fn prepared_argument(argument: Arg) -> Arg {
    let variable = argument.get_env().and_then(std::env::var_os);
    let argument = if variable.is_some_and(|value| value.is_empty()) {
        // As `${NAME:-}` of a compose file leaves it.
        argument.env(Resettable::Reset)
    } else {
        argument
    };
    // Otherwise `--days -1` is refused as an unknown flag `-1`, and not as a bad value of `--days`.
    let takes_value = argument.get_action().takes_values() && !argument.is_positional();
    if takes_value { argument.allow_negative_numbers(true) } else { argument }
}

fn collect(command: &Command, known: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(Arg::get_env);
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|subcommand| collect(subcommand, known));
}

fn first_unknown(
    names: Names,
    known: &[String],
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Option<UnknownVariable> {
    let mut unknown: Vec<String> = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, value)| {
            name.starts_with(names.prefix)
                && !known.contains(name)
                && !names.others.iter().any(|other| is_of(other, name))
                && !is_of_orchestrator(name, value)
        })
        .map(|(name, _)| name)
        .collect();
    // Always the same one.
    unknown.sort_unstable();
    let name = unknown.into_iter().next()?;
    let letters = name.len().saturating_sub(names.prefix.len());
    let most = (letters / LETTERS_FOR_EACH).clamp(1, MAX_MISSPELT);
    let nearest = known.iter().map(|known| (distance(&name, known), known)).min();
    let nearest = nearest.filter(|(distance, _)| *distance <= most).map(|(_, known)| known.clone());
    Some(UnknownVariable { name, nearest })
}

fn is_of(other: &str, name: &str) -> bool {
    if other.ends_with('_') { name.starts_with(other) } else { name == other }
}

/// Kubernetes and Docker's links set variables for neighbouring services in each container: a service `signalbox` becomes
/// `SIGNALBOX_SERVICE_HOST`, `SIGNALBOX_PORT=tcp://...`, `SIGNALBOX_PORT_8000_TCP_ADDR` and others.
fn is_of_orchestrator(name: &str, value: &OsStr) -> bool {
    let is_protocol = |text: &str| ["TCP", "UDP", "SCTP"].iter().any(|protocol| text.starts_with(protocol));
    let is_port = name.rsplit_once("_PORT_").is_some_and(|(before, port)| {
        // `SIGNALBOX_PORT_8000_TCP_PORT` ends in another port.
        let port = if is_protocol(port) { before.rsplit_once("_PORT_").map_or(port, |(_, port)| port) } else { port };
        port.split_once('_')
            .is_some_and(|(number, rest)| number.bytes().all(|byte| byte.is_ascii_digit()) && is_protocol(rest))
    });
    let is_address = name.ends_with("_PORT") && value.to_string_lossy().contains("://");
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || is_port || is_address
}

/// How many letters must be changed, added or removed to make one name the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.bytes().enumerate() {
        let (mut diagonal, mut left) = (above, above + 1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, wanted) in row.iter_mut().skip(1).zip(other.bytes()) {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = *cell;
            *cell = changed.min(*cell + 1).min(left + 1);
            left = *cell;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names = Names { prefix: "BOX_", others: &["BOX_AGENT_", "BOX_URL"] };

    fn unknown_of(variables: &[(&str, &str)]) -> Option<(String, Option<String>)> {
        let known = ["BOX_LISTEN", "BOX_LOG", "BOX_LOG_FORMAT"].map(str::to_owned);
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        first_unknown(NAMES, &known, variables).map(|unknown| (unknown.name, unknown.nearest))
    }

    #[test]
    fn a_misspelt_variable_is_found_with_the_nearest() {
        for (name, nearest) in [("BOX_LISTN", "BOX_LISTEN"), ("BOX_LOGFORMAT", "BOX_LOG_FORMAT"), ("BOX_LO", "BOX_LOG")]
        {
            assert_eq!(unknown_of(&[(name, "x")]), Some((name.to_owned(), Some(nearest.to_owned()))));
        }
    }

    #[test]
    fn a_variable_that_is_like_no_other_is_found_without_one() {
        let unknown = UnknownVariable { name: "BOX_TEST".to_owned(), nearest: None };

        assert_eq!(unknown_of(&[("BOX_TEST", "x")]), Some((unknown.name.clone(), None)));
        assert_eq!(unknown_of(&[("BOX_FOO", "x")]), Some(("BOX_FOO".to_owned(), None)));
        assert_eq!(unknown.to_string(), "the environment variable BOX_TEST sets nothing; --help names those that do");
    }

    #[test]
    fn known_and_foreign_variables_are_no_mistake() {
        let variables = [("BOX_LISTEN", "x"), ("BOX_AGENT_KYE", "x"), ("BOX_URL", "x"), ("PATH", "x"), ("BOXES", "x")];

        assert_eq!(unknown_of(&variables), None);
    }

    #[test]
    fn variables_of_an_orchestrator_are_no_mistake() {
        let variables = [
            ("BOX_SERVICE_HOST", "10.0.0.1"),
            ("BOX_SERVICE_PORT", "8000"),
            ("BOX_SERVICE_PORT_HTTP", "8000"),
            ("BOX_PORT", "tcp://10.0.0.1:8000"),
            ("BOX_PORT_8000_TCP", "tcp://10.0.0.1:8000"),
            ("BOX_PORT_8000_TCP_PROTO", "tcp"),
            ("BOX_PORT_8000_TCP_PORT", "8000"),
            ("BOX_PORT_8000_TCP_ADDR", "10.0.0.1"),
            ("BOX_NATS_PORT_4222_TCP", "tcp://10.0.0.2:4222"),
        ];

        for variable in variables {
            assert_eq!(unknown_of(&[variable]), None, "{variable:?}");
        }
        assert!(unknown_of(&[("BOX_PORT", "8000")]).is_some(), "a person meant a port");
    }

    #[test]
    fn a_distance_counts_letters() {
        for (one, other, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("listn", "listen", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
