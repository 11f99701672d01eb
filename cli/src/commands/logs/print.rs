//! Lines of logs, for people and for programs.

use regex::{Regex, RegexBuilder};

use super::source::Source;
use crate::api::types::LogLine;
use crate::error::Failure;
use crate::output::text::plain;
use crate::output::time::local_precise;
use crate::output::{Format, Out, Paint};

/// The service accepts no longer ones.
const MAX_PATTERN: usize = 256;
/// A pattern of the user's own: it bounds memory, nothing else.
const MAX_REGEX_BYTES: usize = 4 * 1024 * 1024;
const COLOURS: [Paint; 5] = [Paint::Cyan, Paint::Yellow, Paint::Green, Paint::Magenta, Paint::Blue];

/// Prints lines.
pub struct Printer {
    out: Out,
    pattern: Option<Regex>,
}

impl Printer {
    pub fn new(out: Out, pattern: Option<&str>) -> Result<Self, Failure> {
        let pattern = pattern.map(compiled).transpose()?;
        Ok(Self { out, pattern })
    }

    pub fn matches(&self, line: &LogLine) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&line.message))
    }

    /// Prints a line of one of `sources`.
    pub fn print(&self, sources: &[Source], index: usize, line: &LogLine) -> Result<(), Failure> {
        self.text(sources, index, line).map_or(Ok(()), |text| self.out.line(&text))
    }

    /// What is printed of a line, without its end.
    pub fn text(&self, sources: &[Source], index: usize, line: &LogLine) -> Option<String> {
        let source = sources.get(index)?;
        if self.out.format == Format::Json {
            return Some(self.out.json_line_text(&source.line(line)));
        }
        let mut text = String::new();
        if let Some(timestamp) = line.timestamp {
            text.push_str(&self.out.paint(Paint::Dim, &local_precise(timestamp)));
            text.push(' ');
        }
        if sources.len() > 1 {
            let colour = COLOURS.get(index % COLOURS.len()).copied().unwrap_or(Paint::Plain);
            text.push_str(&self.out.paint(colour, &source.label()));
            text.push(' ');
        }
        // `stdout` says nothing, and a program's name says who wrote it.
        if let Some(stream) = line.stream.as_deref().filter(|stream| *stream != "stdout") {
            let paint = if stream == "stderr" { Paint::Red } else { Paint::Bold };
            text.push_str(&self.out.paint(paint, &plain(stream)));
            text.push_str(": ");
        }
        let message = if self.out.is_terminal { plain(&line.message) } else { line.message.clone() };
        text.push_str(&self.marked(&message));
        Some(text)
    }

    /// With what the pattern matched in another colour.
    fn marked(&self, message: &str) -> String {
        match &self.pattern {
            Some(pattern) if self.out.colours => {
                let paint = |found: &regex::Captures<'_>| match found.get(0).map(|whole| whole.as_str()) {
                    Some(text) if !text.is_empty() => self.out.paint(Paint::Red, text),
                    _ => String::new(),
                };
                pattern.replace_all(message, paint).into_owned()
            }
            _ => message.to_owned(),
        }
    }
}

/// As the service reads a pattern: it ignores case unless there is a capital letter.
fn compiled(pattern: &str) -> Result<Regex, Failure> {
    if pattern.len() > MAX_PATTERN {
        return Err(Failure::usage(format!("the pattern is longer than {MAX_PATTERN} bytes")));
    }
    let has_capital = pattern.chars().any(char::is_uppercase);
    let regex = RegexBuilder::new(pattern).case_insensitive(!has_capital).size_limit(MAX_REGEX_BYTES).build();
    regex.map_err(|error| Failure::usage(format!("the pattern is no regular expression: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer(pattern: &str) -> Printer {
        let out = Out { format: Format::Table, colours: true, is_terminal: true };
        Printer::new(out, Some(pattern)).unwrap()
    }

    fn line(message: &str) -> LogLine {
        LogLine { timestamp: None, stream: None, message: message.to_owned() }
    }

    #[test]
    fn case_counts_only_if_the_pattern_has_a_capital_letter() {
        assert!(printer("error").matches(&line("ERROR: x")));
        assert!(printer("Error").matches(&line("Error: x")));
        assert!(!printer("Error").matches(&line("error: x")));
    }

    #[test]
    fn what_matched_is_marked() {
        assert_eq!(printer("b+").marked("abbc"), "a\u{1b}[31mbb\u{1b}[0mc");
        assert_eq!(printer("x*").marked("abc"), "abc");
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        let out = Out { format: Format::Table, colours: true, is_terminal: true };

        assert!(matches!(Printer::new(out, Some("(")), Err(Failure::Usage(_))));
        assert!(matches!(Printer::new(out, Some(&"a".repeat(257))), Err(Failure::Usage(_))));
    }
}
