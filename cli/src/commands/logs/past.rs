//! Lines that were written before.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::Logs;
use super::merge::Merge;
use super::print::Printer;
use super::source::Source;
use crate::api::parsed;
use crate::api::types::Logs as Found;
use crate::commands::Call;
use crate::error::Failure;
use crate::output;

/// Servers that search at the same time.
const AT_A_TIME: usize = 8;

pub async fn run(call: &Call, wishes: &Logs, sources: Vec<Source>, printer: Printer) -> Result<(), Failure> {
    let answers: Vec<Result<Found, Failure>> =
        stream::iter(&sources).map(|source| search(call, wishes, source)).buffered(AT_A_TIME).collect().await;
    let mut merge = Merge::of(sources.len());
    let mut failures = Vec::new();
    for (index, (answer, source)) in answers.into_iter().zip(&sources).enumerate() {
        match answer {
            Ok(found) => {
                if found.truncated {
                    output::complain(&format!(
                        "{}: the search took too long; older lines may be missing",
                        source.label()
                    ));
                }
                for line in found.lines {
                    merge.push(index, line.timestamp, Duration::ZERO, (index, line));
                }
            }
            Err(failure) => failures.push(failure),
        }
    }
    for (index, line) in merge.rest() {
        printer.print(&sources, index, &line)?;
    }
    // What could be read was shown. The last failure ends the program, the others are said here.
    let last = failures.pop();
    failures.iter().for_each(|failure| output::complain(&failure.to_string()));
    last.map_or(Ok(()), Err)
}

async fn search(call: &Call, wishes: &Logs, source: &Source) -> Result<Found, Failure> {
    let mut query = source.query();
    query.push(("tail", wishes.lines.to_string()));
    query.extend(wishes.since.map(|since| ("since", since.to_string())));
    query.extend(wishes.until.map(|until| ("until", until.to_string())));
    if let Some(pattern) = &wishes.pattern {
        query.push(("q", pattern.clone()));
        // Plain text is searched faster.
        if regex::escape(pattern) != *pattern {
            query.push(("regex", "true".to_owned()));
        }
    }
    let answer = call.api.get(&format!("/logs/{}", source.server.id), &query).await;
    parsed(answer.map_err(|failure| source.explained(failure, &call.api.service()))?)
}
